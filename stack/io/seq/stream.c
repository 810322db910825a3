/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets out of and into netconns. */
#include "io/lwip/frame.h"
#include "io/seq/seq.h"

#include "lwip/priv/tcp_priv.h"

#define TURN 64u /* pbufs, then others get one */
/* lwIP is told that there is room again in such pieces: each costs a call into its thread. */
#define OWED_MAX (TCP_WND / 8)
/* As of the raw API: io/lwip/pcb/tx_queue.c. */
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
	size_t held = rx_queue_octets(&c->rx_queue);
	size_t still = !c->paused ? 0 : held < c->window_debt ? held : c->window_debt;
	struct room r = { c->x.nc, c->window_debt - still };

	if (r.n < OWED_MAX)
		return;
	c->window_debt = still;
	seq_call(tell_room, &r);
}

/* Offer until nothing more is used up: one rope shows a part of the frames. */
static void offer(struct llp_conn *c)
{
	struct uw_span v[RX_QUEUE_SPANS + 2];
	size_t used;

	do {
		struct uw_rope r = rx_queue_rope(&c->rx_queue, v);

		if (!r.len)
			return;
		used = seq.cfg.user->rx(c->ctx, r);
		if (c->end != SEQ_ON)
			return;
		rx_queue_consume(&c->rx_queue, used);
	} while (used && !c->paused);
}

static void hold(struct llp_conn *c, struct pbuf *p)
{
	while (p) {
		struct pbuf *next = p->next;
		struct io_frame *f = edge_frame(p);

		f->data = p->payload;
		f->len = p->len;
		rx_queue_add(&c->rx_queue, f);
		p = next;
	}
}

static void take(struct llp_conn *c, struct pbuf *p)
{
	seq.cfg.stats->tcp_rx_bytes += p->tot_len;
	c->window_debt += p->tot_len;
	hold(c, p);
	if (rx_queue_too_long(&c->rx_queue, c->paused) &&
	    !rx_queue_copy_out(&c->rx_queue, c->paused ? TCP_WND : 0)) {
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

#define VECTORS 64u

void seq_tx_acked(struct llp_conn *c, uint32_t to)
{
	struct io_frame *f;

	while ((f = c->tx_first) && f != c->tx_new && (int32_t)(to - seq_tx(f)->end) >= 0) {
		c->tx_first = seq_tx(f)->next;
		seq_frame_done(c->sl, f);
	}
}

void seq_tx_forget(struct llp_conn *c)
{
	c->tx_new = NULL;
	while (c->tx_first)
		seq_tx_acked(c, seq_tx(c->tx_first)->end);
	if (c->building)
		seq_frame_done(c->sl, c->building);
	c->building = NULL;
}

/* What lwIP has not taken yet, as far as each frame becomes a segment of its own: behind one that
 * is not full lwIP would go on in the same. */
static u16_t gather(const struct llp_conn *c, struct netvector *v, size_t *octets)
{
	uint32_t at = c->taken;
	u16_t n = 0;

	for (struct io_frame *f = c->tx_new; f && n < VECTORS; f = seq_tx(f)->next) {
		struct seq_tx *t = seq_tx(f);

		v[n].len = t->end - at;
		v[n].ptr = t->p + t->n - v[n].len;
		*octets += v[n++].len;
		at = t->end;
		if (t->n < c->emss)
			break;
	}
	return n;
}

/* False: not all of it. An error that is no lack of room comes as an event, too. */
static bool write_run(struct llp_conn *c)
{
	struct netvector v[VECTORS];
	size_t octets = 0, done = 0;
	u16_t n = gather(c, v, &octets);
	err_t err;

	seq.fresh = c->tx_new;
	err = netconn_write_vectors_partly(c->x.nc, v, n, NETCONN_NOCOPY, &done);
	seq.fresh = NULL;
	if (err)
		return false;
	c->taken += (uint32_t)done;
	while (c->tx_new && (int32_t)(c->taken - seq_tx(c->tx_new)->end) >= 0)
		c->tx_new = seq_tx(c->tx_new)->next;
	return done == octets;
}

static void write_out(struct llp_conn *c)
{
	atomic_store(&c->x.wants, true); /* if it does not take all: before it says so */
	do {
		c->stuck = !write_run(c);
	} while (c->tx_new && !c->stuck);
	if (!c->stuck)
		atomic_store(&c->x.wants, false);
}

void seq_write_rest(struct llp_conn *c)
{
	if (c->stuck)
		write_out(c);
}

/* Once it was full, some room is not enough: lwIP goes through all that is in flight for each
 * write, and half a write for every ACK would cost as much as all of it. */
bool seq_tx_full(struct llp_conn *c)
{
	uint32_t cap = c->sl->io->flags & IO_P2P ? IN_FLIGHT_P2P : IN_FLIGHT_NET;
	uint32_t acked = atomic_load(&c->x.acked);

	c->full = c->sent - acked + c->emss > (c->full ? cap - cap / 8 : cap);
	return c->full;
}

static bool window_open(struct llp_conn *c)
{
	return c->end == SEQ_ON && !c->connecting && !c->shut && !c->stuck && !seq_tx_full(c);
}

uint8_t *seq_tx_begin(struct llp_conn *c, size_t *room)
{
	if (!window_open(c)) {
		atomic_store(&c->x.wants, true);
		return NULL;
	}
	c->building = seq_frame(c->sl);
	if (!c->building)
		return NULL;
	*room = c->emss;
	return c->building->data;
}

void seq_tx_commit(struct llp_conn *c, size_t n)
{
	struct io_frame *f = c->building;

	c->building = NULL;
	if (!n) {
		seq_frame_done(c->sl, f);
		return;
	}
	c->sent += (uint32_t)n;
	*seq_tx(f) = (struct seq_tx){ .p = f->data, .n = (uint32_t)n, .end = c->sent };
	if (c->tx_first)
		seq_tx(c->tx_last)->next = f;
	else
		c->tx_first = f;
	c->tx_last = f;
	if (!c->tx_new)
		c->tx_new = f;
	seq.cfg.stats->tcp_tx_segments++;
	seq.cfg.stats->tcp_tx_bytes += n;
}

void seq_tx_flush(struct llp_conn *c)
{
	if (c->tx_new && !c->stuck && c->end == SEQ_ON)
		write_out(c);
}
