/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ddp_wire.h"

unsigned ddp_hdr_encode(const struct ddp_hdr *h, uint8_t *out)
{
	uint8_t ctrl = (uint8_t)((h->last ? DDP_CTRL_LAST : 0u) | DDP_VERSION);

	if (h->tagged) {
		struct ddp_tagged_wire *w = (struct ddp_tagged_wire *)out;

		w->ctrl = ctrl | DDP_CTRL_TAGGED;
		w->rsvd_ulp = h->rsvd_ulp;
		uw_put32(w->stag, h->stag);
		uw_put64(w->to, h->to);
		return sizeof(*w);
	}
	struct ddp_untagged_wire *w = (struct ddp_untagged_wire *)out;

	w->ctrl = ctrl;
	w->rsvd_ulp = h->rsvd_ulp;
	uw_put32(w->rsvd_ulp32, h->rsvd_ulp32);
	uw_put32(w->qn, h->qn);
	uw_put32(w->msn, h->msn);
	uw_put32(w->mo, h->mo);
	return sizeof(*w);
}

static void decode_tagged(const struct ddp_tagged_wire *w, struct ddp_hdr *h)
{
	h->stag = uw_be32(w->stag);
	h->to = uw_be64(w->to);
}

static void decode_untagged(const struct ddp_untagged_wire *w, struct ddp_hdr *h)
{
	h->rsvd_ulp32 = uw_be32(w->rsvd_ulp32);
	h->qn = uw_be32(w->qn);
	h->msn = uw_be32(w->msn);
	h->mo = uw_be32(w->mo);
}

uw_status ddp_hdr_decode(struct uw_span in, struct ddp_hdr *h)
{
	if (in.n < 2)
		return UW_E_DDP_LOCAL;
	h->tagged = in.p[0] & DDP_CTRL_TAGGED;
	h->last = in.p[0] & DDP_CTRL_LAST;
	h->version = in.p[0] & DDP_CTRL_DV;
	h->rsvd_ulp = in.p[1];
	if (in.n < ddp_hdr_size(h->tagged))
		return UW_E_DDP_LOCAL;
	if (h->tagged)
		decode_tagged((const struct ddp_tagged_wire *)in.p, h);
	else
		decode_untagged((const struct ddp_untagged_wire *)in.p, h);
	return UW_OK;
}
