/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * struct uw_engine holds everything that a process has of uwarp. The engine opens the links, starts
 * the stacks and ends them; the rooms below (verbs, conn, sched) do the rest.
 */
#ifndef UWARP_ENGINE_ENGINE_H
#define UWARP_ENGINE_ENGINE_H

#include <pthread.h>

#include "io/dad/held.h"
#include "io/io.h"
#include "io/pcap.h"
#include "io/steer.h"
#include "verbs/verbs.h"

struct engine_routes;

struct uw_engine {
	struct uw_config cfg; /* constant */
	struct conn_domain conn;
	struct verbs verbs;
	unsigned n_stacks;		     /* constant */
	struct stack *stack[UW_STACKS_MAX];  /* constant; the first is conn.first */
	struct io_pcap *pcap[UW_STACKS_MAX]; /* of each stack; under the lock of that stack */
	/* with several stacks: which stack a local port belongs to; constant */
	struct steer_ports *steer;
	struct held held;	      /* addresses of this process alone (addresses.c) */
	struct engine_routes *routes; /* routes.c; NULL: the links are not open */
	pthread_mutex_t start_lock;   /* held by the thread that brings the link up */
	bool manual;		      /* tests: only the test runs the stacks */
	bool fork_locked;	      /* fork.c: the locks were taken; one thread forks at a time */
	struct stat_server *stat;     /* stat/stat.h; NULL: none. Under any stack lock */
};

/* ---- engine.c ----------------------------------------------------------------------------- */

/* For tests: the caller provides links and clock, no thread runs, and the test calls sched_run()
 * for each stack. links: n links of the first stack, then n of the next one. now_us NULL: the
 * system's clock. */
int engine_open_manual(const struct uw_config *cfg, struct io_link *const *links, unsigned n,
		       uint64_t (*now_us)(void *arg), void *arg, struct uw_engine **out);
/* Free the engine, of which nothing may be in use. */
void engine_free(struct uw_engine *e);

static inline int engine_errno(uw_status st)
{
	return st ? -uw_status_errno(st) : 0;
}
static inline struct uw_engine *engine_of(const struct conn_domain *d)
{
	return (struct uw_engine *)((uint8_t *)d - offsetof(struct uw_engine, conn));
}

/* ---- start.c ------------------------------------------------------------------------------ */

/* The callbacks for links of stack s. */
struct io_env engine_env(struct stack *s);
/* Give links and configuration to the stacks and their transports. Under all locks. On an error no
 * stack has a link. */
uw_status engine_use_links(struct uw_engine *e, struct io_link *const *links,
			   unsigned per_stack) UW_CHECK;
/* Put link filters (io/steer.h) above the links of one port, one for each stack; a filter hands a
 * frame to the stack that owns the connection. */
uw_status engine_steer_links(struct uw_engine *e, struct io_link *const *under,
			     struct io_link **out) UW_CHECK;

/* ---- stop.c ------------------------------------------------------------------------------- */

/* Remove the links from all stacks, then close the links. No lock held. */
void engine_close_links(struct uw_engine *e);

/* ---- run.c: what a scheduler does for a stack (struct sched_ops) ---------------------------- */

extern const struct sched_ops engine_sched_ops, engine_sched_ops_sleeping;
/* For a stack with one link that can wait for frames (io_ops.sleep). */
extern const struct sched_ops engine_sched_ops_link_sleeps;
/* For a forked child: all functions do nothing. */
extern const struct sched_ops engine_sched_ops_dead;

/* ---- links_core.c, links_dpdk.c: which links this build has --------------------------------- */

/* Open the configured link; engine_links_open opens one for each stack, and env and out have
 * n_stacks entries. */
uw_status engine_link_open(struct uw_engine *e, const struct io_env *env,
			   struct io_link **out) UW_CHECK;
uw_status engine_links_open(struct uw_engine *e, const struct io_env *env,
			    struct io_link **out) UW_CHECK;

/* ---- counters.c: what a verbose process says at its end -------------------------------------- */

void engine_log_counters(const struct uw_stats *st);
void engine_log_link(const struct io_link *l);

#endif
