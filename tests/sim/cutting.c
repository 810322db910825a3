/* SPDX-License-Identifier: BSD-3-Clause */
#include "cutting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/be.h"
#include "base/sum.h"
#include "io/link_filter.h"
#include "io/loop/loop.h"
#include "io/packet/segments.h"

#define HEADROOM 128u

struct cutting {
	struct link_filter filter; /* first: an io_link * is a cutting * */
	struct io_ops ops;
	struct cutting_stats stats;
	const struct io_link *loop;
	unsigned longs, smalls;
};

struct long_frame {
	struct io_frame f; /* first */
	unsigned refs;
	uint8_t octets[HEADROOM + 14 + 60 + 60 + IO_LONG_MAX];
};

static struct cutting *of(const struct io_link *l)
{
	return (struct cutting *)(uintptr_t)l;
}

/* ---- long frames --------------------------------------------------------------------------- */

static struct io_frame *alloc_long(struct io_link *l)
{
	struct cutting *c = of(l);
	struct long_frame *f = c->stats.out < c->longs ? calloc(1, sizeof(*f)) : NULL;

	if (!f)
		return NULL;
	f->f.link = l;
	f->f.buf = f->octets;
	f->f.room = sizeof(f->octets);
	f->f.data = f->octets + HEADROOM;
	f->refs = 1;
	c->stats.out++;
	return &f->f;
}

static struct io_frame *alloc_small(struct io_link *l)
{
	struct cutting *c = of(l);

	if (c->smalls && loop_frames_out(c->loop) >= c->smalls) {
		c->stats.refused++;
		c->filter.l.stats.no_frame++;
		return NULL;
	}
	return c->filter.under->ops->alloc(c->filter.under);
}

/* Others belong to the link below. */
static bool is_long(const struct io_frame *f)
{
	return f->link->ops->alloc_long == alloc_long;
}

static void frame_free(struct io_frame *iof)
{
	struct long_frame *f = (struct long_frame *)iof;

	if (!is_long(iof)) {
		iof->link->ops->free(iof);
		return;
	}
	if (--f->refs)
		return;
	of(iof->link)->stats.out--;
	free(f);
}

static void frame_ref(struct io_frame *f)
{
	if (is_long(f))
		((struct long_frame *)f)->refs++;
	else
		f->link->ops->ref(f);
}

static unsigned frame_refs(const struct io_frame *f)
{
	return is_long(f) ? ((const struct long_frame *)f)->refs : f->link->ops->refs(f);
}

/* ---- the wire ------------------------------------------------------------------------------ */

/* RFC 5044 §4: are they FPDUs that end where the segment does? */
static bool is_whole(const uint8_t *p, uint32_t n)
{
	while (n >= 2) {
		uint32_t fpdu = ((2 + uw_be16(p) + 3u) & ~3u) + 4;

		if (fpdu > n)
			return false;
		p += fpdu;
		n -= fpdu;
	}
	return !n;
}

/* Start-up frames begin with "MPA ID". */
static void look_at(struct cutting *c, const uint8_t *payload, uint32_t n)
{
	if (!n || (n >= 6 && !memcmp(payload, "MPA ID", 6)))
		return;
	c->stats.segments++;
	c->stats.broken += !is_whole(payload, n);
}

/* A segment whose checksum field has the sum of the pseudo-header. */
static void send_octets(struct cutting *c, struct uw_span head, struct uw_span payload,
			const struct virtio_net_hdr *vnet)
{
	static _Thread_local uint8_t octets[65536];
	struct io_link *under = c->filter.under;
	struct io_frame *f = under->ops->alloc(under);
	uint8_t *tcp = octets + vnet->csum_start;
	uint32_t n = (uint32_t)(head.n + payload.n), len = n - vnet->csum_start;

	look_at(c, payload.p, (uint32_t)payload.n);
	if (!f)
		return; /* lost, as in a card that has no room */
	assert_in_range(n, 0, f->room - (uint32_t)(f->data - f->buf));
	memcpy(octets, head.p, head.n);
	memcpy(octets + head.n, payload.p, payload.n);
	octets[n] = 0;
	uw_put16(tcp + vnet->csum_offset,
		 (uint16_t)~uw_sum_fold(uw_sum_add(0, tcp, (len + 1) & ~1u)));
	memcpy(f->data, octets, n);
	f->len = n;
	assert_int_equal(under->ops->tx(under, &f, 1), 1);
}

static void send_pieces(struct cutting *c, const struct io_frame *f, unsigned pieces)
{
	uint8_t head[SEGMENT_HEADERS];
	struct virtio_net_hdr vnet;
	struct uw_span payload;

	c->stats.longs++;
	c->stats.pieces += pieces;
	c->stats.last[1] = c->stats.last[0];
	c->stats.last[0] = pieces;
	for (unsigned i = 0; i < pieces; i++) {
		unsigned n = segment_part(f, i, 1, head, &vnet, &payload);

		assert_int_not_equal(n, 0);
		assert_in_range(payload.n, 1, f->cut);
		send_octets(c, (struct uw_span){ head, n }, payload, &vnet);
	}
}

static void send_segment(struct cutting *c, struct io_frame *f, const struct segment *s)
{
	static _Thread_local uint8_t payload[65536];
	struct virtio_net_hdr vnet = { 0 };
	uint32_t n = 0, skip = s->headers;

	segment_ask_sum(f, &vnet);
	for (const struct io_frame *b = f; b; b = b->next) {
		memcpy(payload + n, b->data + skip, b->len - skip);
		n += b->len - skip;
		skip = 0;
	}
	send_octets(c, (struct uw_span){ f->data, s->headers }, (struct uw_span){ payload, n },
		    &vnet);
}

static void send_one(struct cutting *c, struct io_frame *f)
{
	struct io_link *under = c->filter.under;
	unsigned pieces = segment_pieces(f);
	struct segment s;

	if (pieces > 1)
		send_pieces(c, f, pieces);
	else if (f->marks & IO_FRAME_SUM && segment_read(f, &s))
		send_segment(c, f, &s);
	else if (under->ops->tx(under, &f, 1) == 1)
		return; /* no TCP */
	io_free_chain(f);
}

static unsigned cutting_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_one(of(l), v[i]);
	return n;
}

static unsigned cutting_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct io_link *under = of(l)->filter.under;
	unsigned got = under->ops->rx(under, v, n);

	l->stats = under->stats;
	return got;
}

static bool cutting_pending(struct io_link *l)
{
	struct io_link *under = of(l)->filter.under;

	return under->ops->pending(under);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void cutting_close(struct io_link *l)
{
	struct cutting *c = of(l);

	assert_int_equal(c->stats.out, 0);
	c->filter.under->ops->close(c->filter.under);
	free(c);
}

struct io_link *cutting_open(struct io_link *under, const struct io_link *loop, unsigned longs,
			     unsigned smalls)
{
	struct cutting *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->filter.l = *under;
	c->filter.l.ops = &c->ops;
	c->filter.l.flags |= IO_TX_CSUM | IO_TSO;
	c->filter.under = under;
	c->loop = loop;
	c->longs = longs;
	c->smalls = smalls;
	c->ops = link_filter_ops(under->ops);
	c->ops.alloc = alloc_small;
	c->ops.alloc_long = alloc_long;
	c->ops.free = frame_free;
	c->ops.ref = frame_ref;
	c->ops.refs = frame_refs;
	c->ops.rx = cutting_rx;
	c->ops.tx = cutting_tx;
	c->ops.pending = cutting_pending;
	c->ops.close = cutting_close;
	return &c->filter.l;
}

struct cutting_stats cutting_stats(const struct io_link *l)
{
	return of(l)->stats;
}
