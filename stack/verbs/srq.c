/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "verbs/verbs.h"

/* RFC 5042 §6.4.3.1: the program learns in time that a peer takes more than its share. */
static void on_limit(void *ctx)
{
	struct uw_srq *srq = ctx;

	if (srq->event)
		srq->event(srq->ctx, UW_EVENT_SRQ_LIMIT_REACHED);
}

static void enlist(struct uw_srq *srq)
{
	struct verbs *v = srq->pd->v;

	verbs_lock(v);
	srq->next = v->srqs;
	srq->link = &v->srqs;
	if (srq->next)
		srq->next->link = &srq->next;
	v->srqs = srq;
	verbs_unlock(v);
}

/* NULL: no memory. */
static struct uw_srq *new_srq(uint32_t n, uint32_t max_sge)
{
	struct uw_srq *srq = aligned_alloc(64, (sizeof(*srq) + 63) & ~(size_t)63);

	if (!srq)
		return NULL;
	memset(srq, 0, sizeof(*srq));
	srq->r.rq.max_sge = max_sge;
	srq->r.rq.slot_size = rq_slot_size(max_sge);
	srq->r.rq.slots = calloc(n, srq->r.rq.slot_size);
	if (!srq->r.rq.slots) {
		free(srq);
		return NULL;
	}
	srq->r.rq.mask = n - 1;
	srq->r.rq.depth = n;
	return srq;
}

int uw_srq_create(struct uw_pd *pd, struct uw_srq_attr *a, struct uw_srq **out)
{
	struct uw_srq *srq;
	int err;

	if (a->max_wr > 1u << 15 || a->max_sge > 32)
		return -EINVAL;
	err = verbs_count_in(&pd->v->n_srqs, VERBS_SRQS_MAX);
	if (err)
		return err;
	srq = new_srq(uw_pow2_above(a->max_wr ? a->max_wr : 1), a->max_sge ? a->max_sge : 1);
	if (!srq) {
		verbs_count_out(&pd->v->n_srqs);
		return -ENOMEM;
	}
	a->max_wr = srq->r.rq.depth;
	srq->r.rq.pd = pd->id;
	srq->pd = pd;
	srq->event = a->event;
	srq->ctx = a->ctx;
	srq->r.rq.limit_reached = on_limit;
	srq->r.rq.ctx = srq;
	atomic_fetch_add(&pd->users, 1);
	enlist(srq);
	*out = srq;
	return 0;
}

int uw_srq_destroy(struct uw_srq *srq)
{
	if (atomic_load(&srq->users))
		return -EBUSY;
	verbs_lock(srq->pd->v);
	*srq->link = srq->next;
	if (srq->next)
		srq->next->link = srq->link;
	verbs_unlock(srq->pd->v);
	atomic_fetch_sub(&srq->pd->users, 1);
	verbs_count_out(&srq->pd->v->n_srqs);
	free(srq->r.rq.slots);
	free(srq);
	return 0;
}

int uw_srq_set_limit(struct uw_srq *srq, uint32_t limit)
{
	if (limit > srq->r.rq.depth)
		return -EINVAL;
	verbs_lock(srq->pd->v);
	srq->r.rq.limit = limit;
	verbs_unlock(srq->pd->v);
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
	slots = calloc(n, srq->r.rq.slot_size);
	if (!slots)
		return -ENOMEM;
	verbs_lock(srq->pd->v);
	spin_lock(&srq->lock);
	err = move_receives(&srq->r.rq, &slots, n);
	spin_unlock(&srq->lock);
	verbs_unlock(srq->pd->v);
	free(slots);
	if (!err)
		*max_wr = n;
	return err;
}

uint32_t uw_srq_limit(const struct uw_srq *srq)
{
	return srq->r.rq.limit;
}

int uw_srq_post_recv(struct uw_srq *srq, const struct uw_recv_wr *wr, unsigned n, unsigned *done)
{
	uw_status st = UW_OK;

	*done = 0;
	spin_lock(&srq->lock);
	while (*done < n && !(st = rq_post(&srq->r.rq, &wr[*done])))
		++*done;
	spin_unlock(&srq->lock);
	if (*done && rnr_is_waited(&srq->r.waited))
		rnr_srq_posted(&srq->r);
	return verbs_errno(st);
}
