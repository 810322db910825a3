/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long segments (doc/adr/0044): up to 64 KiB of FPDUs behind one header, which the link cuts into
 * segments of the EMSS, so that each FPDU is a segment of the wire all the same (RFC 5044 §5). lwIP
 * and stack/loss count a long one as one segment as long as nothing is lost. As soon as something
 * may be, all of them are cut here into what they are on the wire.
 */
#include "io/addr.h"
#include "io/lwip/conn.h"
#include "io/lwip/pcb/private.h"

#include <string.h>

#define BULK	 4u /* full segments in a row, after which long ones are worth their memory */
#define BULK_MAX 8u

void edge_conn_fill_segment(struct tcp_seg *seg, const struct llp_conn *c, struct pbuf *p)
{
	const u16_t head = TCP_HLEN + (c->stamp.on ? STAMP_OCTETS : 0);
	const struct tcp_pcb *pcb = c->pcb;

	seg->p = p;
	seg->next = NULL;
	seg->flags = 0;
	seg->len = p->tot_len;
	/* pbuf_add_header, less its doubts: edge_tx_begin's buffers have the room. */
	p->payload = (uint8_t *)p->payload - head;
	p->len = (u16_t)(p->len + head);
	p->tot_len = (u16_t)(p->tot_len + head);
	seg->tcphdr = p->payload;
	seg->tcphdr->src = lwip_htons(pcb->local_port);
	seg->tcphdr->dest = lwip_htons(pcb->remote_port);
	seg->tcphdr->seqno = lwip_htonl(pcb->snd_lbb);
	seg->tcphdr->urgp = 0;
	TCPH_HDRLEN_FLAGS_SET(seg->tcphdr, head / 4, TCP_PSH);
}

/* ---- made ---------------------------------------------------------------------------------- */

/* Frames to an address of our own, whichever it is, go other ways, where nobody cuts. */
bool edge_conn_may_be_long(const struct llp_conn *c)
{
	return c->el->io->ops->alloc_long && !io_has(c->el->io, &c->flow.remote);
}

bool edge_conn_is_bulk(const struct llp_conn *c)
{
	return c->bulk >= BULK;
}

struct io_frame *edge_conn_long_alloc(struct llp_conn *c, uint32_t emss)
{
	struct io_link *l = c->el->io;
	struct io_frame *f = edge_conn_is_bulk(c) ? l->ops->alloc_long(l) : NULL;

	if (f)
		f->cut = emss;
	return f;
}

/* A segment that is not full is the last of a long one: alone it does not need the room. */
struct io_frame *edge_conn_long_begun(struct llp_conn *c, struct io_frame *f, size_t n)
{
	struct io_link *l = c->el->io;
	struct io_frame *small;

	if (n >= f->cut)
		return f;
	small = l->ops->alloc(l);
	if (!small) {
		f->cut = 0;
		return f;
	}
	memcpy(small->data, f->data, n);
	l->ops->free(f);
	return small;
}

/* Between a commit and the flush no ACK comes and no timer runs (io/llp.h): the EMSS is the one
 * that it was begun with, and nothing has been lost since. */
uint8_t *edge_conn_long_room(const struct llp_conn *c)
{
	const struct tcp_seg *seg = c->tail;
	uint32_t cut = seg ? edge_cut(c->el, seg->p) : 0;

	if (!cut || seg->len % cut || seg->len + cut > IO_LONG_MAX)
		return NULL;
	return (uint8_t *)seg->p->payload + seg->p->len;
}

uint32_t edge_conn_long_grow(struct llp_conn *c, size_t n)
{
	struct tcp_seg *seg = c->tail;
	struct tcp_pcb *pcb = c->pcb;

	seg->len = (u16_t)(seg->len + n);
	seg->p->len = (u16_t)(seg->p->len + n);
	seg->p->tot_len = (u16_t)(seg->p->tot_len + n);
	pcb->snd_lbb += (u32_t)n;
	pcb->snd_buf -= (tcpwnd_size_t)n;
	return edge_cut(c->el, seg->p);
}

/* A segment that is not full lowers the count of full ones in a row; but not if it is at least half
 * full and behind a full one, as the end of each message is in a stream of short messages. */
unsigned edge_conn_long_note(struct llp_conn *c, size_t n)
{
	size_t mss = tcp_mss(c->pcb), full = n / mss, rest = n % mss;
	bool behind_full = full || (c->tail && c->tail->len % mss == 0);

	c->bulk = (uint8_t)LWIP_MIN(c->bulk + full, BULK_MAX);
	if (rest && !(behind_full && rest >= mss / 2))
		c->bulk /= 2;
	return (unsigned)(full + (rest > 0));
}

/* ---- cut ----------------------------------------------------------------------------------- */

/* The n octets at `at` of a segment, as a segment. NULL: no memory. */
static struct tcp_seg *piece(const struct llp_conn *c, const struct tcp_seg *from, uint32_t at,
			     uint32_t n)
{
	const uint8_t *octets = (const uint8_t *)from->tcphdr + TCPH_HDRLEN_BYTES(from->tcphdr);
	struct io_link *l = c->el->io;
	struct tcp_seg *seg = memp_malloc(MEMP_TCP_SEG);
	struct io_frame *f = seg ? l->ops->alloc(l) : NULL;

	if (!f) {
		if (seg)
			memp_free(MEMP_TCP_SEG, seg);
		return NULL;
	}
	memcpy(f->data, octets + at, n);
	f->len = n;
	edge_conn_fill_segment(seg, c, edge_wrap_tx(f));
	seg->tcphdr->seqno = lwip_htonl(lwip_ntohl(from->tcphdr->seqno) + at);
	return seg;
}

/* How many octets at its front are acknowledged, in whole pieces. */
static uint32_t done_of(const struct llp_conn *c, const struct tcp_seg *seg, uint32_t cut)
{
	uint32_t seq = lwip_ntohl(seg->tcphdr->seqno), una = c->pcb->lastack;

	return TCP_SEQ_LT(seq, una) ? LWIP_MIN((una - seq) / cut, (seg->len - 1u) / cut) * cut : 0;
}

/* FIN and PSH are the last piece's. */
static void give_flags(struct tcp_seg *first, const struct tcp_seg *from)
{
	const u8_t last = TCP_FIN | TCP_PSH, flags = TCPH_FLAGS(from->tcphdr);

	for (struct tcp_seg *s = first; s; s = s->next)
		TCPH_HDRLEN_FLAGS_SET(s->tcphdr, TCPH_HDRLEN(s->tcphdr),
				      s->next ? flags & ~last : flags);
}

/* The pieces of a long segment but for those that are acknowledged. NULL: no memory. */
static struct tcp_seg *pieces_of(const struct llp_conn *c, const struct tcp_seg *seg, uint32_t cut,
				 unsigned *n)
{
	struct tcp_seg *first = NULL, **end = &first;

	*n = 0;
	for (uint32_t at = done_of(c, seg, cut); at < seg->len; at += cut, ++*n) {
		*end = piece(c, seg, at, LWIP_MIN(cut, seg->len - at));
		if (!*end) {
			tcp_segs_free(first);
			return NULL;
		}
		end = &(*end)->next;
	}
	give_flags(first, seg);
	return first;
}

/* It stays where it is in its queue, as its first piece: others point to it. */
static void become(struct tcp_seg *seg, struct tcp_seg *first)
{
	struct tcp_seg *next = seg->next, *last = first;

	while (last->next)
		last = last->next;
	if (last == first)
		last = seg;
	pbuf_free(seg->p);
	*seg = *first;
	memp_free(MEMP_TCP_SEG, first);
	last->next = next;
}

static void cut_queue(struct llp_conn *c, struct tcp_seg *queue)
{
	for (struct tcp_seg *s = queue; s; s = s->next) {
		uint32_t cut = edge_cut(c->el, s->p);
		struct tcp_seg *first;
		unsigned n;

		first = cut && s->len > cut ? pieces_of(c, s, cut, &n) : NULL;
		if (!first)
			continue;
		/* lwIP gives room back for whole segments, and never sees these octets again */
		c->pcb->snd_buf += done_of(c, s, cut);
		become(s, first);
		c->pcb->snd_queuelen = (u16_t)(c->pcb->snd_queuelen + n - 1);
	}
}

void edge_conn_long_cut(struct llp_conn *c)
{
	cut_queue(c, c->pcb->unacked);
	cut_queue(c, c->pcb->unsent);
	c->queued = c->sent = NULL; /* which is the last one is not known any more */
}
