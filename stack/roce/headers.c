/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/headers.h"

#define BTH_SE	     0x80u
#define BTH_PAD	     4u /* shift */
#define BTH_PAD_MASK 3u
#define BTH_VERSION  0x0fu
#define BTH_ACK	     0x80u

void roce_bth_encode(const struct roce_bth *h, uint8_t *out)
{
	struct roce_bth_wire *w = (struct roce_bth_wire *)out;

	w->opcode = h->opcode;
	w->bits = (uint8_t)((h->solicited ? BTH_SE : 0) | (h->pad & BTH_PAD_MASK) << BTH_PAD |
			    (h->version & BTH_VERSION));
	uw_put16(w->pkey, h->pkey);
	w->resv8a = 0;
	roce_put24(w->dest_qp, h->dest_qp);
	w->ack = h->ack ? BTH_ACK : 0;
	roce_put24(w->psn, h->psn);
}

void roce_bth_decode(const uint8_t *in, struct roce_bth *h)
{
	const struct roce_bth_wire *w = (const struct roce_bth_wire *)in;

	*h = (struct roce_bth){ .opcode = w->opcode,
				.solicited = w->bits & BTH_SE,
				.ack = w->ack & BTH_ACK,
				.pad = w->bits >> BTH_PAD & BTH_PAD_MASK,
				.version = w->bits & BTH_VERSION,
				.pkey = uw_be16(w->pkey),
				.dest_qp = roce_be24(w->dest_qp),
				.psn = roce_be24(w->psn) };
}

void roce_deth_encode(const struct roce_deth *h, uint8_t *out)
{
	struct roce_deth_wire *w = (struct roce_deth_wire *)out;

	uw_put32(w->qkey, h->qkey);
	w->reserved = 0;
	roce_put24(w->src_qp, h->src_qp);
}

void roce_deth_decode(const uint8_t *in, struct roce_deth *h)
{
	const struct roce_deth_wire *w = (const struct roce_deth_wire *)in;

	*h = (struct roce_deth){ .qkey = uw_be32(w->qkey), .src_qp = roce_be24(w->src_qp) };
}

void roce_reth_encode(const struct roce_reth *h, uint8_t *out)
{
	struct roce_reth_wire *w = (struct roce_reth_wire *)out;

	uw_put64(w->va, h->va);
	uw_put32(w->rkey, h->rkey);
	uw_put32(w->length, h->length);
}

void roce_reth_decode(const uint8_t *in, struct roce_reth *h)
{
	const struct roce_reth_wire *w = (const struct roce_reth_wire *)in;

	*h = (struct roce_reth){ .va = uw_be64(w->va),
				 .rkey = uw_be32(w->rkey),
				 .length = uw_be32(w->length) };
}
