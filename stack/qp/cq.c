/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp/cq.h"

#include "qp/rq.h"
#include "qp/sq.h"

static void wake(struct cq *cq, bool solicited)
{
	unsigned armed = atomic_load_explicit(&cq->armed, memory_order_relaxed);

	/* One notify per arming even if the program arms again at this moment; and one is due if it
	 * makes of a solicited event any event meanwhile. */
	while (armed == CQ_ANY || (armed == CQ_SOLICITED && solicited)) {
		if (!atomic_compare_exchange_weak(&cq->armed, &armed, CQ_UNARMED))
			continue;
		cq->notify(cq->ctx);
		return;
	}
}

/* RFC 5042 §6.4.3.2, §6.4.6: what a peer floods is this CQ's, and its QPs pay for it alone. */
static void overflow(struct cq *cq)
{
	if (cq->ignore_overrun)
		return;
	if (atomic_exchange(&cq->overflown, true))
		return;
	if (cq->error)
		cq->error(cq->ctx);
}

/* The place of the next completion; NULL: there is none. */
static struct cqe *place(struct cq *cq)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	/* pairs with the release of head in cq_take: the slot has been read */
	if (tail - atomic_load_explicit(&cq->head, memory_order_acquire) >= cq->depth) {
		overflow(cq);
		return NULL;
	}
	return &cq->ring[tail & cq->mask];
}

static void show(struct cq *cq, struct cqe *e, bool solicited)
{
	bool failed = e->wc.status != UW_WC_SUCCESS;

	if (cq->now)
		e->stamp = cq->now(cq->now_arg);
	atomic_store_explicit(&cq->tail, atomic_load_explicit(&cq->tail, memory_order_relaxed) + 1,
			      memory_order_release);
	__builtin_prefetch(e + 1, 1); /* the next one, or nothing */
	if (cq->notify) {
		atomic_thread_fence(memory_order_seq_cst); /* pairs with cq_arm's */
		wake(cq, solicited || failed);
	}
}

static void enter(struct cq *cq)
{
	if (cq->guard)
		cq->guard(cq->ctx, true);
}

static void leave(struct cq *cq)
{
	if (cq->guard)
		cq->guard(cq->ctx, false);
}

struct cqe *cq_begin(struct cq *cq)
{
	struct cqe *e;

	enter(cq);
	e = place(cq);
	if (!e)
		leave(cq);
	return e;
}

static void end(struct cq *cq, struct cqe *e, bool solicited)
{
	show(cq, e, solicited);
	leave(cq);
}

void cq_end_sent(struct cq *cq, struct cqe *e, struct sq *sq, uint32_t upto)
{
	e->sq = sq;
	e->rq = NULL;
	e->upto = upto;
	sq_pushed(sq);
	end(cq, e, false);
}

void cq_end_received(struct cq *cq, struct cqe *e, struct rq *rq, bool solicited)
{
	e->sq = NULL;
	e->rq = rq;
	end(cq, e, solicited);
}

/* The slots of n completions are the program's again: all of one queue, e the last of them. */
static void polled(const struct cqe *e, uint32_t n)
{
	if (e->sq)
		sq_polled(e->sq, e->upto, n);
	else if (e->rq)
		rq_free(e->rq, n);
}

/* As polled; the n completions are those before `head`. Their places in the CQ go first: a thread
 * that posts into the slots may have that completed at once, and needs them. The stack sees this
 * head then: freed (release) to the post (acquire), and from there by the queue's tail. */
static inline void give_back(struct cq *cq, uint32_t head, const struct cqe *e, uint32_t n)
{
	const struct cqe last = { .sq = e->sq, .rq = e->rq, .upto = e->upto };

	atomic_store_explicit(&cq->head, head, memory_order_release);
	polled(&last, n); /* e may be another completion by now */
}

unsigned cq_take(struct cq *cq, unsigned n, struct uw_wc *wc, uint64_t *stamps)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t have = atomic_load_explicit(&cq->tail, memory_order_acquire) - head;
	const struct cqe *last = NULL;
	uint32_t run = 0;

	if (n > have)
		n = have;
	if (!n)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		const struct cqe *e = &cq->ring[(head + i) & cq->mask];

		wc[i] = e->wc;
		if (stamps)
			stamps[i] = e->stamp;
		if (run && (e->sq != last->sq || e->rq != last->rq)) {
			give_back(cq, head + i, last, run);
			run = 0;
		}
		last = e;
		run++;
	}
	give_back(cq, head + n, last, run);
	return n;
}

void cq_arm(struct cq *cq, enum cq_armed armed)
{
	unsigned none = CQ_UNARMED;

	if (armed == CQ_ANY)
		atomic_store(&cq->armed, CQ_ANY);
	else /* never weaken CQ_ANY */
		atomic_compare_exchange_strong(&cq->armed, &none, CQ_SOLICITED);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with show's */
}

void cq_forget(struct cq *cq, uint32_t qp_num)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed), w = head;
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	for (uint32_t r = head; r != tail; r++) {
		if (cq->ring[r & cq->mask].wc.qp_num != qp_num)
			cq->ring[w++ & cq->mask] = cq->ring[r & cq->mask];
		else
			polled(&cq->ring[r & cq->mask], 1);
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
