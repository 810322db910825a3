/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control that goes by delay and delivery rate, for networks that lose without congestion. Two
 * numbers describe the path: the highest rate at which it delivered of late, and the least
 * round-trip time. Their product is what the path holds; the window is twice that, so that ACKs
 * that come together or late leave no gap, and pacing at that rate keeps the queue short. A loss
 * says nothing here unless many come at once. The ideas are those of BBR
 * (draft-ietf-ccwg-bbr §4), the parts are fewer.
 */
#include "loss/cc.h"
#include "loss/seq.h"

#define STARTUP_GAIN	289u	 /* per cent: doubles in each round trip */
#define WINDOW_GAIN	200u	 /* cruising */
#define FULL_ROUNDS	3u	 /* without growth by a quarter: the path is full */
#define LOOK_EVERY_US	5000000u /* rtt_min() forgets after twice that at the latest */
#define LOOK_FOR_US	10000u
#define MANY_LOST_SHIFT 3u /* an eighth of a round's octets */
#define LEAST_SEGMENTS	4u
#define CYCLE		8u /* round trips: one faster, one slower, the others at the rate */

static void delay_init(struct cc *c)
{
	c->delay = (struct delay){ .cap = c->cfg->max_window };
}

static uint64_t best_rate(const struct delay *d)
{
	uint64_t best = 0;

	for (unsigned i = 0; i < DELAY_ROUNDS; i++) {
		if (d->rate[i] > best)
			best = d->rate[i];
	}
	return best;
}

/* The octets that the path holds; 0: not known yet. */
static uint64_t path_holds(const struct delay *d, const struct rtt *r)
{
	return r->any ? best_rate(d) * rtt_min(r) / 1000000 : 0;
}

static void look_at_startup(struct delay *d)
{
	uint64_t rate = best_rate(d);

	if (rate > d->best + d->best / 4) {
		d->best = rate;
		d->full = 0;
	} else if (++d->full >= FULL_ROUNDS) {
		d->phase = DELAY_DRAIN;
	}
}

/* An eighth of it lost: the queue is too short for the window after all. */
static void look_at_losses(struct cc *c)
{
	struct delay *d = &c->delay;

	if (d->lost > LEAST_SEGMENTS * c->mss && d->lost > d->delivered >> MANY_LOST_SHIFT) {
		d->cap = c->cwnd - c->cwnd / 4;
		if (d->phase == DELAY_STARTUP)
			d->phase = DELAY_DRAIN;
	} else if (d->cap < c->cfg->max_window) {
		d->cap += d->cap / 8 + c->mss;
	}
	if (d->cap > c->cfg->max_window)
		d->cap = c->cfg->max_window;
	d->lost = d->delivered = 0;
}

static void new_round(struct cc *c, const struct cc_ack *a)
{
	struct delay *d = &c->delay;

	d->round_end = a->nxt;
	look_at_losses(c);
	if (d->phase == DELAY_STARTUP && !a->app_limited)
		look_at_startup(d);
	d->round++;
	d->rate[d->round % DELAY_ROUNDS] = 0;
}

/* With half of what the path holds in flight the queue is empty, and the round-trip time is the
 * path's own. */
static void look_for_min(struct delay *d, uint64_t now_us)
{
	if (!d->look_us)
		d->look_us = now_us + LOOK_EVERY_US;
	if (d->phase == DELAY_CRUISE && now_us >= d->look_us) {
		d->phase = DELAY_LOOK;
		d->look_end_us = now_us + LOOK_FOR_US;
	} else if (d->phase == DELAY_LOOK && now_us >= d->look_end_us) {
		d->phase = DELAY_CRUISE;
		d->look_us = now_us + LOOK_EVERY_US;
	}
}

static uint64_t target(const struct cc *c, const struct cc_ack *a)
{
	const struct delay *d = &c->delay;
	uint64_t holds = path_holds(d, a->rtt);

	switch (d->phase) {
	case DELAY_STARTUP:
		return holds * STARTUP_GAIN / 100;
	case DELAY_DRAIN:
		return holds;
	case DELAY_LOOK:
		return holds / 2;
	default:
		return holds * WINDOW_GAIN / 100 + 2 * c->mss;
	}
}

static void set_window(struct cc *c, const struct cc_ack *a)
{
	struct delay *d = &c->delay;
	uint64_t to = target(c, a), least = LEAST_SEGMENTS * c->mss;

	if (d->phase == DELAY_STARTUP) { /* as slow start: never less than it was */
		if (c->cwnd < to || c->cwnd < cc_initial_window(c))
			c->cwnd += a->delivered;
	} else {
		if (to > d->cap)
			to = d->cap;
		if (to < least)
			to = least;
		/* Up by what was delivered, down at once. */
		c->cwnd = c->cwnd + a->delivered < to ? c->cwnd + a->delivered : (uint32_t)to;
	}
	cc_bound(c);
}

static void delay_acked(struct cc *c, const struct cc_ack *a)
{
	struct delay *d = &c->delay;

	if (!d->begun) {
		d->begun = true;
		d->round_end = a->nxt;
	}
	d->lost += a->lost;
	d->delivered += a->delivered;
	/* What the program limits says only how fast the path is at least. */
	if (a->rate && (!a->app_limited || a->rate > best_rate(d))) {
		if (a->rate > d->rate[d->round % DELAY_ROUNDS])
			d->rate[d->round % DELAY_ROUNDS] = a->rate;
	}
	if (seq_leq(d->round_end, a->una))
		new_round(c, a);
	if (d->phase == DELAY_DRAIN && a->nxt - a->una <= path_holds(d, a->rtt))
		d->phase = DELAY_CRUISE;
	look_for_min(d, a->now_us);
	set_window(c, a);
}

static void delay_congested(struct cc *c, enum cc_event why, uint32_t flight)
{
	(void)why;
	(void)flight;
	c->ssthresh = c->cwnd;
}

static void delay_nothing(struct cc *c)
{
	(void)c;
}

static uint64_t delay_pace(const struct cc *c, const struct rtt *r)
{
	const struct delay *d = &c->delay;
	uint64_t rate = best_rate(d);
	/* A program that says little has shown little: a first window per round trip may always
	 * go, cwnd bounds it. */
	uint64_t least = r->any ? cc_initial_window(c) * 1000000ull / rtt_min(r) : 0;

	if (rate < least)
		rate = least;
	if (d->phase == DELAY_STARTUP)
		return rate * STARTUP_GAIN / 100;
	if (d->phase == DELAY_DRAIN)
		return rate - rate / 4;
	switch (d->round % CYCLE) {
	case 0:
		return rate + rate / 4;
	case 1:
		return rate - rate / 4;
	default:
		return rate;
	}
}

const struct cc_ops cc_delay = {
	.name = "delay",
	.own_recovery = true,
	.init = delay_init,
	.acked = delay_acked,
	.congested = delay_congested,
	.undo = delay_nothing,
	.idle = delay_nothing,
	.pace = delay_pace,
};
