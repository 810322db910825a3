/* SPDX-License-Identifier: BSD-3-Clause */
/* The links come up and the RX threads start, at the first call that needs them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/log.h"
#include "engine/addresses.h"
#include "engine/engine.h"
#include "engine/links.h"
#include "engine/routes.h"
#include "engine/stat/stat.h"
#include "engine/transport.h"
#include "loss/cc.h"

/* ---- what links call back -------------------------------------------------------------------- */

static void env_lock(void *arg)
{
	sched_lock(&((struct stack *)arg)->sched);
}

static void env_unlock(void *arg)
{
	sched_unlock(&((struct stack *)arg)->sched);
}

static void env_peer_down(void *arg, uint32_t addr)
{
	struct stack *s = arg;

	/* What another stack has handed over was sent before the peer went. */
	if (sched_is_one_of_several(&s->sched))
		sched_run(&s->sched);
	for (unsigned i = 0; i < s->n_links; i++)
		s->llp->peer_down(s->links[i], addr);
}

static void env_wake(void *arg, const struct io_ring *ring, uint32_t was)
{
	sched_wake_peer(&((struct stack *)arg)->sched, ring, was);
}

struct io_env engine_env(struct stack *s)
{
	return (struct io_env){ s, env_lock, env_unlock, env_peer_down, env_wake };
}

/* ---- what transports call back --------------------------------------------------------------- */

static uint64_t llp_now(void *arg)
{
	return stack_now_us(arg);
}

static uint32_t llp_random(void *arg)
{
	return stack_random(arg);
}

static void llp_capture(void *arg, const struct io_frame *f)
{
	struct stack *s = arg;

	io_pcap_write(engine_of(s->domain)->pcap[s->sched.index], f, stack_now_us(s));
}

static void wake_stack(void *arg)
{
	sched_wake(&((struct stack *)arg)->sched);
}

static struct io_pcap *open_pcap(const char *path, unsigned index)
{
	char own[PATH_MAX];
	struct io_pcap *p;

	if (!*path)
		return NULL;
	snprintf(own, sizeof(own), index ? "%s.%u" : "%s", path, index);
	p = io_pcap_open(own);
	if (!p)
		uw_log("UWARP_PCAP=%s: %s", own, strerror(errno));
	return p;
}

static uw_status start_llp(struct uw_engine *e, struct stack *s)
{
	static const struct cc_ops *const control[] = {
		[UW_CC_CUBIC] = &cc_cubic, [UW_CC_DCTCP] = &cc_dctcp, [UW_CC_DELAY] = &cc_delay
	};
	unsigned index = s->sched.index;
	struct llp_config llp = { .user = &conn_llp_user,
				  .now_us = llp_now,
				  .random = llp_random,
				  .wake = wake_stack,
				  .arg = s,
				  .congestion = control[e->cfg.congestion],
				  .ecn = e->cfg.ecn,
				  .timestamps = e->cfg.timestamps,
				  .keepalive_ms = e->cfg.keepalive_ms,
				  .stats = &s->sched.stats };

	e->pcap[index] = open_pcap(e->cfg.pcap, index);
	llp.capture = e->pcap[index] ? llp_capture : NULL;
	return s->llp->init(&llp);
}

static void use(struct stack *s, struct io_link *const *links, unsigned n)
{
	s->n_links = n;
	for (unsigned i = 0; i < n; i++) {
		s->links[i] = links[i];
		s->llp->add_link(links[i]);
	}
}

uw_status engine_use_links(struct uw_engine *e, struct io_link *const *links, unsigned per_stack)
{
	uw_status st = UW_OK;

	for (unsigned k = 0; k < e->n_stacks && !st; k++)
		st = start_llp(e, e->stack[k]);
	for (unsigned k = 0; k < e->n_stacks && !st; k++)
		use(e->stack[k], links + (size_t)k * per_stack, per_stack);
	return st;
}

uw_status engine_steer_links(struct uw_engine *e, struct io_link *const *under,
			     struct io_link **out)
{
	const struct steer_config c = { .under = under,
					.n = e->n_stacks,
					.wake = wake_stack,
					.arg = (void *const *)e->stack,
					.ports = e->steer };

	return steer_open(&c, out);
}

/* ---- starting ------------------------------------------------------------------------------ */

static uw_status open_one(struct uw_engine *e, struct io_link **out)
{
	const struct transport *t = transport_find(e->cfg.transport);
	struct io_env env = engine_env(e->stack[0]);
	uw_status st = (t->open_link ? t->open_link : engine_link_open)(e, &env, out);

	return st ? st : link_limit(e, out);
}

static uw_status open_several(struct uw_engine *e, struct io_link **out)
{
	struct io_env env[UW_STACKS_MAX];
	struct io_link *under[UW_STACKS_MAX];
	uw_status st;

	for (unsigned i = 0; i < e->n_stacks; i++)
		env[i] = engine_env(e->stack[i]);
	st = engine_links_open(e, env, under);
	if (!st)
		st = links_limit(e, under);
	if (st)
		return st;
	st = engine_steer_links(e, under, out);
	for (unsigned i = 0; st && i < e->n_stacks; i++)
		under[i]->ops->close(under[i]);
	return st;
}

static void give_waits(struct sched *s, const struct io_link *l)
{
	s->wait = (struct sched_link){ .able = l->flags & IO_WAITS && !sched_is_one_of_several(s),
				       .fd = { l->wait.fd, l->frames_fd[0], l->frames_fd[1] },
				       .ring = l->wait };
}

static uw_status take_links(struct uw_engine *e, struct io_link *const *links)
{
	uw_status st;

	sched_lock_all(&e->stack[0]->sched);
	for (unsigned i = 0; i < e->n_stacks; i++) {
		if (links[i]->flags & IO_RINGS)
			atomic_store(&e->stack[i]->sched.doorbell, links[i]->doorbell);
		if (links[i]->flags & IO_YIELD)
			e->stack[i]->sched.mover_cpu = links[i]->mover_cpu;
		e->stack[i]->sched.frames_wait = links[i]->ops->due_ns;
		give_waits(&e->stack[i]->sched, links[i]);
		if (links[i]->ops->sleep && !e->stack[i]->sched.ops->sleep)
			e->stack[i]->sched.ops = &engine_sched_ops_link_sleeps;
	}
	st = engine_use_links(e, links, 1);
	sched_unlock_all(&e->stack[0]->sched);
	return st;
}

static void forget_link(struct uw_engine *e, struct sched *s)
{
	if (s->ops == &engine_sched_ops_link_sleeps)
		s->ops = &engine_sched_ops;
	s->wait = (struct sched_link){ 0 };
	s->mover_cpu = NULL;
	s->frames_wait = false;
	atomic_store(&s->doorbell, &s->own_doorbell);
	atomic_store(&s->own_doorbell, IO_AWAKE);
	atomic_store(&s->stop, false);
	if (e->pcap[s->index])
		io_pcap_close(e->pcap[s->index]);
	e->pcap[s->index] = NULL;
}

/* It did not start, with so many threads already there: the next call that needs the links tries
 * anew. Nobody but these threads has seen a link. */
static void undo(struct uw_engine *e, struct io_link *const *links, unsigned threads)
{
	bool taken = e->stack[0]->n_links;

	for (unsigned i = 0; i < threads; i++)
		sched_thread_stop(&e->stack[i]->sched);
	if (taken)
		engine_close_links(e);
	sched_lock_all(&e->stack[0]->sched);
	for (unsigned i = 0; i < e->n_stacks; i++)
		forget_link(e, &e->stack[i]->sched);
	sched_unlock_all(&e->stack[0]->sched);
	for (unsigned i = 0; i < e->n_stacks && !taken; i++)
		links[i]->ops->close(links[i]);
	held_drop(&e->held);
	engine_routes_free(e);
}

/* 0 or a negative errno; *n: so many there are. */
static int start_threads(struct uw_engine *e, struct io_link *const *links, unsigned *n)
{
	int err = 0;

	for (*n = 0; *n < e->n_stacks && !err; *n += !err)
		err = sched_thread_start(&e->stack[*n]->sched, links[*n]->flags & IO_RINGS);
	return err ? err : engine_routes_follow(e);
}

/* On an error the links are closed. */
static uw_status find_place(struct uw_engine *e, struct io_link *const *links)
{
	uw_status st = engine_addresses_search(e, links);

	if (!st)
		st = engine_routes_open(e, links);

	for (unsigned i = 0; st && i < e->n_stacks; i++)
		links[i]->ops->close(links[i]);
	if (st) {
		held_drop(&e->held);
		engine_routes_free(e);
	}
	return st;
}

static int start(struct uw_engine *e)
{
	struct io_link *links[UW_STACKS_MAX];
	uw_status st = e->n_stacks > 1 ? open_several(e, links) : open_one(e, links);
	unsigned threads = 0;
	int err;

	if (!st)
		st = find_place(e, links);
	if (st)
		return engine_errno(st);
	err = engine_errno(take_links(e, links));
	if (!err)
		err = start_threads(e, links, &threads);
	if (err) {
		undo(e, links, threads);
		return err;
	}
	for (unsigned i = 0; i < e->n_stacks; i++)
		atomic_store_explicit(&e->stack[i]->sched.started, true, memory_order_release);
	stat_start(e);
	return 0;
}

int uw_engine_start(struct uw_engine *e)
{
	int err = 0;

	if (e->manual || uw_engine_started(e))
		return 0;
	pthread_mutex_lock(&e->start_lock);
	uw_guard_install();
	if (!uw_engine_started(e))
		err = start(e);
	pthread_mutex_unlock(&e->start_lock);
	return err;
}

bool uw_engine_started(const struct uw_engine *e)
{
	return atomic_load_explicit(&e->stack[0]->sched.started, memory_order_acquire);
}
