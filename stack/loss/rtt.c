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

/* RFC 6298 §2.3 is for one sample in a round trip; with one for each ACK RTTVAR would forget within
 * a fraction of it (RFC 7323 appendix G). So it follows the largest deviation of each round trip:
 * up at once, down with beta = 1/4. */
static void take_deviation(struct rtt *r, uint64_t off_us, uint64_t now_us)
{
	if (off_us > r->off_us)
		r->off_us = off_us;
	if (r->off_us > r->var_us)
		r->var_us = r->off_us;
	if (now_us - r->off_since_us < r->smoothed_us)
		return;
	r->var_us = r->var_us - r->var_us / 4 + r->off_us / 4;
	r->off_us = 0;
	r->off_since_us = now_us;
}

void rtt_sample(struct rtt *r, uint64_t rtt_us, uint64_t now_us)
{
	uint64_t us = rtt_us ? rtt_us : 1, off;

	if (!r->any) { /* RFC 6298 §2.2 */
		r->any = true;
		r->smoothed_us = us;
		r->var_us = us / 2;
		r->now_min_us = r->before_min_us = us;
		r->period_us = r->off_since_us = now_us;
		return;
	}
	take_min(r, us, now_us);
	off = us > r->smoothed_us ? us - r->smoothed_us : r->smoothed_us - us;
	take_deviation(r, off, now_us);
	r->smoothed_us = r->smoothed_us - r->smoothed_us / 8 + us / 8; /* RFC 6298 §2.3 */
}

uint64_t rtt_min(const struct rtt *r)
{
	if (!r->any)
		return UINT64_MAX;
	return r->now_min_us < r->before_min_us ? r->now_min_us : r->before_min_us;
}
