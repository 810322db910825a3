/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Terminate payloads: any octets, in the RFC's bit order and in Linux siw's; what is understood
 * once is understood the same way when this side writes it; every status that is told to a peer
 * is read back as itself. RFC 5040 §4.8.
 */
#include "fuzz.h"
#include "wire/rdmap_wire.h"

static void same(const struct rdmap_term *a, const struct rdmap_term *b)
{
	CHECK(a->layer == b->layer && a->etype == b->etype && a->code == b->code);
	CHECK(a->has_ddp == b->has_ddp && a->has_rdmap == b->has_rdmap);
	if (a->has_ddp)
		CHECK(a->ddp_length == b->ddp_length && a->ddp_hdr_len == b->ddp_hdr_len &&
		      !memcmp(a->ddp_hdr, b->ddp_hdr, a->ddp_hdr_len));
	if (a->has_rdmap)
		CHECK(!memcmp(a->rdmap_hdr, b->rdmap_hdr, sizeof(a->rdmap_hdr)));
}

static void write_and_read(const struct rdmap_term *t)
{
	uint8_t out[RDMAP_TERM_MAX];
	struct rdmap_term back;
	unsigned n = rdmap_term_encode(t, out);
	uint8_t *exact;

	CHECK(n >= 4 && n <= RDMAP_TERM_MAX);
	exact = fuzz_copy(out, n);
	CHECK(!rdmap_term_decode((struct uw_span){ exact, n }, &back));
	CHECK(!back.siw_order);
	same(t, &back);
	free(exact);
}

static void read_anything(struct uw_span s)
{
	uint8_t *in = fuzz_copy(s.p, s.n);
	struct rdmap_term t;
	uw_status st = rdmap_term_decode((struct uw_span){ in, s.n }, &t);

	CHECK(st == UW_OK || st == UW_E_RDMAP_UNSPEC);
	CHECK(t.ddp_hdr_len <= DDP_HDR_MAX);
	(void)uw_status_from_term(t.layer, t.etype, t.code);
	/* Nibbles that the RFC has no meaning for may look like siw's when written. */
	if (!st && uw_status_from_term(t.layer, t.etype, t.code) != UW_E_RDMAP_UNSPEC)
		write_and_read(&t);
	free(in);
}

static void tell(uw_status st, struct feed *f)
{
	struct uw_term_code c = uw_status_term(st);
	struct rdmap_term t = { .layer = c.layer, .etype = c.etype, .code = c.code };
	uint8_t with = feed_u8(f);

	if (!c.sends)
		return;
	if (with & 1) {
		t.has_ddp = true;
		t.ddp_length = feed_u16(f);
		feed_fill(f, t.ddp_hdr, sizeof(t.ddp_hdr));
		t.ddp_hdr_len = (uint8_t)ddp_hdr_size(t.ddp_hdr[0] & DDP_CTRL_TAGGED);
	}
	if ((with & 3) == 3) {
		t.has_rdmap = true;
		feed_fill(f, t.rdmap_hdr, sizeof(t.rdmap_hdr));
	}
	write_and_read(&t);
	CHECK(uw_status_from_term(t.layer, t.etype, t.code) == st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };

	read_anything((struct uw_span){ data, size });
	tell((uw_status)feed_below(&f, UW_STATUS_COUNT), &f);
	return 0;
}
