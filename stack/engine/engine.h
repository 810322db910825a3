/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole of it: one struct uw_engine is what a process has of uwarp. It opens the links, starts
 * the stacks, and ends them; what they do is in the rooms below (verbs, conn, sched).
 */
#ifndef UWARP_ENGINE_ENGINE_H
#define UWARP_ENGINE_ENGINE_H

#include <pthread.h>

#include "io/io.h"
#include "io/pcap.h"
#include "io/steer.h"
#include "verbs/verbs.h"

struct uw_engine {
	struct uw_config cfg; /* constant */
	struct conn_domain conn;
	struct verbs verbs;
	unsigned n_stacks;		     /* constant */
	struct stack *stack[UW_STACKS_MAX];  /* constant; the first is conn.first */
	struct io_pcap *pcap[UW_STACKS_MAX]; /* of each stack; under its lock */
	struct steer_ports *steer;  /* several stacks: whose segments are whose; constant */
	pthread_mutex_t start_lock; /* one thread brings the link up */
	bool manual;		    /* tests: nobody but the test runs the stacks */
};

/* ---- engine.c ----------------------------------------------------------------------------- */

/* For tests: links and clock from outside, no thread; sched_run() of each stack drives. links has
 * those of the first stack, n of them, then those of the next. now_us NULL: the system's clock. */
int engine_open_manual(const struct uw_config *cfg, struct io_link *const *links, unsigned n,
		       uint64_t (*now_us)(void *arg), void *arg, struct uw_engine **out);
/* Free it; nothing of it may be in use. */
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

/* What a link may call back, of that stack. */
struct io_env engine_env(struct stack *s);
/* Give the stacks their links, and the transports their configuration. Under all locks. */
void engine_use_links(struct uw_engine *e, struct io_link *const *links, unsigned per_stack);
/* In front of the links of one port, each a stack's: what hands frames to the stack whose they are.
 */
uw_status engine_steer_links(struct uw_engine *e, struct io_link *const *under,
			     struct io_link **out) UW_CHECK;

/* ---- stop.c ------------------------------------------------------------------------------- */

/* All stacks let their links go, and then the links are closed. No lock held. */
void engine_close_links(struct uw_engine *e);

/* ---- run.c: what a scheduler does for a stack (struct sched_ops) ---------------------------- */

extern const struct sched_ops engine_sched_ops, engine_sched_ops_sleeping;
/* A forked child's: nothing. */
extern const struct sched_ops engine_sched_ops_dead;

/* ---- links_core.c, links_dpdk.c: which links this build has --------------------------------- */

/* A link as the configuration says, for each stack one: env and out have n_stacks entries. */
uw_status engine_link_open(struct uw_engine *e, const struct io_env *env,
			   struct io_link **out) UW_CHECK;
uw_status engine_links_open(struct uw_engine *e, const struct io_env *env,
			    struct io_link **out) UW_CHECK;

/* ---- counters.c: what a verbose process says at its end -------------------------------------- */

void engine_log_counters(const struct uw_stats *st);
void engine_log_link(const struct io_link *l);

#endif
