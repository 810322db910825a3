/* SPDX-License-Identifier: BSD-3-Clause */
/* What stack/loss wants sent: the lost again, probes, and the window for what is new. */
#include "io/lwip/loss.h"
#include "io/lwip/loss_conn.h"
#include "io/lwip/path_mtu.h"

#include <string.h>

#include "io/lwip/pcb/private.h"

#define ALL		    0x7fffffffu
#define BLACK_HOLE_TIMEOUTS 2u
#define ASK_TIMEOUTS	    2u

static uint64_t now(void)
{
	return edge.cfg.now_us(edge.cfg.arg);
}

uint32_t edge_conn_loss_window(struct llp_conn *c)
{
	struct loss *l = &c->loss->loss;
	uint32_t room = loss_room(l);

	/* Nothing is in flight, and what is queued is from before the path became shorter. */
	if (room && c->pcb->unsent && !loss_pipe(l))
		room = LWIP_MAX(room, c->pcb->unsent->len);
	if (room && !loss_may_send(l, LWIP_MIN(room, l->cc.mss), l->pace.rate ? now() : 0))
		room = 0; /* the record is full, or it is too early */
	c->pcb->cwnd = l->nxt - l->una + room;
	return c->pcb->cwnd;
}

uint32_t edge_conn_loss_min_rtt(const struct llp_conn *c)
{
	uint64_t us = c->loss ? rtt_min(&c->loss->loss.rtt) : UINT64_MAX;

	return (uint32_t)LWIP_MIN(us, 1000000);
}

/* ---- again ------------------------------------------------------------------------------- */

/* lwIP gave up sending it for want of a buffer: it is still where it was. */
static bool is_unsent(const struct tcp_pcb *pcb, const struct tcp_seg *seg)
{
	return TCP_SEQ_GEQ(lwip_ntohl(seg->tcphdr->seqno), pcb->snd_nxt);
}

/* With those in front of it, but nothing new behind it: after a timeout the window is one segment
 * (RFC 5681 §3.1), and pcb->cwnd may be from before. */
static bool output_unsent(struct tcp_pcb *pcb, const struct tcp_seg *seg)
{
	pcb->cwnd = lwip_ntohl(seg->tcphdr->seqno) - pcb->lastack + seg->len;
	return tcp_output(pcb) == ERR_OK && !is_unsent(pcb, seg);
}

/* A segment of pcb->unacked, from where it is: lwIP is shown it as all there is to send, because
 * tcp_output is the only way to have a segment sent. False: the link takes none. */
static bool output_again(struct tcp_pcb *pcb, struct tcp_seg *seg)
{
	struct tcp_seg *unacked = pcb->unacked, *unsent = pcb->unsent, *next = seg->next;
	tcpwnd_size_t cwnd = pcb->cwnd, wnd = pcb->snd_wnd;
	bool sent;

	if (is_unsent(pcb, seg))
		return output_unsent(pcb, seg);
	pcb->unacked = NULL;
	pcb->unsent = seg;
	seg->next = NULL;
	pcb->cwnd = pcb->snd_wnd = ALL;
	tcp_output(pcb);
	sent = !pcb->unsent;
	pcb->unacked = unacked;
	pcb->unsent = unsent;
	seg->next = next;
	pcb->cwnd = cwnd;
	pcb->snd_wnd = wnd;
	return sent;
}

static bool send_again(struct edge_conn_loss *k, struct sent *s)
{
	struct record *r = &k->loss.rec;
	const uint32_t seq = s->seq;

	if (!output_again(k->c->pcb, s->tag)) {
		edge_conn_loss_retry(k);
		return false;
	}
	edge.cfg.stats->tcp_tx_again++;
	edge_conn_tell(k->c, LLP_SENT_AGAIN, seq);
	/* A FIN that is new may have gone with it, and the record have grown. */
	loss_resent(&k->loss, record_at(r, record_find(r, seq)), now());
	return true;
}

static void send_lost(struct edge_conn_loss *k)
{
	struct sent *s;

	while ((s = loss_next(&k->loss, now())) && send_again(k, s))
		continue;
}

/* ---- what is new ------------------------------------------------------------------------- */

static bool has_room(struct edge_conn_loss *k)
{
	return edge_conn_loss_window(k->c) >= k->loss.nxt - k->loss.una + k->loss.cc.mss;
}

/* lwIP tells the user of what SND.UNA has passed; a window that opens otherwise he hears of here,
 * by the same callback (tcp_sent). */
static void tell_user(struct edge_conn_loss *k, bool heard)
{
	struct llp_conn *c = k->c;

	if (c->end != EDGE_CONN_ON || !c->ctx || c->listener || c->pcb->unsent || !has_room(k))
		return;
	if (heard && (k->moved || !k->delivered))
		return;
	c->pcb->sent(c, c->pcb, 0);
}

static void output_new(struct edge_conn_loss *k)
{
	struct tcp_pcb *pcb = k->c->pcb;

	edge_conn_loss_window(k->c);
	if (pcb->unsent)
		tcp_output(pcb);
	edge_conn_loss_sent(k->c);
	frto_nothing_new(&k->loss.frto);
	if (!pcb->unsent && has_room(k))
		loss_idle(&k->loss);
}

static void go_on(struct edge_conn_loss *k, bool heard)
{
	struct llp_conn *c = k->c;

	edge_conn_loss_sent(c);
	send_lost(k);
	tell_user(k, heard);
	if (c->loss == k) /* the user has not ended it */
		output_new(k);
}

void edge_conn_loss_go_on(struct edge_conn_loss *k)
{
	if (k->delivered || record_count(&k->loss.rec))
		go_on(k, true);
}

/* ---- time -------------------------------------------------------------------------------- */

/* RFC 8985 §7.3: what is unsent if there is any, else the last segment once more. */
static void probe(struct edge_conn_loss *k, uint64_t now_us)
{
	struct tcp_pcb *pcb = k->c->pcb;
	struct sent *last = loss_last(&k->loss);
	uint32_t nxt = k->loss.nxt;
	bool again = false;

	if (pcb->unsent) {
		pcb->cwnd = pcb->snd_nxt - pcb->lastack + pcb->unsent->len;
		tcp_output(pcb);
	}
	if (k->loss.nxt == nxt && last)
		again = send_again(k, last);
	loss_probed(&k->loss, again, now_us);
	edge.cfg.stats->tcp_tx_probes++;
	edge_conn_tell(k->c, LLP_PROBE, 0);
}

/* RFC 4821 §7.7: after several timeouts without an answer. The repeats are cut for what is tried
 * next. */
static void suspect_path(const struct edge_conn_loss *k)
{
	if (k->loss.rto.unanswered >= BLACK_HOLE_TIMEOUTS && record_count(&k->loss.rec))
		edge_conn_path_suspect(k->c, record_at(&k->loss.rec, k->loss.rec.first)->len);
}

/* lwIP gives a peer up after TCP_MAXRTX timeouts without an answer, which is 40 s. Who lets a
 * silence last for longer (llp_config.keepalive_ms, doc/adr/0037) gets as many more as that takes:
 * RFC 1122 §4.2.3.5, "R1 and R2 are to be configurable". */
static u8_t count_for_lwip(unsigned timeouts, uint64_t longest_us)
{
	uint64_t more = 2 * 1000ull * edge.cfg.keepalive_ms / longest_us;

	if (timeouts >= TCP_MAXRTX + more)
		return TCP_MAXRTX;
	return (u8_t)LWIP_MIN(timeouts, TCP_MAXRTX - 1);
}

/* RFC 9293 §3.8.6.1: a peer that answers may keep its window closed for as long as it likes. It may
 * have closed it in front of what was on its way, and refuse that (§3.8.6; ours does so for want of
 * memory): the repeats are what asks then. When it opens, what it has refused goes soon. */
void edge_conn_loss_peer_window(struct edge_conn_loss *k, uint32_t window)
{
	if (!window)
		k->loss.rto.unanswered = 0;
	else if (k->shut && k->loss.phase == LOSS_TIMEOUT)
		loss_path_up(&k->loss, now());
	k->shut = !window;
}

void edge_conn_loss_due(struct edge_conn_loss *k, uint64_t now_us)
{
	uint64_t timeouts = k->loss.stats.timeouts;

	k->retry_us = 0;
	if (k->loss.deadline_us <= now_us)
		edge_conn_loss_cut(k->c);
	if (loss_timer(&k->loss, now_us) == LOSS_DUE_PROBE)
		probe(k, now_us);
	if (k->loss.stats.timeouts != timeouts) {
		edge.cfg.stats->tcp_timeouts++;
		edge_conn_tell(k->c, LLP_RTO,
			       (uint32_t)(rto_us(&k->loss.rto, k->loss.cfg, &k->loss.rtt) / 1000));
		k->c->pcb->nrtx = count_for_lwip(k->loss.rto.unanswered, k->loss.cfg->rto_max_us);
		suspect_path(k);
		if (k->loss.rto.unanswered >= ASK_TIMEOUTS)
			edge_ask_again(k->c);
	}
	go_on(k, false);
}

void edge_conn_loss_mss(struct llp_conn *c)
{
	if (c->loss->loss.cut != c->pcb->mss)
		edge_conn_loss_cut(c);
	c->loss->loss.cc.mss = c->pcb->mss;
}

void edge_conn_loss_too_big(struct llp_conn *c)
{
	edge_conn_loss_cut(c);
	loss_too_long(&c->loss->loss);
	go_on(c->loss, false);
}

/* ---- duplicates -------------------------------------------------------------------------- */

/* RFC 2883 §4: in the first place, and in this ACK alone. lwIP reports what pcb->rcv_sacks has. */
static void ack_with_duplicate(struct tcp_pcb *pcb, uint32_t seq, uint32_t octets)
{
	struct tcp_sack_range kept[LWIP_TCP_MAX_SACK_NUM];

	memcpy(kept, pcb->rcv_sacks, sizeof(kept));
	memcpy(pcb->rcv_sacks + 1, kept, sizeof(kept) - sizeof(kept[0]));
	pcb->rcv_sacks[0].left = seq;
	pcb->rcv_sacks[0].right = seq + octets;
	tcp_send_empty_ack(pcb);
	memcpy(pcb->rcv_sacks, kept, sizeof(kept));
}

void edge_conn_loss_ack_duplicate(struct llp_conn *c, uint32_t seq, uint32_t octets)
{
	if (octets && c->pcb->flags & TF_SACK)
		ack_with_duplicate(c->pcb, seq, octets);
	else
		tcp_send_empty_ack(c->pcb);
}
