/* SPDX-License-Identifier: BSD-3-Clause */
#include "waiters.h"

#include <stdatomic.h>

#define SLOTS 64u /* of epoll descriptors, by their numbers: two in one are taken for the same */

static _Atomic unsigned by_other; /* threads that wait, but not with epoll */
static _Atomic unsigned by_epoll; /* ... with epoll: all, and of each slot */
static _Atomic unsigned of_slot[SLOTS];
static _Atomic bool nested;

static _Thread_local int last_epoll = -1;
static _Thread_local bool waits, looks;
static _Thread_local int waits_with; /* epoll's descriptor, or -1 */

static void count(int epfd, unsigned by)
{
	if (epfd < 0) {
		atomic_fetch_add(&by_other, by);
		return;
	}
	atomic_fetch_add(&by_epoll, by);
	atomic_fetch_add(&of_slot[(unsigned)epfd % SLOTS], by);
}

bool waiters_enter(int epfd)
{
	if (waits)
		return false;
	waits = true;
	waits_with = epfd;
	count(epfd, 1);
	return true;
}

void waiters_leave(void *entered)
{
	if (!*(bool *)entered)
		return;
	waits = false;
	count(waits_with, -1u);
}

void waiters_look(bool on)
{
	looks = on;
}

static bool is_mine(int epfd)
{
	return waits && waits_with >= 0 &&
	       (epfd < 0 || (unsigned)waits_with % SLOTS == (unsigned)epfd % SLOTS);
}

bool waiters_none_else(int epfd)
{
	unsigned others, with_epoll;

	if (waits && !looks)
		return false;
	if (waiters_nested())
		epfd = -1;
	others = atomic_load(&by_other) - (waits && waits_with < 0);
	with_epoll = atomic_load(epfd < 0 ? &by_epoll : &of_slot[(unsigned)epfd % SLOTS]);
	return !others && with_epoll == is_mine(epfd);
}

void waiters_note_nested(void)
{
	atomic_store_explicit(&nested, true, memory_order_relaxed);
}

bool waiters_nested(void)
{
	return atomic_load_explicit(&nested, memory_order_relaxed);
}

int waiters_epoll(void)
{
	return last_epoll;
}

void waiters_set_epoll(int epfd)
{
	last_epoll = epfd;
}
