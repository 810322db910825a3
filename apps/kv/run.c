/* SPDX-License-Identifier: BSD-3-Clause */
/* The phases of uwarp-kv run, and its report. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "report.h"
#include "log.h"

static const char *const ways[] = { "reads", "rpc", "hybrid" };

static int report(const struct bench *b, const struct team *t, uint64_t cpu)
{
	const struct kv_options *o = b->options;
	char mix[2] = { o->mix->letter, 0 };
	struct report r;

	report_open(&r, "uwarp-kv");
	report_text(&r, "get", ways[o->way]);
	report_text(&r, "mix", mix);
	report_count(&r, "keys", o->keys);
	report_count(&r, "value", o->value_high);
	report_team(&r, t, "operations");
	report_hist(&r, "get", b->reads);
	report_hist(&r, "put", b->writes);
	report_count(&r, "hits", b->hits);
	report_count(&r, "misses", b->misses);
	report_count(&r, "by_reads", b->by_reads);
	report_count(&r, "by_rpc", b->by_rpc);
	report_count(&r, "torn", b->torn);
	report_count(&r, "outdated", b->outdated);
	report_count(&r, "no_memory", b->no_memory);
	report_count(&r, "wrong", b->wrong);
	report_cpu(&r, t, cpu);
	/* of a cluster; 0 without, so that both kinds may go into one file */
	report_count(&r, "at_soc", b->at_soc);
	report_count(&r, "again", b->again);
	report_count(&r, "gone", b->gone);
	if (b->no_memory)
		log_line("%lu writes found no memory; give the server more --memory or --buckets",
			 b->no_memory);
	return report_close(&r, &o->common, b->reads);
}

static void forget(struct bench *b)
{
	memset(b->reads, 0, sizeof(*b->reads));
	memset(b->writes, 0, sizeof(*b->writes));
	b->hits = b->misses = b->torn = b->outdated = b->by_reads = b->by_rpc = b->at_soc =
		b->again = b->gone = 0;
}

static int phase(struct bench *b, int which)
{
	static const struct team_ops ops = { .open = bench_open,
					     .run = bench_run,
					     .close = bench_close };
	struct options walk = b->options->common;
	uint64_t cpu = cpu_ns();
	struct team team;
	int err, unsaid = 0;

	/* a walk ends when it has been everywhere */
	walk.ops = UINT64_MAX;
	walk.series = NULL;
	b->phase = which;
	forget(b);
	err = team_run(&team, which == PHASE_RUN ? &b->options->common : &walk, &ops, b);
	if (which == PHASE_RUN && (!err || err == -EBADMSG))
		unsaid = report(b, &team, cpu_ns() - cpu);
	team_close(&team);
	return err ? err : b->wrong ? -EBADMSG : unsaid;
}

static int open_bench(struct bench *b)
{
	const struct kv_options *o = b->options;

	b->keys.dist = o->mix->dist;
	b->keys.theta = 0.99;
	if (o->dist)
		keys_parse(&b->keys, o->dist);
	keys_open(&b->keys, o->keys);
	b->all = o->mix->insert ? 2 * o->keys : o->keys;
	b->reads = calloc(1, sizeof(*b->reads));
	b->writes = calloc(1, sizeof(*b->writes));
	if (!b->reads || !b->writes)
		return -ENOMEM;
	if (!o->oracle.verify)
		return 0;
	b->busy = calloc(b->all, sizeof(*b->busy));
	return b->busy ? oracle_open(&b->journal, o, b->all) : -ENOMEM;
}

int kv_bench(const struct kv_options *o)
{
	struct bench b = { .options = o };
	int err = open_bench(&b);

	if (!err && o->load)
		err = phase(&b, PHASE_LOAD);
	if (!err && !o->check)
		err = phase(&b, PHASE_RUN);
	if (!err && o->oracle.verify)
		err = phase(&b, PHASE_CHECK);
	if (o->oracle.verify && (err == -EBADMSG || !err))
		log_line("%s", err ? "answers were wrong" : "every answer was right");
	oracle_close(&b.journal);
	free(b.busy);
	free(b.reads);
	free(b.writes);
	return err;
}
