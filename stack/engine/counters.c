/* SPDX-License-Identifier: BSD-3-Clause */
/* What was counted: asked for, and at the end of a verbose process. */
#include <stdio.h>

#include "base/log.h"
#include "engine/engine.h"

#define COUNTER_TEXT 48 /* a name and twenty digits */

struct counter {
	const char *name;
	uint64_t n;
};

/* Those that counted anything, in as many lines as it takes. */
static void log_counted(const char *what, const struct counter *c, size_t n)
{
	char line[400];
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (!c[i].n)
			continue;
		at += (size_t)snprintf(line + at, sizeof(line) - at, " %s %llu", c[i].name,
				       (unsigned long long)c[i].n);
		if (at > sizeof(line) - COUNTER_TEXT) {
			uw_log("%s:%s", what, line);
			at = 0;
		}
	}
	if (at)
		uw_log("%s:%s", what, line);
}

void engine_log_counters(const struct uw_stats *st)
{
	const struct counter c[] = {
#define UW_STAT(name) { #name, st->name },
		UW_STATS_LIST(UW_STAT)
#undef UW_STAT
	};

	log_counted("counters", c, sizeof(c) / sizeof(c[0]));
}

void engine_log_link(const struct io_link *l)
{
	const struct io_stats *st = &l->stats;
	const struct counter c[] = {
		{ "rx_frames", st->rx_frames },
		{ "rx_bytes", st->rx_bytes },
		{ "rx_drops", st->rx_drops },
		{ "tx_frames", st->tx_frames },
		{ "tx_bytes", st->tx_bytes },
		{ "tx_drops", st->tx_drops },
		{ "tx_full", st->tx_full },
		{ "no_frame", st->no_frame },
		{ "rings", st->rings },
		{ "tx_lent", st->tx_lent },
		{ "peer_faults", st->peer_faults },
		{ "handed", st->handed },
		{ "tx_merged", st->tx_merged },
		{ "tx_chains", st->tx_chains },
		{ "tx_unmerged", st->tx_unmerged },
		{ "rx_sums", st->rx_sums },
		{ "tx_sums", st->tx_sums },
		{ "tx_parts", st->tx_parts },
		{ "rx_big", st->rx_big },
		{ "kept", st->kept },
	};

	log_counted(l->ops->name, c, sizeof(c) / sizeof(c[0]));
}

void uw_engine_counters(struct uw_engine *e, uw_counter_fn *fn, void *arg)
{
	struct uw_stats sum = { 0 };

	verbs_lock(&e->verbs);
	for (unsigned i = 0; i < e->n_stacks; i++) {
#define UW_STAT(name) sum.name += e->stack[i]->sched.stats.name;
		UW_STATS_LIST(UW_STAT)
#undef UW_STAT
	}
	verbs_unlock(&e->verbs);
#define UW_STAT(name) fn(arg, #name, sum.name);
	UW_STATS_LIST(UW_STAT)
#undef UW_STAT
}
