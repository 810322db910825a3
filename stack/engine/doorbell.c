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

static void leave_it(struct uw_engine *e, struct ring_entry *r)
{
	push(e, r);
	if (llp_sleeps(e->llp))
		llp_rouse(e->llp);
	else
		engine_wake(e);
}

/* Under another stack's lock: whoever has its own sees to it. */
static void leave_to_home(struct ring_entry *r)
{
	leave_it(atomic_load_explicit(&r->home, memory_order_acquire), r);
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
		if (atomic_load_explicit(&r->home, memory_order_relaxed) == e)
			r->fn(r);
		else /* it moved meanwhile */
			leave_to_home(r);
		r = next;
	}
}

void engine_drain_rings(struct uw_engine *lead)
{
	/* Once more: what had moved went to the ring of its home. */
	for (unsigned i = 0; i < 2; i++) {
		for (struct uw_engine *e = lead; e; e = e->next)
			engine_drain_ring(e);
	}
}

/* Lock e unless somebody has the lock, or the entry is another's by now. */
static bool take(struct uw_engine *e, const struct ring_entry *r)
{
	if (!engine_ring_empty(e) || !engine_trylock(e))
		return false;
	if (atomic_load_explicit(&r->home, memory_order_relaxed) == e)
		return true;
	engine_unlock(e);
	return false;
}

void engine_ring(struct ring_entry *r)
{
	/* acquire: pairs with the release in engine_qp_move */
	struct uw_engine *e = atomic_load_explicit(&r->home, memory_order_acquire);

	if (!e->model->posts_inline && atomic_load_explicit(&e->started, memory_order_acquire)) {
		leave_it(e, r);
		return;
	}
	if (take(e, r)) {
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
