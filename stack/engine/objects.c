/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, completion queues, shared receive queues. Memory: memory.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "engine/engine.h"

/* ---- PDs --------------------------------------------------------------------------------- */

int uw_pd_alloc(struct uw_engine *e, struct uw_pd **out)
{
	struct uw_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->e = e;
	pd->id = atomic_fetch_add(&e->next_pd, 1);
	atomic_fetch_add_explicit(&e->objects, 1, memory_order_relaxed);
	*out = pd;
	return 0;
}

int uw_pd_dealloc(struct uw_pd *pd)
{
	if (atomic_load(&pd->users))
		return -EBUSY;
	atomic_fetch_sub_explicit(&pd->e->objects, 1, memory_order_relaxed);
	free(pd);
	return 0;
}

/* ---- CQs --------------------------------------------------------------------------------- */

/* In the midst of whatever fills the CQ: the QPs have to wait until that is done. */
static void on_overflow(void *ctx)
{
	struct uw_cq *cq = ctx;

	cq->failed = true;
	for (struct uw_engine *e = cq->e; e; e = e->next)
		e->cq_failed = true;
	if (cq->error)
		cq->error(cq->ctx);
}

void engine_failed_cqs(struct uw_engine *e)
{
	if (!e->cq_failed)
		return;
	e->cq_failed = false;
	for (uint32_t i = 0; i < e->lead->qps.n; i++) {
		struct uw_qp *qp = e->lead->qps.v[i];

		if (qp && engine_of(qp) == e && (qp->scq->failed || qp->rcq->failed))
			engine_qp_down(qp, UW_E_NOMEM);
	}
}

/* ---- moderation ---- */

/* Where several stacks fill it nobody waits for more. */
static bool enough(const struct uw_cq *cq)
{
	return !cq->mod_us || engine_is_one_of_several(cq->e) || cq_count(&cq->cq) >= cq->mod_count;
}

static void on_notify(void *ctx)
{
	struct uw_cq *cq = ctx;

	if (enough(cq)) {
		cq->notify(cq->ctx);
		return;
	}
	if (cq->due_us)
		return;
	cq->due_us = engine_now_us(cq->e) + cq->mod_us;
	cq->next_due = cq->e->due;
	cq->e->due = cq;
}

void engine_due_cqs(struct uw_engine *e, uint64_t now_us)
{
	struct uw_cq **p = &e->due, *cq;

	while ((cq = *p)) {
		if (now_us < cq->due_us && !enough(cq)) {
			p = &cq->next_due;
			continue;
		}
		*p = cq->next_due;
		cq->due_us = 0;
		cq->notify(cq->ctx);
	}
}

uint64_t engine_next_due_us(const struct uw_engine *e)
{
	uint64_t next = UINT64_MAX;

	for (const struct uw_cq *cq = e->due; cq; cq = cq->next_due) {
		if (cq->due_us < next)
			next = cq->due_us;
	}
	return next;
}

static void forget_due(struct uw_cq *cq)
{
	struct uw_cq **p = &cq->e->due;

	while (*p && *p != cq)
		p = &(*p)->next_due;
	if (*p)
		*p = cq->next_due;
}

int uw_cq_moderate(struct uw_cq *cq, uint16_t count, uint16_t us)
{
	engine_lock_all(cq->e);
	cq->mod_count = count;
	cq->mod_us = count ? us : 0;
	engine_unlock_all(cq->e);
	return 0;
}

static uint64_t now_ns(void *arg)
{
	struct uw_engine *e = arg;
	struct timespec t;

	if (e->manual)
		return engine_now_us(e) * 1000;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Inside a stack's lock. */
static void guard_pushes(void *ctx, bool on)
{
	struct uw_cq *cq = ctx;

	if (on)
		spin_lock(&cq->pushes);
	else
		spin_unlock(&cq->pushes);
}

static void set_up(struct uw_cq *cq, const struct uw_cq_attr *a)
{
	cq->notify = a->notify;
	cq->error = a->error;
	cq->ctx = a->ctx;
	cq->cq.notify = a->notify ? on_notify : NULL;
	cq->cq.error = on_overflow;
	cq->cq.ctx = cq;
	cq->cq.ignore_overrun = a->ignore_overrun;
	cq->cq.now = a->stamps ? now_ns : NULL;
	cq->cq.now_arg = cq->e;
	cq->cq.guard = engine_is_one_of_several(cq->e) ? guard_pushes : NULL;
}

int uw_cq_create(struct uw_engine *e, const struct uw_cq_attr *a, struct uw_cq **out)
{
	struct uw_cq *cq;
	uint32_t n;

	if (!a->depth || a->depth > 1u << 22)
		return -EINVAL;
	n = uw_pow2_above(a->depth);
	cq = aligned_alloc(64, (sizeof(*cq) + 63) & ~(size_t)63);
	if (!cq)
		return -ENOMEM;
	memset(cq, 0, sizeof(*cq));
	cq->cq.ring = calloc(n, sizeof(struct cqe));
	if (!cq->cq.ring) {
		free(cq);
		return -ENOMEM;
	}
	cq->cq.mask = n - 1;
	cq->cq.depth = a->depth;
	cq->e = e;
	set_up(cq, a);
	atomic_fetch_add_explicit(&e->objects, 1, memory_order_relaxed);
	*out = cq;
	return 0;
}

int uw_cq_resize(struct uw_cq *cq, uint32_t depth)
{
	uint32_t n = uw_pow2_above(depth);
	struct cqe *ring, *old = cq->cq.ring;
	int err = 0;

	if (!depth || depth > 1u << 22)
		return -EINVAL;
	ring = calloc(n, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	engine_lock_all(cq->e);
	spin_lock(&cq->lock);
	if (cq_count(&cq->cq) > depth)
		err = -EINVAL;
	else
		cq_move(&cq->cq, ring, n - 1, depth);
	spin_unlock(&cq->lock);
	engine_unlock_all(cq->e);
	free(err ? ring : old);
	return err;
}

int uw_cq_destroy(struct uw_cq *cq)
{
	if (atomic_load(&cq->users))
		return -EBUSY;
	/* A notify in progress runs under the stack lock. */
	engine_lock_all(cq->e);
	forget_due(cq);
	engine_unlock_all(cq->e);
	atomic_fetch_sub_explicit(&cq->e->objects, 1, memory_order_relaxed);
	free(cq->cq.ring);
	free(cq);
	return 0;
}

static unsigned take(struct uw_cq *cq, int n, struct uw_wc *wc, uint64_t *stamps)
{
	unsigned got;

	if (!cq_count(&cq->cq))
		return 0;
	spin_lock(&cq->lock);
	got = cq_take(&cq->cq, (unsigned)n, wc, stamps);
	spin_unlock(&cq->lock);
	return got;
}

static int poll_cq(struct uw_cq *cq, int n, struct uw_wc *wc, uint64_t *stamps)
{
	static __thread const struct uw_cq *last_empty;
	unsigned got;

	if (n <= 0)
		return 0;
	got = take(cq, n, wc, stamps);
	if (!got) {
		engine_drive(cq->e, last_empty == cq);
		last_empty = cq;
		got = take(cq, n, wc, stamps);
	}
	if (got) {
		last_empty = NULL;
		engine_leave(cq->e, false);
		return (int)got;
	}
	return atomic_load_explicit(&cq->cq.overflown, memory_order_relaxed) ? -EOVERFLOW : 0;
}

int uw_cq_poll(struct uw_cq *cq, int n, struct uw_wc *wc)
{
	return poll_cq(cq, n, wc, NULL);
}

int uw_cq_poll_stamped(struct uw_cq *cq, struct uw_wc *wc, uint64_t *stamp_ns)
{
	return poll_cq(cq, 1, wc, stamp_ns);
}

int uw_cq_arm(struct uw_cq *cq, bool solicited_only)
{
	if (!cq->notify)
		return -EINVAL;
	cq_arm(&cq->cq, solicited_only);
	engine_leave(cq->e, true);
	return 0;
}

/* ---- SRQs -------------------------------------------------------------------------------- */

static void on_limit(void *ctx)
{
	struct uw_srq *srq = ctx;

	if (srq->event)
		srq->event(srq->ctx, UW_EVENT_SRQ_LIMIT_REACHED);
}

int uw_srq_create(struct uw_pd *pd, const struct uw_srq_attr *a, struct uw_srq **out)
{
	uint32_t n = uw_pow2_above(a->max_wr ? a->max_wr : 1);
	struct uw_srq *srq;

	if (a->max_wr > 1u << 15 || a->max_sge > 32)
		return -EINVAL;
	srq = aligned_alloc(64, (sizeof(*srq) + 63) & ~(size_t)63);
	if (!srq)
		return -ENOMEM;
	memset(srq, 0, sizeof(*srq));
	srq->rq.max_sge = a->max_sge ? a->max_sge : 1;
	srq->rq.slot_size = rq_slot_size(srq->rq.max_sge);
	srq->rq.slots = calloc(n, srq->rq.slot_size);
	if (!srq->rq.slots) {
		free(srq);
		return -ENOMEM;
	}
	srq->rq.mask = n - 1;
	srq->rq.depth = n;
	srq->pd = pd;
	srq->event = a->event;
	srq->ctx = a->ctx;
	srq->rq.limit_reached = on_limit;
	srq->rq.ctx = srq;
	srq->ring.fn = engine_feed_srq;
	srq->ring.home = pd->e;
	atomic_fetch_add(&pd->users, 1);
	*out = srq;
	return 0;
}

int uw_srq_destroy(struct uw_srq *srq)
{
	if (atomic_load(&srq->users))
		return -EBUSY;
	/* It may still be on the post ring. */
	engine_lock_all(srq->pd->e);
	engine_drain_rings(srq->pd->e);
	engine_unlock_all(srq->pd->e);
	atomic_fetch_sub(&srq->pd->users, 1);
	free(srq->rq.slots);
	free(srq);
	return 0;
}

int uw_srq_set_limit(struct uw_srq *srq, uint32_t limit)
{
	if (limit > srq->rq.depth)
		return -EINVAL;
	engine_lock_all(srq->pd->e);
	srq->rq.limit = limit;
	engine_unlock_all(srq->pd->e);
	return 0;
}

/* What is posted moves over; the stack holds no pointer into an SRQ's slots (recv_take in qp.c). */
static int move_receives(struct rq *rq, uint8_t **slots, uint32_t n)
{
	struct rq to = { .slots = *slots, .slot_size = rq->slot_size, .mask = n - 1 };
	uint32_t count = rq_count(rq);

	if (rq_outstanding(rq) > n)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++)
		memcpy(rq_at(&to, i), rq_at(rq, rq->head + i), rq->slot_size);
	*slots = rq->slots;
	rq->slots = to.slots;
	rq->mask = n - 1;
	rq->depth = n;
	/* pollers add to `freed` meanwhile */
	atomic_fetch_sub_explicit(&rq->freed, rq->tail - count, memory_order_relaxed);
	atomic_store_explicit(&rq->head, 0, memory_order_relaxed);
	atomic_store_explicit(&rq->tail, count, memory_order_release);
	return 0;
}

int uw_srq_resize(struct uw_srq *srq, uint32_t *max_wr)
{
	uint32_t n = uw_pow2_above(*max_wr ? *max_wr : 1);
	uint8_t *slots;
	int err;

	if (*max_wr > 1u << 15)
		return -EINVAL;
	slots = calloc(n, srq->rq.slot_size);
	if (!slots)
		return -ENOMEM;
	engine_lock_all(srq->pd->e);
	spin_lock(&srq->lock);
	err = move_receives(&srq->rq, &slots, n);
	spin_unlock(&srq->lock);
	engine_unlock_all(srq->pd->e);
	free(slots);
	if (!err)
		*max_wr = n;
	return err;
}

uint32_t uw_srq_limit(const struct uw_srq *srq)
{
	return srq->rq.limit;
}

int uw_srq_post_recv(struct uw_srq *srq, const struct uw_recv_wr *wr, unsigned n, unsigned *done)
{
	uw_status st = UW_OK;

	*done = 0;
	spin_lock(&srq->lock);
	while (*done < n && !(st = rq_post(&srq->rq, &wr[*done])))
		++*done;
	spin_unlock(&srq->lock);
	if (*done && engine_hungry(&srq->hungry))
		engine_ring(&srq->ring);
	return engine_errno(st);
}
