/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: made, changed, destroyed, posted to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cm/rc.h"
#include "conn/dgram/dgram.h"
#include "conn/endpoint.h"
#include "conn/prefetch.h"
#include "conn/rc/rc.h"
#include "base/slab.h"
#include "verbs/verbs.h"

/* They fit where 64 octets of inline data do. Cards grant more than was asked for, too, and some
 * programs post it. */
#define SEND_SGES_LEAST 4u

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
	if (a->max_send_sge < SEND_SGES_LEAST)
		a->max_send_sge = SEND_SGES_LEAST;
	if (!a->srq && !a->max_recv_wr)
		a->max_recv_wr = 1;
	if (!a->srq && !a->max_recv_sge)
		a->max_recv_sge = 1;
	if (a->max_inline < 64)
		a->max_inline = 64;
}

static int make_queues(struct uw_qp *qp, const struct uw_qp_attr *a)
{
	struct sq *sq = &qp->c.qp.sq;
	struct rq *rq = &qp->c.qp.own_rq;
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
	taken = a->srq ? a->srq->r.rq.max_sge * sizeof(struct uw_sge) : 0;
	qp->queue_octets = sq_bytes + rq_bytes + taken;
	qp->queues = slab_alloc(qp->queue_octets);
	if (!qp->queues)
		return -ENOMEM;
	sq->slots = qp->queues;
	rq->slots = (uint8_t *)qp->queues + sq_bytes;
	if (a->srq)
		qp->c.qp.taken = (struct uw_sge *)(void *)rq->slots;
	return 0;
}

/* Inside a stack's lock. */
static void guard_takes(struct rq *rq, bool on)
{
	struct uw_srq *srq = (struct uw_srq *)((uint8_t *)rq - offsetof(struct uw_srq, r.rq));

	if (on)
		spin_lock(&srq->r.takes);
	else
		spin_unlock(&srq->r.takes);
}

static void set_up(struct uw_qp *qp, struct uw_pd *pd, const struct uw_qp_attr *a)
{
	struct verbs *v = pd->v;
	struct stack *s = v->conn->first;
	struct qp_setup setup = { .num = qp->c.qp.num,
				  .pd = pd->id,
				  .scq = &a->send_cq->cq,
				  .rcq = &a->recv_cq->cq,
				  .srq = a->srq ? &a->srq->r.rq : NULL,
				  .rnr_wait = v->conn->cfg->rnr_ms != 0,
				  .mem = &v->mem,
				  .stats = &s->sched.stats,
				  .guard = verbs_has_several_stacks(v) ? guard_takes : NULL,
				  .persist = persist_for_qp };

	qp->pd = pd;
	qp->scq = a->send_cq;
	qp->rcq = a->recv_cq;
	qp->srq = a->srq;
	qp->c.srq = a->srq ? &a->srq->r : NULL;
	qp_init(&qp->c.qp, &setup);
	qp->c.qp.event = a->event;
	qp->c.qp.event_ctx = a->ctx;
	qp->c.ring.fn = conn_qp_posted;
	atomic_init(&qp->c.ring.home, &s->sched);
	qp->c.path.rnr_retry = RC_RNR_FOR_EVER;
	atomic_fetch_add(&pd->users, 1);
	atomic_fetch_add(&a->send_cq->users, 1);
	atomic_fetch_add(&a->recv_cq->users, 1);
	if (a->srq)
		atomic_fetch_add(&a->srq->users, 1);
}

/* Under all locks: whoever finds the QP by its number finds all of it. */
static int publish(struct uw_qp *qp, struct uw_pd *pd, const struct uw_qp_attr *a)
{
	struct verbs *v = pd->v;
	uint32_t random = stack_random(v->conn->first);
	int err = idmap_add(&v->qps, qp, random, &qp->c.qp.num);

	if (err)
		return err;
	set_up(qp, pd, a);
	atomic_fetch_add_explicit(&v->conn->n_qps, 1, memory_order_relaxed);
	return 0;
}

static int make_type(struct uw_qp *qp, const struct verbs *v, const struct uw_qp_attr *a)
{
	if (a->type == UW_QPT_RC)
		return 0;
	return verbs_errno(dgram_make(&qp->c, v->conn, a->type == UW_QPT_UD ? ROCE_UD : ROCE_UC));
}

static void free_qp(struct uw_qp *qp)
{
	slab_free(qp->queues, qp->queue_octets);
	free(qp->c.stream);
	free(qp->c.scratch);
	free(qp->c.dgram);
	slab_free(qp, sizeof(*qp));
}

int uw_qp_create(struct uw_pd *pd, struct uw_qp_attr *a, struct uw_qp **out)
{
	struct uw_qp *qp;
	int err = check_attr(a);

	if (!err && a->type != UW_QPT_RC)
		err = verbs_errno(dgram_possible(pd->v->conn));
	if (err)
		return err;
	grant(a);
	qp = slab_alloc(sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	memset(qp, 0, sizeof(*qp));
	err = make_queues(qp, a);
	if (!err)
		err = make_type(qp, pd->v, a);
	if (!err) {
		verbs_lock(pd->v);
		err = publish(qp, pd, a);
		verbs_unlock(pd->v);
	}
	if (err) {
		free_qp(qp);
		return err;
	}
	*out = qp;
	return 0;
}

static void leave_groups(struct uw_qp *qp);

/* ---- destroy ----------------------------------------------------------------------------- */

static void forget_completions(struct uw_qp *qp)
{
	verbs_forget_in_cq(qp->scq, qp->c.qp.num);
	if (qp->rcq != qp->scq)
		verbs_forget_in_cq(qp->rcq, qp->c.qp.num);
}

/* Under all locks. Nobody is told that it is in error, and nothing is flushed: as with hardware a
 * thread that polls sees no more of it. */
static void unpublish(struct uw_qp *qp)
{
	struct verbs *v = qp->pd->v;

	qp->c.qp.event = NULL;
	sched_drain_all(&v->conn->first->sched);
	qp_forget_posted(&qp->c.qp);
	conn_qp_down(&qp->c, UW_E_FLUSHED);
	verbs_mws_unbind(v, qp->c.qp.num);
	idmap_remove(&v->qps, qp->c.qp.num);
	rc_forget(&qp->c);
	dgram_reset(&qp->c);
	conn_qp_forget(&qp->c);
	/* Not before: other QPs of its CQs may have their turn in it. So may this one. */
	sched_forget(&qp->c.ring);
	forget_completions(qp);
	atomic_fetch_sub_explicit(&v->conn->n_qps, 1, memory_order_relaxed);
}

int uw_qp_destroy(struct uw_qp *qp)
{
	struct verbs *v = qp->pd->v;

	leave_groups(qp);
	verbs_lock(v);
	unpublish(qp);
	verbs_unlock(v);
	atomic_fetch_sub(&qp->pd->users, 1);
	atomic_fetch_sub(&qp->scq->users, 1);
	atomic_fetch_sub(&qp->rcq->users, 1);
	if (qp->srq)
		atomic_fetch_sub(&qp->srq->users, 1);
	free_qp(qp);
	return 0;
}

/* ---- change ------------------------------------------------------------------------------ */

uint32_t uw_qp_num(const struct uw_qp *qp)
{
	return qp->c.qp.num;
}

enum uw_qp_state uw_qp_state(const struct uw_qp *qp)
{
	return qp->c.qp.state;
}

struct uw_depths uw_qp_depths(const struct uw_qp *qp)
{
	const struct rdmap_stream *s = &qp->c.qp.rd;

	return (struct uw_depths){ (uint16_t)s->irq.cap, (uint16_t)s->orq.cap };
}

/* What was posted before goes first: it may be on a post ring still (doc/adr/0071). */
static void end_stream(struct uw_qp *qp, enum uw_qp_state to)
{
	struct conn_qp *q = &qp->c;

	sched_drain_all(&qp->pd->v->conn->first->sched);
	if (to == UW_QPS_RESET)
		qp_forget_posted(&q->qp);
	if (q->conn)
		conn_qp_down(q, UW_E_FLUSHED);
	conn_qp_forget_peer(q);
	rc_forget(q);
}

static uw_status modify_locked(struct uw_qp *qp, enum uw_qp_state to)
{
	struct conn_qp *q = &qp->c;
	uw_status st;

	if (to == UW_QPS_ERR || to == UW_QPS_RESET)
		end_stream(qp, to);
	st = to == UW_QPS_RTR ? dgram_ready(q) : UW_OK;
	if (!st)
		st = qp_modify(&q->qp, to);
	if (st)
		return st;
	if (to == UW_QPS_RESET) {
		dgram_reset(q);
		forget_completions(qp);
		sq_free_unsignaled(&q->qp.sq);
	}
	if (to == UW_QPS_RTS)
		rc_ready(q);
	if (to == UW_QPS_SQD || to == UW_QPS_RTS)
		conn_qp_transmit(q);
	return UW_OK;
}

int uw_qp_modify(struct uw_qp *qp, enum uw_qp_state to)
{
	uw_status st;

	verbs_lock(qp->pd->v);
	st = modify_locked(qp, to);
	verbs_unlock(qp->pd->v);
	return verbs_errno(st);
}

int uw_qp_set_path(struct uw_qp *qp, const struct uw_path *path)
{
	verbs_lock(qp->pd->v);
	qp->c.path = *path;
	verbs_unlock(qp->pd->v);
	return 0;
}

int uw_qp_set_access(struct uw_qp *qp, unsigned access)
{
	verbs_lock(qp->pd->v);
	qp->c.qp.rd.remote_rights =
		access & (UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ | UW_ACCESS_REMOTE_ATOMIC |
			  UW_ACCESS_FLUSH_GLOBAL | UW_ACCESS_FLUSH_PERSISTENT);
	verbs_unlock(qp->pd->v);
	return 0;
}

int uw_qp_set_datagrams(struct uw_qp *qp, const struct uw_datagrams *d)
{
	struct roce_qp *r = qp->c.dgram ? &qp->c.dgram->r : NULL;

	if (!r)
		return -EINVAL;
	verbs_lock(qp->pd->v);
	r->psn = d->sq_psn & ROCE_PSN_MASK;
	r->qkey = d->qkey;
	verbs_unlock(qp->pd->v);
	return 0;
}

/* ---- multicast --------------------------------------------------------------------------- */

static uw_status change_group(struct uw_qp *qp, const struct uw_ip *group, bool in)
{
	struct verbs *v = qp->pd->v;
	bool tell = false, undo;
	uw_status st;

	verbs_lock(v);
	st = in ? dgram_join(&qp->c, group, &tell) : dgram_leave(&qp->c, group, &tell);
	verbs_unlock(v);
	if (st || !tell)
		return st;
	st = dgram_tell_links(v->conn->first, group, in);
	if (!st || !in)
		return st;
	verbs_lock(v);
	if (dgram_leave(&qp->c, group, &undo))
		st = UW_E_STATE; /* another thread was faster */
	verbs_unlock(v);
	return st;
}

int uw_qp_group(struct uw_qp *qp, const struct sockaddr *group, bool in)
{
	struct uw_ip addr;
	uint16_t port;
	uw_status st = ep_read_addr(group, &addr, &port);

	return verbs_errno(st ? st : change_group(qp, &addr, in));
}

/* Whatever the links say, no entry may name a QP that is gone. */
static void leave_groups(struct uw_qp *qp)
{
	struct uw_ip group;
	bool is_member = qp->c.dgram;

	while (is_member) {
		verbs_lock(qp->pd->v);
		is_member = dgram_some_group(&qp->c, &group);
		verbs_unlock(qp->pd->v);
		if (is_member)
			change_group(qp, &group, false);
	}
}

/* ---- post -------------------------------------------------------------------------------- */

/* A length that does not fit is a bad argument here, as verbs has it. */
static int post_errno(uw_status st)
{
	return st == UW_E_LEN ? -EINVAL : verbs_errno(st);
}

static uint32_t octets_of(const struct uw_send_wr *wr, unsigned n)
{
	uint32_t octets = 0;

	for (unsigned i = 0; i < n; i++) {
		for (uint32_t k = 0; k < wr[i].num_sge; k++)
			octets += wr[i].sg_list[k].length;
	}
	return octets;
}

static void posted(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n)
{
	if (sched_wants_octets(&conn_qp_stack(&qp->c)->sched))
		sched_post_octets(&qp->c.ring, octets_of(wr, n));
	else
		sched_post(&qp->c.ring);
}

int uw_post_send(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n, unsigned *done)
{
	uw_status st = UW_OK;

	*done = 0;
	prefetch_post(&qp->c);
	if (qp->c.qp.state < UW_QPS_RTS)
		return -EINVAL;
	spin_lock(&qp->c.sq_lock);
	while (*done < n && !(st = sq_post(&qp->c.qp.sq, &wr[*done])))
		++*done;
	spin_unlock(&qp->c.sq_lock);
	if (*done)
		posted(qp, wr, *done);
	return post_errno(st);
}

int uw_post_send_all(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n)
{
	uw_status st;

	prefetch_post(&qp->c);
	if (qp->c.qp.state < UW_QPS_RTS)
		return -EINVAL;
	spin_lock(&qp->c.sq_lock);
	st = sq_post_all(&qp->c.qp.sq, wr, n);
	spin_unlock(&qp->c.sq_lock);
	if (!st)
		posted(qp, wr, n);
	return post_errno(st);
}

int uw_post_recv(struct uw_qp *qp, const struct uw_recv_wr *wr, unsigned n, unsigned *done)
{
	uw_status st = UW_OK;

	*done = 0;
	if (qp->c.srq)
		return -EINVAL;
	prefetch_post(&qp->c);
	spin_lock(&qp->c.rq_lock);
	while (*done < n && !(st = rq_post(&qp->c.qp.own_rq, &wr[*done])))
		++*done;
	spin_unlock(&qp->c.rq_lock);
	/* Waited for, or to be flushed: the state is read behind the fence of rnr_is_waited, since
	 * the QP may go to error meanwhile (Dekker with qp_fail). */
	if (*done && (rnr_is_waited(&qp->c.rnr) || qp->c.qp.state == UW_QPS_ERR))
		sched_post(&qp->c.ring);
	return verbs_errno(st);
}
