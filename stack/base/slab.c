/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/slab.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/prefetch.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define FIRST	  ((size_t)256 << 10) /* of few connections: not worth a huge page */
#define CLASSES	  256u		      /* sizes of so many lines, less one */

/* The sanitizer is to see each object alone. */
#if defined(__SANITIZE_ADDRESS__)
#define EACH_ALONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EACH_ALONE 1
#endif
#endif

struct spare {
	struct spare *next;
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
/* This thread has the guard, or is about to take it: a signal handler on top of it that forks is
 * not to wait for it. */
static _Thread_local volatile bool guarded;
static bool fork_waits_not;
static struct spare *spare[CLASSES];
static uint8_t *next;
static size_t left;

#ifdef EACH_ALONE
static bool is_small(size_t lines)
{
	(void)lines;
	return false;
}
#else
static bool is_small(size_t lines)
{
	return lines < CLASSES;
}
#endif

void slab_use_huge_pages(void *p, size_t n)
{
	uintptr_t from = ((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	uintptr_t upto = ((uintptr_t)p + n) & ~(HUGE_PAGE - 1);

	/* No such pages: then ordinary ones do. */
	if (from < upto)
		(void)madvise((void *)from, upto - from, MADV_HUGEPAGE);
}

static void *map_huge(void)
{
	uint8_t *p = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	size_t before;

	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p & (HUGE_PAGE - 1);
	if (before)
		munmap(p, before);
	munmap(p + before + HUGE_PAGE, HUGE_PAGE - before);
	slab_use_huge_pages(p + before, HUGE_PAGE);
	return p + before;
}

static void keep(void *p, size_t lines)
{
	struct spare *s = p;

	s->next = spare[lines];
	spare[lines] = s;
}

static bool refill(void)
{
	size_t n = next ? HUGE_PAGE : FIRST;
	void *p = next ? map_huge() : aligned_alloc(UW_LINE, FIRST);

	if (!p)
		return false;
	if (left)
		keep(next, left / UW_LINE);
	next = p;
	left = n;
	return true;
}

static void *take(size_t lines)
{
	struct spare *s = spare[lines];
	void *p = next;

	if (s) {
		spare[lines] = s->next;
		return s;
	}
	if (left < lines * UW_LINE && !refill())
		return NULL;
	p = next;
	next += lines * UW_LINE;
	left -= lines * UW_LINE;
	return p;
}

static size_t lines_of(size_t n)
{
	return UW_LINES(n) / UW_LINE;
}

static void lock(void)
{
	guarded = true;
	pthread_mutex_lock(&guard);
}

static void unlock(void)
{
	pthread_mutex_unlock(&guard);
	guarded = false;
}

void *slab_alloc(size_t n)
{
	size_t lines = lines_of(n);
	void *p;

	if (!is_small(lines))
		return aligned_alloc(UW_LINE, UW_LINES(n));
	lock();
	p = take(lines);
	unlock();
	return p;
}

void slab_free(void *p, size_t n)
{
	size_t lines = lines_of(n);

	if (!p)
		return;
	if (!is_small(lines)) {
		free(p);
		return;
	}
	lock();
	keep(p, lines);
	unlock();
}

bool slab_is_locked_here(void)
{
	return guarded;
}

void slab_before_fork(void)
{
	fork_waits_not = guarded;
	if (!fork_waits_not)
		lock();
}

void slab_after_fork(bool in_child)
{
	if (in_child || !fork_waits_not)
		unlock();
}
