/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpa/handshake.h"

#include <string.h>

static uint16_t min16(unsigned a, unsigned b)
{
	return (uint16_t)(a < b ? a : b);
}

void mpa_request_make(const struct mpa_policy *p, uint16_t ird, uint16_t ord, struct mpa_start *req)
{
	memset(req, 0, sizeof(*req));
	req->rev = p->rev;
	req->crc = p->crc;
	req->markers = p->rx_markers;
	/* RFC 6581 §6: revision 2 is offered for what only it has, IRD/ORD among it. */
	req->enhanced = p->rev >= 2;
	req->ird = min16(ird, p->ird_max);
	req->ord = min16(ord, p->ord_max);
	if (req->enhanced && p->p2p) {
		req->p2p = true;
		/* RFC 6581 §9.2: every kind that we can do. */
		req->rtr = p->rtr;
	}
}

uw_status mpa_request_check(const struct mpa_policy *p, const struct mpa_start *req)
{
	if (req->reply)
		return UW_E_MPA_FRAME;
	if (req->rev > p->rev_max)
		return UW_E_MPA_REVISION;
	return UW_OK;
}

/* RFC 6581 §9.2: the Reply names the kinds that both can do; peers want to see exactly one, and a
 * zero-length Write costs neither side anything. */
static enum mpa_rtr pick_rtr(unsigned ours, unsigned theirs)
{
	static const enum mpa_rtr order[] = { MPA_RTR_WRITE, MPA_RTR_READ, MPA_RTR_SEND };

	for (unsigned i = 0; i < 3; i++) {
		if (ours & theirs & order[i])
			return order[i];
	}
	return MPA_RTR_NONE;
}

/* RFC 6581 §9.1 for the responder: its ORD fits the initiator's IRD, its IRD need not exceed the
 * initiator's ORD; 0x3fff leaves our own value alone and is answered with 0x3fff. */
static void settle_responder(const struct mpa_start *req, struct mpa_start *rep,
			     struct mpa_agreed *out)
{
	if (req->ird == MPA_RD_NO_NEGO)
		rep->ord = MPA_RD_NO_NEGO;
	else
		out->ord = rep->ord = min16(out->ord, req->ird);
	if (rep->p2p && rep->rtr == MPA_RTR_READ && !out->ird)
		out->ird = rep->ird = 1; /* RFC 6581 §9.2: a Read RTR needs one */
	if (req->ord == MPA_RD_NO_NEGO)
		rep->ird = MPA_RD_NO_NEGO;
}

void mpa_reply_make(const struct mpa_policy *p, const struct mpa_start *req, uint16_t ird,
		    uint16_t ord, struct mpa_start *rep, struct mpa_agreed *out)
{
	memset(rep, 0, sizeof(*rep));
	memset(out, 0, sizeof(*out));
	rep->reply = true;
	rep->rev = req->rev;
	/* RFC 5044 §7.1.1: CRC is used when either side asks. */
	rep->crc = out->crc = p->crc || req->crc;
	rep->markers = out->rx_markers = p->rx_markers;
	out->tx_markers = req->markers;
	out->rev = req->rev;
	out->ird = rep->ird = min16(ird, p->ird_max);
	out->ord = rep->ord = min16(ord, p->ord_max);
	rep->enhanced = req->enhanced; /* RFC 6581 §6: S answers S */
	if (!req->enhanced)
		return;
	if (req->p2p) { /* RFC 6581 §9.2: A answers A */
		rep->p2p = out->p2p = true;
		out->rtr = pick_rtr(p->rtr, req->rtr);
		/* None in common: name our own, the initiator then ends with 2/0/07. */
		rep->rtr = out->rtr ? (unsigned)out->rtr : p->rtr;
	}
	settle_responder(req, rep, out);
}

void mpa_reject_make(const struct mpa_policy *p, const struct mpa_start *req, struct mpa_start *rep)
{
	struct mpa_agreed unused;

	/* RFC 6581 §9.1: the word is there on reject too, so the peer learns our limits. */
	mpa_reply_make(p, req, p->ird_max, p->ord_max, rep, &unused);
	rep->reject = true;
}

/* RFC 6581 §9.1 for the initiator: our IRD must hold the responder's ORD; our ORD must fit the
 * responder's IRD. */
static uw_status settle_initiator(const struct mpa_policy *p, const struct mpa_start *rep,
				  struct mpa_agreed *out)
{
	if (rep->ird != MPA_RD_NO_NEGO && out->ord > rep->ird)
		out->ord = rep->ird;
	if (rep->ord != MPA_RD_NO_NEGO && rep->ord > out->ird) {
		if (rep->ord > p->ird_max)
			return UW_E_MPA_IRD;
		out->ird = rep->ord;
	}
	return UW_OK;
}

static uw_status settle_rtr(const struct mpa_start *req, const struct mpa_start *rep,
			    struct mpa_agreed *out)
{
	if (!req->p2p)
		return UW_OK;
	/* RFC 6581 §9.2: A=1 must be answered with A=1. */
	if (!rep->p2p)
		return UW_E_MPA_FRAME;
	out->p2p = true;
	out->rtr = pick_rtr(req->rtr, rep->rtr);
	if (!out->rtr)
		return UW_E_MPA_RTR;
	if (out->rtr != MPA_RTR_READ || out->ord)
		return UW_OK;
	if (!rep->ird) /* RFC 6581 §9.1: not even the one Read that is to open the stream */
		return UW_E_MPA_IRD;
	out->ord = 1;
	return UW_OK;
}

uw_status mpa_reply_check(const struct mpa_policy *p, const struct mpa_start *req,
			  const struct mpa_start *rep, struct mpa_agreed *out)
{
	uw_status st;

	memset(out, 0, sizeof(*out));
	if (!rep->reply)
		return UW_E_MPA_INITIATOR;
	if (rep->reject)
		return UW_E_REJECTED;
	if (rep->rev > req->rev)
		return UW_E_MPA_REVISION;
	if (rep->enhanced && !req->enhanced)
		return UW_E_MPA_FRAME;
	out->rev = rep->rev;
	out->crc = req->crc || rep->crc;
	out->tx_markers = rep->markers;
	out->rx_markers = req->markers;
	out->ird = req->ird;
	out->ord = req->ord;
	if (!rep->enhanced)
		return UW_OK;
	st = settle_initiator(p, rep, out);
	if (st)
		return st;
	return settle_rtr(req, rep, out);
}
