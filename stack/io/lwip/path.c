/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/lwip/path.h"

#include "io/lwip/loss.h"
#include "io/lwip/path_mtu.h"
#include "io/lwip/pcb/private.h"
#include "io/route/icmp.h"

static uint64_t now(void)
{
	return edge.cfg.now_us(edge.cfg.arg);
}

/* ---- segments fit the path ------------------------------------------------------------------- */

static void fit(struct llp_conn *c)
{
	uint32_t head = edge_conn_path_headers(c),
		 mtu = LWIP_MAX(edge_conn_path_mtu(c), head + LLP_ROOM_LEAST);

	c->pcb->mss = (u16_t)LWIP_MIN(mtu - head, c->full_mss);
	if (c->loss)
		edge_conn_loss_mss(c);
}

static bool is_up(const struct llp_conn *c)
{
	return c->pcb && c->full_mss;
}

static void fit_all(const struct uw_ip *to)
{
	for (struct llp_conn *c = edge.conns; c; c = c->next) {
		if (is_up(c) && (!to || uw_ip_eq(&c->flow.remote, to)))
			fit(c);
	}
}

void edge_conn_path_begin(struct llp_conn *c)
{
	if (c->el->io->flags & IO_P2P)
		return;
	c->full_mss = c->pcb->mss;
	if (edge.paths.n || c->el->io->routes)
		fit(c);
}

static void lower(const struct llp_conn *c, uint32_t mtu)
{
	const struct uw_ip to = c->flow.remote;

	pmtu_set(&edge.paths, &to, mtu, now());
	fit_all(&to);
}

void edge_path_changed(void)
{
	fit_all(NULL);
}

/* ---- ICMP ------------------------------------------------------------------------------------ */

/* RFC 5927 §4.1: who forges a message must know a sequence number that is in flight. */
static struct llp_conn *edge_conn_meant(const struct icmp_error *e)
{
	const struct flow_key k = { e->local, e->remote, e->lport, e->rport };
	struct llp_conn *c = edge_conn_flow_find(&k);

	if (!c || !c->pcb || c->pcb->state == TIME_WAIT || TCP_SEQ_LT(e->seq, c->pcb->lastack) ||
	    !TCP_SEQ_LT(e->seq, c->pcb->snd_nxt))
		return NULL;
	return c;
}

/* RFC 1191 §5: a router that does not tell its MTU has 0 there. */
static uint32_t told_mtu(const struct llp_conn *c, const struct icmp_error *e)
{
	uint32_t now_mtu = edge_conn_path_mtu(c);

	if (e->mtu)
		return e->mtu;
	return pmtu_below(LWIP_MIN(now_mtu, e->length), uw_ip_is_v4(&e->remote));
}

/* RFC 1191 §6.4: what is out and too long was dropped, for no congestion. */
static void too_big(struct llp_conn *c, const struct icmp_error *e)
{
	uint32_t mtu = told_mtu(c, e);

	if (mtu < edge_conn_path_mtu(c)) {
		lower(c, mtu);
		edge.cfg.stats->tcp_path_shorter++;
	}
	if (c->loss && c->end == EDGE_CONN_ON)
		edge_conn_loss_too_big(c);
}

/* RFC 1122 §4.2.3.9: a connection that is up bears all of them (RFC 5927 §5.2 for the hard ones).
 * One that begins ends with the hard ones, and with soft ones if they come again for a repeated SYN
 * (RFC 5461 §4.1). */
static void unreachable(struct llp_conn *c, enum icmp_kind kind)
{
	if (!c->connecting)
		return;
	c->icmp = kind == ICMP_REFUSED ? UW_E_REFUSED : UW_E_UNREACHABLE;
	if (kind == ICMP_SOFT && !c->pcb->nrtx)
		return;
	edge_conn_lose(c);
}

bool edge_icmp_in(const struct io_frame *f)
{
	struct icmp_error e;
	struct llp_conn *c;

	if (!icmp_read(f->data, f->len, &e))
		return false;
	c = e.kind == ICMP_OTHER || e.kind == ICMP_BAD ? NULL : edge_conn_meant(&e);
	if (!c)
		edge.cfg.stats->icmp_rx_refused += !(f->marks & IO_FRAME_COPY);
	else if (e.kind == ICMP_TOO_BIG)
		too_big(c, &e);
	else
		unreachable(c, e.kind);
	return true;
}

void edge_path_timer(void)
{
	bool other = edge.paths_changed;

	edge.paths_changed = false;
	other |= edge.paths.n && pmtu_expire(&edge.paths, now());
	if (other)
		fit_all(NULL);
}
