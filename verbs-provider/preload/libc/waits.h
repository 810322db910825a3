/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of the program that wait for completion events in read(), poll() or epoll_wait() run the
 * stack meanwhile (doc/adr/0030). This file knows which descriptors such waits are for, and does
 * the waiting; waits_calls.c has the libc functions.
 */
#ifndef UWARP_WAITS_H
#define UWARP_WAITS_H

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Of higher descriptors nothing is noted, so waits for them are plain. */
#define WAITS_FDS 65536

extern _Atomic uint64_t waits_noted[WAITS_FDS / 64];
/* Counts the events that this process was told of: records written for the program to read. */
extern _Atomic uint32_t waits_events;

/* Is fd a completion channel, or an epoll descriptor that has one? May be true by mistake. */
static inline bool waits_has(int fd)
{
	unsigned n = (unsigned)fd;

	return n < WAITS_FDS &&
	       atomic_load_explicit(&waits_noted[n / 64], memory_order_relaxed) >> n % 64 & 1;
}

void waits_note(int fd);
void waits_note_epoll(int fd);
/* fd is closed, or another file. */
void waits_forget(int fd);
/* The program made `copy` a duplicate of `fd`. */
void waits_dup(int fd, int copy);
/* Counts what makes the number of this epoll descriptor another file's. */
uint32_t waits_epolls_of(int epfd);

/* Counts what may end that a channel is empty, before it happens: an event that is written, or a
 * number that becomes another file's. The program may read before waits_events counts it. */
extern _Atomic uint32_t waits_changes;

static inline void waits_change(void)
{
	/* release: before the write that wakes who reads */
	atomic_fetch_add_explicit(&waits_changes, 1, memory_order_release);
}

/* An event is there for the program to read. */
static inline void waits_count(void)
{
	/* release: who has seen the count finds the record */
	atomic_fetch_add_explicit(&waits_events, 1, memory_order_release);
}

/* Of those that are noted: is O_NONBLOCK known to be set? Without a lock: each read() asks, and one
 * that was just woken would meet the thread that woke it. */
bool waits_is_nonblocking(int fd);
void waits_set_nonblocking(int fd, bool on);

/* A read() of a channel. Where its thread runs the stack meanwhile, and by that makes an event of
 * this channel, the event need not go through the pipe: it is as if it was written and read at
 * once. */
struct waits_reader {
	int fd;
	size_t room;
	size_t got; /* octets of an event; 0: none was given */
	uint64_t event;
	bool by_kernel;	      /* the kernel's read() has waited: its error is the result */
	const sigset_t *mask; /* the thread's signals but for this wait */
};
#define WAITS_EVENT sizeof(((struct waits_reader *)NULL)->event)

/* Is the calling thread in the stack by a read() of fd, which has room for len octets, and has none
 * yet? Then it may be given an event of the channel that is open as fd. Not where a handler is to
 * run before read() returns: it may leave that by a jump. */
bool waits_reads(int fd, size_t len);
/* Give it the event, right after waits_reads() said true. */
void waits_give(const void *event, size_t len);

/* ---- events that are kept in memory (uverbs/kept.h) ---- */

/* Does the thread look by a poll() that asks for input of fd? */
bool waits_polls(int fd);

/* ---- waiting ---- */

#define WAITS_NO_END UINT64_MAX

struct kept_wait;

/* A wait for any of n descriptors. */
struct waits {
	struct pollfd *fds;
	nfds_t n;
	uint64_t deadline;    /* of waits_deadline() */
	const sigset_t *mask; /* as for ppoll(), or NULL */
	/* What the descriptors have now, and the result of the wait; NULL: ppoll(). For one that
	 * poll() reports alone, and that is asked by a call of its own. */
	int (*ask)(void *arg, const sigset_t *mask);
	/* The wait and its result by one call of the kernel, for a thread that leaves the stack to
	 * others; NULL: ppoll(). */
	int (*sleep)(void *arg, uint64_t deadline, const sigset_t *mask);
	void *arg;
	struct waits_reader *reader;  /* of a read(); NULL: another wait */
	const struct kept_wait *kept; /* of epoll's and of poll(); NULL: another wait */
};

/* When a wait ends that begins now: in microseconds of the monotonic clock; 0: at once;
 * WAITS_NO_END: never (timeout NULL). The timeout is a valid one. */
uint64_t waits_deadline(const struct timespec *timeout);
/* Microseconds until then, and the same in t; WAITS_NO_END and NULL: no end. */
uint64_t waits_left_us(uint64_t deadline);
struct timespec *waits_left(uint64_t deadline, struct timespec *t);

/* As ppoll(); with `ask` what that returned. */
int waits_poll(const struct waits *w);

/* The kernel's read(), which waits without the stack. */
ssize_t waits_read_plainly(int fd, void *buf, size_t len);

/* ---- connections ---- */

/* Connections of this process that are being made or ended: the outcome has not come. */
extern _Atomic unsigned waits_under_way;
/* The thread has made or ended one, and may yield until the outcome comes. */
extern _Thread_local bool waits_for_outcome;

/* The thread is about to make or to end a connection. No lock held. */
void waits_begin_outcome(void);
/* The thread yields, and waits_for_outcome is set: run the stack once if an outcome is due. */
void waits_yield(void);

#endif
