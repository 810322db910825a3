/* SPDX-License-Identifier: BSD-3-Clause */
/* uwarp-btree run, and its report. */
#include <errno.h>
#include <stdlib.h>

#include "bench.h"
#include "clock.h"
#include "report.h"
#include "log.h"

static const char *const ways[] = { "reads", "mail", "send" };

static const char *const places[] = { "both", "host", "soc" };

static int report(const struct bench *b, const struct team *t, uint64_t cpu)
{
	const struct btree_options *o = b->options;
	char mix[2] = { o->mix->letter, 0 };
	struct report r;

	report_open(&r, "uwarp-btree");
	report_text(&r, "by", ways[o->way]);
	report_text(&r, "place", places[o->place]);
	report_text(&r, "mix", mix);
	report_count(&r, "keys", o->keys);
	report_count(&r, "scans", o->scans);
	report_team(&r, t, "operations");
	report_hist(&r, "read", b->reads);
	report_hist(&r, "write", b->writes);
	report_count(&r, "hits", b->hits);
	report_count(&r, "misses", b->misses);
	report_count(&r, "pages_read", b->pages);
	report_count(&r, "pieces_read", b->pieces);
	report_count(&r, "torn", b->torn);
	report_count(&r, "restarts", b->restarts);
	report_count(&r, "no_memory", b->no_memory);
	report_count(&r, "wrong", b->wrong);
	report_count(&r, "split", o->place == PLACE_BOTH ? b->split : 0);
	report_cpu(&r, t, cpu);
	if (b->no_memory)
		log_line("%lu writes found no memory; give the server more --pages", b->no_memory);
	return report_close(&r, &o->common, b->reads);
}

static int open_bench(struct bench *b)
{
	const struct btree_options *o = b->options;

	b->keys.dist = o->mix->dist;
	b->keys.theta = 0.99;
	if (o->dist)
		keys_parse(&b->keys, o->dist);
	keys_open(&b->keys, o->keys);
	b->all = 2 * o->keys;
	b->reads = calloc(1, sizeof(*b->reads));
	b->writes = calloc(1, sizeof(*b->writes));
	if (!b->reads || !b->writes)
		return -ENOMEM;
	if (!o->oracle.verify)
		return 0;
	b->busy = calloc(b->all, sizeof(*b->busy));
	/* a scan that begins at the last key looks beyond it */
	return b->busy ? journal_map(&b->line, o->oracle.journal, b->all + BTREE_SCAN_MAX)
		       : -ENOMEM;
}

int btree_bench(const struct btree_options *o)
{
	static const struct team_ops ops = { .open = bench_open,
					     .run = bench_run,
					     .close = bench_close };
	struct bench b = { .options = o };
	uint64_t cpu = cpu_ns();
	struct team team;
	int err = open_bench(&b), unsaid = 0;

	if (err)
		return err;
	err = team_run(&team, &o->common, &ops, &b);
	if (!err || err == -EBADMSG)
		unsaid = report(&b, &team, cpu_ns() - cpu);
	if (!err && b.wrong)
		err = -EBADMSG;
	team_close(&team);
	journal_unmap(b.line, b.all + BTREE_SCAN_MAX);
	free(b.busy);
	free(b.reads);
	free(b.writes);
	return err ? err : unsaid;
}
