/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion events that the program gets without the channel's pipe (doc/adr/0076).
 *
 * A thread that runs the stack makes events for itself: its next epoll_wait() or poll() tells of
 * them, and its read() takes them. Such an event stays in memory, if no other thread waits
 * meanwhile. A channel has one at most, and only while nothing is in its pipe.
 */
#ifndef UWARP_KEPT_H
#define UWARP_KEPT_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

struct fd_obj;
struct watch;

/* Of one channel. All fields: fdtab_lock(). */
struct kept {
	TAILQ_ENTRY(kept) link; /* while it has an event */
	struct fd_obj *channel;
	bool (*to_pipe)(struct fd_obj *channel, uint64_t event); /* false: not now */
	uint64_t event;
	bool has;
	bool told; /* by a wait: the next one leaves it to the pipe, as it may be read unseen */
	struct watch *watch;
};

/* Channels that have one. */
extern _Atomic unsigned kept_count;

static inline bool kept_any(void)
{
	return atomic_load_explicit(&kept_count, memory_order_seq_cst);
}

/* A wait that can tell of kept events: epoll's with room for n, or poll()'s of n descriptors (epfd:
 * -1). */
struct kept_wait {
	int epfd;
	struct epoll_event *events;
	struct pollfd *fds;
	unsigned n;
};

/* Would the calling thread be told of an event that is kept now? Asked before kept_put_locked(). */
bool kept_wants_locked(const struct kept *k);
/* Keep the event; the pipe is empty. False: it has to go into the pipe. */
bool kept_put_locked(struct kept *k, uint64_t event);
/* False: there is none. */
bool kept_take_locked(struct kept *k, uint64_t *event);
/* Epoll was asked to watch the channel: who sleeps there is told by the pipe. */
void kept_is_watched_locked(struct kept *k);
/* Write it to the pipe, if there is one. It stays if that cannot be. */
void kept_out_locked(struct kept *k);

/* The rest takes the lock. */

/* Before the kernel is asked for w's descriptors: what w does not tell of goes into the pipes.
 * NULL: all of it. */
void kept_sort(const struct kept_wait *w);
/* After it was asked, and reported `ready` of them: report those that have a kept event as well.
 * Returns the number of all. */
int kept_tell(const struct kept_wait *w, int ready);

#endif
