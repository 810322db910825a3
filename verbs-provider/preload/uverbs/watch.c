/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"

#include <errno.h>

#include "libc/clock.h"
#include "libc/fdtab.h"
#include "libc/next.h"
#include "libc/waiters.h"
#include "libc/waits.h"

_Atomic unsigned watch_due;
static TAILQ_HEAD(, watch) due = TAILQ_HEAD_INITIALIZER(due); /* fdtab_lock() */

/* A number may be another file's by a call that this library has not seen. */
#define CHECK_US 1000u

/* With other flags epoll tells less than there is, or once: that is the kernel's to do. */
#define PLAIN_EVENTS ((uint32_t)EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLERR | EPOLLHUP | EPOLLRDHUP)

static bool is_plain(const struct epoll_event *e)
{
	return !(e->events & ~PLAIN_EVENTS);
}

static bool is_known(const struct watch *w, int epfd)
{
	return epfd >= 0 && w->n == 1 && w->epfd == epfd && w->epolls == waits_epolls_of(epfd);
}

bool watch_is_plain_locked(const struct watch *w, int epfd)
{
	return is_known(w, epfd) && w->is_wanted && is_plain(&w->wanted) &&
	       w->wanted.events & EPOLLIN;
}

bool watch_is_channel_locked(struct watch *w)
{
	uint64_t now = preload_now_us();

	if (now - w->checked_us < CHECK_US)
		return true;
	if (!fd_obj_is_programs_locked(w->channel))
		return false;
	w->checked_us = now;
	return true;
}

/* ---- what the kernel was told ---------------------------------------------------------------- */

static void set_due(struct watch *w, bool yes)
{
	if (w->is_due == yes)
		return;
	w->is_due = yes;
	if (yes)
		TAILQ_INSERT_TAIL(&due, w, link);
	else
		TAILQ_REMOVE(&due, w, link);
	atomic_fetch_add(&watch_due, yes ? 1 : -1u);
}

static void note_add(struct watch *w, int epfd, int fd, const struct epoll_event *event)
{
	if (w->n != 1 || w->epfd < 0 || is_known(w, w->epfd))
		w->n++; /* or else the one that watched it was closed */
	w->epolls = waits_epolls_of(epfd);
	w->epfd = w->n == 1 ? epfd : -1;
	w->fd = fd;
	w->in_kernel = w->wanted = *event;
	w->is_wanted = true;
}

/* The kernel has done it. */
static void note(struct watch *w, int epfd, int op, int fd, const struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD) {
		note_add(w, epfd, fd, event);
	} else if (op == EPOLL_CTL_MOD && is_known(w, epfd)) {
		w->in_kernel = w->wanted = *event;
	} else if (op == EPOLL_CTL_DEL) {
		w->n -= w->n > 0;
		w->epfd = -1; /* of two it is not known which one is left */
	}
}

void watch_settle_locked(struct watch *w)
{
	int op = w->is_wanted ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
	struct epoll_event e = w->wanted;

	if (!w->is_due)
		return;
	set_due(w, false);
	if (is_known(w, w->epfd) && fd_obj_is_programs_locked(w->channel) &&
	    !next_fn()->epoll_ctl(w->epfd, op, w->fd, &e))
		note(w, w->epfd, op, w->fd, &e);
}

void watch_settle_all(int epfd)
{
	bool all = epfd < 0 || waiters_nested();
	struct watch *w, *next;

	if (fdtab_is_locked_here()) /* a signal handler waits */
		return;
	fdtab_lock();
	for (w = TAILQ_FIRST(&due); w; w = next) {
		next = TAILQ_NEXT(w, link);
		if (all || w->epfd == epfd)
			watch_settle_locked(w);
	}
	fdtab_unlock();
}

void watch_forget_locked(struct watch *w)
{
	set_due(w, false);
	w->n = 0;
	w->checked_us = 0;
}

/* ---- what is answered here ------------------------------------------------------------------- */

/* Nobody else waits, and whoever asks waits on epfd next, as far as is known. */
static bool can_wait(struct watch *w, int epfd, int fd)
{
	return waiters_none_else(epfd) && waiters_epoll() == epfd && is_known(w, epfd) &&
	       w->fd == fd && w->channel->fd == fd && is_plain(&w->in_kernel) &&
	       watch_is_channel_locked(w);
}

static bool is_same(const struct epoll_event *a, const struct epoll_event *b)
{
	return a->events == b->events && a->data.u64 == b->data.u64;
}

/* As epoll_ctl(); 0 or an errno. */
static int want(struct watch *w, int op, const struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && w->is_wanted)
		return EEXIST;
	if (op != EPOLL_CTL_ADD && !w->is_wanted)
		return ENOENT;
	w->is_wanted = op != EPOLL_CTL_DEL;
	if (w->is_wanted)
		w->wanted = *event;
	set_due(w, !w->is_wanted || !is_same(&w->wanted, &w->in_kernel));
	return 0;
}

static bool can_want(int op, const struct epoll_event *event)
{
	return op == EPOLL_CTL_DEL ||
	       ((op == EPOLL_CTL_ADD || op == EPOLL_CTL_MOD) && event && is_plain(event));
}

/* Whoever begins to wait counts itself, then looks whether any is due: Dekker, all seq_cst. */
int watch_ctl_locked(struct watch *w, int epfd, int op, int fd, struct epoll_event *event)
{
	if (can_want(op, event) && can_wait(w, epfd, fd)) {
		int err = want(w, op, event);

		if (!waiters_none_else(epfd))
			watch_settle_locked(w);
		return -err;
	}
	watch_settle_locked(w);
	if (next_fn()->epoll_ctl(epfd, op, fd, event))
		return -errno;
	note(w, epfd, op, fd, event);
	return 0;
}
