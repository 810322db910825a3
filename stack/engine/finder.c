/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/finder.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "engine/engine.h"

/* A process that is there answers within milliseconds; others must not wait for one that hangs. */
#define FIND_MS 1000u

struct rc_finder {
	struct uw_engine *e;
	pthread_t thread;
	pthread_mutex_t lock; /* taken inside the stack lock, and alone */
	pthread_cond_t kick;
	bool kicked, stop;
};

struct way {
	uint32_t qpn;
	struct uw_ip addr;
	uint64_t serial;
	struct io_link *l;
};

static bool next_way(struct uw_engine *e, struct way *w)
{
	struct uw_rc *rc;

	engine_lock(e);
	for (rc = e->rcs; rc && rc->state != RC_FINDING; rc = rc->next)
		;
	if (rc)
		*w = (struct way){ rc->self.qpn, rc->peer.addr, rc->serial, rc->l };
	engine_unlock(e);
	return rc != NULL;
}

static void found(struct uw_engine *e, const struct way *w, uw_status st)
{
	struct uw_qp *qp;

	engine_lock(e);
	qp = idmap_get(&e->qps, w->qpn);
	if (qp && qp->rc && qp->rc->serial == w->serial)
		engine_rc_found(qp->rc, st);
	llp_flush_links(e->llp);
	engine_unlock(e);
}

/* False: the end. */
static bool wait_for_work(struct rc_finder *f)
{
	bool stop;

	pthread_mutex_lock(&f->lock);
	while (!f->kicked && !f->stop)
		pthread_cond_wait(&f->kick, &f->lock);
	f->kicked = false;
	stop = f->stop;
	pthread_mutex_unlock(&f->lock);
	return !stop;
}

static void *find_ways(void *arg)
{
	struct rc_finder *f = arg;
	struct way w;

	pthread_setname_np(pthread_self(), "uwarp-find");
	while (wait_for_work(f)) {
		while (next_way(f->e, &w))
			found(f->e, &w, engine_find_way(w.l, &w.addr, htons(RC_PORT), FIND_MS));
	}
	return NULL;
}

uw_status engine_finder_start(struct uw_engine *e)
{
	struct rc_finder *f;

	if (e->finder)
		return UW_OK;
	f = calloc(1, sizeof(*f));
	if (!f)
		return UW_E_NOMEM;
	f->e = e;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->kick, NULL);
	if (engine_spawn(&f->thread, find_ways, f)) {
		free(f);
		return UW_E_NOMEM;
	}
	e->finder = f;
	return UW_OK;
}

void engine_finder_kick(struct uw_engine *e)
{
	struct rc_finder *f = e->finder;

	pthread_mutex_lock(&f->lock);
	f->kicked = true;
	pthread_cond_signal(&f->kick);
	pthread_mutex_unlock(&f->lock);
}

void engine_finder_stop(struct uw_engine *e)
{
	struct rc_finder *f = e->finder;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->kick);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->kick);
	free(f);
	e->finder = NULL;
}
