/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine's life. */
#include "engine/engine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "engine/finder.h"
#include "engine/links.h"
#include "engine/say.h"
#include "engine/transport.h"
#include "io/steer.h"

#ifndef UWARP_VERSION
#define UWARP_VERSION "0"
#endif

#define MEM_SLOTS 256u
#define DRAIN_US  2000000u
#define LOCK_US	  1000000u /* to wait for the stack lock when the process ends */

/* ---- what the layers below ask for -------------------------------------------------------- */

static uint64_t clock_us(void *arg)
{
	struct timespec t;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t engine_now_us(struct uw_engine *e)
{
	return e->now_us(e->now_arg);
}

/* xorshift64*: spread, not secrets; the seed comes from the kernel. */
uint32_t engine_random(struct uw_engine *e)
{
	e->rng ^= e->rng >> 12;
	e->rng ^= e->rng << 25;
	e->rng ^= e->rng >> 27;
	return (uint32_t)((e->rng * 0x2545f4914f6cdd1du) >> 32);
}

static uint32_t llp_random(void *arg)
{
	return engine_random(arg);
}

static uint64_t llp_now(void *arg)
{
	return engine_now_us(arg);
}

static void llp_capture(void *arg, const struct io_frame *f)
{
	struct uw_engine *e = arg;

	io_pcap_write(e->pcap, f, engine_now_us(e));
}

static uint64_t llp_serial(void *arg)
{
	struct uw_engine *e = arg;

	return 1 + atomic_fetch_add(&e->lead->syns, 1);
}

static void llp_wake(void *arg)
{
	engine_wake(arg);
}

static void env_lock(void *arg)
{
	engine_lock(arg);
}

static void env_unlock(void *arg)
{
	engine_unlock(arg);
}

static void env_peer_down(void *arg, uint32_t addr)
{
	struct uw_engine *e = arg;

	if (engine_is_one_of_several(e)) /* what others have handed over was sent before */
		engine_run(e);
	for (unsigned i = 0; i < e->n_links; i++)
		llp_peer_down(e->llp, e->links[i], addr);
}

static void env_wake(void *arg, _Atomic uint32_t *bell)
{
	engine_wake_later(arg, bell);
}

/* ---- life -------------------------------------------------------------------------------- */

static void make_policy(struct uw_engine *e)
{
	const struct uw_config *c = &e->cfg;

	e->policy = (struct mpa_policy){ .rev = (uint8_t)c->mpa_rev,
					 .rev_max = 2,
					 .crc = c->crc,
					 .rx_markers = c->markers,
					 .p2p = c->p2p,
					 .rtr = MPA_RTR_WRITE | MPA_RTR_READ,
					 .ird_max = (uint16_t)c->ird,
					 .ord_max = (uint16_t)c->ord };
	/* Both sides are ours, and either may speak first (RFC 6581 §9.2). */
	e->rc_policy = e->policy;
	e->rc_policy.rev = 2;
	e->rc_policy.p2p = true;
}

static uint64_t seed(void)
{
	uint64_t s = 0;

	if (getrandom(&s, sizeof(s), 0) != sizeof(s))
		s = clock_us(NULL) ^ (uint64_t)getpid() << 32;
	return s | 1;
}

static int new_engine(const struct uw_config *cfg, struct uw_engine **out)
{
	const struct transport *transport = transport_find(cfg->transport);
	struct uw_engine *e;
	struct mem_region **slots;

	if (!transport)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	slots = calloc(MEM_SLOTS, sizeof(*slots));
	if (!e || !slots) {
		free(e);
		free(slots);
		return -ENOMEM;
	}
	e->lead = e;
	e->llp = transport->ops;
	e->cfg = *cfg;
	if (!e->cfg.stacks)
		e->cfg.stacks = 1;
	e->model = engine_thread_model(cfg->threads);
	make_policy(e);
	engine_port_reserve(e, RC_PORT);
	e->rc_due_us = UINT64_MAX;
	mem_table_init(&e->mem, slots, MEM_SLOTS);
	e->mem.reachable = engine_is_reachable;
	pthread_mutex_init(&e->start_lock, NULL);
	atomic_init(&e->next_pd, 1);
	e->now_us = clock_us;
	e->rng = seed();
	e->doorbell = &e->own_doorbell;
	*out = e;
	return 0;
}

static void free_engine(struct uw_engine *e)
{
	engine_free_stacks(e);
	pthread_mutex_destroy(&e->start_lock);
	free(e->mem.slots);
	free(e->qps.v);
	free(e);
}

int uw_engine_open(const struct uw_config *cfg, struct uw_engine **out)
{
	struct uw_config env;
	int err;

	if (!cfg) {
		err = uw_config_from_env(&env);
		if (err)
			return err;
		cfg = &env;
	}
	err = new_engine(cfg, out);
	if (err)
		return err;
	err = engine_add_stacks(*out);
	if (err)
		free_engine(*out);
	return err;
}

static void open_pcap(struct uw_engine *e)
{
	const char *path = getenv("UWARP_PCAP");
	char own[PATH_MAX];

	if (!path || !*path)
		return;
	snprintf(own, sizeof(own), e->index ? "%s.%u" : "%s", path, e->index);
	e->pcap = io_pcap_open(own);
	if (!e->pcap)
		engine_say("UWARP_PCAP=%s: %s", own, strerror(errno));
}

static void start_llp(struct uw_engine *e)
{
	struct llp_config llp = { .user = &engine_llp_user,
				  .now_us = llp_now,
				  .random = llp_random,
				  .capture = e->pcap ? llp_capture : NULL,
				  .wake = llp_wake,
				  .serial = engine_is_one_of_several(e) ? llp_serial : NULL,
				  .arg = e,
				  .keepalive_ms = e->cfg.keepalive_ms,
				  .stats = &e->stats };

	llp_init(e->llp, &llp);
	for (unsigned i = 0; i < e->n_links; i++)
		llp_add_link(e->llp, e->links[i]);
}

static struct io_env env_of(struct uw_engine *e)
{
	return (struct io_env){ e, env_lock, env_unlock, env_peer_down, env_wake };
}

/* Under its lock. */
static void use_links(struct uw_engine *e, struct io_link *const *links, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		e->links[i] = links[i];
	e->n_links = n;
	open_pcap(e);
	start_llp(e);
}

static void wake_stack(void *arg)
{
	engine_wake(arg);
}

/* Of one port, for each stack one: and what puts them together in front of them. */
static uw_status steer_links(struct uw_engine *lead, struct io_link *const *under,
			     struct io_link **out)
{
	void *stack[UW_STACKS_MAX];
	const struct steer_config c = { .under = under,
					.n = lead->cfg.stacks,
					.wake = wake_stack,
					.arg = stack,
					.ports = lead->steer };

	for (struct uw_engine *e = lead; e; e = e->next)
		stack[e->index] = e;
	return steer_open(&c, out);
}

/* links: those of the first stack, then those of the next. */
static int use_manual(struct uw_engine *lead, struct io_link *const *links, unsigned n)
{
	struct io_link *mine[UW_STACKS_MAX][2] = { 0 }, *under[UW_STACKS_MAX], *over[UW_STACKS_MAX];
	uw_status st;

	for (struct uw_engine *e = lead; e; e = e->next) {
		for (unsigned i = 0; i < n; i++) {
			mine[e->index][i] = links[e->index * n + i];
			mine[e->index][i]->env = env_of(e);
		}
	}
	for (unsigned i = 0; i < n && lead->next; i++) {
		for (unsigned k = 0; k < lead->cfg.stacks; k++)
			under[k] = mine[k][i];
		st = steer_links(lead, under, over);
		if (st)
			return engine_errno(st);
		for (unsigned k = 0; k < lead->cfg.stacks; k++)
			mine[k][i] = over[k];
	}
	for (struct uw_engine *e = lead; e; e = e->next)
		use_links(e, mine[e->index], n);
	return 0;
}

int engine_open_manual(const struct uw_config *cfg, struct io_link *const *links, unsigned n,
		       uint64_t (*now_us)(void *arg), void *arg, struct uw_engine **out)
{
	int err = new_engine(cfg, out);
	struct uw_engine *e = *out;

	if (err)
		return err;
	e->manual = true;
	e->rng = 1; /* the run repeats exactly */
	if (now_us) {
		e->now_us = now_us;
		e->now_arg = arg;
	}
	err = engine_add_stacks(e);
	if (err) {
		free_engine(e);
		return err;
	}
	return use_manual(e, links, n);
}

static uw_status open_one_link(struct uw_engine *e, struct io_link **out)
{
	const struct transport *t = transport_find(e->cfg.transport);
	struct io_env env = env_of(e);
	uw_status st = (t->open_link ? t->open_link : engine_link_open)(e, &env, out);

	return st ? st : link_limit(e, out);
}

/* One for each stack. */
static uw_status open_links(struct uw_engine *lead, struct io_link **out)
{
	struct io_env env[UW_STACKS_MAX];
	struct io_link *under[UW_STACKS_MAX];
	uw_status st;

	if (!lead->next)
		return open_one_link(lead, out);
	for (struct uw_engine *e = lead; e; e = e->next)
		env[e->index] = env_of(e);
	st = links_open(lead, env, under);
	if (!st)
		st = links_limit(lead, under);
	if (st)
		return st;
	st = steer_links(lead, under, out);
	for (unsigned i = 0; st && i < lead->cfg.stacks; i++)
		under[i]->ops->close(under[i]);
	return st;
}

static int start(struct uw_engine *lead)
{
	struct io_link *links[UW_STACKS_MAX];
	uw_status st = open_links(lead, links);
	int err = 0;

	if (st)
		return engine_errno(st);
	engine_lock_all(lead);
	for (struct uw_engine *e = lead; e; e = e->next) {
		if (links[e->index]->flags & IO_RINGS)
			e->doorbell = links[e->index]->doorbell;
		use_links(e, &links[e->index], 1);
	}
	engine_unlock_all(lead);
	for (struct uw_engine *e = lead; e && !err; e = e->next)
		err = engine_thread_start(e);
	if (err)
		return err;
	for (struct uw_engine *e = lead; e; e = e->next)
		atomic_store_explicit(&e->started, true, memory_order_release);
	return 0;
}

int uw_engine_start(struct uw_engine *e)
{
	int err = 0;

	if (e->manual || uw_engine_started(e))
		return 0;
	pthread_mutex_lock(&e->start_lock);
	if (!uw_engine_started(e))
		err = start(e);
	pthread_mutex_unlock(&e->start_lock);
	return err;
}

bool uw_engine_started(const struct uw_engine *e)
{
	return atomic_load_explicit(&e->started, memory_order_acquire);
}

/* ---- the end ----------------------------------------------------------------------------- */

static bool quiet(struct uw_engine *e)
{
	for (struct uw_ep *ep = e->eps; ep; ep = ep->next) {
		if (ep->qp && ep->c && (qp_tx_prepare(&ep->qp->qp) || !sq_empty(&ep->qp->qp.sq)))
			return false;
	}
	return true;
}

/* Every connection ends; the records stay, since threads of the program may still name them. */
static void retire(struct uw_engine *e)
{
	for (struct uw_ep *ep = e->eps; ep; ep = ep->next) {
		engine_ep_drop(ep);
		if (ep->ls)
			llp_unlisten(e->llp, ep->ls);
		ep->ls = NULL;
		ep->claimed = ep->unresolved = false; /* the link will be gone */
	}
}

/* What was posted is sent, what was sent is acknowledged, every FIN too; all within the limit. */
static void drain(struct uw_engine *e, uint64_t until)
{
	bool closed = false;

	for (;;) {
		unsigned left;

		engine_lock(e);
		engine_run(e);
		if (!closed && quiet(e)) {
			retire(e);
			closed = true;
		}
		left = llp_lingering(e->llp);
		llp_flush_links(e->llp);
		engine_unlock(e);
		if ((closed && !left) || engine_now_us(e) > until)
			return;
		sched_yield();
	}
}

/* Whoever takes the lock after this finds an engine without links. */
static unsigned remove_links(struct uw_engine *e)
{
	unsigned n = e->n_links;

	e->n_links = 0;
	for (unsigned i = 0; i < n; i++)
		llp_remove_link(e->llp, e->links[i]);
	e->doorbell = &e->own_doorbell; /* nobody else looks at it any more (llp's wake) */
	return n;
}

static void close_links(struct uw_engine *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (e->cfg.verbose)
			engine_say_link(e->links[i]);
		if (e->cfg.verbose && e->links[i]->flags & IO_TSO)
			engine_say_tso(&e->links[i]->stats);
		e->links[i]->ops->close(e->links[i]);
	}
}

/* What one stack has of another's link goes before any link does. */
static void close_all_links(struct uw_engine *lead)
{
	unsigned n = 0;

	engine_lock_all(lead);
	for (struct uw_engine *e = lead; e; e = e->next)
		n = remove_links(e);
	for (struct uw_engine *e = lead; e && lead->steer; e = e->next) {
		for (unsigned i = 0; i < n; i++)
			steer_stop(e->links[i]);
	}
	engine_unlock_all(lead);
	for (struct uw_engine *e = lead; e; e = e->next)
		close_links(e, n);
}

/* A program may leave from a signal handler, by exit() or longjmp(), that interrupted this very
 * thread with the lock taken: nobody gives it back. The peers see then that the process is gone, as
 * with one that was killed. */
static bool lock_is_lost(struct uw_engine *e)
{
	for (e = e->lead; e; e = e->next) {
		if (!engine_lock_within(e, LOCK_US))
			return true;
		engine_unlock(e);
	}
	return false;
}

static void stop(struct uw_engine *lead)
{
	uint64_t until = engine_now_us(lead) + DRAIN_US;

	engine_finder_stop(lead);
	for (struct uw_engine *e = lead; e; e = e->next)
		engine_thread_stop(e);
	for (struct uw_engine *e = lead; e; e = e->next)
		drain(e, until);
	close_all_links(lead);
}

static void free_eps(struct uw_engine *lead)
{
	for (struct uw_engine *e = lead; e; e = e->next) {
		while (e->eps)
			engine_ep_free(e->eps);
	}
}

void uw_engine_close(struct uw_engine *e)
{
	if (uw_engine_started(e) && lock_is_lost(e)) {
		engine_say("the program ended in the middle of a call: its connections were not "
			   "closed");
		return;
	}
	if (uw_engine_started(e)) {
		stop(e);
		for (struct uw_engine *s = e; s && s->cfg.verbose; s = s->next)
			engine_say_counters(&s->stats);
	} else if (e->manual) {
		free_eps(e);
		close_all_links(e);
	}
	for (struct uw_engine *s = e; s; s = s->next) {
		if (s->pcap)
			io_pcap_close(s->pcap);
	}
	/* The process ends, and until it has, its other threads may go on: they find nothing here,
	 * but they must find it. */
	if (atomic_load_explicit(&e->objects, memory_order_acquire) && !e->manual)
		return;
	free_eps(e);
	free_engine(e);
}

/* ---- query ------------------------------------------------------------------------------- */

/* The same before and after the link is up, since programs compare, and tell each other. */
static uint64_t guid_of(uint32_t addr)
{
	return 0x0275770000000000u | ntohl(addr);
}

static void add_gid(struct uw_device_attr *a, const struct uw_ip *ip)
{
	if (a->n_gids < UW_GIDS_MAX)
		memcpy(a->gid[a->n_gids++], ip, sizeof(*ip));
}

static void fill_addresses(const struct io_link *l, struct uw_device_attr *a)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&a->addr;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&a->addr;
	struct uw_ip four = uw_ip_v4(l->addr);

	if (l->addr)
		add_gid(a, &four);
	for (unsigned i = 1; i < l->n_ip6; i++)
		add_gid(a, &l->ip6[i].ip);
	if (l->n_ip6)
		add_gid(a, &l->ip6[0].ip);
	if (l->addr || !a->n_gids) {
		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = l->addr;
	} else {
		six->sin6_family = AF_INET6;
		memcpy(&six->sin6_addr, a->gid[0], sizeof(six->sin6_addr));
	}
	memcpy(&four, a->gid[0], sizeof(four));
	a->guid = guid_of(uw_ip_v4_be(&four));
}

void uw_engine_query(struct uw_engine *e, struct uw_device_attr *a)
{
	bool open = uw_engine_started(e) || e->manual;
	const struct io_link *l = open && e->n_links ? e->links[0] : NULL;
	struct io_link foreseen;

	memset(a, 0, sizeof(*a));
	a->max_qp = 1u << 18;
	a->max_qp_wr = 1u << 15;
	a->max_sge = 32;
	a->max_cq = 1u << 18;
	a->max_cqe = 1u << 22;
	a->max_mr = 1u << 22;
	a->max_mw = engine_is_one_of_several(e) ? 0 : 1u << 22; /* uw_mw_alloc */
	a->max_pd = 1u << 20;
	a->max_srq = 1u << 16;
	a->max_srq_wr = 1u << 15;
	a->max_inline = 1024;
	a->max_rd_atom = e->cfg.ird;
	a->mtu = l ? l->mtu : e->cfg.mtu ? e->cfg.mtu : 1500;
	a->mulpdu = (uint32_t)mpa_mulpdu(a->mtu - 40, false);
	a->link_bps = l ? l->bps : 10000000000u;
	a->link_up = true;
	if (!l)
		link_foresee(&e->cfg, &foreseen);
	fill_addresses(l ? l : &foreseen, a);
	a->addr_is_final = l || !e->cfg.ip_auto;
	a->roce = e->cfg.roce;
	memcpy(a->fw_ver, UWARP_VERSION, sizeof(UWARP_VERSION));
}
