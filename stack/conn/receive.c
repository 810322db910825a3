/* SPDX-License-Identifier: BSD-3-Clause */
/* What TCP tells: octets, room to send, the end. */
#include "conn/conn.h"
#include "conn/dgram/dgram.h"
#include "conn/order.h"
#include "conn/prefetch.h"

/* As much as there are receives for. */
static uw_status stream_rx(struct conn_qp *q, struct uw_rope in, size_t *used)
{
	uw_status st;
	size_t n;

	*used = 0;
	do {
		st = qp_rx(&q->qp, in, &n);
		*used += n;
		in = uw_rope_sub(in, n, in.len - n);
	} while (!st && q->qp.rnr && !rnr_wait(q));
	return st;
}

/* While octets come in: once for all that the burst brings. */
static void transmit_soon(struct conn_qp *q)
{
	if (qp_tx_prepare(&q->qp) || q->qp.state == UW_QPS_SQD || q->qp.state == UW_QPS_ERR)
		conn_send_soon(q->conn);
}

static size_t on_rx(void *ctx, struct uw_rope in)
{
	struct conn *c = ctx;
	struct conn_qp *q = c->qp;
	size_t used;
	uw_status st;

	if (c->state == CONN_STARTING || c->state == CONN_REQUESTED)
		return conn_startup_rx(c, in);
	if (!q)
		return in.len;
	c->silence = PEER_HEARD;
	prefetch_receive(q);
	if (q->peer_ops && q->qp.state == UW_QPS_RTR)
		q->peer_ops->heard(q);
	st = stream_rx(q, in, &used);
	if (q->qp.fin_wanted)
		c->came_in += (uint32_t)used;
	if (st) {
		conn_qp_down(q, st);
		return used;
	}
	prefetch_next(q);
	transmit_soon(q);
	return used;
}

static void on_writable(void *ctx)
{
	struct conn *c = ctx;
	const struct llp_ops *llp = c->stack->llp;

	if (c->unsent)
		conn_send_soon(c);
	else if (c->state == CONN_STARTING && llp->in_flight && !llp->in_flight(c->llp))
		order_done(c);
	if (!c->qp || (c->state != CONN_STREAMING && c->state != CONN_CLOSING))
		return;
	if (qp_acked(&c->qp->qp, llp->in_flight ? llp->in_flight(c->llp) : 0))
		conn_complete_soon(c);
	transmit_soon(c->qp);
}

static void on_note(void *ctx, enum llp_note what, uint32_t arg)
{
	conn_note(ctx, what, arg);
}

static void refused(struct conn *c, uw_status why)
{
	if (why == UW_E_REFUSED && stack_now_us(c->stack) < c->retry_until_us) {
		conn_enter(c, CONN_RETRY);
		conn_arm(c);
		return;
	}
	conn_startup_failed(c, why ? why : UW_E_LLP_CLOSED);
}

/* RFC 5044 §7.2: the end of the TCP stream goes up, graceful (UW_OK, a FIN) or not. */
static void on_closed(void *ctx, uw_status why)
{
	struct conn *c = ctx;

	if (why)
		c->llp = NULL;
	else
		conn_note(c, HISTORY_PEER_FIN, 0);
	switch ((enum conn_state)c->state) {
	case CONN_CONNECTING:
		refused(c, why);
		break;
	case CONN_STARTING:
	case CONN_REQUESTED:
		conn_startup_failed(c, UW_E_LLP_CLOSED);
		break;
	case CONN_STREAMING:
	case CONN_CLOSING:
		if (!why && rnr_fin(c))
			break;
		if (c->qp)
			conn_qp_lost(c->qp, why ? UW_E_LLP_CLOSED : UW_OK);
		break;
	default:
		conn_end(c);
		break;
	}
}

const struct llp_user conn_llp_user = {
	.connected = conn_connected,
	.accepted = conn_accepted,
	.rx = on_rx,
	.writable = on_writable,
	.closed = on_closed,
	.note = on_note,
	.packet = dgram_packet,
};
