/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp/cq.h"

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
	if (atomic_exchange(&cq->overflown, true))
		return;
	if (cq->error)
		cq->error(cq->ctx);
}

bool cq_push(struct cq *cq, const struct uw_wc *wc, bool solicited)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	/* pairs with the release of head in cq_take: the slot has been read */
	if (tail - atomic_load_explicit(&cq->head, memory_order_acquire) >= cq->depth) {
		overflow(cq);
		return false;
	}
	cq->ring[tail & cq->mask] = *wc;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	cq->stats->qp_completed++;
	if (cq->notify) {
		atomic_thread_fence(memory_order_seq_cst); /* pairs with cq_arm's */
		wake(cq, solicited || wc->status != UW_WC_SUCCESS);
	}
	return true;
}

unsigned cq_take(struct cq *cq, unsigned n, struct uw_wc *wc)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t have = atomic_load_explicit(&cq->tail, memory_order_acquire) - head;

	if (n > have)
		n = have;
	if (!n)
		return 0;
	for (unsigned i = 0; i < n; i++)
		wc[i] = cq->ring[(head + i) & cq->mask];
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
		if (cq->ring[r & cq->mask].qp_num != qp_num)
			cq->ring[w++ & cq->mask] = cq->ring[r & cq->mask];
	}
	atomic_store_explicit(&cq->tail, w, memory_order_release);
}

void cq_move(struct cq *cq, struct uw_wc *ring, uint32_t mask, uint32_t depth)
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
