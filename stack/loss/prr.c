/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/prr.h"

void prr_begin(struct prr *p, uint32_t flight)
{
	*p = (struct prr){ .flight = flight ? flight : 1 };
}

void prr_sent(struct prr *p, uint32_t octets)
{
	p->out += octets;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint32_t prr_acked(struct prr *p, const struct prr_ack *a)
{
	uint64_t count, limit;

	p->delivered += a->delivered;
	if (a->pipe > a->ssthresh) { /* RFC 6937 §3: proportional */
		count = (p->delivered * a->ssthresh + p->flight - 1) / p->flight;
		count = count > p->out ? count - p->out : 0;
	} else {
		limit = p->delivered > p->out ? p->delivered - p->out : 0;
		if (limit < a->delivered)
			limit = a->delivered;
		if (a->progress) /* the slow start of SSRB, else the conservation of CRB */
			limit += a->mss;
		count = less(a->ssthresh - a->pipe, limit);
	}
	/* The segment that the recovery begins with. */
	if (!p->out && count < a->mss)
		count = a->mss;
	return (uint32_t)count;
}
