/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where epoll watches a completion channel (doc/adr/0076).
 *
 * Event loops take a channel out of epoll and put it in again between two waits, as they want to
 * read or to write. The thread that waits on that epoll descriptor, where no other thread waits,
 * spares the kernel what is undone before its next wait: epoll_ctl() is answered here, and whatever
 * is different then is done before anybody waits.
 */
#ifndef UWARP_WATCH_H
#define UWARP_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

struct fd_obj;

/* Of one channel. All fields: fdtab_lock(). */
struct watch {
	TAILQ_ENTRY(watch) link; /* while it is due */
	struct fd_obj *channel;
	unsigned n;	 /* epoll descriptors that watch the channel, of several closed ones, too;
			  * the rest is right for one */
	int epfd, fd;	 /* epoll's descriptor, and the channel's there */
	uint32_t epolls; /* waits_epolls_of(epfd) when it was noted: another may have the number */
	struct epoll_event in_kernel, wanted;
	bool is_wanted;
	bool is_due;	     /* the kernel has not what is wanted */
	uint64_t checked_us; /* when the channel's number was last seen to be its own */
};

/* Channels of which the kernel has not what is wanted. */
extern _Atomic unsigned watch_due;

/* epoll_ctl() for fd, which is a descriptor of w's channel. 0 or a negative errno. */
int watch_ctl_locked(struct watch *w, int epfd, int op, int fd, struct epoll_event *event);

/* Is the channel watched for input by epfd alone, without flags for which epoll tells less than
 * there is? */
bool watch_is_plain_locked(const struct watch *w, int epfd);
/* Has the program the channel under the number that it had? Asked once in a millisecond. */
bool watch_is_channel_locked(struct watch *w);

/* The kernel gets what is wanted of this channel; of all that a wait with epfd may tell of. */
void watch_settle_locked(struct watch *w);
void watch_settle_all(int epfd);

/* Before a wait with epfd; before another one (-1). */
static inline void watch_settle(int epfd)
{
	if (__builtin_expect(atomic_load(&watch_due), 0))
		watch_settle_all(epfd);
}

/* epoll watches it no more: it was closed, or is a forked child's and so another file. */
void watch_forget_locked(struct watch *w);

#endif
