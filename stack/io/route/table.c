/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/route/table.h"

#include <stdlib.h>

void route_add(struct route_table *t, const struct route *r)
{
	if (t->n == t->room) {
		unsigned room = t->room ? 2 * t->room : 16;
		struct route *at = room <= ROUTE_MAX ? realloc(t->at, room * sizeof(*at)) : NULL;

		if (!at) {
			t->full = true;
			return;
		}
		t->at = at;
		t->room = room;
	}
	t->at[t->n++] = *r;
}

void route_add_neighbour(struct route_table *t, const struct route_neighbour *n)
{
	if (t->n_near == t->near_room) {
		unsigned room = t->near_room ? 2 * t->near_room : 16;
		void *at =
			room <= ROUTE_NEAR_MAX ? realloc(t->near, room * sizeof(*t->near)) : NULL;

		if (!at) {
			t->full = true;
			return;
		}
		t->near = at;
		t->near_room = room;
	}
	t->near[t->n_near++] = *n;
}

static int by_ip(const void *a, const void *b)
{
	const struct route_neighbour *m = a, *n = b;

	return memcmp(&m->ip, &n->ip, sizeof(m->ip));
}

const uint8_t *route_mac(const struct route_table *t, const struct uw_ip *neighbour)
{
	const struct route_neighbour key = { .ip = *neighbour }, *n;

	if (!t->n_near)
		return NULL;
	n = bsearch(&key, t->near, t->n_near, sizeof(key), by_ip);
	return n ? n->mac : NULL;
}

static bool goes_before(const struct route *a, const struct route *b)
{
	if (a->net.bits != b->net.bits)
		return a->net.bits > b->net.bits;
	return a->metric < b->metric;
}

/* By insertion, which keeps the order of equals: the kernel gives routes nearly sorted. */
void route_sort(struct route_table *t)
{
	for (unsigned i = 1; i < t->n; i++) {
		struct route r = t->at[i];
		unsigned k = i;

		for (; k && goes_before(&r, &t->at[k - 1]); k--)
			t->at[k] = t->at[k - 1];
		t->at[k] = r;
	}
	memset(t->cache, 0, sizeof(t->cache));
	if (t->n_near)
		qsort(t->near, t->n_near, sizeof(*t->near), by_ip);
}

void route_clear(struct route_table *t)
{
	free(t->at);
	free(t->near);
	*t = (struct route_table){ 0 };
}

const struct route *route_find(struct route_table *t, const struct uw_ip *to)
{
	struct route_cached *c = &t->cache[uw_ip_hash(to) >> 58];

	static_assert(ROUTE_CACHE == 1u << (64 - 58), "the hash's upper bits are the index");
	if (c->route && uw_ip_eq(&c->to, to))
		return c->route;
	for (unsigned i = 0; i < t->n; i++) {
		if (!uw_net_has(&t->at[i].net, to))
			continue;
		*c = (struct route_cached){ *to, &t->at[i] };
		return c->route;
	}
	return NULL;
}

static bool same_route(const struct route *a, const struct route *b)
{
	return a->net.bits == b->net.bits && a->metric == b->metric && a->mtu == b->mtu &&
	       uw_ip_eq(&a->net.ip, &b->net.ip) && uw_ip_eq(&a->via, &b->via);
}

bool route_same(const struct route_table *a, const struct route_table *b)
{
	if (a->n != b->n || a->n_near != b->n_near || a->full != b->full)
		return false;
	for (unsigned i = 0; i < a->n_near; i++) {
		if (by_ip(&a->near[i], &b->near[i]) ||
		    memcmp(a->near[i].mac, b->near[i].mac, sizeof(a->near[i].mac)))
			return false;
	}
	for (unsigned i = 0; i < a->n; i++) {
		if (!same_route(&a->at[i], &b->at[i]))
			return false;
	}
	return true;
}

/* ---- next hop ------------------------------------------------------------------------------ */

/* The length of the longest of the link's own prefixes that has the address; 0: none. */
static unsigned own_bits(const struct io_link *l, const struct uw_ip *a)
{
	unsigned most = 0;

	if (uw_ip_is_v4(a)) {
		uint32_t other = l->addr ^ uw_ip_v4_be(a);

		if (!l->addr || other & l->mask)
			return 0;
		return UW_IP_V4_BITS + (unsigned)__builtin_popcount(l->mask);
	}
	if (uw_ip_is_link_local(a) && l->n_ip6)
		return 128;
	for (unsigned i = 0; i < l->n_ip6; i++) {
		if (uw_net_has(&l->ip6[i], a) && l->ip6[i].bits > most)
			most = l->ip6[i].bits;
	}
	return most;
}

bool route_is_near(const struct io_link *l, const struct uw_ip *a)
{
	return own_bits(l, a);
}

bool route_next_hop(const struct io_link *l, const struct uw_ip *to, struct uw_ip *hop)
{
	const struct route *r = l->routes ? route_find(l->routes, to) : NULL;
	unsigned own = own_bits(l, to);

	*hop = *to;
	if (own && (!r || own >= r->net.bits))
		return true;
	if (r && !uw_ip_is_any(&r->via))
		*hop = r->via;
	return r;
}
