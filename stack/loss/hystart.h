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
	bool done; /* the first slow start is over; HyStart++ is not used again (RFC 9406 §4.3) */
	uint32_t window_end; /* windowEnd, RFC 9406 §4.2: end of the current round trip */
	/* minimum RTT of the last and of the current round trip; UINT64_MAX: no sample */
	uint64_t last_min_us, now_min_us;
	unsigned samples;	  /* RTT samples in the current round trip */
	bool css;		  /* in Conservative Slow Start */
	uint64_t css_baseline_us; /* cssBaselineMinRtt, RFC 9406 §4.2 */
	unsigned css_rounds;	  /* round trips in Conservative Slow Start */
};

void hystart_init(struct hystart *h);
/* An ACK came. Returns the divisor for the growth of cwnd on this ACK; 0: slow start is over, and
 * `done` is set. */
uint32_t hystart_acked(struct hystart *h, const struct cc_ack *a);

#endif
