/* SPDX-License-Identifier: BSD-3-Clause */
/* CUBIC, RFC 9438: the window grows with the time since the last congestion, not with the number of
 * round trips. Windows in segments here, as in the RFC; time in seconds. */
#include "loss/cc.h"

#define C    0.4 /* RFC 9438 §5 */
#define BETA 0.7 /* RFC 9438 §4.6 */

static double segments(const struct cc *c, uint32_t octets)
{
	return (double)octets / c->mss;
}

/* By Newton's method; x >= 0. */
static double cube_root(double x)
{
	double y = x > 1 ? x : 1;

	if (x <= 0)
		return 0;
	for (unsigned i = 0; i < 64; i++) {
		double next = (2 * y + x / (y * y)) / 3;

		if (next >= y)
			break;
		y = next;
	}
	return y;
}

static void cubic_init(struct cc *c)
{
	c->cubic = (struct cubic){ 0 };
}

/* RFC 9438 §4.2 */
static void begin_epoch(struct cc *c, uint64_t now_us)
{
	struct cubic *u = &c->cubic;
	double cwnd = segments(c, c->cwnd);

	u->epoch_us = now_us ? now_us : 1;
	u->w_est = cwnd;
	u->fraction = 0;
	if (u->w_max > cwnd) {
		u->k = cube_root((u->w_max - cwnd) / C);
		u->origin = u->w_max;
	} else {
		u->k = 0;
		u->origin = cwnd;
		if (u->cwnd_prior < cwnd)
			u->cwnd_prior = cwnd;
	}
}

static double w_cubic(const struct cubic *u, double t)
{
	double x = t - u->k;

	return C * x * x * x + u->origin;
}

/* RFC 9438 §4.3: what Reno would have. On a short path the cubic function does not grow between two
 * losses, and 1 is what other hosts' CUBIC comes to there (doc/adr/0035). */
static void grow_reno(struct cc *c, double acked, double cwnd, uint64_t rtt_us)
{
	struct cubic *u = &c->cubic;
	bool slow = u->w_est < u->cwnd_prior && rtt_us >= c->cfg->short_rtt_us;
	double alpha = slow ? 3 * (1 - BETA) / (1 + BETA) : 1;

	u->w_est += alpha * acked / cwnd;
}

static void avoid_congestion(struct cc *c, const struct cc_ack *a, uint32_t octets)
{
	struct cubic *u = &c->cubic;
	double cwnd = segments(c, c->cwnd), acked = segments(c, octets), t, target, next, more;

	if (!u->epoch_us)
		begin_epoch(c, a->now_us);
	t = (double)(a->now_us - u->epoch_us) / 1e6;
	grow_reno(c, acked, cwnd, rtt_min(a->rtt));
	if (w_cubic(u, t) < u->w_est) {
		next = u->w_est > cwnd ? u->w_est : cwnd;
	} else { /* RFC 9438 §4.4 and §4.5: to where it is a round trip from now */
		target = w_cubic(u, t + (double)a->rtt->smoothed_us / 1e6);
		if (target < cwnd)
			target = cwnd;
		if (target > 1.5 * cwnd)
			target = 1.5 * cwnd;
		next = cwnd + (target - cwnd) / cwnd * acked;
	}
	more = (next - cwnd) * c->mss + u->fraction;
	/* W_est goes on growing while max_window bounds cwnd: the difference may be any number. */
	if (more > c->cfg->max_window)
		more = c->cfg->max_window;
	c->cwnd += (uint32_t)more;
	u->fraction = more - (uint32_t)more;
}

static void cubic_acked(struct cc *c, const struct cc_ack *a)
{
	uint32_t left = cc_slow_start(c, a);

	/* RFC 9438 §5.8: not while the program is what limits. */
	if (left && a->limited && c->cwnd >= c->ssthresh)
		avoid_congestion(c, a, left);
	cc_bound(c);
}

static void save(struct cubic *u)
{
	u->saved_w_max = u->w_max;
	u->saved_k = u->k;
	u->saved_w_est = u->w_est;
	u->saved_origin = u->origin;
	u->saved_prior = u->cwnd_prior;
	u->saved_epoch_us = u->epoch_us;
}

static void cubic_congested(struct cc *c, enum cc_event why, uint32_t flight)
{
	struct cubic *u = &c->cubic;
	double cwnd = segments(c, c->cwnd);
	double less = BETA * (flight < c->cwnd ? flight : c->cwnd);

	(void)why;
	save(u);
	u->cwnd_prior = cwnd;
	/* RFC 9438 §4.7: fast convergence gives way to newcomers. */
	u->w_max = cwnd < u->w_max ? cwnd * (1 + BETA) / 2 : cwnd;
	u->epoch_us = 0;
	c->ssthresh = (uint32_t)less; /* RFC 9438 §4.6 */
	if (c->ssthresh < cc_least_window(c))
		c->ssthresh = cc_least_window(c);
}

static void cubic_undo(struct cc *c)
{
	struct cubic *u = &c->cubic;

	u->w_max = u->saved_w_max;
	u->k = u->saved_k;
	u->w_est = u->saved_w_est;
	u->origin = u->saved_origin;
	u->cwnd_prior = u->saved_prior;
	u->epoch_us = u->saved_epoch_us;
}

static void cubic_idle(struct cc *c)
{
	c->cubic.epoch_us = 0; /* RFC 9438 §5.8: the time of silence does not count */
}

const struct cc_ops cc_cubic = {
	.name = "cubic",
	.init = cubic_init,
	.acked = cubic_acked,
	.congested = cubic_congested,
	.undo = cubic_undo,
	.idle = cubic_idle,
	.pace = cc_pace_window,
};
