/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm/cm.h"

#include <string.h>

static enum cm_verdict fail(struct cm_conn *cm, uw_status why)
{
	cm->state = CM_ENDED;
	cm->why = why;
	cm->deadline_us = 0;
	return CM_FAILED;
}

static uw_status pd_fits(const struct cm_param *p, bool enhanced)
{
	return p->pd.n > MPA_PD_MAX - (enhanced ? sizeof(struct mpa_enhanced_wire) : 0) ? UW_E_LEN
											: UW_OK;
}

uw_status cm_open(struct cm_conn *cm, const struct mpa_policy *policy, const struct cm_param *p,
		  uint8_t *out, size_t *n)
{
	uw_status st;

	memset(cm, 0, sizeof(*cm));
	cm->policy = policy;
	mpa_request_make(policy, p->ird, p->ord, &cm->ours);
	st = pd_fits(p, cm->ours.enhanced);
	if (st)
		return st;
	cm->ours.pd = p->pd;
	*n = mpa_start_encode(&cm->ours, out);
	cm->ours.pd = (struct uw_span){ NULL, 0 };
	cm->state = CM_WAIT_REPLY;
	return UW_OK;
}

void cm_wait(struct cm_conn *cm, const struct mpa_policy *policy)
{
	memset(cm, 0, sizeof(*cm));
	cm->policy = policy;
	cm->state = CM_WAIT_REQUEST;
}

void cm_set_deadline(struct cm_conn *cm, uint64_t at_us)
{
	cm->deadline_us = at_us;
}

static enum cm_verdict got_reply(struct cm_conn *cm)
{
	uw_status st = mpa_reply_check(cm->policy, &cm->ours, &cm->peer, &cm->agreed);

	cm->deadline_us = 0;
	switch (st) {
	case UW_OK:
		cm->state = CM_STREAM;
		return CM_ACCEPTED;
	case UW_E_REJECTED:
		cm->state = CM_ENDED;
		cm->why = st;
		return CM_REJECTED;
	case UW_E_MPA_IRD: /* RFC 6581 §9.1, §9.2: say why, in the stream */
	case UW_E_MPA_RTR:
		cm->state = CM_STREAM;
		cm->why = st;
		return CM_TERMINATE;
	default:
		return fail(cm, st);
	}
}

static enum cm_verdict got_request(struct cm_conn *cm, size_t beyond)
{
	uw_status st = mpa_request_check(cm->policy, &cm->peer);

	if (st)
		return fail(cm, st);
	/* RFC 5044 §7.1.2: before the Reply nothing may follow the Request. */
	if (beyond)
		return fail(cm, UW_E_MPA_FRAME);
	cm->state = CM_WAIT_ANSWER;
	cm->deadline_us = 0; /* the program has all the time it wants */
	return CM_REQUESTED;
}

/* Append to the frame buffer what may still belong to the frame. */
static size_t collect(struct cm_conn *cm, struct uw_rope in)
{
	size_t n = sizeof(cm->frame) - cm->have;

	if (n > in.len)
		n = in.len;
	uw_rope_copy(in, cm->frame + cm->have, n);
	return n;
}

enum cm_verdict cm_rx(struct cm_conn *cm, struct uw_rope in, size_t *used)
{
	size_t taken, frame;
	uw_status st;

	*used = 0;
	if (cm->state == CM_WAIT_ANSWER) {
		*used = in.len;
		return in.len ? fail(cm, UW_E_MPA_FRAME) : CM_NOTHING;
	}
	if (cm->state != CM_WAIT_REPLY && cm->state != CM_WAIT_REQUEST)
		return CM_NOTHING;
	taken = collect(cm, in);
	st = mpa_start_decode((struct uw_span){ cm->frame, cm->have + taken }, &cm->peer, &frame);
	if (st == UW_MORE) {
		cm->have += taken;
		*used = taken;
		return CM_NOTHING;
	}
	if (st)
		return fail(cm, st);
	*used = frame - cm->have;
	cm->have = frame;
	if (cm->state == CM_WAIT_REPLY)
		return got_reply(cm);
	return got_request(cm, in.len - *used);
}

uw_status cm_accept(struct cm_conn *cm, const struct cm_param *p, uint8_t *out, size_t *n)
{
	struct mpa_start rep;
	uw_status st = pd_fits(p, cm->peer.enhanced);

	if (cm->state != CM_WAIT_ANSWER)
		return UW_E_STATE;
	if (st)
		return st;
	mpa_reply_make(cm->policy, &cm->peer, p->ird, p->ord, &rep, &cm->agreed);
	rep.pd = p->pd;
	*n = mpa_start_encode(&rep, out);
	cm->state = CM_STREAM;
	return UW_OK;
}

uw_status cm_reject(struct cm_conn *cm, const struct cm_param *p, uint8_t *out, size_t *n)
{
	struct mpa_start rep;
	uw_status st = pd_fits(p, cm->peer.enhanced);

	if (cm->state != CM_WAIT_ANSWER)
		return UW_E_STATE;
	if (st)
		return st;
	mpa_reject_make(cm->policy, &cm->peer, &rep);
	rep.pd = p->pd;
	*n = mpa_start_encode(&rep, out);
	cm->state = CM_ENDED;
	return UW_OK;
}

enum cm_verdict cm_timer(struct cm_conn *cm, uint64_t now_us)
{
	if (!cm->deadline_us || now_us < cm->deadline_us)
		return CM_NOTHING;
	return fail(cm, UW_E_MPA_TIMEOUT);
}
