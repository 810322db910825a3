/* SPDX-License-Identifier: BSD-3-Clause */
/* The round-trip time: smoothed (RFC 6298 §2), and its recent minimum (RFC 8985 §6.2 step 1). */
#ifndef UWARP_LOSS_RTT_H
#define UWARP_LOSS_RTT_H

#include <stdbool.h>
#include <stdint.h>

/* rtt_min() is the minimum over one to two periods of this length */
#define RTT_MIN_AGE_US 10000000u

struct rtt {
	bool any;	      /* there is a sample */
	uint64_t smoothed_us; /* SRTT */
	uint64_t var_us;      /* RTTVAR */
	uint64_t off_us; /* largest deviation from SRTT since off_since_us, one SRTT ago at most */
	uint64_t off_since_us;		    /* start of the interval of off_us */
	uint64_t now_min_us, before_min_us; /* minimum RTT in this period and in the one before */
	uint64_t period_us;		    /* start of this period */
};

/* Add a sample. RFC 6298 §3 (Karn): only of a segment that was sent once. */
void rtt_sample(struct rtt *r, uint64_t rtt_us, uint64_t now_us);
/* The recent minimum; UINT64_MAX: no sample yet. */
uint64_t rtt_min(const struct rtt *r);

#endif
