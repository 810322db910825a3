/* SPDX-License-Identifier: BSD-3-Clause */
/* The round-trip time: smoothed (RFC 6298 §2), and the least of a while (RFC 8985 §6.2 step 1). */
#ifndef UWARP_LOSS_RTT_H
#define UWARP_LOSS_RTT_H

#include <stdbool.h>
#include <stdint.h>

#define RTT_MIN_AGE_US 10000000u /* what the least is the least of, at most twice that */

struct rtt {
	bool any;
	uint64_t smoothed_us;  /* SRTT */
	uint64_t var_us;       /* RTTVAR */
	uint64_t off_us;       /* the largest deviation of this round trip, ... */
	uint64_t off_since_us; /* ... which began then */
	uint64_t latest_us;
	uint64_t now_min_us, before_min_us; /* of this period and the one before */
	uint64_t period_us;		    /* when this one began */
};

/* RFC 6298 §3 (Karn): only of segments that were sent once. */
void rtt_sample(struct rtt *r, uint64_t rtt_us, uint64_t now_us);
/* UINT64_MAX: no sample yet. */
uint64_t rtt_min(const struct rtt *r);

#endif
