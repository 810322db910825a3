/* SPDX-License-Identifier: BSD-3-Clause */
/* Which segments are lost, told by the time at which they were sent. RFC 8985 §6. */
#ifndef UWARP_LOSS_RACK_H
#define UWARP_LOSS_RACK_H

#include "loss/config.h"
#include "loss/delivery.h"
#include "loss/rtt.h"

struct rack {
	bool any;	      /* something was delivered: the next three are set */
	uint64_t xmit_us;     /* RACK.xmit_ts: when the newest delivered was sent, ... */
	uint32_t end_seq;     /* ... its end, ... */
	uint64_t rtt_us;      /* ... and how long it took */
	uint32_t fack;	      /* RACK.fack */
	bool reordering_seen; /* RACK.reordering_seen */
	bool in_dsack_round;  /* RACK.dsack_round is set */
	uint32_t dsack_round; /* ... and ends when this is acknowledged */
	unsigned multiplier;  /* RACK.reo_wnd_mult */
	unsigned persist;     /* RACK.reo_wnd_persist: recoveries until it is 1 again */
	uint64_t deadline_us; /* when the next segment may be taken for lost; 0: none waits */
};

void rack_init(struct rack *k, uint32_t una);
/* RFC 8985 §6.2 steps 2 and 3. */
void rack_delivered(struct rack *k, const struct delivery *d, const struct rtt *r);
/* RFC 8985 §6.2 step 4: a duplicate was reported (dsack), or a recovery ended. */
void rack_adapt(struct rack *k, bool dsack, bool recovery_ended, uint32_t una, uint32_t nxt);
/* RACK.reo_wnd. */
uint64_t rack_window(const struct rack *k, const struct loss_config *cfg, const struct rtt *r,
		     const struct record *rec, bool recovering);
/* RFC 8985 §6.2 step 5: mark the lost ones and set deadline_us; returns their octets. */
uint32_t rack_detect(struct rack *k, struct record *r, uint64_t window_us, uint64_t now_us);
/* RFC 8985 §6.3: the RTO fired. */
uint32_t rack_timeout(const struct rack *k, struct record *r, uint64_t window_us, uint64_t now_us);

#endif
