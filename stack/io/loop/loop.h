/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links in memory. The product opens a single one, for a process that talks to itself only
 * (`--link loop`): it has no peer, and what is sent over it is dropped.
 *
 * Everything else here is for tests, and lies here since it is one of the layers whose instructions
 * the gate counts (tools/bench/icount.py): a pair is two links joined by a cable that delays, drops,
 * repeats and reorders frames at random from a seed. Time is an argument, so a run repeats exactly.
 */
#ifndef UWARP_IO_LOOP_H
#define UWARP_IO_LOOP_H

#include "io/io.h"

struct loop_config {
	uint32_t mtu;
	uint32_t addr[2]; /* network order; a single link has addr[0] */
	uint32_t mask;
	unsigned flags; /* IO_P2P or 0 */
	uint64_t (*now_us)(void *arg);
	void *arg;
	uint64_t delay_us;
	/* faults, per million frames */
	uint32_t drop_ppm, dup_ppm, reorder_ppm;
	uint64_t reorder_us; /* how late a reordered frame comes */
	uint64_t seed;
	unsigned max_frames; /* frames in the pool of each link; 0: 4096 */
};

struct loop_fault_stats {
	uint64_t dropped, repeated, reordered;
};

uw_status loop_open_single(const struct loop_config *cfg, const struct io_env *env,
			   struct io_link **out) UW_CHECK;

/* ---- for tests --------------------------------------------------------------------------- */

uw_status loop_open_pair(const struct loop_config *cfg, const struct io_env *env,
			 struct io_link *out[2]) UW_CHECK;

/* Drop ppm of a million frames that l sends from now on; 1,000,000: all of them. */
void loop_set_drop(struct io_link *l, uint32_t ppm);
/* Time of the next arrival at l; UINT64_MAX: no frame is under way. */
uint64_t loop_next_us(const struct io_link *l);
struct loop_fault_stats loop_faults(const struct io_link *l);
/* Frames of l's pool in use; 0: none leaked. */
unsigned loop_frames_out(const struct io_link *l);

#endif
