/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp/cq.h"

#include "qp/rq.h"
#include "qp/sq.h"

static void wake(struct cq *cq, bool solicited)
{
	unsigned armed = atomic_load_explicit(&cq->armed, memory_order_relaxed);

	if (armed == CQ_UNARMED || (armed == CQ_SOLICITED && !solicited))
		return;
	/* One notify per arming even if the program arms again at this moment. */
	if (atomic_compare_exchange_strong(&cq->armed, &armed, CQ_UNARMED))
		cq->notify(cq->ctx);
}

static void overflow(struct cq *cq)
{
	cq->stats->cq_overflows++;
	if (cq->ignore_overrun)
		return;
	if (atomic_exchange(&cq->overflown, true))
		return;
	if (cq->error)
		cq->error(cq->ctx);
}

static bool push(struct cq *cq, const struct cqe *e, bool solicited)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	/* pairs with the release of head in cq_take: the slot has been read */
	if (tail - atomic_load_explicit(&cq->head, memory_order_acquire) >= cq->depth) {
		overflow(cq);
		return false;
	}
	cq->ring[tail & cq->mask] = *e;
	if (cq->now)
		cq->ring[tail & cq->mask].stamp = cq->now(cq->now_arg);
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	cq->stats->qp_completed++;
	if (cq->notify) {
		atomic_thread_fence(memory_order_seq_cst); /* pairs with cq_arm's */
		wake(cq, solicited || e->wc.status != UW_WC_SUCCESS);
	}
	return true;
}

bool cq_push(struct cq *cq, const struct uw_wc *wc, bool solicited)
{
	const struct cqe e = { .wc = *wc };

	return push(cq, &e, solicited);
}

bool cq_push_sent(struct cq *cq, const struct uw_wc *wc, struct sq *sq, uint32_t upto)
{
	const struct cqe e = { .wc = *wc, .sq = sq, .upto = upto };

	/* Before it shows: whoever polls it counts down. */
	atomic_fetch_add_explicit(&sq->told, 1, memory_order_relaxed);
	if (push(cq, &e, false))
		return true;
	atomic_fetch_sub_explicit(&sq->told, 1, memory_order_relaxed);
	return false;
}

bool cq_push_received(struct cq *cq, const struct uw_wc *wc, struct rq *rq, bool solicited)
{
	const struct cqe e = { .wc = *wc, .rq = rq };

	if (push(cq, &e, solicited))
		return true;
	rq_free(rq);
	return false;
}

/* Its slots are the program's again. */
static void polled(const struct cqe *e)
{
	if (e->sq)
		sq_polled(e->sq, e->upto);
	else if (e->rq)
		rq_free(e->rq);
}

unsigned cq_take(struct cq *cq, unsigned n, struct uw_wc *wc, uint64_t *stamps)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t have = atomic_load_explicit(&cq->tail, memory_order_acquire) - head;

	if (n > have)
		n = have;
	if (!n)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		const struct cqe *e = &cq->ring[(head + i) & cq->mask];

		wc[i] = e->wc;
		if (stamps)
			stamps[i] = e->stamp;
		polled(e);
	}
	atomic_store_explicit(&cq->head, head + n, memory_order_release);
	return n;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	unsigned none = CQ_UNARMED;

	if (!solicited_only)
		atomic_store(&cq->armed, CQ_ANY);
	else /* never weaken CQ_ANY */
		atomic_compare_exchange_strong(&cq->armed, &none, CQ_SOLICITED);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with cq_push's */
}

void cq_forget(struct cq *cq, uint32_t qp_num)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed), w = head;
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	for (uint32_t r = head; r != tail; r++) {
		if (cq->ring[r & cq->mask].wc.qp_num != qp_num)
			cq->ring[w++ & cq->mask] = cq->ring[r & cq->mask];
		else
			polled(&cq->ring[r & cq->mask]);
	}
	atomic_store_explicit(&cq->tail, w, memory_order_release);
}

void cq_move(struct cq *cq, struct cqe *ring, uint32_t mask, uint32_t depth)
{
	uint32_t n = cq_count(cq), head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++)
		ring[i] = cq->ring[(head + i) & cq->mask];
	cq->ring = ring;
	cq->mask = mask;
	cq->depth = depth;
	atomic_store_explicit(&cq->head, 0, memory_order_release);
	atomic_store_explicit(&cq->tail, n, memory_order_release);
}
