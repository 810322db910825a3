/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: made, changed, destroyed, posted to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "engine/engine.h"
#include "engine/warm.h"
#include "io/dense.h"

/* ---- create ------------------------------------------------------------------------------ */

static int check_attr(const struct uw_qp_attr *a)
{
	if (!a->send_cq || !a->recv_cq)
		return -EINVAL;
	if (a->max_send_wr > 1u << 15 || a->max_recv_wr > 1u << 15 || a->max_send_sge > 32 ||
	    a->max_recv_sge > 32 || a->max_inline > 1024)
		return -EINVAL;
	return 0;
}

/* Grant at least what was asked: rounded up, and room that costs nothing extra. */
static void grant(struct uw_qp_attr *a)
{
	if (!a->max_send_wr)
		a->max_send_wr = 1;
	if (!a->max_send_sge)
		a->max_send_sge = 1;
	if (!a->srq && !a->max_recv_wr)
		a->max_recv_wr = 1;
	if (!a->srq && !a->max_recv_sge)
		a->max_recv_sge = 1;
	if (a->max_inline < 64)
		a->max_inline = 64;
}

static int make_queues(struct uw_qp *qp, const struct uw_qp_attr *a)
{
	struct sq *sq = &qp->qp.sq;
	struct rq *rq = &qp->qp.own_rq;
	size_t sq_bytes, rq_bytes, taken;

	sq->depth = a->max_send_wr;
	sq->mask = uw_pow2_above(a->max_send_wr) - 1;
	sq->max_sge = a->max_send_sge;
	sq->max_inline = a->max_inline;
	sq->sig_all = a->sq_sig_all;
	sq->slot_size = sq_slot_size(sq->max_sge, sq->max_inline);
	if (!a->srq) {
		rq->depth = a->max_recv_wr;
		rq->mask = uw_pow2_above(a->max_recv_wr) - 1;
		rq->max_sge = a->max_recv_sge;
		rq->slot_size = rq_slot_size(rq->max_sge);
	}
	sq_bytes = (size_t)(sq->mask + 1) * sq->slot_size;
	rq_bytes = a->srq ? 0 : (size_t)(rq->mask + 1) * rq->slot_size;
	taken = a->srq ? a->srq->rq.max_sge * sizeof(struct uw_sge) : 0;
	qp->queue_octets = sq_bytes + rq_bytes + taken;
	qp->queues = dense_alloc(qp->queue_octets);
	if (!qp->queues)
		return -ENOMEM;
	sq->slots = qp->queues;
	rq->slots = (uint8_t *)qp->queues + sq_bytes;
	if (a->srq)
		qp->qp.taken = (struct uw_sge *)(void *)rq->slots;
	return 0;
}

static void on_rung(struct ring_entry *r)
{
	struct uw_qp *qp = (struct uw_qp *)((uint8_t *)r - offsetof(struct uw_qp, ring));

	engine_feed(qp);
	engine_pump(qp);
}

/* Inside a stack's lock. */
static void guard_takes(struct rq *rq, bool on)
{
	struct uw_srq *srq = (struct uw_srq *)((uint8_t *)rq - offsetof(struct uw_srq, rq));

	if (on)
		spin_lock(&srq->takes);
	else
		spin_unlock(&srq->takes);
}

static void link_up(struct uw_qp *qp, struct uw_pd *pd, const struct uw_qp_attr *a)
{
	struct qp_setup s = { .num = qp->qp.num,
			      .pd = pd->id,
			      .scq = &a->send_cq->cq,
			      .rcq = &a->recv_cq->cq,
			      .srq = a->srq ? &a->srq->rq : NULL,
			      .rnr_wait = pd->e->cfg.rnr_ms != 0,
			      .mem = &pd->e->mem,
			      .stats = &pd->e->stats,
			      .guard = engine_is_one_of_several(pd->e) ? guard_takes : NULL };

	qp->pd = pd;
	qp->scq = a->send_cq;
	qp->rcq = a->recv_cq;
	qp->srq = a->srq;
	qp_init(&qp->qp, &s);
	qp->qp.event = a->event;
	qp->qp.event_ctx = a->ctx;
	qp->ring.fn = on_rung;
	qp->path.rnr_retry = RC_RNR_FOR_EVER;
	atomic_fetch_add(&pd->users, 1);
	atomic_fetch_add(&a->send_cq->users, 1);
	atomic_fetch_add(&a->recv_cq->users, 1);
	if (a->srq)
		atomic_fetch_add(&a->srq->users, 1);
}

int uw_qp_create(struct uw_pd *pd, struct uw_qp_attr *a, struct uw_qp **out)
{
	struct uw_engine *e = pd->e;
	struct uw_qp *qp;
	int err = check_attr(a);

	if (err)
		return err;
	grant(a);
	qp = dense_alloc(sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	memset(qp, 0, sizeof(*qp));
	atomic_init(&qp->ring.home, e);
	err = make_queues(qp, a);
	if (!err) {
		engine_lock_all(e);
		err = idmap_add(&e->qps, qp, &qp->qp.num);
		engine_unlock_all(e);
	}
	if (err) {
		dense_free(qp->queues, qp->queue_octets);
		dense_free(qp, sizeof(*qp));
		return err;
	}
	link_up(qp, pd, a);
	*out = qp;
	return 0;
}

/* ---- destroy ----------------------------------------------------------------------------- */

static void forget_in_cq(struct uw_cq *cq, uint32_t num)
{
	spin_lock(&cq->lock);
	cq_forget(&cq->cq, num);
	spin_unlock(&cq->lock);
}

static void forget_completions(struct uw_qp *qp)
{
	forget_in_cq(qp->scq, qp->qp.num);
	if (qp->rcq != qp->scq)
		forget_in_cq(qp->rcq, qp->qp.num);
}

/* An endpoint may be about to connect with this QP. */
static void forget_in_eps(struct uw_engine *e, const struct uw_qp *qp)
{
	if (!qp->claims)
		return;
	for (struct uw_ep *ep = e->eps; ep; ep = ep->next) {
		if (ep->qp == qp)
			ep->qp = NULL;
	}
}

int uw_qp_destroy(struct uw_qp *qp)
{
	struct uw_engine *e = qp->pd->e;

	engine_lock_all(e);
	engine_drain_rings(e);
	engine_qp_down(qp, UW_E_FLUSHED);
	engine_unbind_all(e, qp->qp.num);
	idmap_remove(&e->qps, qp->qp.num);
	engine_rc_forget(qp);
	forget_in_eps(engine_of(qp), qp);
	forget_completions(qp);
	llp_flush_links(engine_of(qp)->llp);
	engine_unlock_all(e);
	atomic_fetch_sub(&qp->pd->users, 1);
	atomic_fetch_sub(&qp->scq->users, 1);
	atomic_fetch_sub(&qp->rcq->users, 1);
	if (qp->srq)
		atomic_fetch_sub(&qp->srq->users, 1);
	dense_free(qp->queues, qp->queue_octets);
	free(qp->stream);
	free(qp->scratch);
	dense_free(qp, sizeof(*qp));
	return 0;
}

/* ---- change ------------------------------------------------------------------------------ */

uint32_t uw_qp_num(const struct uw_qp *qp)
{
	return qp->qp.num;
}

enum uw_qp_state uw_qp_state(const struct uw_qp *qp)
{
	return qp->qp.state;
}

int uw_qp_modify(struct uw_qp *qp, enum uw_qp_state to)
{
	uw_status st = UW_OK;

	engine_lock_all(qp->pd->e);
	if ((to == UW_QPS_ERR || to == UW_QPS_RESET) && qp->ep)
		engine_qp_down(qp, UW_E_FLUSHED);
	if (to == UW_QPS_ERR || to == UW_QPS_RESET)
		engine_rc_forget(qp);
	st = qp_modify(&qp->qp, to);
	if (!st && to == UW_QPS_RESET) {
		forget_completions(qp);
		sq_free_unsignaled(&qp->qp.sq);
	}
	if (!st && to == UW_QPS_RTS)
		engine_rc_ready(qp);
	if (!st && (to == UW_QPS_SQD || to == UW_QPS_RTS))
		engine_pump(qp);
	llp_flush_links(engine_of(qp)->llp);
	engine_unlock_all(qp->pd->e);
	return engine_errno(st);
}

int uw_qp_set_path(struct uw_qp *qp, const struct uw_path *path)
{
	engine_lock_all(qp->pd->e);
	qp->path = *path;
	engine_unlock_all(qp->pd->e);
	return 0;
}

int uw_qp_set_access(struct uw_qp *qp, unsigned access)
{
	engine_lock_all(qp->pd->e);
	qp->qp.rd.remote_rights = access & (MEM_REMOTE_WRITE | MEM_REMOTE_READ | MEM_REMOTE_ATOMIC);
	engine_unlock_all(qp->pd->e);
	return 0;
}

/* ---- post -------------------------------------------------------------------------------- */

/* A length that does not fit is a bad argument here, as verbs has it. */
static int post_errno(uw_status st)
{
	return st == UW_E_LEN ? -EINVAL : engine_errno(st);
}

int uw_post_send(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n, unsigned *done)
{
	uw_status st = UW_OK;

	*done = 0;
	engine_warm_post(qp);
	if (qp->qp.state < UW_QPS_RTS)
		return -EINVAL;
	spin_lock(&qp->sq_lock);
	while (*done < n && !(st = sq_post(&qp->qp.sq, &wr[*done])))
		++*done;
	spin_unlock(&qp->sq_lock);
	if (*done)
		engine_ring(&qp->ring);
	return post_errno(st);
}

int uw_post_send_all(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n)
{
	uw_status st;

	engine_warm_post(qp);
	if (qp->qp.state < UW_QPS_RTS)
		return -EINVAL;
	spin_lock(&qp->sq_lock);
	st = sq_post_all(&qp->qp.sq, wr, n);
	spin_unlock(&qp->sq_lock);
	if (!st)
		engine_ring(&qp->ring);
	return post_errno(st);
}

int uw_post_recv(struct uw_qp *qp, const struct uw_recv_wr *wr, unsigned n, unsigned *done)
{
	enum uw_qp_state state;
	uw_status st = UW_OK;

	*done = 0;
	if (qp->srq)
		return -EINVAL;
	engine_warm_post(qp);
	state = qp->qp.state;
	spin_lock(&qp->rq_lock);
	while (*done < n && !(st = rq_post(&qp->qp.own_rq, &wr[*done])))
		++*done;
	spin_unlock(&qp->rq_lock);
	/* to be flushed, or waited for */
	if (*done && (state == UW_QPS_ERR || engine_hungry(&qp->hungry)))
		engine_ring(&qp->ring);
	return engine_errno(st);
}
