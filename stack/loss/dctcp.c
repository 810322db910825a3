/* SPDX-License-Identifier: BSD-3-Clause */
/* DCTCP, RFC 8257: the window shrinks by the share of octets that came through a queue longer than
 * the switch wants. Losses are answered as Reno does (RFC 8257 §3.5). */
#include "loss/cc.h"
#include "loss/seq.h"

#define ALPHA_ONE 1024u
#define G_SHIFT	  4u /* g = 1/16, RFC 8257 §4.2 */

static void dctcp_init(struct cc *c)
{
	c->dctcp = (struct dctcp){ .alpha = ALPHA_ONE }; /* RFC 8257 §3.3: SHOULD be 1 */
}

static uint32_t at_least(const struct cc *c, uint32_t window)
{
	return window > cc_least_window(c) ? window : cc_least_window(c);
}

/* RFC 8257 §3.3 steps 5 to 8, once for each window of data. */
static void end_window(struct cc *c, const struct cc_ack *a)
{
	struct dctcp *d = &c->dctcp;
	uint64_t m = d->acked ? d->marked * ALPHA_ONE / d->acked : 0;

	d->alpha = d->alpha - (d->alpha >> G_SHIFT) + (uint32_t)(m >> G_SHIFT);
	if (d->alpha > ALPHA_ONE)
		d->alpha = ALPHA_ONE;
	if (d->marked) { /* RFC 8257 §3.4: cwnd * (1 - alpha / 2) */
		uint64_t less = (uint64_t)c->cwnd * d->alpha / (2 * ALPHA_ONE);

		c->cwnd = at_least(c, c->cwnd - (uint32_t)less);
		c->ssthresh = c->cwnd;
		d->fraction = 0;
	}
	d->acked = d->marked = 0;
	d->window_end = a->nxt;
}

/* RFC 5681 §3.1: a segment for each window of octets (RFC 3465 §2.1). */
static void avoid_congestion(struct cc *c, uint32_t octets)
{
	struct dctcp *d = &c->dctcp;

	d->fraction += octets;
	if (d->fraction >= c->cwnd) {
		d->fraction -= c->cwnd;
		c->cwnd += c->mss;
	}
}

static void dctcp_acked(struct cc *c, const struct cc_ack *a)
{
	struct dctcp *d = &c->dctcp;
	uint32_t left;

	if (!d->begun) {
		d->begun = true;
		d->window_end = a->nxt;
	}
	d->acked += a->delivered;
	if (a->ece)
		d->marked += a->delivered;
	if (a->ece && c->cwnd < c->ssthresh)
		c->ssthresh = c->cwnd; /* no slow start into a queue that is too long */
	left = cc_slow_start(c, a);
	if (left && a->limited && c->cwnd >= c->ssthresh && !a->ece)
		avoid_congestion(c, left);
	if (!seq_lt(a->una, d->window_end))
		end_window(c, a);
	cc_bound(c);
}

static void dctcp_congested(struct cc *c, enum cc_event why, uint32_t flight)
{
	if (why == CC_ECE)
		return; /* acked() sees every mark */
	c->dctcp.fraction = 0;
	c->ssthresh = at_least(c, (flight < c->cwnd ? flight : c->cwnd) / 2);
}

static void dctcp_nothing(struct cc *c)
{
	(void)c;
}

const struct cc_ops cc_dctcp = {
	.name = "dctcp",
	.every_mark = true,
	.init = dctcp_init,
	.acked = dctcp_acked,
	.congested = dctcp_congested,
	.undo = dctcp_nothing,
	.idle = dctcp_nothing,
	.pace = cc_pace_window,
};
