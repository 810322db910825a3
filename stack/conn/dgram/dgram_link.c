/* SPDX-License-Identifier: BSD-3-Clause */
/* What UC and UD need to know of a link, and of a number. */
#include "conn/dgram/dgram.h"

/* IPv6, UDP, BTH, RETH, ICRC: what Linux's drivers leave room for. */
#define HEADERS 80u

uint32_t dgram_mtu(const struct io_link *l)
{
	uint32_t mtu = ROCE_MTU_MAX;

	while (mtu > 256 && mtu + HEADERS > l->mtu)
		mtu /= 2;
	return mtu;
}

/* roce_to.source: the link in the upper half; below 0 for IPv4, n + 1 for number n of IPv6. */
enum { LINK_AT = 4, ADDRESS = 15 };

struct io_link *dgram_source(const struct stack *s, uint8_t source, struct uw_ip *out)
{
	unsigned at = source & ADDRESS, link = source >> LINK_AT;
	struct io_link *l = link < s->n_links ? s->links[link] : NULL;

	if (!l || at > l->n_ip6)
		return NULL;
	*out = at ? l->ip6[at - 1].ip : uw_ip_v4(l->addr);
	return l;
}

struct conn_qp *dgram_find(const struct stack *s, uint32_t qpn)
{
	const struct conn_hooks *h = &s->domain->hooks;
	struct conn_qp *q = h->find_qp(h->find_qp_arg, qpn);

	return q && q->dgram ? q : NULL;
}

uw_status dgram_claim(const struct stack *s, uint32_t qpn)
{
	uw_status st = UW_OK;

	for (unsigned i = 0; i < s->n_links && !st; i++) {
		struct io_link *l = s->links[i];

		if (l->ops->claim_packets)
			st = l->ops->claim_packets(l, qpn);
	}
	return st;
}
