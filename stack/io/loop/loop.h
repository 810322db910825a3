/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links in memory. A pair is a cable between two of them that delays, drops, repeats and reorders
 * frames as a seed says; time is an argument, so a run repeats exactly. A single one is a link on
 * which nobody else is: a process that talks to itself.
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
	unsigned max_frames; /* of each end's pool; 0 = 4096 */
};

struct loop_fault_stats {
	uint64_t dropped, repeated, reordered;
};

uw_status loop_open_pair(const struct loop_config *cfg, const struct io_env *env,
			 struct io_link *out[2]) UW_CHECK;
uw_status loop_open_single(const struct loop_config *cfg, const struct io_env *env,
			   struct io_link **out) UW_CHECK;

/* From now on so many frames that l sends are lost, per million; all: its end of the cable is cut.
 */
void loop_set_drop(struct io_link *l, uint32_t ppm);
/* When the next frame arrives at l; UINT64_MAX: none is under way. */
uint64_t loop_next_us(const struct io_link *l);
struct loop_fault_stats loop_faults(const struct io_link *l);
/* Frames of l's pool that somebody holds: 0 when nothing leaked. */
unsigned loop_frames_out(const struct io_link *l);

#endif
