/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flow table: from the addresses and ports of a segment to its connection. lwIP walks a list of
 * all connections instead. Its list is kept so that it finds the right one first:
 * pcb/active_list.c.
 */
#include "io/lwip/conn.h"
#include "io/lwip/hooks.h"

#include <string.h>

#include "base/be.h"

#include "lwip/prot/ethernet.h"
#include "lwip/prot/ip.h"
#include "lwip/prot/ip4.h"
#include "lwip/prot/ip6.h"
#include "lwip/prot/tcp.h"

#define TCP_FLAGS_AT 13u /* in its header */

/* Twice as many as there can be pcbs: there is always a free one, and it is not far. */
#define FLOW_BITS 15
#define FLOWS	  (1u << FLOW_BITS)
#define TAGS	  UW_LINE
#define UPCOMING  32u

static_assert(FLOWS >= 2 * MEMP_NUM_TCP_PCB, "the table is at most half full");

/* Each in the first free slot from its home on: the address of a connection, whose lowest bits are
 * free for some of its hash. So hardly any other connection is looked at than the one meant. Only
 * the first 2^bits slots are used, so that what is used lies close together. */
static uintptr_t table[FLOWS];
static unsigned bits = 8, mask = (1u << 8) - 1;

/* Whose memory was prefetched last. */
static const struct llp_conn *prefetched;
/* Connections of the received frames that come next: upcoming[upcoming_at] to [upcoming_n - 1]. */
static const struct llp_conn *upcoming[UPCOMING];
static unsigned upcoming_at, upcoming_n;

/* Peers choose their addresses and ports: without the key they could choose those that share a
 * slot. The product's two halves depend on all of it. (SipHash would cost 2% of a message's
 * instructions; nobody sees this one's values.) */
static uint64_t hash_key[3];

static uint32_t hash(const struct flow_key *k)
{
	/* The half of an IPv4 address that is the same for all of them has room for the ports. */
	uint64_t ends =
		(uint64_t)uw_ip_v4_be(&k->local) << 32 | (uint32_t)k->rport << 16 | k->lport;
	uint64_t far = uw_ip_half(&k->remote, 1) ^ uw_ip_half(&k->remote, 0) * hash_key[2];
	unsigned __int128 x = (unsigned __int128)(far ^ hash_key[0]) * (ends ^ hash_key[1]);

	return (uint32_t)(((uint64_t)x ^ (uint64_t)(x >> 64)) >> 32);
}

/* A table that is in use keeps its key. */
void edge_flow_init(void)
{
	for (unsigned i = 0; i < 3 && !edge.flows; i++)
		hash_key[i] = (uint64_t)uw_lwip_random() << 32 | uw_lwip_random() | 1;
}

static unsigned home(uint32_t h)
{
	return h >> (32 - bits);
}

static unsigned next_slot(unsigned i)
{
	return (i + 1) & mask;
}

static struct llp_conn *edge_conn_at(unsigned i)
{
	return (struct llp_conn *)(table[i] & ~(uintptr_t)(TAGS - 1));
}

static bool maybe(unsigned i, uint32_t h)
{
	return ((table[i] ^ h) & (TAGS - 1)) == 0;
}

static bool same(const struct flow_key *a, const struct flow_key *b)
{
	return a->rport == b->rport && a->lport == b->lport && uw_ip_eq(&a->remote, &b->remote) &&
	       uw_ip_eq(&a->local, &b->local);
}

/* ---- the table ---------------------------------------------------------------------------- */

static void enter(struct llp_conn *c)
{
	unsigned i = home(c->hash);

	while (table[i])
		i = next_slot(i);
	table[i] = (uintptr_t)c | (c->hash & (TAGS - 1));
}

static void enter_all(struct llp_conn *c)
{
	for (; c; c = c->next) {
		if (c->in_table)
			enter(c);
	}
}

static void double_table(void)
{
	memset(table, 0, sizeof(*table) << bits);
	bits++;
	mask = (1u << bits) - 1;
	enter_all(edge.conns);
	enter_all(edge.detached);
}

void edge_conn_flow_add(struct llp_conn *c)
{
	const struct tcp_pcb *pcb = c->pcb;

	if (edge.flows >= 1u << (bits - 1) && bits < FLOW_BITS)
		double_table();

	c->flow = (struct flow_key){ .local = edge_ip(&pcb->local_ip),
				     .remote = edge_ip(&pcb->remote_ip),
				     .lport = lwip_htons(pcb->local_port),
				     .rport = lwip_htons(pcb->remote_port) };
	c->hash = hash(&c->flow);
	enter(c);
	c->in_table = true;
	edge.flows++;
	edge_conn_flow_before(pcb->next, c);
}

void edge_conn_flow_remove(struct llp_conn *c)
{
	unsigned i, k;

	if (!c->in_table)
		return;
	for (i = home(c->hash); edge_conn_at(i) != c;)
		i = next_slot(i);
	/* What is behind it and had to go past this slot moves up. */
	for (k = next_slot(i); table[k]; k = next_slot(k)) {
		unsigned from_home = (k - home(edge_conn_at(k)->hash)) & mask;

		if (from_home < ((k - i) & mask))
			continue;
		table[i] = table[k];
		i = k;
	}
	table[i] = 0;
	c->in_table = false;
	edge.flows--;
}

/* The addresses of a TCP segment over IPv4, and where its TCP header is; 0: it is none. */
static size_t key_of_ip4(const uint8_t *ip, struct flow_key *k)
{
	size_t hl = (size_t)(ip[0] & 15) * 4;
	uint32_t addr;

	if (ip[0] >> 4 != 4 || ip[9] != IP_PROTO_TCP || hl < IP_HLEN)
		return 0;
	memcpy(&addr, ip + 12, 4);
	k->remote = uw_ip_v4(addr);
	memcpy(&addr, ip + 16, 4);
	k->local = uw_ip_v4(addr);
	return hl;
}

static size_t key_of_ip6(const uint8_t *ip, struct flow_key *k)
{
	if (ip[0] >> 4 != 6 || ip[6] != IP6_NEXTH_TCP)
		return 0;
	memcpy(k->remote.b, ip + 8, 16);
	memcpy(k->local.b, ip + 24, 16);
	return IP6_HLEN;
}

struct llp_conn *edge_conn_flow_find(const struct flow_key *k)
{
	uint32_t h = hash(k);

	for (unsigned i = home(h); table[i]; i = next_slot(i)) {
		if (maybe(i, h) && same(&edge_conn_at(i)->flow, k))
			return edge_conn_at(i);
	}
	return NULL;
}

/* Of a frame from its Ethernet header on, at least as long as Ethernet and ARP: the TCP header,
 * NULL if it has none. */
static const uint8_t *key_of(const uint8_t *f, size_t len, struct flow_key *k)
{
	const uint8_t *ip = f + SIZEOF_ETH_HDR;
	size_t hl = 0;

	if (f[12] == 0x08 && f[13] == 0x00)
		hl = key_of_ip4(ip, k);
	else if (f[12] == 0x86 && f[13] == 0xdd && len >= SIZEOF_ETH_HDR + IP6_HLEN)
		hl = key_of_ip6(ip, k);
	if (!hl || len < SIZEOF_ETH_HDR + hl + TCP_HLEN)
		return NULL;
	memcpy(&k->rport, ip + hl, 2);
	memcpy(&k->lport, ip + hl + 2, 2);
	return ip + hl;
}

/* ---- many connections: cold memory (base/prefetch.h) ------------------------------------------
 */

static void fetch(const struct llp_conn *c)
{
	if (!c || c == prefetched)
		return;
	prefetched = c;
	__builtin_prefetch(c->ctx); /* of the user's record the first line is enough */
	uw_prefetch_list_fetch(&c->prefetch_list);
}

/* First the table's slots for all of them, then the connections' own first lines; what the latter
 * name while the frame before is taken in. A connection that is over by then is a spare one. */
void edge_prefetch(struct io_frame *const *v, unsigned n)
{
	uint32_t h[UPCOMING];

	upcoming_at = upcoming_n = 0;
	if (edge.flows < UW_PREFETCH_FROM || n < 2 || n > UPCOMING)
		return;
	for (unsigned i = 0; i < n; i++) {
		struct flow_key k = { 0 };

		if (v[i]->len >= SIZEOF_ETH_HDR + IP_HLEN + TCP_HLEN)
			key_of(v[i]->data, v[i]->len, &k);
		h[i] = hash(&k);
		__builtin_prefetch(&table[home(h[i])]);
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned at = home(h[i]);

		while (table[at] && !maybe(at, h[i]))
			at = next_slot(at);
		upcoming[i] = edge_conn_at(at);
		__builtin_prefetch(upcoming[i]);
		__builtin_prefetch((const void *)((uintptr_t)upcoming[i] + UW_LINE));
	}
	upcoming_n = n;
}

struct llp_conn *edge_conn_flow_lookup(const struct flow_key *k)
{
	struct llp_conn *c = edge_conn_flow_find(k);

	if (edge.flows < UW_PREFETCH_FROM)
		return c;
	fetch(c);
	if (upcoming_at + 1 < upcoming_n && c == upcoming[upcoming_at])
		fetch(upcoming[++upcoming_at]);
	return c;
}

struct uw_prefetch_list *edge_prefetch_list(struct llp_conn *c, struct uw_prefetch_list *t)
{
	uw_prefetch_list_set(t, UW_PREFETCH_PCB, uw_prefetch_lines(c->pcb, sizeof(*c->pcb)));
	uw_prefetch_list_set(t, UW_PREFETCH_CONN,
			     uw_prefetch_lines(c, offsetof(struct llp_conn, probe_wait_us)));
	uw_prefetch_list_copy(&c->prefetch_list, t);
	return &c->prefetch_list;
}

/* Of a frame that has one: what its IP header says about how much follows the TCP header. */
static uint16_t payload_of(const uint8_t *f, const uint8_t *tcp)
{
	const uint8_t *ip = f + SIZEOF_ETH_HDR;
	size_t end = ip[0] >> 4 == 4 ? uw_be16(ip + 2) : IP6_HLEN + (size_t)uw_be16(ip + 4);
	size_t at = (size_t)(tcp - ip) + (size_t)(tcp[12] >> 4) * 4;

	return (uint16_t)(end > at ? end - at : 0);
}

static uint8_t options_of(const struct pbuf *p, const uint8_t *tcp)
{
	size_t there = p->len - (size_t)(tcp - (const uint8_t *)p->payload);
	size_t head = (size_t)(tcp[12] >> 4) * 4;

	return (uint8_t)(head <= TCP_HLEN || there < head ? 0 : head - TCP_HLEN);
}

void edge_flow_find(const struct pbuf *p, struct edge_segment *s)
{
	s->tcp = key_of(p->payload, p->len, &s->flow);
	s->c = NULL;
	if (!s->tcp)
		return;
	s->seq = uw_be32(s->tcp + 4);
	s->ack = uw_be32(s->tcp + 8);
	s->flags = s->tcp[TCP_FLAGS_AT];
	s->len = payload_of(p->payload, s->tcp);
	s->options = options_of(p, s->tcp);
	s->c = edge_conn_flow_lookup(&s->flow);
	if (s->c)
		edge_conn_flow_front(s->c);
}

bool edge_is_new_syn(const struct edge_segment *s)
{
	return s->tcp && !s->c && (s->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}
