/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends without a receive, and how they go on.
 *
 * A QP with its own RQ is on its own post ring entry: the post queues it. QPs of an SRQ wait in a
 * list. A post takes the first of them off the list and queues it on the post ring of its own
 * stack; that QP, once it has gone on, queues the next one as long as receives are left. So no
 * thread takes a second stack's lock, and every receive finds a QP that wants it.
 */
#include "conn/conn.h"

/* A peer that has closed its half will not help: its last Sends get this long to find receives. */
#define FIN_WAITS_US 1000000u

bool rnr_is_waited(_Atomic bool *waited)
{
	/* Dekker with still_none: the post is stored, fence, does anybody wait? */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(waited, memory_order_relaxed);
}

/* Is there still no receive? If so, who posts one hears of it. */
static bool still_none(_Atomic bool *waited, const struct rq *rq)
{
	atomic_store_explicit(waited, true, memory_order_relaxed);
	/* Dekker with rnr_is_waited: say so, fence, look once more. */
	atomic_thread_fence(memory_order_seq_cst);
	return !rq_count(rq);
}

static void unset(_Atomic bool *waited)
{
	atomic_store_explicit(waited, false, memory_order_relaxed);
}

/* ---- the list of an SRQ; all under takes --------------------------------------------------- */

static void add(struct rnr_srq *srq, struct conn_qp *q)
{
	if (!srq->first)
		srq->last = &srq->first;
	q->rnr_next = NULL;
	*srq->last = q;
	srq->last = &q->rnr_next;
}

static void take_off(struct rnr_srq *srq, const struct conn_qp *q)
{
	struct conn_qp **p = &srq->first;

	while (*p && *p != q)
		p = &(*p)->rnr_next;
	if (!*p)
		return;
	*p = q->rnr_next;
	if (!*p)
		srq->last = p;
	if (!srq->first)
		unset(&srq->waited);
}

static bool wait_for_srq(struct rnr_srq *srq, struct conn_qp *q)
{
	bool none;

	spin_lock(&srq->takes);
	none = still_none(&srq->waited, &srq->rq);
	if (none)
		add(srq, q);
	else if (!srq->first)
		unset(&srq->waited);
	spin_unlock(&srq->takes);
	return none;
}

/* The first QP is on the ring of the stack that is returned; NULL: none is to be woken. */
static struct sched *wake_first(struct rnr_srq *srq)
{
	struct sched *s = NULL;
	struct conn_qp *q;

	spin_lock(&srq->takes);
	q = rq_count(&srq->rq) ? srq->first : NULL;
	if (q) {
		take_off(srq, q);
		q->rnr_woken = true;
		/* Not afterwards: another thread may destroy a QP that is on no list. rnr_forget
		 * waits for this, and takes the QP off the ring. */
		s = sched_push(&q->ring);
	}
	spin_unlock(&srq->takes);
	return s;
}

void rnr_srq_posted(struct rnr_srq *srq)
{
	struct sched *s = wake_first(srq);

	if (s)
		sched_kick(s);
}

/* Under a stack lock: whoever has the lock of the next QP's stack sees to it. */
void rnr_wake_next(struct rnr_srq *srq)
{
	struct sched *s = wake_first(srq);

	if (s)
		sched_kick_later(s);
}

/* ---- waiting ----------------------------------------------------------------------------- */

static bool wait_for_own(struct conn_qp *q)
{
	bool none = still_none(&q->rnr, &q->qp.own_rq);

	if (!none)
		unset(&q->rnr);
	return none;
}

static uint64_t wait_until(const struct conn *c)
{
	uint64_t now = stack_now_us(c->stack);

	if (persist_state(c->qp)) /* a disk answers, or the process hangs */
		return UINT64_MAX;
	if (c->qp->peer_ops)
		return c->qp->peer_ops->rnr_until(c->qp, now);
	return c->rnr_for_ever ? UINT64_MAX : now + conn_cfg(c)->rnr_ms * 1000ull;
}

bool rnr_enqueue(struct conn_qp *q)
{
	if (persist_state(q)) /* its thread puts the QP on the ring */
		return true;
	return q->srq ? wait_for_srq(q->srq, q) : wait_for_own(q);
}

bool rnr_wait(struct conn_qp *q)
{
	struct conn *c = q->conn;

	if (!rnr_enqueue(q))
		return false;
	if (c->rnr == RNR_NO) {
		c->rnr = RNR_WAITS;
		c->rnr_until_us = wait_until(c);
		conn_arm(c);
		c->stack->sched.stats.rnr_waits++;
	}
	c->stack->llp->pause(c->llp);
	return true;
}

/* The reverse of rnr_enqueue. */
static void dequeue(struct conn_qp *q)
{
	bool woken;

	if (!q->srq) {
		unset(&q->rnr);
		return;
	}
	spin_lock(&q->srq->takes);
	take_off(q->srq, q);
	woken = q->rnr_woken;
	q->rnr_woken = false;
	spin_unlock(&q->srq->takes);
	if (woken) /* the receive that it was woken for is another's */
		rnr_wake_next(q->srq);
}

void rnr_forget(struct conn_qp *q)
{
	persist_cancel(q);
	if (q->self) { /* it waits without a connection, if it does */
		dequeue(q);
		return;
	}
	if (!q->conn || q->conn->rnr == RNR_NO)
		return;
	q->conn->rnr = RNR_NO;
	q->conn->rnr_until_us = 0;
	dequeue(q);
}

bool rnr_may_go_on(struct conn_qp *q)
{
	bool woken;

	if (persist_state(q))
		return persist_state(q) != PERSIST_WAITS;
	if (!q->srq) {
		if (!rq_count(&q->qp.own_rq))
			return false;
		unset(&q->rnr);
		return true;
	}
	spin_lock(&q->srq->takes);
	woken = q->rnr_woken;
	q->rnr_woken = false;
	spin_unlock(&q->srq->takes);
	return woken;
}

/* ---- the end of waiting ------------------------------------------------------------------ */

bool rnr_fin(struct conn *c)
{
	uint64_t until = stack_now_us(c->stack) + FIN_WAITS_US;

	if (c->rnr == RNR_NO || c->state != CONN_STREAMING)
		return false;
	c->rnr = RNR_WAITS_FIN;
	if (c->rnr_until_us > until && !c->cm_less && !persist_state(c->qp))
		c->rnr_until_us = until;
	conn_arm(c);
	return true;
}
