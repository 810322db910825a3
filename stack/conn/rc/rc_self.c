/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP that names itself as its peer: programs use one to wait until what they have read is in
 * memory (NCCL), and tests to need no second process. Its stream has no TCP: each segment that it
 * sends is received by the same QP at once, under the same lock.
 */
#include <stdlib.h>

#include "conn/rc/rc.h"

#define SEGMENT_MAX 8960u

struct rc_self {
	void *read_queues; /* one block */
	bool waits;	   /* a Send waits for a receive; `rest` begins with it */
	size_t from, len;  /* the octets of `segment` that are not received yet */
	uint8_t segment[SEGMENT_MAX];
};

/* True: all of the segment is received. */
static bool receive(struct conn_qp *q, struct rc_self *self)
{
	while (self->from < self->len) {
		struct uw_span rest = { self->segment + self->from, self->len - self->from };
		size_t used;
		uw_status st = qp_rx(&q->qp, uw_rope_of(&rest), &used);

		if (st) {
			conn_qp_down(q, st);
			return false;
		}
		self->from += used;
		if (q->qp.rnr && rnr_enqueue(q)) {
			self->waits = true;
			return false;
		}
	}
	if (qp_acked(&q->qp, 0))
		qp_complete_acked(&q->qp);
	return true;
}

static void posted(struct conn_qp *q)
{
	struct rc_self *self = q->self;
	bool woken = self->waits;

	if (self->waits && !rnr_may_go_on(q))
		return;
	self->waits = false;
	while (receive(q, self) && qp_tx_prepare(&q->qp)) {
		self->from = 0;
		self->len = qp_tx(&q->qp, self->segment, SEGMENT_MAX);
		if (!self->len)
			break;
	}
	if (woken && q->srq)
		rnr_wake_next(q->srq);
}

static void nothing(struct conn_qp *q)
{
	(void)q;
}

static uint64_t for_ever(const struct conn_qp *q, uint64_t now_us)
{
	(void)q;
	(void)now_us;
	return UINT64_MAX;
}

static const struct conn_peer_ops self_ops = { posted, nothing, nothing, for_ever };

static uw_status start(struct conn_qp *q, struct rc_self *self, uint16_t reads)
{
	const struct mpa_agreed agreed = { .rev = 2, .ird = reads, .ord = reads };
	size_t irq = reads * sizeof(struct rdmap_irq_entry);
	size_t orq = reads * sizeof(struct rdmap_orq_entry);
	struct qp_stream s = { .agreed = &agreed, .initiator = true, .confirmed = true };

	self->read_queues = calloc(1, irq + orq + 1);
	if (!self->read_queues)
		return UW_E_NOMEM;
	s.queues = (struct rdmap_queues){
		.orq = self->read_queues,
		.irq = (struct rdmap_irq_entry *)((uint8_t *)self->read_queues + orq),
		.ird = reads,
		.ord = reads,
		.first_sink = stack_random(conn_qp_stack(q)),
	};
	return qp_start(&q->qp, &s);
}

uw_status rc_self_start(struct conn_qp *q, uint16_t reads)
{
	struct rc_self *self = calloc(1, sizeof(*self));
	uw_status st;

	if (!self)
		return UW_E_NOMEM;
	q->qp.cm_less = q->qp.rnr_wait = true;
	st = start(q, self, reads);
	if (!st)
		st = qp_modify(&q->qp, UW_QPS_RTR);
	if (st) {
		free(self->read_queues);
		free(self);
		return st;
	}
	q->self = self;
	q->peer_ops = &self_ops;
	return UW_OK;
}

void rc_self_forget(struct conn_qp *q)
{
	struct rc_self *self = q->self;

	if (!self)
		return;
	rnr_forget(q);
	q->self = NULL;
	q->peer_ops = NULL;
	free(self->read_queues);
	free(self);
}
