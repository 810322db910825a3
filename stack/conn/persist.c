/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/persist.h"

#include <stdlib.h>
#include <time.h>

#include "conn/conn_qp.h"

struct persister {
	pthread_t thread;
	bool (*persist)(void *va, uint64_t len); /* constant */
	/* protects all below, and the list; taken inside a stack lock, or alone */
	pthread_mutex_t lock;
	pthread_cond_t work, over;
	TAILQ_HEAD(, persist_job) jobs; /* those that wait, first come first served */
	struct persist_job *running; /* NULL also if nobody waits for the one under way any more */
	bool stop, stopped;
	bool joined; /* used by the thread that ends the process alone */
};

static struct conn_qp *qp_of_job(struct persist_job *j)
{
	return (struct conn_qp *)((uint8_t *)j - offsetof(struct conn_qp, flush));
}

static struct persister *persister_of(const struct conn_qp *q)
{
	return conn_qp_stack(q)->domain->persister;
}

/* ---- the thread; under its lock, but for persist ------------------------------------------- */

/* The stack whose lock nobody may have, and on whose ring the QP is now; NULL: nobody waits. */
static struct sched *finished(struct persister *p, bool ok)
{
	struct persist_job *j = p->running;

	p->running = NULL;
	if (!j)
		return NULL;
	atomic_store_explicit(&j->state, ok ? PERSIST_DONE : PERSIST_FAILED, memory_order_release);
	/* Not after the lock: the QP may be destroyed then. Whoever does that takes the lock first,
	 * even if the QP's stream has taken the result already, and then takes the QP off the ring.
	 */
	return sched_push(&qp_of_job(j)->ring);
}

/* What the region has become meanwhile does not matter: msync() of memory that is gone fails, and
 * that of other memory does no harm. */
static void carry_out(struct persister *p)
{
	struct persist_job *j = TAILQ_FIRST(&p->jobs);
	struct sched *s;
	uint64_t len = j->len;
	void *va = j->va;
	bool ok;

	TAILQ_REMOVE(&p->jobs, j, link);
	p->running = j;
	pthread_mutex_unlock(&p->lock);
	ok = p->persist(va, len);
	pthread_mutex_lock(&p->lock);
	s = finished(p, ok);
	pthread_mutex_unlock(&p->lock);
	if (s)
		sched_kick(s);
	pthread_mutex_lock(&p->lock);
}

static void *persister_main(void *arg)
{
	struct persister *p = arg;

	pthread_setname_np(pthread_self(), "uwarp-persist");
	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		if (!TAILQ_EMPTY(&p->jobs))
			carry_out(p);
		else
			pthread_cond_wait(&p->work, &p->lock);
	}
	p->stopped = true;
	pthread_cond_signal(&p->over);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void init_conds(struct persister *p)
{
	pthread_condattr_t attr;

	pthread_cond_init(&p->work, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->over, &attr);
	pthread_condattr_destroy(&attr);
}

uw_status persister_start(struct conn_domain *d, bool (*persist)(void *va, uint64_t len))
{
	struct persister *p;

	if (d->persister)
		return UW_OK;
	p = calloc(1, sizeof(*p));
	if (!p)
		return UW_E_NOMEM;
	p->persist = persist;
	TAILQ_INIT(&p->jobs);
	pthread_mutex_init(&p->lock, NULL);
	init_conds(p);
	if (sched_spawn(&p->thread, persister_main, p)) {
		free(p);
		return UW_E_NOMEM;
	}
	d->persister = p;
	return UW_OK;
}

static struct timespec deadline(uint32_t us)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += us % 1000000 * 1000l;
	t.tv_sec += us / 1000000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

bool persister_stop(struct conn_domain *d, uint32_t us)
{
	struct persister *p = d->persister;
	struct timespec until = deadline(us);
	bool stopped;
	int err = 0;

	if (!p || p->joined)
		return true;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->work);
	while (!p->stopped && !err)
		err = pthread_cond_timedwait(&p->over, &p->lock, &until);
	stopped = p->stopped;
	pthread_mutex_unlock(&p->lock);
	if (!stopped)
		return false;
	pthread_join(p->thread, NULL);
	p->joined = true;
	return true;
}

void persister_forget(struct conn_domain *d)
{
	free(d->persister);
	d->persister = NULL;
}

/* ---- the QP's stream ----------------------------------------------------------------------- */

static void enqueue(struct persister *p, struct persist_job *j)
{
	atomic_store_explicit(&j->state, PERSIST_WAITS, memory_order_relaxed);
	pthread_mutex_lock(&p->lock);
	TAILQ_INSERT_TAIL(&p->jobs, j, link);
	pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

uw_status persist_for_qp(struct qp *qp, void *va, uint64_t len)
{
	struct conn_qp *q = (struct conn_qp *)((uint8_t *)qp - offsetof(struct conn_qp, qp));
	struct persister *p = persister_of(q);
	struct persist_job *j = &q->flush;
	enum persist_state is = persist_state(q);

	if (!p)
		return qp->mem->persist(va, len) ? UW_OK : UW_E_RDMAP_STREAM_CATASTROPHIC;
	if (is == PERSIST_WAITS)
		return UW_MORE;
	atomic_store_explicit(&j->state, PERSIST_NO, memory_order_relaxed);
	/* The program may have moved the region since. */
	if (is != PERSIST_NO && j->va == va && j->len == len)
		return is == PERSIST_DONE ? UW_OK : UW_E_RDMAP_STREAM_CATASTROPHIC;
	j->va = va;
	j->len = len;
	enqueue(p, j);
	return UW_MORE;
}

enum persist_state persist_state(const struct conn_qp *q)
{
	return atomic_load_explicit(&q->flush.state, memory_order_acquire);
}

void persist_cancel(struct conn_qp *q)
{
	struct persister *p = persister_of(q);

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	if (p->running == &q->flush)
		p->running = NULL;
	else if (persist_state(q) == PERSIST_WAITS)
		TAILQ_REMOVE(&p->jobs, &q->flush, link);
	atomic_store_explicit(&q->flush.state, PERSIST_NO, memory_order_relaxed);
	pthread_mutex_unlock(&p->lock);
}
