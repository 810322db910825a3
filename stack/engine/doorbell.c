/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The post ring: queues that have something new, left there by threads that did not get the stack
 * lock: a QP's requests, or receives that the stack waits for. An entry is on it at most once, so
 * it is a linked list without a limit. Order among entries does not matter, order within one is its
 * queue's.
 */
#include "engine/engine.h"

#define POSTS_PER_LOOK 16u

static void push(struct uw_engine *e, struct ring_entry *r)
{
	struct ring_entry *head = atomic_load_explicit(&e->rung, memory_order_relaxed);

	/* Whoever turns `rung` on links it; the stack turns it off before looking at the queue. */
	if (atomic_exchange_explicit(&r->rung, true, memory_order_acq_rel))
		return;
	do {
		r->next = head;
		/* release: pairs with the acquire in engine_drain_ring; next is visible */
	} while (!atomic_compare_exchange_weak_explicit(&e->rung, &head, r, memory_order_seq_cst,
							memory_order_relaxed));
}

void engine_drain_ring(struct uw_engine *e)
{
	struct ring_entry *r;

	if (engine_ring_empty(e))
		return;
	r = atomic_exchange_explicit(&e->rung, NULL, memory_order_acquire);
	while (r) {
		struct ring_entry *next = r->next;

		/* acq_rel: what is posted from here on rings again, what was before is seen */
		atomic_exchange_explicit(&r->rung, false, memory_order_acq_rel);
		e->stats.post_ring++;
		r->fn(r);
		r = next;
	}
}

void engine_ring(struct uw_engine *e, struct ring_entry *r)
{
	if (!e->model->posts_inline && atomic_load_explicit(&e->started, memory_order_acquire)) {
		push(e, r);
		if (llp_sleeps(e->llp))
			llp_rouse(e->llp);
		else
			engine_wake(e);
		return;
	}
	if (engine_ring_empty(e) && engine_trylock(e)) {
		/* Programs seldom move. */
		if (e->stats.post_inline++ % POSTS_PER_LOOK == 0)
			atomic_store_explicit(&e->post_cpu, (uint32_t)sched_getcpu(),
					      memory_order_relaxed);
		r->fn(r);
		llp_flush_links(e->llp);
		engine_unlock(e);
		/* What completes at once may be another thread's to poll. */
		if (atomic_load_explicit(&e->dozing, memory_order_relaxed))
			engine_wake(e);
		return;
	}
	push(e, r);
	/* The holder may have drained just before: then the lock is free now, or it looks again
	 * after unlocking (engine_unlock). */
	if (engine_trylock(e))
		engine_unlock(e);
}
