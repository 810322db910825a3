/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: their notifies, and what polls them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "verbs/verbs.h"

/* Called in the midst of whatever fills the CQ: its QPs hear of it in verbs_run(). */
static void on_overflow(void *ctx)
{
	struct uw_cq *cq = ctx;

	atomic_store_explicit(&cq->failed, true, memory_order_relaxed);
	for (unsigned i = 0; i < UW_STACKS_MAX; i++)
		atomic_store_explicit(&cq->v->cq_failed[i], true, memory_order_relaxed);
	if (cq->error)
		cq->error(cq->ctx);
}

/* ---- notifies ------------------------------------------------------------------------------ */

static void tell(void *ctx)
{
	struct uw_cq *cq = ctx;

	cq->notify(cq->ctx);
	/* release: pairs with uw_cq_destroy */
	atomic_fetch_sub_explicit(&cq->telling, 1, memory_order_release);
}

/* Under the stack's lock. The program's thread may run at once, on this very CPU: it is woken when
 * the lock is free, which it will want (doc/adr/0074). With several stacks under the lock of any.
 */
static void notify(struct uw_cq *cq)
{
	atomic_fetch_add_explicit(&cq->telling, 1, memory_order_relaxed);
	if (verbs_has_several_stacks(cq->v) || !sched_defer_in_row(cq->sched, tell, cq))
		tell(cq);
}

/* libc's nanosleep() is a cancellation point, and half of the CQ is gone by now. */
static void await_told(struct uw_cq *cq)
{
	const struct timespec moment = { .tv_nsec = 20000 };

	while (atomic_load_explicit(&cq->telling, memory_order_acquire) > 0)
		syscall(SYS_nanosleep, &moment, NULL);
}

/* Is it time to notify? Where several stacks fill the CQ, always. */
static bool enough(const struct uw_cq *cq)
{
	return !cq->mod_us || verbs_has_several_stacks(cq->v) || cq_count(&cq->cq) >= cq->mod_count;
}

static void on_notify(void *ctx)
{
	struct uw_cq *cq = ctx;

	if (enough(cq)) {
		notify(cq);
		return;
	}
	if (cq->due_us)
		return;
	cq->due_us = sched_now_us(cq->sched) + cq->mod_us;
	cq->moderated = cq->v->moderated;
	cq->v->moderated = cq;
}

void verbs_run_moderated(struct verbs *v, uint64_t now_us)
{
	struct uw_cq **p = &v->moderated, *cq;

	while ((cq = *p)) {
		if (now_us < cq->due_us && !enough(cq)) {
			p = &cq->moderated;
			continue;
		}
		*p = cq->moderated;
		cq->due_us = 0;
		notify(cq);
	}
}

static void forget_moderated(struct uw_cq *cq)
{
	struct uw_cq **p = &cq->v->moderated;

	while (*p && *p != cq)
		p = &(*p)->moderated;
	if (*p)
		*p = cq->moderated;
}

int uw_cq_moderate(struct uw_cq *cq, uint16_t count, uint16_t us)
{
	verbs_lock(cq->v);
	cq->mod_count = count;
	cq->mod_us = count ? us : 0;
	verbs_unlock(cq->v);
	return 0;
}

/* Stamps are of the stack's clock, in finer steps where that is the system's. */
static uint64_t now_ns(void *arg)
{
	const struct verbs *v = arg;

	if (v->conn->manual)
		return stack_now_us(v->conn->first) * 1000;
	return uw_clock_ns();
}

/* ---- life --------------------------------------------------------------------------------- */

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
	cq->cq.now_arg = cq->v;
	cq->cq.guard = verbs_has_several_stacks(cq->v) ? guard_pushes : NULL;
}

static void enlist(struct uw_cq *cq)
{
	verbs_lock(cq->v);
	cq->next = cq->v->cqs;
	cq->link = &cq->v->cqs;
	if (cq->next)
		cq->next->link = &cq->next;
	cq->v->cqs = cq;
	verbs_unlock(cq->v);
}

/* NULL: no memory. */
static struct uw_cq *new_cq(uint32_t depth)
{
	uint32_t n = uw_pow2_above(depth);
	struct uw_cq *cq = aligned_alloc(64, (sizeof(*cq) + 63) & ~(size_t)63);

	if (!cq)
		return NULL;
	memset(cq, 0, sizeof(*cq));
	cq->cq.ring = calloc(n, sizeof(struct cqe));
	if (!cq->cq.ring) {
		free(cq);
		return NULL;
	}
	cq->cq.mask = n - 1;
	cq->cq.depth = depth;
	return cq;
}

int verbs_make_cq(struct verbs *v, const struct uw_cq_attr *a, struct uw_cq **out)
{
	struct uw_cq *cq;
	int err;

	if (!a->depth || a->depth > 1u << 22)
		return -EINVAL;
	err = verbs_count_in(&v->n_cqs, VERBS_CQS_MAX);
	if (err)
		return err;
	cq = new_cq(a->depth);
	if (!cq) {
		verbs_count_out(&v->n_cqs);
		return -ENOMEM;
	}
	cq->v = v;
	cq->sched = &v->conn->first->sched;
	set_up(cq, a);
	enlist(cq);
	*out = cq;
	return 0;
}

int uw_cq_resize(struct uw_cq *cq, uint32_t depth)
{
	uint32_t n = uw_pow2_above(depth);
	struct cqe *ring, *old;
	int err = 0;

	if (!depth || depth > 1u << 22)
		return -EINVAL;
	ring = calloc(n, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	verbs_lock(cq->v);
	spin_lock(&cq->lock);
	old = cq->cq.ring; /* another thread may resize it as well */
	if (cq_count(&cq->cq) > depth)
		err = -EINVAL;
	else
		cq_move(&cq->cq, ring, n - 1, depth);
	spin_unlock(&cq->lock);
	verbs_unlock(cq->v);
	free(err ? ring : old);
	return err;
}

int uw_cq_destroy(struct uw_cq *cq)
{
	if (atomic_load(&cq->users))
		return -EBUSY;
	verbs_lock(cq->v);
	forget_moderated(cq);
	*cq->link = cq->next;
	if (cq->next)
		cq->next->link = cq->link;
	verbs_unlock(cq->v);
	await_told(cq);
	verbs_count_out(&cq->v->n_cqs);
	free(cq->cq.ring);
	free(cq);
	return 0;
}

void verbs_forget_in_cq(struct uw_cq *cq, uint32_t qpn)
{
	spin_lock(&cq->lock);
	cq_forget(&cq->cq, qpn);
	spin_unlock(&cq->lock);
}

/* ---- polling, arming ----------------------------------------------------------------------- */

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

/* Programs with a CQ for sends and one for receives poll them in turn. */
static void run_stack(struct uw_cq *cq, const struct uw_cq *last_empty)
{
	sched_app_poll(cq->sched, !last_empty	     ? SCHED_POLL_FIRST
				  : last_empty == cq ? SCHED_POLL_AGAIN
						     : SCHED_POLL_OTHER);
}

static int poll_cq(struct uw_cq *cq, int n, struct uw_wc *wc, uint64_t *stamps)
{
	static __thread const struct uw_cq *last_empty;
	unsigned got;

	if (n <= 0)
		return 0;
	got = take(cq, n, wc, stamps);
	if (!got) {
		run_stack(cq, last_empty);
		last_empty = cq;
		got = take(cq, n, wc, stamps);
	}
	if (got) {
		last_empty = NULL;
		sched_app_busy(cq->sched);
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
	cq_arm(&cq->cq, solicited_only ? CQ_SOLICITED : CQ_ANY);
	sched_app_sleep(cq->sched);
	return 0;
}
