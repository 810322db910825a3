/* SPDX-License-Identifier: BSD-3-Clause */
#include "kept.h"

#include "libc/fdtab.h"
#include "libc/waiters.h"
#include "libc/waits.h"
#include "uverbs/watch.h"

_Atomic unsigned kept_count;
static TAILQ_HEAD(, kept) all = TAILQ_HEAD_INITIALIZER(all); /* fdtab_lock() */

/* ---- keeping -------------------------------------------------------------------------------- */

static void forget(struct kept *k)
{
	k->has = false;
	TAILQ_REMOVE(&all, k, link);
	atomic_fetch_sub_explicit(&kept_count, 1, memory_order_relaxed);
}

/* Who can be told of it: -1: the thread's poll(). */
static int teller(const struct kept *k)
{
	int epfd = waiters_epoll();

	return epfd >= 0 && watch_is_plain_locked(k->watch, epfd) ? epfd : -1;
}

bool kept_wants_locked(const struct kept *k)
{
	int epfd = teller(k);

	return waiters_none_else(epfd) && (epfd >= 0 || waits_polls(k->channel->fd));
}

/* See waiters_enter(). */
bool kept_put_locked(struct kept *k, uint64_t event)
{
	if (!watch_is_channel_locked(k->watch))
		return false;
	k->event = event;
	k->has = true;
	k->told = false;
	TAILQ_INSERT_TAIL(&all, k, link);
	atomic_fetch_add(&kept_count, 1);
	if (waiters_none_else(teller(k)))
		return true;
	forget(k);
	return false;
}

bool kept_take_locked(struct kept *k, uint64_t *event)
{
	if (!k->has)
		return false;
	*event = k->event;
	forget(k);
	return true;
}

void kept_out_locked(struct kept *k)
{
	if (k->has && k->to_pipe(k->channel, k->event))
		forget(k);
}

void kept_is_watched_locked(struct kept *k)
{
	int epfd = waiters_epoll();

	if (epfd < 0 || k->watch->epfd != epfd || !waiters_none_else(epfd))
		kept_out_locked(k);
}

/* ---- telling -------------------------------------------------------------------------------- */

static struct pollfd *asked_for(const struct kept_wait *w, const struct kept *k)
{
	for (unsigned i = 0; i < w->n; i++) {
		if (w->fds[i].fd == k->channel->fd && w->fds[i].events & POLLIN)
			return &w->fds[i];
	}
	return NULL;
}

/* May it stay, and wait for w to tell of it, or for a wait with another epoll? */
static bool stays(const struct kept_wait *w, const struct kept *k)
{
	bool mine;

	if (!w || !watch_is_channel_locked(k->watch))
		return false;
	if (w->epfd < 0)
		return !k->told && asked_for(w, k);
	mine = watch_is_plain_locked(k->watch, w->epfd);
	return mine ? !k->told
		    : !waiters_nested() && watch_is_plain_locked(k->watch, k->watch->epfd);
}

void kept_sort(const struct kept_wait *w)
{
	struct kept *k, *next;

	if (fdtab_is_locked_here()) /* a signal handler waits */
		return;
	fdtab_lock();
	for (k = TAILQ_FIRST(&all); k; k = next) {
		next = TAILQ_NEXT(k, link);
		if (!stays(w, k))
			kept_out_locked(k);
	}
	fdtab_unlock();
}

static int tell_poll(const struct kept_wait *w, int ready)
{
	struct pollfd *p;
	struct kept *k;

	for (k = TAILQ_FIRST(&all); k; k = TAILQ_NEXT(k, link)) {
		p = asked_for(w, k);
		if (!p)
			continue;
		ready += !p->revents;
		p->revents |= POLLIN;
		k->told = true;
	}
	return ready;
}

/* What finds no room is the kernel's to tell, which does so in turn. */
static int tell_epoll(const struct kept_wait *w, unsigned ready)
{
	unsigned n = ready;
	struct kept *k, *next;

	for (k = TAILQ_FIRST(&all); k; k = next) {
		next = TAILQ_NEXT(k, link);
		if (!watch_is_plain_locked(k->watch, w->epfd))
			continue;
		if (n == w->n) {
			kept_out_locked(k);
			continue;
		}
		w->events[n++] =
			(struct epoll_event){ .events = EPOLLIN, .data = k->watch->wanted.data };
		k->told = true;
	}
	return (int)n;
}

int kept_tell(const struct kept_wait *w, int ready)
{
	int n;

	if (fdtab_is_locked_here())
		return ready;
	fdtab_lock();
	n = w->epfd < 0 ? tell_poll(w, ready) : tell_epoll(w, (unsigned)ready);
	fdtab_unlock();
	return n;
}
