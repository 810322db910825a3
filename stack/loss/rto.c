/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/rto.h"

#define DOUBLED_MOST 16u
#define FLOOR_MAX_US 200000u /* with the delayed ACK of every common system below it */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void rto_init(struct rto *t, const struct loss_config *cfg)
{
	*t = (struct rto){ .floor_us = cfg->rto_min_us };
}

uint64_t rto_us(const struct rto *t, const struct loss_config *cfg, const struct rtt *r)
{
	uint64_t us;

	/* RFC 6298 §2.3; the least of §2.4 is for what comes on top of the round trip: a host that
	 * is busy for that long is no loss. */
	if (r->any)
		us = r->smoothed_us +
		     larger(larger(cfg->granularity_us, 4 * r->var_us), t->floor_us);
	else
		us = cfg->rto_first_us;
	us <<= t->backoff < DOUBLED_MOST ? t->backoff : DOUBLED_MOST;
	return us < cfg->rto_max_us ? us : cfg->rto_max_us;
}

uint64_t rto_at(const struct rto *t, const struct loss_config *cfg, const struct rtt *r)
{
	return t->base_us + rto_us(t, cfg, r);
}

void rto_restart(struct rto *t, uint64_t now_us)
{
	t->unanswered = 0;
	t->base_us = now_us;
}

void rto_fired(struct rto *t, uint64_t now_us)
{
	t->backoff++;
	t->unanswered++;
	t->base_us = now_us;
}

void rto_was_spurious(struct rto *t)
{
	t->backoff = 0;
	if (t->floor_us < FLOOR_MAX_US)
		t->floor_us *= 2;
}
