/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue of segments to send. lwIP's tcp_write would merge and cut them, and FPDUs would lose
 * their alignment with segments (RFC 5044 §5). So a segment is appended to lwIP's queue here, as it
 * is. This file knows the layout of struct tcp_seg and the rules of the queues of lwIP 2.2.1.
 */
#include "io/lwip/loss.h"
#include "io/lwip/pcb/private.h"

/* More in flight than this fills caches and rings and moves nothing faster. A network needs more
 * the longer its round trip is: NET_LEAST for each NET_RTT_US, which is 20 GB/s. */
#define IN_FLIGHT_P2P	    (768u * 1024)
#define IN_FLIGHT_NET_LEAST (512u * 1024)
#define IN_FLIGHT_NET_MOST  (4u * 1024 * 1024)
#define NET_RTT_US	    25u

/* RFC 9293 §3.8.6.2.1: "0.1 to 1.0 seconds" */
#define OVERRIDE_US  200000u
#define MERGED_WORTH (64u * 1024) /* as much as one merged frame holds */

#define PROBE_MIN_US 250000u
#define PROBE_MAX_US 8000000u

static uint32_t emss(const struct llp_conn *c)
{
	return tcp_mss(c->pcb);
}

uint32_t edge_in_flight(const struct llp_conn *c)
{
	return c->pcb->snd_lbb - c->pcb->lastack;
}

/* Where segments go merged, a few at a time would stay few: each ACK frees as much window as the
 * segments it is for. So wait until there is room for many, as long as an ACK is to come anyway. */
static bool too_few(const struct llp_conn *c, uint32_t wnd)
{
	uint32_t in_flight = edge_in_flight(c), worth = LWIP_MIN(wnd / 8, MERGED_WORTH);

	if (!(c->el->io->flags & IO_TSO) || c->pcb->unsent || !in_flight)
		return false;
	return in_flight < wnd && wnd - in_flight < worth;
}

static uint32_t most_in_flight(const struct llp_conn *c)
{
	uint64_t octets;

	if (c->el->io->flags & IO_P2P)
		return IN_FLIGHT_P2P;
	octets = (uint64_t)IN_FLIGHT_NET_LEAST * edge_conn_loss_min_rtt(c) / NET_RTT_US;
	return (uint32_t)LWIP_MAX(IN_FLIGHT_NET_LEAST, LWIP_MIN(octets, IN_FLIGHT_NET_MOST));
}

/* How many octets may go out at once. Never queue what the window does not take: lwIP would cut it
 * when the persist timer runs. */
static uint32_t window_left(struct llp_conn *c)
{
	const struct tcp_pcb *pcb = c->pcb;
	uint32_t cwnd = c->loss ? edge_conn_loss_window(c) : pcb->cwnd,
		 in_flight = edge_in_flight(c);
	uint32_t wnd = LWIP_MIN(LWIP_MIN(pcb->snd_wnd, cwnd), most_in_flight(c));

	if (pcb->state != ESTABLISHED && pcb->state != CLOSE_WAIT)
		return 0;
	if (c->el->tx_n >= EDGE_TXQ / 2 || too_few(c, wnd)) /* or the link is behind */
		return 0;
	if (in_flight >= wnd || pcb->snd_queuelen >= TCP_SND_QUEUELEN - 4)
		return 0;
	return LWIP_MIN(wnd - in_flight, pcb->snd_buf);
}

static bool window_open(struct llp_conn *c, uint32_t n)
{
	return window_left(c) >= n;
}

/* A peer whose window stays below a segment gets one all the same after a while. lwIP cuts it at
 * the window, so FPDUs lose their alignment; but they arrive. */
static bool window_overridden(struct llp_conn *c, uint32_t n)
{
	const struct tcp_pcb *pcb = c->pcb;
	uint64_t now;

	if (!pcb->snd_wnd || pcb->snd_wnd >= n || edge_in_flight(c) ||
	    (pcb->state != ESTABLISHED && pcb->state != CLOSE_WAIT)) {
		c->override_us = 0;
		return false;
	}
	now = edge.cfg.now_us(edge.cfg.arg);
	if (!c->override_us)
		c->override_us = now + OVERRIDE_US;
	if (now < c->override_us)
		return false;
	c->override_us = 0;
	return true;
}

/* The ACK that opens a closed window may get lost, and lwIP, which has nothing queued, would not
 * ask again: a segment without octets below the window asks (RFC 9293 §3.10.7.4: it is answered).
 */
static void probe_window(struct llp_conn *c, uint32_t n)
{
	uint64_t now;

	if (c->pcb->snd_wnd >= n || edge_in_flight(c))
		return;
	now = edge.cfg.now_us(edge.cfg.arg);
	if (!c->probe_us)
		c->probe_wait_us = PROBE_MIN_US;
	else if (now < c->probe_us)
		return;
	else
		tcp_keepalive(c->pcb);
	c->probe_us = now + c->probe_wait_us;
	if (c->probe_wait_us < PROBE_MAX_US)
		c->probe_wait_us *= 2;
}

static struct io_frame *alloc(struct llp_conn *c, uint32_t n)
{
	struct io_link *l = c->el->io;
	struct io_frame *f =
		c->cuts && edge_conn_loss_calm(c, n) ? edge_conn_long_alloc(c, n) : NULL;

	return f ? f : l->ops->alloc(l);
}

uint8_t *edge_tx_begin(struct llp_conn *c, size_t *room)
{
	/* A peer whose whole window is less than a segment gets segments of that size, if FPDUs fit
	 * into them. */
	uint32_t n = LWIP_MIN(emss(c), LWIP_MAX(c->pcb->snd_wnd_max, LLP_ROOM_LEAST));
	struct io_frame *f;
	uint8_t *at;

	if (c->end != EDGE_CONN_ON)
		return NULL;
	if (!window_open(c, n) && !window_overridden(c, n)) {
		probe_window(c, n);
		return NULL;
	}
	c->probe_us = 0;
	*room = n;
	at = c->cuts ? edge_conn_long_room(c) : NULL;
	c->growing = at;
	if (at)
		return at;
	c->seg = memp_malloc(MEMP_TCP_SEG);
	f = c->seg ? alloc(c, n) : NULL;
	if (!f) {
		edge_conn_drop_building(c);
		return NULL;
	}
	c->building = f;
	return f->data;
}

/* A buffer for long segments, or the rest of the one that was filled last. */
static uint8_t *long_room(struct llp_conn *c, uint32_t n)
{
	uint8_t *at = edge_conn_long_room(c);

	c->growing = at;
	if (at)
		return at;
	c->seg = memp_malloc(MEMP_TCP_SEG);
	c->building = c->seg && edge_conn_loss_calm(c, n) ? edge_conn_long_alloc(c, n) : NULL;
	if (c->building)
		return c->building->data;
	edge_conn_drop_building(c);
	return NULL;
}

uint8_t *edge_tx_begin_many(struct llp_conn *c, size_t *room, size_t *each)
{
	uint32_t n = emss(c), left;
	uint8_t *at;

	if (!c->cuts || !edge_conn_is_bulk(c) || c->end != EDGE_CONN_ON || n > c->pcb->snd_wnd_max)
		return NULL;
	left = window_left(c);
	at = left >= 2 * n ? long_room(c, n) : NULL;
	if (!at)
		return NULL;
	c->probe_us = 0;
	*each = n;
	*room = LWIP_MIN(left, IO_LONG_MAX - (c->growing ? c->tail->len : 0)) / n * n;
	return at;
}

void edge_conn_drop_building(struct llp_conn *c)
{
	if (c->building)
		c->el->io->ops->free(c->building);
	if (c->seg)
		memp_free(MEMP_TCP_SEG, c->seg);
	c->building = NULL;
	c->seg = NULL;
	c->growing = false;
}

/* PSH is the last segment's that is queued (RFC 9293 §3.9.1.2): a port that cuts puts it there
 * only, and so may be given those before it (io/port/tso.h). */
static void append(struct llp_conn *c, struct tcp_seg *seg)
{
	struct tcp_pcb *pcb = c->pcb;
	struct tcp_seg *last = c->tail ? c->tail : pcb->unsent;

	while (last && last->next)
		last = last->next;
	if (last) {
		TCPH_UNSET_FLAG(last->tcphdr, TCP_PSH);
		last->next = seg;
	} else {
		pcb->unsent = seg;
	}
	c->tail = seg;
	pcb->snd_lbb += seg->len;
	pcb->snd_buf -= seg->len;
	pcb->snd_queuelen++;
}

static void queue_built(struct llp_conn *c, size_t n)
{
	struct io_frame *f = c->building;
	struct tcp_seg *seg = c->seg;

	if (c->cuts && f->cut) {
		if (n > f->cut)
			edge_conn_loss_long(c, f->cut);
		f = edge_conn_long_begun(c, f, n);
	}
	f->len = (uint32_t)n;
	c->building = NULL;
	c->seg = NULL;
	edge_conn_fill_segment(seg, c, edge_wrap_tx(f));
	c->queued_seq = c->pcb->snd_lbb;
	append(c, seg);
	c->queued = seg;
}

void edge_tx_commit(struct llp_conn *c, size_t n)
{
	if (!n) {
		edge_conn_drop_building(c);
		return;
	}
	edge.cfg.stats->tcp_tx_bytes += n;
	if (c->cuts)
		edge.cfg.stats->tcp_tx_segments += edge_conn_long_note(c, n);
	else
		edge.cfg.stats->tcp_tx_segments++;
	if (c->growing)
		edge_conn_loss_long(c, edge_conn_long_grow(c, n));
	else
		queue_built(c, n);
}

/* Is c->sent the last of lwIP's unacked queue, and all that is unsent new? */
static bool knows_last(const struct llp_conn *c)
{
	const struct tcp_pcb *pcb = c->pcb;

	/* Its end is the last octet that was ever sent, and not acknowledged: so it is queued. */
	if (!c->sent || c->sent_end != pcb->snd_nxt || !TCP_SEQ_GT(c->sent_end, pcb->lastack))
		return false;
	/* Nothing is on its way back from unacked to unsent, and nobody has split it. */
	return !(pcb->flags & (TF_RTO | TF_INFR)) && !pcb->nrtx &&
	       lwip_ntohl(pcb->unsent->tcphdr->seqno) == pcb->snd_nxt &&
	       lwip_ntohl(c->sent->tcphdr->seqno) + c->sent->len == c->sent_end;
}

/* tcp_output walks to the end of what is not acknowledged. We know where that is: give it an empty
 * queue and join the two afterwards. */
static void output_behind(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	struct tcp_seg *first = pcb->unacked;

	assert(!c->sent->next);
	pcb->unacked = NULL;
	tcp_output(pcb);
	c->sent->next = pcb->unacked;
	pcb->unacked = first;
	/* The persist timer is for an empty queue only, and lwIP took this one for empty. */
	pcb->persist_backoff = 0;
}

static void output(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	bool knows = knows_last(c);

	if (c->alone_us)
		edge_conn_answers(c);
	if (c->fast && tcp_input_pcb != pcb && (knows || !pcb->unacked)) {
		edge_conn_tx_fast(c, knows ? c->sent : NULL);
		if (pcb->unsent)
			tcp_output(pcb);
	} else if (knows) {
		output_behind(c);
	} else {
		tcp_output(pcb);
	}
	if (!(pcb->flags & TF_ACK_DELAY)) /* what went has the ACK */
		c->ack_left = c->acks_postponed = 0;
}

void edge_tx_flush(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;

	c->tail = NULL; /* lwIP takes it off its queue */
	if (c->end != EDGE_CONN_ON || !pcb->unsent)
		return;
	edge_conn_activate(c);
	output(c);
	edge_conn_loss_sent(c);
	if (pcb->unsent) /* lwIP may cut it at the window, where no segment ends */
		edge_conn_loss_cut(c);
	/* One that was cut may be gone though its end is not acknowledged. */
	c->sent = pcb->unsent || TCP_SEQ_LT(c->queued_seq, pcb->lastack) ? NULL : c->queued;
	c->sent_end = pcb->snd_nxt;
}
