/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes to stack/loss: segments as they are sent and come, by lwIP's hooks; memory; timers. */
#include "io/lwip/loss.h"

#include <string.h>

#include "io/lwip/hooks.h"
#include "io/lwip/loss_conn.h"
#include "io/lwip/path_mtu.h"

#include "io/lwip/pcb/private.h"

#define RECORD_FIRST 32u    /* entries, doubled as they are needed */
#define RECORD_MOST  65536u /* more than lwIP lets a connection have queued */
#define RETRY_US     200u   /* the link was full */
#define RTO_NEVER    0x7fff /* pcb->sv: lwIP's RTO is pcb->sa / 8 + pcb->sv ticks */

static_assert(RECORD_MOST > TCP_SND_QUEUELEN, "the record has room for all");

static struct loss_config config;
static bool ecn;
static struct edge_conn_loss *watched; /* those with a timer */
static struct edge_conn_loss *cursor;  /* edge_loss_timers: looks at this one next */
static struct llp_conn *heard;	       /* a segment came for it */
static uint64_t due_us = UINT64_MAX;   /* no timer of any is due before */

static uint64_t now(void)
{
	return edge.cfg.now_us(edge.cfg.arg);
}

void edge_loss_init(const struct llp_config *cfg)
{
	loss_config_default(&config);
	config.max_window = TCP_SND_BUF;
	if (cfg->congestion)
		config.cc = cfg->congestion;
	ecn = cfg->ecn || config.cc->every_mark;
}

bool edge_conn_loss_ecn(void)
{
	return ecn;
}

/* ---- timers ------------------------------------------------------------------------------ */

static void watch(struct edge_conn_loss *k)
{
	if (k->link)
		return;
	k->next = watched;
	k->link = &watched;
	if (k->next)
		k->next->link = &k->next;
	watched = k;
}

static void unwatch(struct edge_conn_loss *k)
{
	if (!k->link)
		return;
	if (cursor == k)
		cursor = k->next;
	*k->link = k->next;
	if (k->next)
		k->next->link = k->link;
	k->link = NULL;
}

static uint64_t wake_us(const struct edge_conn_loss *k)
{
	uint64_t at = loss_wake_us(&k->loss);

	return k->retry_us && k->retry_us < at ? k->retry_us : at;
}

/* It has a deadline, perhaps another than before. */
static void deadline_changed(struct edge_conn_loss *k)
{
	uint64_t at = wake_us(k);

	if (at == UINT64_MAX)
		return;
	watch(k);
	if (at < due_us)
		due_us = at;
}

void edge_conn_loss_retry(struct edge_conn_loss *k)
{
	k->retry_us = now() + RETRY_US;
	deadline_changed(k);
}

uint64_t edge_loss_next_us(void)
{
	uint64_t t;

	if (due_us == UINT64_MAX)
		return UINT64_MAX;
	t = now();
	return due_us > t ? due_us - t : 1;
}

/* Whatever is due may end connections, this one and others: unwatch() moves the cursor on. */
void edge_loss_timers(void)
{
	uint64_t t, at;

	if (due_us == UINT64_MAX)
		return;
	t = now();
	if (t < due_us)
		return;
	due_us = UINT64_MAX;
	for (struct edge_conn_loss *k = watched; k; k = cursor) {
		cursor = k->next;
		at = wake_us(k);
		if (at <= t)
			edge_conn_loss_due(k, t);
		else if (at == UINT64_MAX)
			unwatch(k);
		else if (at < due_us)
			due_us = at;
	}
	cursor = NULL;
}

void edge_link_up(struct io_link *l)
{
	uint64_t t = now();

	for (struct edge_conn_loss *k = watched; k; k = k->next) {
		if (k->c->el->io != l)
			continue;
		loss_path_up(&k->loss, t);
		deadline_changed(k);
	}
}

/* ---- life -------------------------------------------------------------------------------- */

void edge_conn_loss_begin(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	struct edge_conn_loss *k;
	struct sent *slot;

	if (c->el->io->flags & IO_P2P || pcb->unsent)
		return;
	k = calloc(1, sizeof(*k));
	slot = malloc(RECORD_FIRST * sizeof(*slot));
	if (!k || !slot) {
		free(k);
		free(slot);
		return;
	}
	k->c = c;
	c->loss = k;
	c->cuts = edge_conn_may_be_long(c);
	loss_init(&k->loss, &config, slot, RECORD_FIRST, pcb->snd_nxt, pcb->mss);
	k->loss.paced = !(c->el->io->flags & IO_QUEUE);
	k->loss.stamp = c->stamp.on ? &c->stamp : NULL;
	k->loss.has_sack = config.sack && pcb->flags & TF_SACK;
	pcb->sa = 0;
	pcb->sv = pcb->rto = RTO_NEVER;
	pcb->rttest = 0;
	pcb->ssthresh = 0; /* lwIP's window grows least so */
	edge_conn_loss_window(c);
}

void edge_conn_loss_end(struct llp_conn *c)
{
	struct edge_conn_loss *k = c->loss;

	if (heard == c)
		heard = NULL;
	if (!k)
		return;
	c->loss = NULL;
	unwatch(k);
	free(k->loss.rec.slot);
	free(k);
}

/* Without memory the record stays full, and nothing new is sent until something is acknowledged. */
static void grow(struct edge_conn_loss *k)
{
	uint32_t n = 2 * k->loss.rec.size;
	struct sent *old = k->loss.rec.slot, *slot;

	if (!record_full(&k->loss.rec) || n > RECORD_MOST)
		return;
	slot = malloc(n * sizeof(*slot));
	if (!slot)
		return;
	loss_grow(&k->loss, slot, n);
	free(old);
}

void edge_conn_loss_rest(struct llp_conn *c)
{
	struct record *r = c->loss ? &c->loss->loss.rec : NULL;
	struct sent *slot;

	if (!r || record_count(r) || r->size == RECORD_FIRST)
		return;
	slot = malloc(RECORD_FIRST * sizeof(*slot));
	if (!slot)
		return;
	free(r->slot);
	record_init(r, slot, RECORD_FIRST);
}

/* ---- long segments ----------------------------------------------------------------------- */

bool edge_conn_loss_calm(const struct llp_conn *c, uint32_t emss)
{
	const struct loss *l = c->loss ? &c->loss->loss : NULL;

	return l && loss_calm(l) && (!l->cut || l->cut == emss);
}

void edge_conn_loss_long(struct llp_conn *c, uint32_t cut)
{
	c->loss->loss.cut = cut;
}

static bool cut_record(struct loss *l)
{
	uint32_t n = l->rec.size, need = record_pieces(&l->rec, l->cut);
	struct sent *old = l->rec.slot, *slot;

	while (n <= need)
		n *= 2;
	slot = n > RECORD_MOST ? NULL : malloc(n * sizeof(*slot));
	if (!slot)
		return false;
	loss_cut(l, slot, n);
	free(old);
	return true;
}

/* The tag of each entry is the segment that has its octets. */
static void tag_record(struct record *r, struct tcp_seg *seg)
{
	for (uint32_t id = r->first; seg && id != r->end; id = record_next(id)) {
		struct sent *s = record_at(r, id);

		while (seg->next && TCP_SEQ_LEQ(lwip_ntohl(seg->next->tcphdr->seqno), s->seq))
			seg = seg->next;
		s->tag = seg;
	}
}

void edge_conn_loss_cut(struct llp_conn *c)
{
	if (!c->loss || !c->loss->loss.cut || !cut_record(&c->loss->loss))
		return;
	edge_conn_long_cut(c);
	tag_record(&c->loss->loss.rec, c->pcb->unacked);
}

/* ---- what is sent ------------------------------------------------------------------------ */

static void note(struct edge_conn_loss *k, struct tcp_seg *seg)
{
	loss_sent(&k->loss, TCP_TCPLEN(seg), seg, now());
	grow(k);
	/* lwIP may send on its own, at the end of what came: nobody else would look at the timer.
	 */
	deadline_changed(k);
}

/* lwIP sends it: the first of pcb->unsent, before it is taken off. Control segments are of no
 * queue. */
void uw_lwip_sending(const struct pbuf *p, struct tcp_hdr *hdr, struct tcp_pcb *pcb)
{
	struct llp_conn *c = edge_conn_of(pcb);
	struct edge_conn_loss *k = c ? c->loss : NULL;
	bool is_new;

	if (!pcb)
		return;
	is_new = k && pcb->unsent && pcb->unsent->p == p && TCP_TCPLEN(pcb->unsent) &&
		 lwip_ntohl(hdr->seqno) == k->loss.nxt;
	edge_conn_stamp_sending(hdr, c);
	edge_conn_ecn_sending(pcb, hdr, is_new && pcb->unsent->len); /* not a mere FIN */
	if (!k)
		return;
	pcb->rttest = 0;
	if (is_new)
		note(k, pcb->unsent);
}

/* lwIP took segments off its queue for sent that it did not show. */
static void catch_up(struct edge_conn_loss *k)
{
	struct tcp_pcb *pcb = k->c->pcb;

	if (!TCP_SEQ_LT(k->loss.nxt, pcb->snd_nxt))
		return;
	for (struct tcp_seg *s = pcb->unacked; s && !record_full(&k->loss.rec); s = s->next) {
		if (lwip_ntohl(s->tcphdr->seqno) == k->loss.nxt)
			note(k, s);
	}
}

void edge_conn_loss_sent(struct llp_conn *c)
{
	if (!c->loss)
		return;
	catch_up(c->loss);
	deadline_changed(c->loss);
}

/* ---- what comes -------------------------------------------------------------------------- */

/* Of an established connection, with an acknowledgement that lwIP will take (tcp_receive). */
static bool is_heard(const struct edge_conn_loss *k, const struct tcp_pcb *pcb,
		     const struct tcp_hdr *h)
{
	uint8_t flags = TCPH_FLAGS(h);

	return pcb->state >= ESTABLISHED && pcb->state != TIME_WAIT && !pcb->refused_data &&
	       (flags & (TCP_ACK | TCP_RST | TCP_SYN)) == TCP_ACK &&
	       TCP_SEQ_LEQ(h->ackno, pcb->snd_nxt) && TCP_SEQ_LEQ(h->ackno, k->loss.nxt);
}

static bool is_plain(const struct tcp_pcb *pcb, const struct tcp_hdr *h, const struct pbuf *p)
{
	return !p->tot_len && !(TCPH_FLAGS(h) & TCP_FIN) && h->ackno == pcb->lastack &&
	       SND_WND_SCALE(pcb, (tcpwnd_size_t)h->wnd) == pcb->snd_wnd;
}

/* Octets for one that has sent nothing: nobody is to be asked. */
static bool has_nothing_out(const struct edge_conn_loss *k, const struct uw_lwip_segment *s)
{
	return s->p->tot_len && !record_count(&k->loss.rec) && k->loss.nxt == s->hdr->ackno &&
	       k->loss.phase == LOSS_OPEN && k->c->pcb->lastack == s->hdr->ackno;
}

static void hear(struct llp_conn *c, const struct uw_lwip_segment *s, bool ece)
{
	struct edge_conn_loss *k = c->loss;
	struct tcp_pcb *pcb = c->pcb;
	struct loss_options opt;
	struct loss_ack a = { .ack = s->hdr->ackno, .ece = ece };

	loss_options_read((const uint8_t *)(s->hdr + 1), s->optlen, &opt);
	a.block = opt.block;
	a.n_blocks = opt.n_blocks;
	a.echoed = opt.stamped && c->stamp.on;
	a.echo = opt.echo;
	a.plain = is_plain(pcb, s->hdr, s->p);
	if (a.n_blocks || a.plain)
		edge_conn_loss_cut(c);
	if (edge.paths.n)
		edge_conn_path_acked(c, a.ack);
	edge_conn_loss_peer_window(k, SND_WND_SCALE(pcb, (tcpwnd_size_t)s->hdr->wnd));
	k->delivered = k->loss.delivered;
	loss_acked(&k->loss, &a, now());
	k->delivered = k->loss.delivered - k->delivered;
	k->moved = a.ack != pcb->lastack;
	edge_conn_loss_window(c);
}

void uw_lwip_segment_in(struct tcp_pcb *pcb, const struct uw_lwip_segment *s)
{
	struct llp_conn *c = pcb->state == LISTEN ? NULL : edge_conn_of(pcb);

	bool ece = edge_conn_ecn_in(pcb, s);

	edge_conn_stamp_in(pcb, s);

	heard = NULL;
	if (!c || !c->loss)
		return;
	pcb->dupacks = 0;
	pcb->rttest = 0;
	pcb->bytes_acked = 0;
	if (!is_heard(c->loss, pcb, s->hdr))
		return;
	if (has_nothing_out(c->loss, s))
		return;
	heard = c;
	hear(c, s, ece);
}

void edge_loss_settle(void)
{
	struct llp_conn *c = heard;

	heard = NULL;
	if (c && c->loss)
		edge_conn_loss_go_on(c->loss);
}
