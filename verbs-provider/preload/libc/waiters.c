/* SPDX-License-Identifier: BSD-3-Clause */
#include "waiters.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>

#include "waits.h"

#define SLOTS 64u /* of epoll descriptors, by their numbers: two in one are taken for the same */

static _Atomic unsigned by_other; /* threads that wait, but not with epoll */
static _Atomic unsigned by_epoll; /* ... with epoll: all, and of each slot */
static _Atomic unsigned of_slot[SLOTS];
static _Atomic bool nested;

static _Thread_local int last_epoll = -1;
static _Thread_local bool looks;
/* Epoll's descriptor, or -1; atomic as handlers wait, too. */
#define NO_WAIT INT_MIN
static _Thread_local _Atomic int waits_with = NO_WAIT;

/* The thread that has waited with this descriptor before it had a channel, by the address of its
 * last_epoll; 0: none; UNSEEN: several, or who knows. */
#define UNSEEN 1u
static _Atomic uintptr_t passed[WAITS_FDS];

static void count(int epfd, unsigned by)
{
	if (epfd < 0) {
		atomic_fetch_add(&by_other, by);
		return;
	}
	atomic_fetch_add(&by_epoll, by);
	atomic_fetch_add(&of_slot[(unsigned)epfd % SLOTS], by);
}

static int with(void)
{
	return atomic_load_explicit(&waits_with, memory_order_relaxed);
}

static bool is_waiting(void)
{
	return with() != NO_WAIT;
}

/* The thread has left a wait by a jump, or is in a handler on top of one, and waits for something
 * else: it counts as one that may wait for anything. */
static void count_for_all(void)
{
	int was;

	count(-1, 1);
	was = atomic_exchange(&waits_with, -1);
	count(was, -1u);
}

bool waiters_enter(int epfd)
{
	if (is_waiting()) {
		if (with() != -1 && with() != epfd)
			count_for_all();
		return false;
	}
	count(epfd, 1);
	atomic_store_explicit(&waits_with, epfd, memory_order_relaxed);
	return true;
}

void waiters_leave(void *entered)
{
	if (*(bool *)entered)
		count(atomic_exchange(&waits_with, NO_WAIT), -1u);
}

void waiters_look(bool on)
{
	looks = on;
}

static bool is_mine(int epfd)
{
	return with() >= 0 && (epfd < 0 || (unsigned)with() % SLOTS == (unsigned)epfd % SLOTS);
}

bool waiters_pass(int epfd)
{
	uintptr_t me = (uintptr_t)&last_epoll, before;

	if ((unsigned)epfd >= WAITS_FDS)
		return true;
	before = atomic_load_explicit(&passed[epfd], memory_order_relaxed);
	if (before == me || before == UNSEEN)
		return true;
	atomic_store(&passed[epfd], before ? UNSEEN : me);
	atomic_thread_fence(memory_order_seq_cst); /* with waits_note_epoll() */
	return false;
}

void waiters_note_unseen(int fd)
{
	if ((unsigned)fd < WAITS_FDS &&
	    atomic_load_explicit(&passed[fd], memory_order_relaxed) != UNSEEN)
		atomic_store(&passed[fd], UNSEEN);
}

void waiters_note_new(int epfd)
{
	if ((unsigned)epfd < WAITS_FDS && atomic_load_explicit(&passed[epfd], memory_order_relaxed))
		atomic_store(&passed[epfd], 0);
}

static bool has_unseen(int epfd)
{
	uintptr_t who = (unsigned)epfd < WAITS_FDS ? atomic_load(&passed[epfd]) : 0;

	return who && who != (uintptr_t)&last_epoll;
}

bool waiters_none_else(int epfd)
{
	unsigned others, with_epoll;

	if ((is_waiting() && !looks) || has_unseen(epfd))
		return false;
	if (waiters_nested())
		epfd = -1;
	others = atomic_load(&by_other) - (with() == -1);
	with_epoll = atomic_load(epfd < 0 ? &by_epoll : &of_slot[(unsigned)epfd % SLOTS]);
	return !others && with_epoll == is_mine(epfd);
}

void waiters_note_nested(void)
{
	atomic_store(&nested, true);
}

bool waiters_nested(void)
{
	return atomic_load(&nested);
}

int waiters_epoll(void)
{
	return last_epoll;
}

void waiters_set_epoll(int epfd)
{
	last_epoll = epfd;
}
