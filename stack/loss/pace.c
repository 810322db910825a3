/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/pace.h"

#define ONE	    1000000 /* an octet, in `earned` */
#define BURST_US    1000u   /* what is earned in so long may be spent at once, ... */
#define BURST_LEAST 65536u  /* ... and so many octets always */

static int64_t burst(const struct pace *p)
{
	uint64_t most = p->rate * BURST_US;

	return (int64_t)(most > (uint64_t)BURST_LEAST * ONE ? most : (uint64_t)BURST_LEAST * ONE);
}

static void earn(struct pace *p, uint64_t now_us)
{
	uint64_t us = now_us - p->until_us;
	int64_t missing = burst(p) - p->earned;

	p->until_us = now_us;
	/* Compared as times: over a short path a rate times the silence does not fit 64 bits. */
	if (missing <= 0 || us > (uint64_t)missing / p->rate)
		p->earned = burst(p);
	else
		p->earned += (int64_t)(p->rate * us);
}

void pace_set(struct pace *p, uint64_t rate, uint64_t now_us)
{
	if (!p->rate) {
		p->until_us = now_us;
		p->rate = rate;
		p->earned = burst(p);
		return;
	}
	earn(p, now_us);
	p->rate = rate;
}

void pace_sent(struct pace *p, uint32_t octets, uint64_t now_us)
{
	if (!p->rate)
		return;
	earn(p, now_us);
	p->earned -= (int64_t)octets * ONE;
}

bool pace_open(struct pace *p, uint64_t now_us)
{
	if (!p->rate)
		return true;
	earn(p, now_us);
	return p->earned >= 0;
}

uint64_t pace_at(const struct pace *p)
{
	if (!p->rate || p->earned >= 0)
		return 0;
	return p->until_us + (uint64_t)-p->earned / p->rate + 1;
}
