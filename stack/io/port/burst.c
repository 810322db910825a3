/* SPDX-License-Identifier: BSD-3-Clause */
#include "burst.h"
#include "csum.h"
#include "vlan.h"

#include <string.h>

#include <rte_ethdev.h>

/* What the driver is offered, at most FRAME_BURST frames. */
struct burst {
	struct rte_mbuf *m[FRAME_BURST];
	uint8_t frames[FRAME_BURST];  /* that m[i] carries */
	uint32_t octets[FRAME_BURST]; /* of all of them */
	unsigned n, of;		      /* mbufs, frames */
	bool merged;		      /* there are several in one */
};

/* The mbuf to send for a frame: its own, or a copy in one buffer for drivers that see no more. */
static struct rte_mbuf *to_send(const struct sender *s, struct io_frame *f, uint32_t len)
{
	if (s->chains || !f->next)
		return frame_to_mbuf(f, len);
	struct io_frame *flat = frame_alloc(s->mp);

	if (!flat)
		return NULL;
	for (; f; f = f->next) {
		memcpy(flat->data + flat->len, f->data, f->len);
		flat->len += f->len;
	}
	return frame_to_mbuf(flat, len);
}

/* The first of n frames, as many as go together. False: no buffer. */
static bool add(const struct sender *s, struct burst *b, struct io_frame **v, unsigned n)
{
	unsigned run = tso_run(&s->tso, v, n);
	struct rte_mbuf *m = run > 1 ? tso_merge(&s->tso, v, run) : NULL;

	if (!m) {
		run = 1;
		m = to_send(s, v[0], frame_len(v[0]));
	}
	if (!m)
		return false;
	if (run == 1 && v[0]->marks & IO_FRAME_SUM) {
		csum_ask(m);
		s->stats->tx_sums++;
	}
	if (s->vlan)
		vlan_tag(m, s->vlan);
	s->stats->tx_parts += m->nb_segs > 1;
	b->octets[b->n] = 0;
	for (unsigned i = 0; i < run; i++)
		b->octets[b->n] += frame_len(v[i]);
	b->merged |= run > 1;
	b->of += run;
	b->frames[b->n] = (uint8_t)run;
	b->m[b->n++] = m;
	return true;
}

static void fill(const struct sender *s, struct burst *b, struct io_frame **v, unsigned n)
{
	b->n = b->of = 0;
	b->merged = false;
	while (b->of < n && frame_len(v[b->of]) <= s->frame_max) {
		if (!add(s, b, v + b->of, n - b->of))
			return;
	}
}

/* Mbufs that the driver took. */
static unsigned push(const struct sender *s, struct burst *b)
{
	unsigned n = b->n;

	if (b->merged) /* some drivers have a hand in the header */
		n = rte_eth_tx_prepare(s->port, s->queue, b->m, (uint16_t)n);
	return n ? rte_eth_tx_burst(s->port, s->queue, b->m, (uint16_t)n) : 0;
}

/* After which a copy that went stands for its frame, and what did not go is frames again. The
 * number of frames that went. */
static unsigned settle(struct sender *s, struct burst *b, struct io_frame **v, unsigned sent)
{
	unsigned gone = 0, at = 0;

	for (unsigned i = 0; i < b->n; at += b->frames[i++]) {
		bool merged = b->frames[i] > 1;
		bool copied = !merged && b->m[i] != mbuf_of(v[at]);

		if (i < sent) {
			gone += b->frames[i];
			s->stats->tx_bytes += b->octets[i];
			s->stats->tx_merged += merged ? b->frames[i] : 0;
			s->stats->tx_chains += merged;
			if (merged)
				s->tso.refused = 0;
			if (copied)
				io_free_chain(v[at]);
		} else if (merged) {
			tso_undo(b->m[i]);
		} else if (copied) {
			rte_pktmbuf_free(b->m[i]);
		}
	}
	s->stats->tx_frames += gone;
	return gone;
}

/* A chain that the driver does not take may be too much for the room that is left, or for the
 * driver, whatever it says: its frames go one by one. */
static unsigned send_singly(struct sender *s, struct burst *b, struct io_frame **v, unsigned n)
{
	bool on = s->tso.on;
	unsigned gone;

	settle(s, b, v, 0);
	s->tso.on = false;
	fill(s, b, v, n);
	gone = settle(s, b, v, push(s, b));
	s->tso.refused += gone == n; /* so it was not for want of room */
	s->tso.on = on && s->tso.refused < TSO_REFUSED_MAX;
	s->stats->tx_unmerged += gone;
	return gone;
}

static unsigned send_some(struct sender *s, struct io_frame **v, unsigned n)
{
	struct burst b;
	unsigned sent, gone;

	fill(s, &b, v, n);
	sent = push(s, &b);
	if (!sent && b.n && b.frames[0] > 1)
		gone = send_singly(s, &b, v, b.frames[0]);
	else
		gone = settle(s, &b, v, sent);
	if (gone == b.of && gone < n && frame_len(v[gone]) > s->frame_max) {
		s->stats->tx_drops++;
		io_free_chain(v[gone++]);
	}
	return gone;
}

unsigned burst_send(struct sender *s, struct io_frame **v, unsigned n)
{
	unsigned sent = 0, got = 1;

	while (got && sent < n) {
		got = send_some(s, v + sent, RTE_MIN(n - sent, (unsigned)FRAME_BURST));
		sent += got;
	}
	s->stats->tx_full += sent < n;
	return sent;
}
