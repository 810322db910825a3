/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which connection is a segment for? lwIP looks through its list of all of them. It finds at once
 * what is at the list's head, so we look the connection up in a table and put it there first.
 * To take something out of lwIP's list one needs what is in front of it: each connection remembers
 * that, and a hint that does not hold any more is repaired by walking the list.
 */
#include "io/lwip/conn.h"

#include <string.h>

#include "lwip/priv/tcp_priv.h"
#include "lwip/prot/ethernet.h"
#include "lwip/prot/ip.h"
#include "lwip/prot/ip4.h"
#include "lwip/prot/ip6.h"

#define TCP_FLAGS_AT 13u /* in its header */

static struct llp_conn *table[FLOW_BUCKETS];

static unsigned hash(const struct flow_key *k)
{
	/* The half of an IPv4 address that is the same for all of them has room for the ports. */
	uint64_t x = uw_ip_half(&k->remote, 1) ^ ((uint32_t)k->rport << 16 | k->lport);

	/* Of our own addresses there are few, and one peer's networks are told by less than all. */
	x ^= uw_ip_half(&k->remote, 0) * 3 ^ uw_ip_v4_be(&k->local) * (uint64_t)0x9e3779b1u;
	return (unsigned)((x * 0x9e3779b97f4a7c15u) >> (64 - FLOW_BITS));
}

static bool same(const struct flow_key *a, const struct flow_key *b)
{
	return a->rport == b->rport && a->lport == b->lport && uw_ip_eq(&a->remote, &b->remote) &&
	       uw_ip_eq(&a->local, &b->local);
}

struct llp_conn *conn_of(const struct tcp_pcb *pcb)
{
	struct llp_conn *c = pcb && pcb->recv == conn_recv ? pcb->callback_arg : NULL;

	return c && c->pcb == pcb ? c : NULL;
}

void conn_flow_before(const struct tcp_pcb *pcb, struct llp_conn *before)
{
	struct llp_conn *c = conn_of(pcb);

	if (c)
		c->before = before;
}

void conn_flow_add(struct llp_conn *c)
{
	const struct tcp_pcb *pcb = c->pcb;
	struct llp_conn **bucket;

	c->flow = (struct flow_key){ .local = edge_ip(&pcb->local_ip),
				     .remote = edge_ip(&pcb->remote_ip),
				     .lport = lwip_htons(pcb->local_port),
				     .rport = lwip_htons(pcb->remote_port) };
	bucket = &table[hash(&c->flow)];
	c->flow_next = *bucket;
	*bucket = c;
	c->in_table = true;
	conn_flow_before(pcb->next, c);
}

void conn_flow_remove(struct llp_conn *c)
{
	struct llp_conn **p = &table[hash(&c->flow)];

	if (!c->in_table)
		return;
	while (*p != c)
		p = &(*p)->flow_next;
	*p = c->flow_next;
	c->in_table = false;
}

/* What is in front of it in the list: by the hint, which is true if it points to a living pcb that
 * has ours behind it; else by walking, which repairs the hints on the way. NULL: not in the list.
 */
static struct tcp_pcb *predecessor(struct llp_conn *c)
{
	struct tcp_pcb *pcb = tcp_active_pcbs;

	if (c->before && c->before->pcb && c->before->pcb->next == c->pcb)
		return c->before->pcb;
	for (; pcb; pcb = pcb->next) {
		conn_flow_before(pcb->next, conn_of(pcb));
		if (pcb->next == c->pcb)
			return pcb;
	}
	return NULL;
}

static void to_front(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb, *before;

	conn_wake(c);
	/* In TIME_WAIT it is on another list. */
	if (pcb == tcp_active_pcbs || pcb->state == TIME_WAIT || pcb->state == CLOSED)
		return;
	before = predecessor(c);
	if (!before)
		return;
	before->next = pcb->next;
	conn_flow_before(pcb->next, conn_of(before));
	pcb->next = tcp_active_pcbs;
	conn_flow_before(pcb->next, c);
	tcp_active_pcbs = pcb;
	c->before = NULL;
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

struct llp_conn *conn_flow_lookup(const struct flow_key *k)
{
	struct llp_conn *c = table[hash(k)];

	while (c && !same(&c->flow, k))
		c = c->flow_next;
	return c;
}

bool conn_flow_taken(const struct flow_key *k)
{
	return conn_flow_lookup(k) != NULL;
}

/* p: a frame from its Ethernet header on, at least as long as Ethernet and ARP. */
bool edge_flow_find(const struct pbuf *p)
{
	const uint8_t *f = p->payload, *ip = f + SIZEOF_ETH_HDR;
	struct flow_key k;
	struct llp_conn *c;
	size_t hl = 0;

	if (f[12] == 0x08 && f[13] == 0x00)
		hl = key_of_ip4(ip, &k);
	else if (f[12] == 0x86 && f[13] == 0xdd && p->len >= SIZEOF_ETH_HDR + IP6_HLEN)
		hl = key_of_ip6(ip, &k);
	if (!hl || p->len < SIZEOF_ETH_HDR + hl + TCP_HLEN)
		return true;
	memcpy(&k.rport, ip + hl, 2);
	memcpy(&k.lport, ip + hl + 2, 2);
	c = conn_flow_lookup(&k);
	if (c)
		to_front(c);
	return c || (ip[hl + TCP_FLAGS_AT] & (TCP_SYN | TCP_ACK)) != TCP_SYN;
}
