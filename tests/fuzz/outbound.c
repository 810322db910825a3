/* SPDX-License-Identifier: BSD-3-Clause */
#include "outbound.h"

#include "base/crc32c.h"
#include "wire/mpa_wire.h"

void outbound_init(struct outbound *o, bool crc, bool markers, uint16_t ord)
{
	memset(o, 0, sizeof(*o));
	o->crc = crc;
	o->markers = markers;
	o->ord = ord;
	for (unsigned q = 0; q < RDMAP_QNS; q++)
		o->msn[q] = 1; /* RFC 5041 §5.1 */
}

void outbound_answered(struct outbound *o)
{
	if (!o->asked_n)
		return;
	o->asked_n--;
	memmove(o->asked, o->asked + 1, o->asked_n * sizeof(o->asked[0]));
}

/* ---- messages ---------------------------------------------------------------------------- */

static void ask(struct outbound *o, struct asked a)
{
	CHECK(o->asked_n < o->ord && o->asked_n < ASKED_MAX);
	o->asked[o->asked_n++] = a;
}

static void check_untagged(struct outbound *o, const struct ddp_hdr *h, size_t payload)
{
	const struct rdmap_op *op = &rdmap_ops[rdmap_ctrl_opcode(h->rsvd_ulp)];

	CHECK(h->qn == op->qn && h->msn == o->msn[h->qn] && h->mo == o->mo[h->qn]);
	o->mo[h->qn] += (uint32_t)payload;
	if (!h->last)
		return;
	o->mo[h->qn] = 0;
	o->msn[h->qn]++;
}

static void check_ulpdu(struct outbound *o, const uint8_t *p, size_t n)
{
	struct ddp_hdr h = { 0 };
	const struct rdmap_op *op;
	unsigned opcode;
	size_t payload;

	CHECK(!o->ended);
	CHECK(!ddp_hdr_decode((struct uw_span){ p, n }, &h));
	CHECK(h.version == DDP_VERSION && !(p[0] & 0x3c));
	CHECK(rdmap_ctrl_version(h.rsvd_ulp) == RDMAP_VERSION);
	opcode = rdmap_ctrl_opcode(h.rsvd_ulp);
	op = &rdmap_ops[opcode];
	payload = n - ddp_hdr_size(h.tagged);
	p += n - payload;
	CHECK(op->name && op->tagged == h.tagged && payload >= op->hdr);
	CHECK(op->payload || payload == op->hdr);
	if (!h.tagged)
		check_untagged(o, &h, payload);
	if (opcode == RDMAP_READ_REQUEST)
		ask(o, (struct asked){ false, uw_be32(p), uw_be32(p + 12) });
	if (opcode == RDMAP_ATOMIC_REQUEST)
		ask(o, (struct asked){ true, uw_be32(p + 4), 8 });
	o->ended = opcode == RDMAP_TERMINATE;
}

/* ---- FPDUs ------------------------------------------------------------------------------- */

/* One FPDU at p: its octets without markers to flat; returns what it takes of the stream. */
static size_t unmark(const struct outbound *o, const uint8_t *p, size_t n, uint8_t *flat,
		     size_t *want)
{
	size_t at = 0, have = 0, origin = 0;

	*want = MPA_LENGTH_SIZE;
	while (have < *want) {
		CHECK(at < n);
		if (o->markers && (o->phase + at) % 512 == 0) {
			CHECK(at + 4 <= n && !uw_be16(p + at));
			CHECK(uw_be16(p + at + 2) == (have ? at - origin : 0));
			at += 4;
			origin = have ? origin : at;
			continue;
		}
		flat[have++] = p[at++];
		if (have == MPA_LENGTH_SIZE)
			*want = mpa_fpdu_size(uw_be16(flat));
	}
	return at;
}

static void check_crc(const struct outbound *o, const uint8_t *p, size_t n)
{
	uint32_t want = o->crc ? uw_crc32c_end(uw_crc32c_add(UW_CRC32C_START, p, n - 4)) : 0;

	CHECK(mpa_get_crc(p + n - 4) == want);
}

void outbound_check(struct outbound *o, const uint8_t *p, size_t n)
{
	static uint8_t flat[MPA_LENGTH_SIZE + 65535 + 3 + MPA_CRC_SIZE];

	while (n) {
		size_t size, used = unmark(o, p, n, flat, &size), ulpdu = uw_be16(flat);

		CHECK(used % 4 == 0);
		check_crc(o, p, used);
		for (size_t i = MPA_LENGTH_SIZE + ulpdu; i < size - MPA_CRC_SIZE; i++)
			CHECK(!flat[i]); /* RFC 5044 §4.1 */
		check_ulpdu(o, flat + MPA_LENGTH_SIZE, ulpdu);
		o->phase = (unsigned)((o->phase + used) % 512);
		o->fpdus++;
		p += used;
		n -= used;
	}
}
