/* SPDX-License-Identifier: BSD-3-Clause */
#include "waits.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>

#include "loader/loader.h"
#include "next.h"
#include "raw.h"
#include "threads.h"

#define FEW 30u /* descriptors for which there is room on the stack */
#define OWN 2u

_Atomic uint64_t waits_noted[WAITS_FDS / 64];
_Atomic uint32_t waits_events;

void waits_note(int fd)
{
	unsigned n = (unsigned)fd;

	if (n < WAITS_FDS)
		atomic_fetch_or_explicit(&waits_noted[n / 64], (uint64_t)1 << n % 64,
					 memory_order_relaxed);
}

void waits_forget(int fd)
{
	unsigned n = (unsigned)fd;

	if (waits_has(fd))
		atomic_fetch_and_explicit(&waits_noted[n / 64], ~((uint64_t)1 << n % 64),
					  memory_order_relaxed);
}

/* ---- the engine ---------------------------------------------------------------------------- */

/* NULL: there is none, or none any more. With an engine, loader_helper_end() is due. */
static struct uw_engine *enter(void)
{
	struct uw_engine *e;

	if (!loader_is_open() || !loader_helper_begin())
		return NULL;
	e = loader_engine();
	if (!e)
		loader_helper_end();
	return e;
}

/* False: wait plainly. */
static bool look(struct uw_wait *w, uint64_t limit_us)
{
	struct uw_engine *e = enter();
	bool can;

	if (!e)
		return false;
	can = loader_api()->wait_look(e, w, limit_us);
	loader_helper_end();
	return can;
}

static enum uw_wait_how begin(struct uw_wait *w)
{
	struct uw_engine *e = enter();
	enum uw_wait_how how;

	if (!e)
		return UW_WAIT_PLAINLY;
	how = loader_api()->wait_begin(e, w);
	loader_helper_end();
	return how;
}

/* Also where the thread is cancelled. */
static void end(void *arg)
{
	struct uw_engine *e = enter();

	(void)arg;
	if (!e)
		return;
	loader_api()->wait_end(e);
	loader_helper_end();
}

static void say_plain(bool on)
{
	struct uw_engine *e = enter();

	if (!e)
		return;
	loader_api()->wait_plainly(e, on);
	loader_helper_end();
}

static void plain_ends(void *arg)
{
	(void)arg;
	say_plain(false);
}

static void done(const struct uw_wait *w)
{
	struct uw_engine *e = enter();

	if (!e)
		return;
	loader_api()->wait_done(e, w);
	loader_helper_end();
}

/* ---- waiting ------------------------------------------------------------------------------- */

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* UINT64_MAX: none. */
static uint64_t deadline_of(const struct timespec *timeout)
{
	if (!timeout)
		return UINT64_MAX;
	if (timeout->tv_sec > INT32_MAX)
		return UINT64_MAX;
	return now_us() + (uint64_t)timeout->tv_sec * 1000000 +
	       ((uint64_t)timeout->tv_nsec + 999) / 1000;
}

static uint64_t left_us(uint64_t deadline)
{
	uint64_t now;

	if (deadline == UINT64_MAX)
		return UINT64_MAX;
	now = now_us();
	return deadline > now ? deadline - now : 0;
}

/* poll() of n descriptors, as long as is left. */
static int poll_for(struct pollfd *fds, nfds_t n, uint64_t us, const sigset_t *mask)
{
	struct timespec t = { .tv_sec = (time_t)(us / 1000000),
			      .tv_nsec = (long)(us % 1000000 * 1000) };

	return next_fn()->ppoll(fds, n, us == UINT64_MAX ? NULL : &t, mask);
}

static int sleep_plainly(const struct waits *w, uint64_t us)
{
	int r;

	say_plain(true);
	pthread_cleanup_push(plain_ends, NULL);
	r = poll_for(w->fds, w->n, us, w->mask);
	pthread_cleanup_pop(1);
	return r;
}

/* Take out of the descriptors' results what is the program's; n of ppoll(). */
static int results(struct pollfd *to, const struct pollfd *from, nfds_t n)
{
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		to[i].revents = from[i].revents;
		ready += from[i].revents != 0;
	}
	return ready;
}

/* An eventfd; peers have it, and could have made it a blocking one. */
static void drain(int fd)
{
	uint64_t rings;
	struct iovec iov = { .iov_base = &rings, .iov_len = sizeof(rings) };

	syscall(SYS_preadv2, fd, &iov, 1, -1L, -1L, RWF_NOWAIT);
}

/* 0: it was the engine's, or the time is over. */
static int sleep_with(const struct waits *w, const struct uw_wait *how, uint64_t us)
{
	struct pollfd fds[FEW + OWN];
	nfds_t n = w->n;
	int r;

	memcpy(fds, w->fds, n * sizeof(fds[0]));
	for (unsigned i = 0; i < OWN; i++) {
		if (how->fd[i] >= 0)
			fds[n++] = (struct pollfd){ .fd = how->fd[i], .events = POLLIN };
	}
	pthread_cleanup_push(end, NULL);
	r = poll_for(fds, n, us, w->mask);
	pthread_cleanup_pop(1);
	if (r <= 0)
		return r;
	if (how->fd[0] >= 0 && fds[w->n].revents)
		drain(how->fd[0]);
	return results(w->fds, fds, w->n);
}

/* Sleep once, in one of the ways. 0: look again. */
static int sleep_once(const struct waits *w, struct uw_wait *how, uint64_t us)
{
	switch (begin(how)) {
	case UW_WAIT_PLAINLY:
		return sleep_plainly(w, us);
	case UW_WAIT_SLEEP:
		return sleep_with(w, how, us);
	case UW_WAIT_AGAIN:
		break;
	}
	return 0;
}

static uint32_t events(void)
{
	return atomic_load_explicit(&waits_events, memory_order_acquire);
}

static int poll_driving(const struct waits *w)
{
	struct uw_wait how = { .events = &waits_events };
	uint64_t deadline = deadline_of(w->timeout), us = left_us(deadline);
	uint32_t at_first = events();
	int r;

	how.seen = at_first;
	/* An event that came before, while the program polled its queues, would not end the look. */
	r = poll_for(w->fds, w->n, 0, w->mask);
	if (r || !us)
		return r;
	for (;;) {
		if (!look(&how, us))
			return poll_for(w->fds, w->n, us, w->mask);
		how.seen = events();
		r = poll_for(w->fds, w->n, 0, w->mask);
		us = left_us(deadline);
		if (r || !us)
			break;
		r = sleep_once(w, &how, us);
		us = left_us(deadline);
		if (r)
			break;
	}
	how.seen = at_first;
	if (r > 0)
		done(&how);
	return r;
}

int waits_poll(const struct waits *w)
{
	if (w->n > FEW)
		return poll_for(w->fds, w->n,
				w->timeout ? left_us(deadline_of(w->timeout)) : UINT64_MAX,
				w->mask);
	return poll_driving(w);
}
