/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell: one word that says whether a stack's threads sleep. A peer that stores frames for
 * the stack and finds IO_ASLEEP swaps in IO_RUNG + its CPU and wakes the word with FUTEX_WAKE. The
 * word may lie in memory that processes share, so the futex is not a private one.
 */
#ifndef UWARP_BASE_DOORBELL_H
#define UWARP_BASE_DOORBELL_H

enum io_doorbell {
	IO_AWAKE = 0,
	IO_ASLEEP = 1,
	IO_RUNG = 16, /* IO_RUNG + n: awake; CPU n rang the doorbell */
};

#endif
