/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that came with a SYN and are not up yet (RFC 4987). They are in the flow table from
 * the SYN on, so that their next segment is not searched for. lwIP's own limit of 255 is not used:
 * a program that connects a thousand times at once is soon through with it, and each SYN too many
 * costs it a retransmission's time.
 *
 * They are sorted by their peers' addresses into groups. When there are too many, the oldest one of
 * the largest group gives way, if it has had the time of a round trip: a program that opens too
 * many at once is to wait and come again, not to fail. A SYN of a group that is far larger than
 * others has to wait longer, so a host that floods us does not keep others out.
 */
#include "io/lwip/conn.h"

#include "io/siphash.h"

#include "lwip/priv/tcp_priv.h"

#define HALF_OPEN_MAX 1024u				     /* as Linux's tcp_max_syn_backlog */
#define FAIR	      (2 * HALF_OPEN_MAX / EDGE_HALF_GROUPS) /* of one group */
#define ROUND_TRIP_US 50000u
#define LONG_US	      1000000u

/* A host's IPv4 address, or its IPv6 network: a host has as many addresses there as it likes. */
static unsigned group_of(const struct uw_ip *peer)
{
	uint64_t who = uw_ip_half(peer, uw_ip_is_v4(peer));

	return (unsigned)(siphash(&edge.half_key, &who, 1) % EDGE_HALF_GROUPS);
}

static void enter(struct llp_conn *c, struct llp_listener *ls)
{
	struct edge_half *h;

	c->half_group = (uint8_t)group_of(&c->flow.remote);
	h = &edge.half[c->half_group];
	c->half = ls;
	c->half_us = edge.cfg.now_us(edge.cfg.arg);
	c->half_next = NULL;
	c->half_prev = h->last;
	if (h->last)
		h->last->half_next = c;
	else
		h->first = c;
	h->last = c;
	h->n++;
	edge.half_open++;
}

struct llp_listener *conn_whole(struct llp_conn *c)
{
	struct edge_half *h = &edge.half[c->half_group];
	struct llp_listener *ls = c->half;

	if (c->half_prev)
		c->half_prev->half_next = c->half_next;
	else
		h->first = c->half_next;
	if (c->half_next)
		c->half_next->half_prev = c->half_prev;
	else
		h->last = c->half_prev;
	h->n--;
	c->half = NULL;
	edge.half_open--;
	return ls;
}

static struct edge_half *largest(void)
{
	struct edge_half *most = edge.half;

	for (unsigned i = 1; i < EDGE_HALF_GROUPS; i++) {
		if (edge.half[i].n > most->n)
			most = &edge.half[i];
	}
	return most;
}

/* Quietly: RFC 4987 §3.4. If its peer is true it sends its ACK, and hears an RST. */
static void give_way(struct llp_conn *c)
{
	edge.cfg.stats->tcp_syn_recycled++;
	conn_flow_front(c);
	tcp_abandon(c->pcb, 0);
}

void edge_half_init(void)
{
	for (unsigned i = 0; i < 2; i++)
		edge.half_key.k[i] = (uint64_t)uw_lwip_random() << 32 | uw_lwip_random();
}

/* RFC 9293 §3.10.7.2 lets a SYN that finds no room go unanswered; it comes again. */
bool edge_half_room(const struct uw_ip *peer)
{
	struct edge_half *most;
	uint64_t enough;

	if (edge.half_open < HALF_OPEN_MAX)
		return true;
	most = largest();
	enough = edge.half[group_of(peer)].n > FAIR ? LONG_US : ROUND_TRIP_US;
	if (edge.cfg.now_us(edge.cfg.arg) - most->first->half_us < enough) {
		edge.cfg.stats->tcp_syn_dropped++;
		return false;
	}
	give_way(most->first);
	return true;
}

/* lwIP puts what a SYN opened in front of the others. */
void edge_half_opened(void)
{
	struct tcp_pcb *pcb = tcp_active_pcbs;
	struct llp_listener *ls;
	struct llp_conn *c;

	if (!pcb || pcb->state != SYN_RCVD || conn_of(pcb))
		return;
	ls = pcb->callback_arg;
	c = conn_new(ls->el, NULL);
	if (!c) {
		edge.cfg.stats->tcp_syn_dropped++;
		tcp_abandon(pcb, 0);
		return;
	}
	tcp_backlog_accepted(pcb); /* we count */
	conn_attach(c, pcb);
	c->listed = true;
	c->serial = edge.cfg.serial ? edge.cfg.serial(edge.cfg.arg) : 0;
	conn_flow_add(c);
	enter(c, ls);
}
