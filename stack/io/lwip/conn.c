/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of connections, from the first to the last: made, ended, freed. How a connection
 * begins: connect.c and pcb/listen.c. Octets: pcb/rx.c and pcb/tx_queue.c. */
#include "io/lwip/loss.h"

#include <string.h>

#include "base/slab.h"

static void list(struct llp_conn *c, struct llp_conn **head)
{
	c->next = *head;
	c->link = head;
	if (c->next)
		c->next->link = &c->next;
	*head = c;
}

static void unlist(struct llp_conn *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
}

struct llp_conn *edge_conn_new(struct edge_link *el, void *ctx)
{
	struct llp_conn *c = edge.spare;

	if (c)
		edge.spare = c->next;
	else
		c = slab_alloc(sizeof(*c));
	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->el = el;
	c->ctx = ctx;
	rx_queue_init(&c->rx_queue);
	list(c, &edge.conns);
	return c;
}

/* It has no user any more. */
static void leave(struct llp_conn *c)
{
	rx_queue_drop(&c->rx_queue);
	edge_conn_rx_kept(c);
	edge_conn_drop_building(c);
	edge_conn_forget_ack(c);
	edge_conn_active_list_forget(c);
	if (c->listener)
		edge_conn_established(c);
	c->ctx = NULL;
}

/* lwIP has freed the pcb: the record is spare. */
static void release(struct llp_conn *c)
{
	edge_conn_flow_remove(c);
	edge_conn_loss_end(c);
	edge_conn_window_end(c);
	edge_conn_rx_forget(c);
	unlist(c);
	c->pcb = NULL;
	c->next = edge.spare;
	edge.spare = c;
}

static void on_freed(u8_t id, void *data)
{
	struct llp_conn *c = data;

	(void)id;
	if (c && c->end == EDGE_CONN_DETACHED)
		release(c);
}

void edge_conn_own(struct tcp_pcb *pcb, struct llp_conn *c)
{
	static const struct tcp_ext_arg_callbacks callbacks = { .destroy = on_freed };

	tcp_ext_arg_set_callbacks(pcb, 0, &callbacks);
	tcp_ext_arg_set(pcb, 0, c);
}

void edge_conn_discard(struct llp_conn *c)
{
	leave(c);
	release(c);
}

void edge_conn_detach(struct tcp_pcb *pcb)
{
	tcp_arg(pcb, NULL);
	tcp_recv(pcb, NULL);
	tcp_sent(pcb, NULL);
	tcp_err(pcb, NULL);
	edge_conn_own(pcb, NULL);
}

/* RFC 9293 §3.10.7.4: a peer takes an RST within its window alone. lwIP counts the octet with which
 * it probes a closed window as sent. */
static void reset(struct tcp_pcb *pcb)
{
	u32_t end = pcb->lastack + pcb->snd_wnd;

	if (pcb->state >= ESTABLISHED && (int32_t)(pcb->snd_nxt - end) > 0)
		pcb->snd_nxt = end;
	tcp_abort(pcb);
}

#define STALLED_POLLS 4u /* of lwIP, half a second apart */

/* RFC 9293 §3.8.6.1: a peer that answers probes and takes nothing may keep a connection open for
 * ever. This one has no user any more, and the peer's waits to hear of it. A peer that has
 * acknowledged all, and our FIN, has heard: an RST would take from it what it still holds. */
static err_t on_poll_closing(void *arg, struct tcp_pcb *pcb)
{
	struct llp_conn *c = edge_conn_of(pcb);

	(void)arg;
	if (pcb->snd_wnd >= pcb->mss || pcb->lastack != c->closing_ack ||
	    !(pcb->unsent || pcb->unacked)) {
		c->closing_ack = pcb->lastack;
		c->stalled = 0;
		return ERR_OK;
	}
	if (++c->stalled < STALLED_POLLS)
		return ERR_OK;
	edge.cfg.stats->tcp_stalled++;
	reset(pcb);
	return ERR_ABRT;
}

/* What lwIP has yet to do, it does without us; until the pcb is freed its segments are found. */
static void part(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;

	leave(c);
	unlist(c);
	list(c, &edge.detached);
	edge_conn_detach(pcb);
	c->end = EDGE_CONN_DETACHED;
	c->prefetch_list = (struct uw_prefetch_list){ 0 };
	edge_conn_own(pcb, c);
	tcp_poll(pcb, on_poll_closing, 1);
	tcp_close(pcb);
}

err_t edge_conn_callback_end(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	enum edge_conn_end end = c->end;

	c->in_callback = false;
	if (end == EDGE_CONN_ON) {
		/* pcb->ooseq: edge_input looks at it afterwards */
		if (c->rx_queue.count != c->pinned)
			edge_conn_rx_kept(c);
		return ERR_OK;
	}
	if (end == EDGE_CONN_CLOSE && !c->lost) {
		edge_conn_window_open_all(c);
		part(c);
		return ERR_OK;
	}
	edge_conn_discard(c);
	edge_conn_detach(pcb);
	reset(pcb);
	return ERR_ABRT;
}

/* ---- ending ------------------------------------------------------------------------------ */

void edge_conn_lose(struct llp_conn *c)
{
	edge_conn_activate(c);
	edge_pcb_drop(c->pcb);
}

static void edge_conn_lose_quietly(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;

	edge_conn_discard(c);
	edge_conn_detach(pcb);
	edge_pcb_drop(pcb);
}

void edge_close(struct llp_conn *c)
{
	if (c->in_callback) {
		c->end = EDGE_CONN_CLOSE;
		return;
	}
	edge_conn_activate(c);
	if (c->lost) {
		edge_conn_lose_quietly(c);
		return;
	}
	edge_conn_window_open_all(c);
	part(c);
}

void edge_shutdown(struct llp_conn *c)
{
	edge_conn_activate(c);
	tcp_shutdown(c->pcb, 0, 1);
}

void edge_abort(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;

	if (c->in_callback) {
		c->end = EDGE_CONN_ABORT;
		return;
	}
	edge_conn_activate(c);
	edge_conn_discard(c);
	edge_conn_detach(pcb);
	reset(pcb);
}

/* What the process sent before it died has arrived, and its Sends were completed: a user that waits
 * for receives gets it first. */
static bool has_octets_for_user(const struct tcp_pcb *pcb)
{
	struct llp_conn *c = edge_conn_of(pcb);

	if (!c || c->end != EDGE_CONN_ON || !c->paused || !rx_queue_octets(&c->rx_queue))
		return false;
	c->lost = true;
	return true;
}

void edge_peer_down(struct io_link *l, uint32_t addr)
{
	(void)l;
	for (struct llp_conn *c = edge.conns; c; c = c->next)
		edge_conn_activate(c);
	edge.losing = true;
	edge_pcbs_lose(addr, has_octets_for_user);
	edge.losing = false;
}

unsigned edge_lingering(void)
{
	return edge_pcbs_finishing();
}

struct llp_addrs edge_addrs(const struct llp_conn *c)
{
	struct llp_addrs a = edge_pcb_addrs(c->pcb);

	return a;
}

void edge_set_tos(struct llp_conn *c, uint8_t tos)
{
	c->pcb->tos = tos;
	edge_conn_fast_headers(c);
}
