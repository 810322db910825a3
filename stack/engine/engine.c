/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine and its stacks: made and freed. */
#include "engine/stat/stat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "conn/endpoint.h"
#include "conn/rc/rc.h"
#include "engine/routes.h"
#include "engine/transport.h"

static uint64_t clock_us(void *arg)
{
	(void)arg;
	return uw_clock_us();
}

/* ---- random numbers ------------------------------------------------------------------------ */

static void fill_from_kernel(void *arg, void *p, size_t n)
{
	uint8_t *at = p;

	(void)arg;
	while (n) { /* a signal may cut it short; otherwise it does not fail (has_random) */
		ssize_t got = getrandom(at, n, 0);

		if (got <= 0)
			continue;
		at += got;
		n -= (size_t)got;
	}
}

/* Tests: every run is the same. SplitMix64, with a state of its own for each stack. */
static void fill_repeatably(void *arg, void *p, size_t n)
{
	uint64_t *state = arg;

	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t z = *state += 0x9e3779b97f4a7c15u;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		z ^= z >> 31;
		memcpy((uint8_t *)p + i, &z, sizeof(z));
	}
}

static_assert(UW_RANDOM_BATCH % sizeof(uint64_t) == 0, "a batch of whole steps");

/* ---- stacks -------------------------------------------------------------------------------- */

static void steer_port_of(void *arg, bool ip6, uint16_t port, int to)
{
	struct uw_engine *e = arg;

	steer_port(e->steer, ip6 ? STEER_IP6 : STEER_IP4, port, to < 0 ? STEER_ANY : (uint8_t)to);
}

static struct stack *stack_new(struct uw_engine *e, unsigned index, const struct llp_ops *llp)
{
	struct stack *s = aligned_alloc(64, (sizeof(*s) + 63) & ~(size_t)63);

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->sched.ops = llp->sleep ? &engine_sched_ops_sleeping : &engine_sched_ops;
	s->sched.stack = s;
	s->sched.index = index;
	s->sched.first = index ? &e->stack[0]->sched : &s->sched;
	s->sched.now_us = clock_us;
	uw_random_init(&s->random, fill_from_kernel, NULL);
	sched_init(&s->sched);
	stack_set_up(s, &e->conn, llp);
	return s;
}

static int check_several(const struct uw_config *cfg, const struct transport *t,
			 const struct thread_model *model)
{
	if (cfg->stacks <= 1)
		return 0;
	if (!t->instance) {
		uw_log("UWARP_STACKS=%u: the transport %s has one stack only", cfg->stacks,
		       t->name);
		return -EINVAL;
	}
	if (model->app_alone) {
		uw_log("UWARP_STACKS=%u: each stack has a thread of its own, so UWARP_THREADS=c2 "
		       "cannot be",
		       cfg->stacks);
		return -EINVAL;
	}
	return 0;
}

/* A program that polls cannot know which of several stacks has something for it: their threads do
 * the work. */
static const struct thread_model *model_of(const struct uw_config *cfg)
{
	const struct thread_model *m = sched_thread_model(cfg->threads);

	return cfg->stacks > 1 && m->polls_drive ? sched_thread_model(UW_THREADS_C3) : m;
}

static int add_stacks(struct uw_engine *e, const struct transport *t)
{
	for (unsigned i = 0; i < e->cfg.stacks; i++) {
		struct stack *s = stack_new(e, i, i ? t->instance(i) : t->ops);

		if (!s)
			return -ENOMEM;
		s->sched.model = model_of(&e->cfg);
		e->stack[i] = s;
		e->n_stacks++;
		if (i)
			e->stack[i - 1]->sched.next = &s->sched;
	}
	e->conn.first = e->stack[0];
	return 0;
}

/* ---- the engine ---------------------------------------------------------------------------- */

static int add_steering(struct uw_engine *e)
{
	if (e->cfg.stacks <= 1)
		return 0;
	e->steer = steer_ports_new();
	return e->steer ? 0 : -ENOMEM;
}

static int fill_in(struct uw_engine *e, const struct transport *t)
{
	struct conn_hooks hooks = { .find_qp = verbs_find_qp, .find_qp_arg = &e->verbs };
	int err = check_several(&e->cfg, t, sched_thread_model(e->cfg.threads));

	if (!err)
		err = add_steering(e);
	if (err)
		return err;
	if (stat_records(e)) {
		hooks.failed = stat_failed;
		hooks.failed_arg = e;
	}
	if (e->steer) {
		hooks.steer = steer_port_of;
		hooks.steer_arg = e;
	}
	err = engine_errno(verbs_init(&e->verbs, &e->conn));
	if (!err)
		err = engine_errno(conn_domain_init(&e->conn, &e->cfg, &hooks));
	if (!err)
		err = add_stacks(e, t);
	if (!err && e->steer) { /* CM-less RC is the first stack's */
		steer_port_of(e, false, htons(RC_PORT), 0);
		steer_port_of(e, true, htons(RC_PORT), 0);
	}
	return err;
}

/* Sequence numbers and keys must not be guessed, so there is nothing to go on with. */
static bool has_random(void)
{
	uint8_t octet;
	ssize_t got;

	do
		got = getrandom(&octet, sizeof(octet), 0);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		return true;
	uw_log("the kernel refuses random numbers to this process (getrandom, seccomp?): %s",
	       strerror(errno));
	return false;
}

static int new_engine(const struct uw_config *cfg, struct uw_engine **out)
{
	const struct transport *t = transport_find(cfg->transport);
	struct uw_engine *e;
	int err;

	if (!t)
		return -EINVAL;
	if (!has_random())
		return -EPERM;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	pthread_mutex_init(&e->start_lock, NULL);
	e->cfg = *cfg;
	if (!e->cfg.stacks)
		e->cfg.stacks = 1;
	err = fill_in(e, t);
	if (err) {
		engine_free(e);
		return err;
	}
	*out = e;
	return 0;
}

void engine_free(struct uw_engine *e)
{
	while (e->conn.eps)
		ep_free(e->conn.eps);
	/* Those of CM-less RC that ended, and whose timer has not freed them. */
	for (unsigned i = 0; i < e->n_stacks; i++) {
		while (e->stack[i]->conns)
			conn_free(e->stack[i]->conns);
	}
	verbs_free(&e->verbs);
	conn_domain_free(&e->conn);
	engine_routes_free(e);
	for (unsigned i = 0; i < e->n_stacks; i++) {
		rc_resolver_free(e->stack[i]);
		free(e->stack[i]);
	}
	free(e->steer);
	pthread_mutex_destroy(&e->start_lock);
	free(e);
}

int uw_engine_open(const struct uw_config *cfg, struct uw_engine **out)
{
	struct uw_config env;
	int err;

	if (cfg)
		return new_engine(cfg, out);
	err = uw_config_from_env(&env);
	return err ? err : new_engine(&env, out);
}

/* ---- tests --------------------------------------------------------------------------------- */

static uint64_t states[UW_STACKS_MAX];

static void make_repeatable(struct uw_engine *e, uint64_t (*now_us)(void *arg), void *arg)
{
	e->manual = e->conn.manual = true;
	for (unsigned i = 0; i < e->n_stacks; i++) {
		struct stack *s = e->stack[i];

		states[i] = i;
		uw_random_init(&s->random, fill_repeatably, &states[i]);
		if (!now_us)
			continue;
		s->sched.now_us = now_us;
		s->sched.now_arg = arg;
	}
}

/* Links number i of all stacks are queues of one port. */
static int steer_manual(struct uw_engine *e, struct io_link **all, unsigned n)
{
	for (unsigned i = 0; i < n && e->n_stacks > 1; i++) {
		struct io_link *under[UW_STACKS_MAX], *over[UW_STACKS_MAX];
		uw_status st;

		for (unsigned k = 0; k < e->n_stacks; k++)
			under[k] = all[k * n + i];
		st = engine_steer_links(e, under, over);
		if (st)
			return engine_errno(st);
		for (unsigned k = 0; k < e->n_stacks; k++)
			all[k * n + i] = over[k];
	}
	return 0;
}

int engine_open_manual(const struct uw_config *cfg, struct io_link *const *links, unsigned n,
		       uint64_t (*now_us)(void *arg), void *arg, struct uw_engine **out)
{
	struct io_link *all[UW_STACKS_MAX * STACK_LINKS];
	struct uw_engine *e;
	int err = new_engine(cfg, &e);

	if (err)
		return err;
	make_repeatable(e, now_us, arg);
	for (unsigned i = 0; i < e->n_stacks * n; i++) {
		all[i] = links[i];
		all[i]->env = engine_env(e->stack[i / n]);
	}
	err = steer_manual(e, all, n);
	if (err)
		return err;
	sched_lock_all(&e->stack[0]->sched);
	err = engine_errno(engine_use_links(e, all, n));
	sched_unlock_all(&e->stack[0]->sched);
	if (err)
		return err;
	*out = e;
	return 0;
}
