/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects lost segments by the time at which they were sent. RFC 8985 §6. */
#ifndef UWARP_LOSS_RACK_H
#define UWARP_LOSS_RACK_H

#include "loss/config.h"
#include "loss/delivery.h"
#include "loss/rtt.h"

struct rack {
	bool any; /* a segment was delivered, so the next three fields are set */
	/* RACK.xmit_ts: when the most recently sent of the delivered segments was sent */
	uint64_t xmit_us;
	uint32_t end_seq;     /* RACK.end_seq: the end of that segment */
	uint64_t rtt_us;      /* RACK.rtt: the RTT of that segment */
	uint32_t fack;	      /* RACK.fack */
	bool reordering_seen; /* RACK.reordering_seen */
	bool in_dsack_round;  /* dsack_round is set */
	uint32_t dsack_round; /* RACK.dsack_round: the round trip ends when this is acknowledged */
	unsigned multiplier;  /* RACK.reo_wnd_mult */
	unsigned persist; /* RACK.reo_wnd_persist: recoveries until the multiplier is reset to 1 */
	uint64_t deadline_us; /* when the next segment is to be marked lost; 0: none */
};

void rack_init(struct rack *k, uint32_t una);
/* RFC 8985 §6.2 steps 2 and 3. */
void rack_delivered(struct rack *k, const struct delivery *d, const struct rtt *r);
/* RFC 8985 §6.2 step 4: a duplicate was reported (dsack), or a recovery ended. */
void rack_adapt(struct rack *k, bool dsack, bool recovery_ended, uint32_t una, uint32_t nxt);
/* RACK.reo_wnd, microseconds (RFC 8985 §6.2 step 4). */
uint64_t rack_window(const struct rack *k, const struct loss_config *cfg, const struct rtt *r,
		     const struct record *rec, bool recovering);
/* RFC 8985 §6.2 step 5: mark lost segments and set deadline_us. Returns the octets marked. */
uint32_t rack_detect(struct rack *k, struct record *r, uint64_t window_us, uint64_t now_us);
/* RFC 8985 §6.3: the RTO fired; mark lost segments. Returns the octets marked. */
uint32_t rack_timeout(const struct rack *k, struct record *r, uint64_t window_us, uint64_t now_us);

#endif
