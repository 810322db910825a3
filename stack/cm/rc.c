/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/rc.h"

#include <string.h>

#include "base/be.h"

#define VERSION 1u

static const uint8_t key[4] = { 'u', 'w', 'R', 'C' };

void rc_hello_encode(const struct rc_hello *h, uint8_t out[sizeof(struct rc_wire)])
{
	struct rc_wire w = { .version = VERSION,
			     .refusal = (uint8_t)h->refusal,
			     .rnr = (uint8_t)((h->rnr_retry & RC_RNR_FOR_EVER) + 1) };

	memcpy(w.key, key, sizeof(key));
	uw_put32(w.from, h->from);
	uw_put32(w.to, h->to);
	memcpy(out, &w, sizeof(w));
}

bool rc_hello_decode(struct uw_span pd, struct rc_hello *h)
{
	struct rc_wire w;

	if (pd.n < sizeof(w))
		return false;
	memcpy(&w, pd.p, sizeof(w));
	if (memcmp(w.key, key, sizeof(key)) || w.version != VERSION)
		return false;
	h->from = uw_be32(w.from);
	h->to = uw_be32(w.to);
	h->rnr_retry = w.rnr ? (w.rnr - 1) & RC_RNR_FOR_EVER : RC_RNR_FOR_EVER;
	h->refusal = w.refusal <= RC_ELSEWHERE ? (enum rc_refusal)w.refusal : RC_NOT_READY;
	return true;
}

uint64_t rc_rnr_wait_us(uint8_t min_rnr_timer, uint8_t peer_rnr_retry)
{
	static const uint32_t timer_us[32] = {
		655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,    320,
		480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
		20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};
	uint64_t us;

	if (peer_rnr_retry >= RC_RNR_FOR_EVER)
		return UINT64_MAX;
	us = (peer_rnr_retry + 1ull) * timer_us[min_rnr_timer & 31];
	return us > RC_RNR_LEAST_US ? us : RC_RNR_LEAST_US;
}

static bool same(const struct rc_end *a, const struct rc_end *b)
{
	return uw_ip_eq(&a->addr, &b->addr) && a->qpn == b->qpn;
}

/* Both sides compare the same octets, so they come to the same result on every machine. */
bool rc_connects(const struct rc_end *self, const struct rc_end *peer)
{
	int order = memcmp(&self->addr, &peer->addr, sizeof(self->addr));

	return order < 0 || (!order && self->qpn < peer->qpn);
}

enum rc_verdict rc_judge(enum rc_phase phase, const struct rc_end *self, const struct rc_end *named,
			 const struct rc_end *caller, enum rc_refusal *why)
{
	bool wanted = phase != RC_NO_QP && phase != RC_NAMES_NOBODY && same(named, caller);

	*why = RC_NOT_READY;
	switch (phase) {
	case RC_NO_QP:
		*why = RC_NO_SUCH_QP;
		return RC_REFUSE;
	case RC_NAMES_NOBODY:
		return RC_PARK;
	case RC_AWAITS:
		if (wanted && !rc_connects(self, caller))
			return RC_TAKE;
		*why = wanted ? RC_WRONG_SIDE : RC_OTHER_PEER;
		return wanted ? RC_REFUSE : RC_PARK_BRIEFLY;
	default:
		/* The peer has begun anew, and so will this side's program. */
		if (wanted)
			return RC_PARK;
		*why = RC_OTHER_PEER;
		return RC_PARK_BRIEFLY;
	}
}
