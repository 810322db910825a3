/* SPDX-License-Identifier: BSD-3-Clause */
/* Where keys are: asks the host to move some, and looks which node has what. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "report.h"
#include "log.h"

#define WAIT_MS 5000

/* A key that is asked about. */
struct question {
	uint64_t number;
	unsigned node;
	int status[NODES];
};

struct asker {
	const struct kv_options *options;
	struct route route;
	struct question *question; /* of each slot */
	uint64_t next, end;	   /* keys */
	unsigned under_way;
	int (*ask)(struct asker *a, unsigned slot, const struct kv_key *key);
	/* 1: this question goes on, at another node */
	int (*answered)(struct asker *a, unsigned slot, int status);
	uint64_t host, soc, both, nowhere, moving;
};

static int next(struct asker *a, unsigned slot)
{
	struct kv_key key;

	if (a->next == a->end)
		return 0;
	a->question[slot] = (struct question){ .number = a->next++, .status = { -EXDEV, -EXDEV } };
	a->under_way++;
	bench_key(a->options, a->question[slot].number, &key);
	return a->ask(a, slot, &key);
}

static int done(void *arg, unsigned slot, int status, enum kv_op op, const uint8_t *value,
		uint32_t n)
{
	struct asker *a = arg;
	struct kv_key key;
	int more = a->answered(a, slot, status);

	(void)op;
	(void)value;
	(void)n;
	if (more < 0)
		return more;
	if (more) {
		bench_key(a->options, a->question[slot].number, &key);
		return a->ask(a, slot, &key);
	}
	a->under_way--;
	return next(a, slot);
}

static int ask_all(struct asker *a)
{
	static const struct route_ops ops = { .done = done };
	const struct kv_options *o = a->options;
	int err;

	a->question = calloc(o->common.window, sizeof(*a->question));
	err = a->question ? route_open(&a->route, o, &ops, a) : -ENOMEM;
	for (unsigned i = 0; !err && i < o->common.window; i++)
		err = next(a, i);
	while (!err && a->under_way)
		err = route_poll(&a->route, WAIT_MS);
	route_close(&a->route);
	free(a->question);
	return err;
}

/* ---- move -------------------------------------------------------------------------------- */

static int ask_move(struct asker *a, unsigned slot, const struct kv_key *key)
{
	return route_begin(&a->route, slot, a->options->toward_soc ? KV_MOVE_OUT : KV_MOVE_IN, key,
			   0);
}

static int on_move(struct asker *a, unsigned slot, int status)
{
	(void)a;
	(void)slot;
	return status;
}

int kv_move(const struct kv_options *o)
{
	struct asker a = { .options = o, .ask = ask_move, .answered = on_move };
	int err;

	a.next = o->from;
	a.end = o->to < o->keys ? o->to + 1 : o->keys;
	err = ask_all(&a);
	if (err)
		log_line("the host does not move keys: %s", strerror(-err));
	return err;
}

/* ---- where ------------------------------------------------------------------------------- */

static int ask_where(struct asker *a, unsigned slot, const struct kv_key *key)
{
	return route_at(&a->route, slot, a->question[slot].node, KV_GET, key);
}

/* 0 or, if it is long, -EMSGSIZE: a value; -EXDEV: not the owner; -EBUSY: on its way; others: the
 * owner, without a value. */
static int on_where(struct asker *a, unsigned slot, int status)
{
	struct question *q = &a->question[slot];
	const int *s = q->status;

	q->status[q->node++] = status == -EMSGSIZE ? 0 : status;
	if (q->node < a->route.nodes)
		return 1;
	a->moving += s[NODE_HOST] == -EBUSY || s[NODE_SOC] == -EBUSY;
	a->host += !s[NODE_HOST];
	a->soc += !s[NODE_SOC];
	a->both += s[NODE_HOST] != -EXDEV && s[NODE_SOC] != -EXDEV;
	a->nowhere += s[NODE_HOST] == -EXDEV && s[NODE_SOC] == -EXDEV;
	return 0;
}

int kv_where(const struct kv_options *o)
{
	struct asker a = { .options = o, .ask = ask_where, .answered = on_where, .end = o->keys };
	int err = ask_all(&a);
	struct report r;

	if (err)
		return err;
	report_open(&r, "uwarp-kv where");
	report_count(&r, "host", a.host);
	report_count(&r, "soc", a.soc);
	report_count(&r, "owned_by_both", a.both);
	report_count(&r, "owned_by_nobody", a.nowhere);
	report_count(&r, "moving", a.moving);
	err = report_close(&r, &o->common, NULL);
	return err ? err : a.both || a.nowhere ? -EBADMSG : 0;
}
