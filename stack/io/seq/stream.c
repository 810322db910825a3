/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets out of and into netconns. */
#include <stdlib.h>
#include <string.h>

#include "io/lwip/frame.h"
#include "io/seq/seq.h"

#include "lwip/priv/tcp_priv.h"

#define TURN 64u /* pbufs, then others get one */
/* lwIP is told that there is room again in such pieces: each costs a call into its thread. */
#define OWED_MAX (TCP_WND / 8)
/* As of the raw API: io/lwip/send.c. */
#define IN_FLIGHT_P2P (768u * 1024)
#define IN_FLIGHT_NET (4u * 1024 * 1024)

/* ---- in ---------------------------------------------------------------------------------- */

struct room {
	struct netconn *nc;
	size_t n;
};

/* Under the core lock: netconn_tcp_recvd, and an ACK if the window was nearly shut. */
static err_t tell_room(void *room)
{
	struct room *r = room;
	struct tcp_pcb *pcb = r->nc->pcb.tcp;
	tcpwnd_size_t before;

	if (!pcb)
		return ERR_OK;
	before = pcb->rcv_ann_wnd;
	while (r->n) {
		u16_t part = (u16_t)LWIP_MIN(r->n, UINT16_MAX);

		tcp_recved(pcb, part);
		r->n -= part;
	}
	if (before < TCP_WND_UPDATE_THRESHOLD && pcb->rcv_ann_wnd > before) {
		tcp_ack_now(pcb);
		tcp_output(pcb);
	}
	return ERR_OK;
}

/* What a user that pauses has not used up is not room. */
static void pay(struct llp_conn *c)
{
	size_t held = held_octets(&c->held);
	size_t still = !c->paused ? 0 : held < c->owed ? held : c->owed;
	struct room r = { c->x.nc, c->owed - still };

	if (r.n < OWED_MAX)
		return;
	c->owed = still;
	seq_call(tell_room, &r);
}

/* Offer until nothing more is used up: one rope shows a part of the frames. */
static void offer(struct llp_conn *c)
{
	struct uw_span v[HELD_SPANS + 2];
	size_t used;

	do {
		struct uw_rope r = held_rope(&c->held, v);

		if (!r.len)
			return;
		used = seq.cfg.user->rx(c->ctx, r);
		if (c->end != SEQ_ON)
			return;
		held_consume(&c->held, used);
	} while (used && !c->paused);
}

static void hold(struct llp_conn *c, struct pbuf *p)
{
	while (p) {
		struct pbuf *next = p->next;
		struct io_frame *f = edge_frame(p);

		f->data = p->payload;
		f->len = p->len;
		held_add(&c->held, f);
		p = next;
	}
}

static void take(struct llp_conn *c, struct pbuf *p)
{
	seq.cfg.stats->tcp_rx_bytes += p->tot_len;
	c->owed += p->tot_len;
	hold(c, p);
	if (held_too_many(&c->held, c->paused) &&
	    !held_flatten(&c->held, c->paused ? TCP_WND : 0)) {
		c->end = SEQ_ABORT;
		seq.cfg.user->closed(c->ctx, UW_E_LLP_CLOSED);
		return;
	}
	if (!c->paused)
		offer(c);
	if (c->end == SEQ_ON)
		pay(c);
}

static err_t read_one(struct llp_conn *c)
{
	struct pbuf *p;
	err_t err =
		netconn_recv_tcp_pbuf_flags(c->x.nc, &p, NETCONN_DONTBLOCK | NETCONN_NOAUTORCVD);

	if (!err) {
		if (c->end == SEQ_ON)
			take(c, p);
		else
			pbuf_free(p);
	} else if (err == ERR_CLSD) {
		c->fin = true;
		if (c->end == SEQ_ON)
			seq.cfg.user->closed(c->ctx, UW_OK);
	} else if (err != ERR_WOULDBLOCK) {
		seq_conn_gone(c, UW_E_LLP_CLOSED);
	}
	return err;
}

void seq_read(struct llp_conn *c)
{
	for (unsigned i = 0; i < TURN; i++) {
		if (c->fin || c->end != SEQ_ON || read_one(c))
			return;
	}
	seq_ring(&c->x, SEQ_READ);
}

void seq_pause(struct llp_conn *c)
{
	c->paused = true;
}

void seq_resume(struct llp_conn *c)
{
	c->paused = false;
	c->in_callback = true;
	offer(c);
	if (c->end == SEQ_ON)
		pay(c);
	c->in_callback = false;
	seq_settle(c);
}

/* ---- out --------------------------------------------------------------------------------- */

/* Where segments are built; one connection at a time. What a turn of the engine's makes fits. */
static struct {
	struct llp_conn *c;
	size_t n;
	uint8_t v[128 * 1024];
} out;

static size_t try_write(struct llp_conn *c, const uint8_t *p, size_t n)
{
	size_t done = 0;
	err_t err;

	atomic_store(&c->x.wants, true); /* if it does not take all: before it says so */
	err = netconn_write_partly(c->x.nc, p, n, NETCONN_COPY, &done);
	if (err == ERR_OK && done == n)
		atomic_store(&c->x.wants, false);
	/* An error that is no lack of room comes as an event, too. */
	return err == ERR_OK ? done : 0;
}

static void keep_rest(struct llp_conn *c, const uint8_t *p, size_t n)
{
	c->rest = malloc(n);
	if (!c->rest) {
		c->end = SEQ_ABORT;
		seq_ring(&c->x, SEQ_ERROR);
		return;
	}
	memcpy(c->rest, p, n);
	c->rest_n = n;
	c->rest_off = 0;
}

static void write_out(void)
{
	struct llp_conn *c = out.c;
	size_t n = out.n, done;

	out.n = 0;
	if (!n || c->end != SEQ_ON)
		return;
	done = try_write(c, out.v, n);
	seq.cfg.stats->tcp_tx_copied += done;
	if (done < n)
		keep_rest(c, out.v + done, n - done);
}

void seq_write_rest(struct llp_conn *c)
{
	if (!c->rest_n)
		return;
	c->rest_off += try_write(c, c->rest + c->rest_off, c->rest_n - c->rest_off);
	if (c->rest_off < c->rest_n)
		return;
	free(c->rest);
	c->rest = NULL;
	c->rest_n = 0;
}

static bool window_open(const struct llp_conn *c)
{
	uint32_t cap = c->sl->io->flags & IO_P2P ? IN_FLIGHT_P2P : IN_FLIGHT_NET;
	uint32_t acked = atomic_load(&c->x.acked);

	return c->end == SEQ_ON && !c->connecting && !c->shut && !c->rest_n &&
	       c->sent - acked + c->emss <= cap;
}

uint8_t *seq_tx_begin(struct llp_conn *c, size_t *room)
{
	if (out.n && (out.c != c || out.n + c->emss > sizeof(out.v)))
		write_out();
	if (!window_open(c)) {
		/* Dekker with seq_on_event: say so, look once more. */
		atomic_store(&c->x.wants, true);
		if (!window_open(c))
			return NULL;
	}
	out.c = c;
	*room = c->emss;
	return out.v + out.n;
}

void seq_tx_commit(struct llp_conn *c, size_t n)
{
	if (!n)
		return;
	out.n += n;
	c->sent += (uint32_t)n;
	seq.cfg.stats->tcp_tx_segments++;
	seq.cfg.stats->tcp_tx_bytes += n;
}

void seq_tx_flush(struct llp_conn *c)
{
	if (out.c == c)
		write_out();
}

void seq_tx_forget(struct llp_conn *c)
{
	if (out.c != c)
		return;
	out.c = NULL;
	out.n = 0;
}
