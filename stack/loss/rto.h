/* SPDX-License-Identifier: BSD-3-Clause */
/* The retransmission timeout (RTO), RFC 6298. Times are in microseconds. */
#ifndef UWARP_LOSS_RTO_H
#define UWARP_LOSS_RTO_H

#include "loss/config.h"
#include "loss/rtt.h"

struct rto {
	/* Number of doublings, RFC 6298 §5.5. It stays until the next RTT sample (§5.7, and Karn's
	 * algorithm in RFC 9293 §3.8.1): where the path became longer than the RTO, nothing would
	 * be sent once and be a sample otherwise. */
	unsigned backoff;
	unsigned unanswered; /* timeouts since the last progress */
	/* the RTO is at least SRTT plus this; rto_min_us, doubled after each spurious RTO */
	uint64_t floor_us;
	uint64_t base_us; /* when the timer was started, RFC 6298 §5.1 and §5.3 */
};

void rto_init(struct rto *t, const struct loss_config *cfg);
/* The RTO with its back-off. */
uint64_t rto_us(const struct rto *t, const struct loss_config *cfg, const struct rtt *r);
/* When the timer fires. */
uint64_t rto_at(const struct rto *t, const struct loss_config *cfg, const struct rtt *r);
/* New data was acknowledged, or the first segment was sent (RFC 6298 §5.1, §5.3). */
void rto_restart(struct rto *t, uint64_t now_us);
/* The timer fired: double the RTO and restart the timer. */
void rto_fired(struct rto *t, uint64_t now_us);
/* The timer fired although nothing was lost: double floor_us. */
void rto_was_spurious(struct rto *t);

#endif
