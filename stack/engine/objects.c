/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions, completion queues, shared receive queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- MRs --------------------------------------------------------------------------------- */

static int make_room(struct uw_engine *e)
{
	struct mem_region **slots, **old = e->mem.slots;
	uint32_t n = uw_pow2_above((e->mem.used + 1) * 4);

	if (!mem_table_full(&e->mem))
		return 0;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	mem_table_move(&e->mem, slots, n);
	free(old);
	return 0;
}

static int enter(struct uw_engine *e, struct uw_mr *mr)
{
	int err;

	engine_lock(e);
	err = make_room(e);
	while (!err && mem_insert(&e->mem, &mr->r, engine_random(e)))
		; /* taken: another random STag */
	engine_unlock(e);
	return err;
}

int uw_mr_reg(struct uw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access,
	      struct uw_mr **out)
{
	unsigned remote = UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_ATOMIC;
	struct uw_mr *mr;
	int err;

	if ((uintptr_t)addr + len < (uintptr_t)addr || iova + len < iova)
		return -EINVAL;
	if ((access & remote) && !(access & UW_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->pd = pd;
	mr->r = (struct mem_region){
		.pd = pd->id, .base = addr, .to = iova, .len = len, .rights = access
	};
	err = enter(pd->e, mr);
	if (err) {
		free(mr);
		return err;
	}
	atomic_fetch_add(&pd->users, 1);
	*out = mr;
	return 0;
}

int uw_mr_dereg(struct uw_mr *mr)
{
	struct uw_engine *e = mr->pd->e;

	/* Placement happens under the stack lock: after this nothing reaches the memory. */
	engine_lock(e);
	mem_remove(&e->mem, &mr->r);
	engine_unlock(e);
	atomic_fetch_sub(&mr->pd->users, 1);
	free(mr);
	return 0;
}

uint32_t uw_mr_stag(const struct uw_mr *mr)
{
	return mr->r.stag;
}

/* ---- CQs --------------------------------------------------------------------------------- */

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
	cq->cq.ring = calloc(n, sizeof(struct uw_wc));
	if (!cq->cq.ring) {
		free(cq);
		return -ENOMEM;
	}
	cq->cq.mask = n - 1;
	cq->cq.depth = a->depth;
	cq->cq.notify = a->notify;
	cq->cq.error = a->error;
	cq->cq.ctx = a->ctx;
	cq->cq.stats = &e->stats;
	cq->e = e;
	atomic_fetch_add_explicit(&e->objects, 1, memory_order_relaxed);
	*out = cq;
	return 0;
}

int uw_cq_resize(struct uw_cq *cq, uint32_t depth)
{
	uint32_t n = uw_pow2_above(depth);
	struct uw_wc *ring, *old = cq->cq.ring;
	int err = 0;

	if (!depth || depth > 1u << 22)
		return -EINVAL;
	ring = calloc(n, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	engine_lock(cq->e);
	spin_lock(&cq->lock);
	if (cq_count(&cq->cq) > depth)
		err = -EINVAL;
	else
		cq_move(&cq->cq, ring, n - 1, depth);
	spin_unlock(&cq->lock);
	engine_unlock(cq->e);
	free(err ? ring : old);
	return err;
}

int uw_cq_destroy(struct uw_cq *cq)
{
	if (atomic_load(&cq->users))
		return -EBUSY;
	/* A notify in progress runs under the stack lock. */
	engine_lock(cq->e);
	engine_unlock(cq->e);
	atomic_fetch_sub_explicit(&cq->e->objects, 1, memory_order_relaxed);
	free(cq->cq.ring);
	free(cq);
	return 0;
}

static unsigned take(struct uw_cq *cq, int n, struct uw_wc *wc)
{
	unsigned got;

	if (!cq_count(&cq->cq))
		return 0;
	spin_lock(&cq->lock);
	got = cq_take(&cq->cq, (unsigned)n, wc);
	spin_unlock(&cq->lock);
	return got;
}

int uw_cq_poll(struct uw_cq *cq, int n, struct uw_wc *wc)
{
	static __thread const struct uw_cq *last_empty;
	unsigned got;

	if (n <= 0)
		return 0;
	got = take(cq, n, wc);
	if (!got) {
		engine_drive(cq->e, last_empty == cq);
		last_empty = cq;
		got = take(cq, n, wc);
	}
	if (got) {
		last_empty = NULL;
		engine_leave(cq->e, false);
		return (int)got;
	}
	return atomic_load_explicit(&cq->cq.overflown, memory_order_relaxed) ? -EOVERFLOW : 0;
}

int uw_cq_arm(struct uw_cq *cq, bool solicited_only)
{
	if (!cq->cq.notify)
		return -EINVAL;
	cq_arm(&cq->cq, solicited_only);
	engine_leave(cq->e, true);
	return 0;
}

/* ---- SRQs -------------------------------------------------------------------------------- */

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
	srq->ring.fn = engine_feed_srq;
	atomic_fetch_add(&pd->users, 1);
	*out = srq;
	return 0;
}

int uw_srq_destroy(struct uw_srq *srq)
{
	if (atomic_load(&srq->users))
		return -EBUSY;
	/* It may still be on the post ring. */
	engine_lock(srq->pd->e);
	engine_drain_ring(srq->pd->e);
	engine_unlock(srq->pd->e);
	atomic_fetch_sub(&srq->pd->users, 1);
	free(srq->rq.slots);
	free(srq);
	return 0;
}

int uw_srq_set_limit(struct uw_srq *srq, uint32_t limit)
{
	if (limit > srq->rq.depth)
		return -EINVAL;
	engine_lock(srq->pd->e);
	srq->rq.limit = limit;
	engine_unlock(srq->pd->e);
	return 0;
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
		engine_ring(srq->pd->e, &srq->ring);
	return engine_errno(st);
}
