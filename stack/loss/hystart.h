/* SPDX-License-Identifier: BSD-3-Clause */
/* HyStart++: leave slow start when the round-trip time grows, before the queue overflows. RFC 9406.
 */
#ifndef UWARP_LOSS_HYSTART_H
#define UWARP_LOSS_HYSTART_H

#include <stdbool.h>
#include <stdint.h>

struct cc_ack;

struct hystart {
	bool begun;
	bool done; /* the first slow start is over (RFC 9406 §4.3): not used again */
	uint32_t window_end;
	uint64_t last_min_us, now_min_us; /* of the round trip before and this one */
	unsigned samples;
	bool css; /* in Conservative Slow Start */
	uint64_t css_baseline_us;
	unsigned css_rounds;
};

void hystart_init(struct hystart *h);
/* By how much to divide the growth of this ACK; 0: slow start is over, `done` is set. */
uint32_t hystart_acked(struct hystart *h, const struct cc_ack *a);

#endif
