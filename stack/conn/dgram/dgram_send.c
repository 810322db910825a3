/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of UC and UD QPs, into the link. */
#include "conn/dgram/dgram.h"

#include "io/addr.h"

#define TURN_PACKETS 64u /* then other QPs have their turn */
#define FLUSH_EVERY  16u /* packets; then the link gets them: the peer works while we go on */

/* ---- waiting ----------------------------------------------------------------------------- */

static void wait(struct dgram *d)
{
	struct stack *s = conn_qp_stack(d->q);

	if (d->waits)
		return;
	d->waits = true;
	d->next = NULL;
	*s->dgram_last = d;
	s->dgram_last = &d->next;
}

void dgram_wait_no_more(struct dgram *d)
{
	struct stack *s = conn_qp_stack(d->q);
	struct dgram **at = &s->dgram_first;

	if (!d->waits)
		return;
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	if (!*at)
		s->dgram_last = at;
	d->waits = false;
}

/* ---- sending ----------------------------------------------------------------------------- */

/* Where the next packet goes: the link, NULL if there is none. */
static struct io_link *next_path(struct dgram *d, struct roce_path *p)
{
	struct io_link *l;
	struct roce_to to;

	if (d->r.transport == ROCE_UC) {
		*p = d->r.path;
		return stack_is_without_links(conn_qp_stack(d->q)) ? NULL : d->l;
	}
	to = roce_to_of(roce_tx_next(&d->r));
	*p = (struct roce_path){ .dst = to.dst,
				 .tos = to.tos,
				 .hops = to.hops,
				 .src_port = roce_ud_port(d->q->qp.num) };
	l = dgram_source(conn_qp_stack(d->q), to.source, &p->src);
	if (l)
		d->r.mtu = dgram_mtu(l);
	return l;
}

/* The next request cannot be sent at all: the end of its QP. */
static bool fail(struct dgram *d, uw_status st)
{
	if (st)
		qp_request_failed(&d->q->qp, st);
	conn_qp_down(d->q, UW_E_FLUSHED);
	return true;
}

/* The link does not bring back what we send. */
static void to_own_members(const struct dgram *d, const uint8_t *octets, size_t n)
{
	struct uw_span v = { octets, n };
	struct roce_packet p;

	if (roce_packet_read(uw_rope_of(&v), &p) == ROCE_GOOD)
		dgram_group_packet(conn_qp_stack(d->q), &p, d->q);
}

/* A packet to an own address is for the process that has the QP. */
static bool is_for_others(const struct dgram *d, const struct io_link *l, const struct uw_ip *to)
{
	const struct stack *s = conn_qp_stack(d->q);
	uint32_t qpn = d->r.dest_qpn;

	if (!io_has(l, to))
		return false;
	if (d->r.transport == ROCE_UD)
		qpn = roce_to_of(roce_tx_next(&d->r)).qpn;
	return !dgram_find(s, qpn);
}

/* False: no room. */
static bool send_one(struct dgram *d)
{
	struct stack *s = conn_qp_stack(d->q);
	struct roce_path path;
	struct io_link *l = next_path(d, &path);
	size_t room, n;
	uint8_t *p;
	bool others;

	if (!l)
		return fail(d, UW_E_INVAL);
	p = s->llp->packet_begin(l, &path.dst, &room);
	if (!p)
		return false;
	others = is_for_others(d, l, &path.dst);
	n = roce_tx(&d->r, &path, p, room);
	if (n && s->groups && uw_ip_is_multicast(&path.dst))
		to_own_members(d, p, n);
	s->llp->packet_end(l, n, &path.dst, others);
	return n ? true : fail(d, UW_OK);
}

static void flush_to_peer(struct stack *s)
{
	stack_flush(s);
	sched_wake_peers(&s->sched);
}

static void transmit(struct dgram *d)
{
	struct stack *s = conn_qp_stack(d->q);
	unsigned n = 0;

	while (roce_tx_ready(&d->r)) {
		if (n == TURN_PACKETS || !send_one(d)) {
			wait(d);
			return;
		}
		if (!(++n % FLUSH_EVERY))
			flush_to_peer(s);
	}
}

void dgram_send_waiting(struct stack *s)
{
	struct dgram *d = s->dgram_first, *next;

	s->dgram_first = NULL;
	s->dgram_last = &s->dgram_first;
	for (; d; d = next) {
		next = d->next;
		d->waits = false;
		transmit(d);
		conn_qp_tell_drained(d->q); /* SQD may have come in a message */
	}
}

static void posted(struct conn_qp *q)
{
	if (!q->dgram->waits)
		transmit(q->dgram);
}

static void nothing(struct conn_qp *q)
{
	(void)q;
}

static uint64_t at_once(const struct conn_qp *q, uint64_t now_us)
{
	(void)q;
	return now_us;
}

const struct conn_peer_ops dgram_peer_ops = { posted, nothing, nothing, at_once };
