/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Half-open connections: a SYN came, and the peer's ACK did not yet (RFC 4987, RFC 5042 §6.4.2,
 * doc/adr/0026). A half-open connection is in the flow table, so that lwIP need not search for it.
 * lwIP's own limit of 255 for each listener is not used: a program that connects a thousand times
 * at once exceeds it.
 *
 * HALF_OPEN_MAX connections may be half open. They are counted in groups, by a keyed hash of the
 * peer's address. When a SYN finds no place, the oldest connection of the largest group is dropped
 * for it, if that one has had the time of a round trip. A SYN whose own group has more than its
 * share must wait until the oldest is LONG_US old. So a host that floods us does not keep other
 * hosts out, and a program that opens too many connections at once waits for a retransmission and
 * does not fail. Processes of this machine (IO_P2P) forge no addresses, and can open as many
 * connections as they like anyway: they have places of their own.
 */
#include "io/lwip/conn.h"
#include "io/lwip/hooks.h"
#include "io/lwip/pcb/private.h"

#include "io/siphash.h"

#define HALF_OPEN_MAX 1024u /* as Linux's tcp_max_syn_backlog */
#define SYN_GROUPS    64u
#define FAIR	      (2 * HALF_OPEN_MAX / SYN_GROUPS) /* of one group */
#define PROCESSES_MAX 8192u			       /* on IO_P2P links: half of the pcbs */
#define ROUND_TRIP_US 50000u
#define LONG_US	      1000000u
#define LOOK_US	      10000u

/* The half-open connections of peers that share a group, the oldest first. */
struct syn_group {
	struct llp_conn *first, *last;
	unsigned n;
};
static struct syn_group groups[SYN_GROUPS + 1]; /* the last one is that of IO_P2P links */
static struct siphash_key group_key;		/* of the hash that chooses a group */

static unsigned group_of(const struct uw_ip *peer)
{
	uint64_t who = uw_ip_host(peer);

	return (unsigned)(siphash(&group_key, &who, 1) % SYN_GROUPS);
}

static bool is_of_process(const struct edge_link *el)
{
	return el->io->flags & IO_P2P;
}

static bool is_counted(const struct llp_conn *c)
{
	return c->syn_group < SYN_GROUPS;
}

void edge_conn_half_open(struct llp_conn *c, struct llp_listener *ls)
{
	struct syn_group *h;

	c->syn_group = (uint8_t)(is_of_process(c->el) ? SYN_GROUPS : group_of(&c->flow.remote));
	h = &groups[c->syn_group];
	c->listener = ls;
	c->syn_us = edge.cfg.now_us(edge.cfg.arg);
	c->syn_next = NULL;
	c->syn_prev = h->last;
	if (h->last)
		h->last->syn_next = c;
	else
		h->first = c;
	h->last = c;
	h->n++;
	edge.half_open += is_counted(c);
}

struct llp_listener *edge_conn_established(struct llp_conn *c)
{
	struct syn_group *h = &groups[c->syn_group];
	struct llp_listener *ls = c->listener;

	if (c->syn_prev)
		c->syn_prev->syn_next = c->syn_next;
	else
		h->first = c->syn_next;
	if (c->syn_next)
		c->syn_next->syn_prev = c->syn_prev;
	else
		h->last = c->syn_prev;
	h->n--;
	c->listener = NULL;
	edge.half_open -= is_counted(c);
	return ls;
}

static struct syn_group *largest(void)
{
	struct syn_group *most = groups;

	for (unsigned i = 1; i < SYN_GROUPS; i++) {
		if (groups[i].n > most->n)
			most = &groups[i];
	}
	return most;
}

/* Quietly: RFC 4987 §3.4. If its peer is true it sends its ACK, and hears an RST. */
static void give_way(struct llp_conn *c)
{
	edge.cfg.stats->tcp_syn_recycled++;
	edge_conn_flow_front(c);
	tcp_abandon(c->pcb, 0);
}

void edge_syn_init(void)
{
	for (unsigned i = 0; i < 2; i++)
		group_key.k[i] = (uint64_t)uw_lwip_random() << 32 | uw_lwip_random();
}

static bool has_place(const struct edge_link *el, const struct uw_ip *peer)
{
	struct syn_group *most;
	uint64_t enough;

	if (is_of_process(el))
		return groups[SYN_GROUPS].n < PROCESSES_MAX;
	if (edge.half_open < HALF_OPEN_MAX)
		return true;
	most = largest();
	enough = groups[group_of(peer)].n > FAIR ? LONG_US : ROUND_TRIP_US;
	if (edge.cfg.now_us(edge.cfg.arg) - most->first->syn_us < enough)
		return false;
	give_way(most->first);
	return true;
}

/* Without room for one more connection lwIP looks through all of them for one that it may end, for
 * each SYN. It may now and then. */
static bool may_look(void)
{
	static uint64_t looked_us;
	uint64_t now = edge.cfg.now_us(edge.cfg.arg);

	if (edge_lists_room())
		return true;
	if (now - looked_us < LOOK_US)
		return false;
	looked_us = now;
	return true;
}

/* RFC 9293 §3.10.7.2 lets a SYN that finds no room go unanswered; it comes again. */
bool edge_syn_room(const struct edge_link *el, const struct uw_ip *peer)
{
	if (has_place(el, peer) && may_look())
		return true;
	edge.cfg.stats->tcp_syn_dropped++;
	return false;
}

/* RFC 9293 §3.10.7.4, RFC 1122 §4.2.2.13: a SYN beyond all that came begins a new connection in
 * place of one that only waits. Ours begins beyond the old one, by its clock (io/isn.h). Of a
 * connection between processes nothing can come any more, so there any SYN does: a process that was
 * started again draws other sequence numbers. On a network such a peer answers our ACK of its SYN
 * by an RST, which ends the waiting; RFC 5961 §3.2 says which RST is to be believed. */
static bool ends_time_wait(const struct edge_segment *s)
{
	const struct tcp_pcb *pcb = s->c->pcb;

	switch (s->flags & (TCP_SYN | TCP_ACK | TCP_RST)) {
	case TCP_SYN:
		return is_of_process(s->c->el) || TCP_SEQ_GT(s->seq, pcb->rcv_nxt);
	case TCP_RST:
	case TCP_RST | TCP_ACK:
		return s->seq == pcb->rcv_nxt;
	default:
		return false;
	}
}

void edge_time_wait_end(struct edge_segment *s)
{
	if (!s->c || !s->c->pcb || s->c->pcb->state != TIME_WAIT || !ends_time_wait(s))
		return;
	edge_pcb_drop_time_wait(s->c->pcb);
	s->c = NULL;
}
