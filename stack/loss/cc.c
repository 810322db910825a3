/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/cc.h"

#include <string.h>

void cc_init(struct cc *c, const struct loss_config *cfg, uint32_t mss)
{
	memset(c, 0, sizeof(*c));
	c->cfg = cfg;
	c->ops = cfg->cc;
	c->mss = mss;
	c->cwnd = cc_initial_window(c);
	c->ssthresh = cfg->max_window; /* RFC 5681 §3.1: arbitrarily high */
	hystart_init(&c->hystart);
	c->ops->init(c);
}

uint32_t cc_initial_window(const struct cc *c)
{
	return c->cfg->initial_segments * c->mss;
}

uint32_t cc_least_window(const struct cc *c)
{
	return c->cfg->min_segments * c->mss;
}

void cc_bound(struct cc *c)
{
	if (c->cwnd > c->cfg->max_window)
		c->cwnd = c->cfg->max_window;
}

uint32_t cc_slow_start(struct cc *c, const struct cc_ack *a)
{
	uint32_t limit = c->cfg->abc_limit * c->mss, more = a->delivered, room, share = 1;

	if (c->cwnd >= c->ssthresh)
		return a->delivered;
	if (c->cfg->hystart && !c->hystart.done) {
		share = hystart_acked(&c->hystart, a);
		if (!share) { /* it has found the end of slow start */
			c->ssthresh = c->cwnd;
			return a->delivered;
		}
	}
	if (!a->limited)
		return 0;
	room = c->ssthresh - c->cwnd;
	if (more > limit)
		more = limit;
	more /= share;
	if (more <= room) {
		c->cwnd += more;
		return 0;
	}
	c->cwnd += room;
	return more - room;
}

uint64_t cc_pace_window(const struct cc *c, const struct rtt *r)
{
	uint64_t rate;

	if (!r->any)
		return 0;
	rate = (uint64_t)c->cwnd * 1000000 / (r->smoothed_us ? r->smoothed_us : 1);
	return c->cwnd < c->ssthresh ? 2 * rate : rate + rate / 5;
}
