/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/rtt.h"

static void take_min(struct rtt *r, uint64_t us, uint64_t now_us)
{
	if (now_us - r->period_us > RTT_MIN_AGE_US) {
		r->before_min_us = r->now_min_us;
		r->now_min_us = us;
		r->period_us = now_us;
	}
	if (us < r->now_min_us)
		r->now_min_us = us;
}

void rtt_sample(struct rtt *r, uint64_t rtt_us, uint64_t now_us)
{
	uint64_t us = rtt_us ? rtt_us : 1, off;

	r->latest_us = us;
	if (!r->any) { /* RFC 6298 §2.2 */
		r->any = true;
		r->smoothed_us = us;
		r->var_us = us / 2;
		r->now_min_us = r->before_min_us = us;
		r->period_us = now_us;
		return;
	}
	take_min(r, us, now_us);
	/* RFC 6298 §2.3: RTTVAR first, alpha = 1/8, beta = 1/4. */
	off = us > r->smoothed_us ? us - r->smoothed_us : r->smoothed_us - us;
	r->var_us = r->var_us - r->var_us / 4 + off / 4;
	r->smoothed_us = r->smoothed_us - r->smoothed_us / 8 + us / 8;
}

uint64_t rtt_min(const struct rtt *r)
{
	if (!r->any)
		return UINT64_MAX;
	return r->now_min_us < r->before_min_us ? r->now_min_us : r->before_min_us;
}
