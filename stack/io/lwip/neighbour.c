/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours are lwIP's to find (doc/adr/0028). Here: is one known, and is it still where it was?
 */
#include "io/lwip/conn.h"

#include "io/addr.h"
#include "io/route/table.h"
#include "lwip/etharp.h"
#include "lwip/nd6.h"

/* RFC 1122 §2.3.2.1: not more often than once a second for each host */
#define ASK_AGAIN_US 1000000u

/* The neighbours that were asked again last. That many may be asked in a second, each of them once.
 */
static struct asked {
	uint32_t hop; /* IPv4 address, network order */
	uint64_t us;  /* when; 0: the place is free */
} asked[EDGE_ASKED];

static bool knows_ip4(struct netif *nif, const struct uw_ip *to)
{
	struct uw_ip hop;
	struct eth_addr *mac;
	const ip4_addr_t *same;
	ip4_addr_t next;

	if (!route_next_hop(nif->state, to, &hop))
		return true; /* there is nobody to wait for */
	if (edge_nif_is_fixed(nif->state, &hop))
		return true;
	next.addr = uw_ip_v4_be(&hop);
	if (etharp_find_addr(nif, &next, &mac, &same) >= 0)
		return true;
	etharp_query(nif, &next, NULL);
	return false;
}

static bool knows_ip6(struct netif *nif, const struct uw_ip *to)
{
	ip_addr_t a = edge_addr(to);
	const u8_t *mac = NULL;
	struct uw_ip hop;

	if (route_next_hop(nif->state, to, &hop) && edge_nif_is_fixed(nif->state, &hop))
		return true;

	/* While it is looked for, ERR_MEM says that there is no packet to be queued. Without a way
	 * there is nobody to wait for. */
	return nd6_get_next_hop_addr_or_queue(nif, NULL, ip_2_ip6(&a), &mac) == ERR_RTE || mac;
}

bool edge_neighbour(struct io_link *l, const struct uw_ip *to)
{
	struct edge_link *el = edge_link_of(l);

	if (!el || (l->flags & IO_P2P) || io_has(l, to))
		return true;
	return uw_ip_is_v4(to) ? knows_ip4(&el->nif, to) : knows_ip6(&el->nif, to);
}

/* The place of this neighbour, or else the one whose question is the oldest. */
static struct asked *place_of(uint32_t hop)
{
	struct asked *oldest = &asked[0];

	for (struct asked *a = asked; a < asked + EDGE_ASKED; a++) {
		if (a->hop == hop)
			return a;
		if (a->us < oldest->us)
			oldest = a;
	}
	return oldest;
}

/* True: it is to be asked, and counts as asked now. */
static bool may_ask(uint32_t hop)
{
	struct asked *a = place_of(hop);
	uint64_t t = edge.cfg.now_us(edge.cfg.arg);

	if (a->us && t - a->us < ASK_AGAIN_US)
		return false;
	*a = (struct asked){ hop, t };
	return true;
}

void edge_ask_again(const struct llp_conn *c)
{
	struct io_link *l = c->el->io;
	struct uw_ip hop;
	ip4_addr_t next;

	if (l->flags & IO_P2P || !uw_ip_is_v4(&c->flow.remote) || io_has(l, &c->flow.remote) ||
	    !route_next_hop(l, &c->flow.remote, &hop) || edge_nif_is_fixed(l, &hop))
		return;
	next.addr = uw_ip_v4_be(&hop);
	if (may_ask(next.addr))
		etharp_request(&c->el->nif, &next);
}
