/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell: one word that says whether a stack's threads sleep, and on what. A peer that stores
 * frames for the stack and finds one of the two words for sleep swaps in IO_RUNG + its CPU and
 * wakes: IO_ASLEEP by FUTEX_WAKE on the word, IO_ASLEEP_FD by a write to an eventfd. The word may
 * lie in memory that processes share, so the futex is not a private one.
 */
#ifndef UWARP_BASE_DOORBELL_H
#define UWARP_BASE_DOORBELL_H

#include <stdatomic.h>
#include <stdint.h>

enum io_doorbell {
	IO_AWAKE = 0,
	IO_ASLEEP = 1,
	/* a thread of the program sleeps in poll() or the like, with the eventfd among its
	 * descriptors */
	IO_ASLEEP_FD = 2,
	IO_RUNG = 16, /* IO_RUNG + n: awake; CPU n rang the doorbell */
};

/* What it takes to ring a doorbell that has been swapped. */
struct io_ring {
	_Atomic uint32_t *word;
	int fd; /* the eventfd; -1: none, so nobody sets IO_ASLEEP_FD */
	/* of the eventfd, 0: none. The program may have closed it, and opened a file instead. */
	uint64_t ino;
};

/* The ring of a doorbell, with fd and its inode. */
struct io_ring doorbell_ring_of(_Atomic uint32_t *word, int fd);
/* A new eventfd, or -errno. */
int doorbell_eventfd(void);
/* Swap in IO_RUNG if the word says asleep. Returns what it said: IO_ASLEEP or IO_ASLEEP_FD, and
 * then doorbell_wake() is the caller's duty; else IO_AWAKE. The caller has issued a memory fence.
 */
uint32_t doorbell_swap(_Atomic uint32_t *word);
/* Wake the thread that slept; `was` is what doorbell_swap() returned. The word may be unmapped and
 * the eventfd closed by now: both do no harm. Never blocks. */
void doorbell_wake(const struct io_ring *r, uint32_t was);

#endif
