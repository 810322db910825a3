/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The post ring: QPs whose send queue has something new, left there by threads that did not get
 * the stack lock. A QP is on it at most once, so it is a linked list without a limit. Order among
 * QPs does not matter, order within one is its send queue's.
 */
#include "engine/engine.h"

static void push(struct uw_engine *e, struct uw_qp *qp)
{
	struct uw_qp *head = atomic_load_explicit(&e->rung, memory_order_relaxed);

	/* Whoever turns `rung` on links it; the stack turns it off before looking at the queue. */
	if (atomic_exchange_explicit(&qp->rung, true, memory_order_acq_rel))
		return;
	do {
		qp->ring_next = head;
		/* release: pairs with the acquire in engine_drain_ring; ring_next is visible */
	} while (!atomic_compare_exchange_weak_explicit(&e->rung, &head, qp, memory_order_seq_cst,
							memory_order_relaxed));
}

void engine_drain_ring(struct uw_engine *e)
{
	struct uw_qp *qp;

	if (engine_ring_empty(e))
		return;
	qp = atomic_exchange_explicit(&e->rung, NULL, memory_order_acquire);
	while (qp) {
		struct uw_qp *next = qp->ring_next;

		/* acq_rel: what is posted from here on rings again, what was before is seen */
		atomic_exchange_explicit(&qp->rung, false, memory_order_acq_rel);
		engine_pump(qp);
		qp = next;
	}
}

void engine_ring(struct uw_engine *e, struct uw_qp *qp)
{
	if (engine_ring_empty(e) && engine_trylock(e)) {
		e->stats.post_inline++;
		engine_pump(qp);
		llp_flush_links();
		engine_unlock(e);
		return;
	}
	push(e, qp);
	/* The holder may have drained just before: then the lock is free now, or it looks again
	 * after unlocking (engine_unlock). */
	if (engine_trylock(e))
		engine_unlock(e);
}
