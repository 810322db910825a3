/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The routes of a link: which neighbour takes a packet to an address that is in none of the link's
 * own networks (RFC 1122 §3.3.1, RFC 8200 hosts). A table is filled, sorted once, and then only
 * read. No function here sends, waits or reads a clock.
 */
#ifndef UWARP_IO_ROUTE_TABLE_H
#define UWARP_IO_ROUTE_TABLE_H

#include "io/io.h"

#define ROUTE_MAX      4096u /* routes of one link; more are not taken */
#define ROUTE_CACHE    64u   /* destinations whose route is remembered */
#define ROUTE_NEAR_MAX 1024u /* neighbours of one link; more are not taken */

struct route {
	struct uw_net net;
	struct uw_ip via; /* the gateway; the any address: the destination is a neighbour */
	uint32_t metric;  /* of two routes to one network the lower one is used */
	uint32_t mtu;	  /* IP octets; 0: the link's */
};

struct route_cached {
	struct uw_ip to;
	const struct route *route; /* NULL: the entry is free */
};

/* A neighbour whose MAC address the administrator has fixed: it is not asked for. */
struct route_neighbour {
	struct uw_ip ip;
	uint8_t mac[6];
};

struct route_table {
	struct route *at;
	unsigned n, room;
	struct route_neighbour *near; /* sorted by route_sort */
	unsigned n_near, near_room;
	bool full; /* a route or a neighbour found no place */
	struct route_cached cache[ROUTE_CACHE];
};

/* Append a route. A table that is full or finds no memory drops the route and sets `full`. */
void route_add(struct route_table *t, const struct route *r);
/* The same for a neighbour. */
void route_add_neighbour(struct route_table *t, const struct route_neighbour *n);
/* After the last of both: sort by length of the prefix, then by metric. Of equal routes the one
 * that was added first comes first. */
void route_sort(struct route_table *t);
/* Free the routes and neighbours; the table is empty then. */
void route_clear(struct route_table *t);
/* The route to an address; NULL: none. */
const struct route *route_find(struct route_table *t, const struct uw_ip *to);
/* The MAC address of a neighbour that is fixed; NULL: it has to be asked for. */
const uint8_t *route_mac(const struct route_table *t, const struct uw_ip *neighbour);
/* Are the same routes and neighbours in both? */
bool route_same(const struct route_table *a, const struct route_table *b);

/* Is the address in one of the link's own networks? IPv6 link-local addresses always are. */
bool route_is_near(const struct io_link *l, const struct uw_ip *a);
/* The neighbour that takes a packet from the link to an address. False: there is no way. */
bool route_next_hop(const struct io_link *l, const struct uw_ip *to, struct uw_ip *hop);

#endif
