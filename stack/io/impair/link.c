/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/impair/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/impair/line.h"
#include "io/link_filter.h"

#define HELD  4096u /* frames that are late, each direction */
#define BURST 32u
#define ETH   14u
#define TEXT  400u

/* One direction. */
struct path {
	struct impair model;
	struct impair_line *late; /* NULL: frames of this direction are left alone */
};

struct impair_link {
	struct link_filter filter; /* first: an io_link * is an impair_link * */
	struct impair_link_config cfg;
	struct path out, in;
};

static struct impair_link *of(const struct io_link *l)
{
	return (struct impair_link *)(uintptr_t)l;
}

static uint64_t now_of(const struct impair_link *il)
{
	return il->cfg.now_ns(il->cfg.arg);
}

static uint32_t length(const struct io_frame *f)
{
	uint32_t n = 0;

	for (; f; f = f->next)
		n += f->len;
	return n;
}

/* ---- what is late ------------------------------------------------------------------------ */

/* The first n octets of the chain. */
static void copy_octets(const struct io_frame *f, uint8_t *to, uint32_t n)
{
	for (; f && n; f = f->next) {
		uint32_t part = f->len < n ? f->len : n;

		memcpy(to, f->data, part);
		to += part;
		n -= part;
	}
}

static void hold(struct path *p, const struct io_frame *f, const struct impair_copy *c)
{
	uint8_t *to = impair_line_add(p->late, c->due_ns, c->len);

	if (!to) {
		p->model.count[IMPAIR_DROPPED_ROOM]++;
		return;
	}
	copy_octets(f, to, c->len);
	impair_change(&p->model, c, to);
}

static bool is_due(const struct path *p, uint64_t now)
{
	const struct impair_held *h = p->late ? impair_line_first(p->late) : NULL;

	return h && h->due_ns <= now;
}

/* A frame of the link below with the octets of the one that is due first; NULL: its pool is empty.
 */
static struct io_frame *frame_of_first(struct impair_link *il, const struct path *p)
{
	const struct impair_held *h = impair_line_first(p->late);
	struct io_frame *f = il->filter.under->ops->alloc(il->filter.under);

	if (!f)
		return NULL;
	memcpy(f->data, h->octets, h->len);
	f->len = h->len;
	return f;
}

/* True: the frame itself goes on now. Else it is lost, or held as a copy. */
static bool passes(struct path *p, const struct io_frame *f, uint64_t now)
{
	uint32_t len = length(f);
	struct impair_verdict v;
	bool pass;

	impair_decide(&p->model, len, now, &v);
	if (!v.copies)
		return false;
	pass = v.copy[0].due_ns <= now && !impair_changes(&v.copy[0], len) && !is_due(p, now);
	for (unsigned i = pass; i < v.copies; i++)
		hold(p, f, &v.copy[i]);
	return pass;
}

/* ---- out --------------------------------------------------------------------------------- */

static void release(struct impair_link *il, uint64_t now)
{
	struct io_link *under = il->filter.under;

	while (is_due(&il->out, now)) {
		struct io_frame *f = frame_of_first(il, &il->out);

		if (!f)
			return;
		if (!under->ops->tx(under, &f, 1)) {
			under->ops->free(f);
			return;
		}
		impair_line_remove_first(il->out.late);
	}
}

/* What the link below does not take waits here: it has been decided on already. */
static void hand_on(struct impair_link *il, struct io_frame **v, unsigned n, uint64_t now)
{
	unsigned taken = n ? il->filter.under->ops->tx(il->filter.under, v, n) : 0;

	for (; taken < n; taken++) {
		const struct impair_copy c = { .due_ns = now, .len = length(v[taken]) };

		hold(&il->out, v[taken], &c);
		io_free_chain(v[taken]);
	}
}

/* Whoever sleeps until the first frame's time, or longer, has to know of an earlier one. */
static void wake_for_earlier(struct impair_link *il, uint64_t first_ns)
{
	if (impair_next_ns(&il->filter.l) < first_ns)
		link_filter_wake(&il->filter);
}

static unsigned send(struct impair_link *il, struct io_frame **v, unsigned n)
{
	struct io_frame *on[BURST];
	uint64_t now = now_of(il);
	unsigned taken = 0, k = 0;

	release(il, now);
	for (; taken < n; taken++) {
		if (passes(&il->out, v[taken], now))
			on[k++] = v[taken];
		else
			io_free_chain(v[taken]);
		if (k == BURST || is_due(&il->out, now)) {
			hand_on(il, on, k, now);
			release(il, now);
			k = 0;
		}
	}
	hand_on(il, on, k, now);
	return taken;
}

static unsigned impair_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct impair_link *il = of(l);
	uint64_t first = impair_next_ns(l);
	unsigned taken;

	if (!il->out.late)
		return il->filter.under->ops->tx(il->filter.under, v, n);
	taken = send(il, v, n);
	wake_for_earlier(il, first);
	return taken;
}

/* ---- in ---------------------------------------------------------------------------------- */

static unsigned take_due(struct impair_link *il, struct io_frame **v, unsigned n, uint64_t now)
{
	unsigned got = 0;

	while (got < n && is_due(&il->in, now)) {
		struct io_frame *f = frame_of_first(il, &il->in);

		if (!f)
			break;
		impair_line_remove_first(il->in.late);
		v[got++] = f;
	}
	return got;
}

static unsigned receive(struct impair_link *il, struct io_frame **v, unsigned n)
{
	uint64_t now = now_of(il);
	unsigned got = take_due(il, v, n, now), room = n - got, more;
	struct io_frame *in[BURST];

	more = room ? il->filter.under->ops->rx(il->filter.under, in, room < BURST ? room : BURST)
		    : 0;
	for (unsigned i = 0; i < more; i++) {
		if (passes(&il->in, in[i], now))
			v[got++] = in[i];
		else
			io_free_chain(in[i]);
	}
	return got;
}

static unsigned impair_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct impair_link *il = of(l);
	uint64_t first = impair_next_ns(l);
	unsigned got;

	if (il->out.late && impair_line_count(il->out.late))
		release(il, now_of(il));
	got = il->in.late ? receive(il, v, n) : il->filter.under->ops->rx(il->filter.under, v, n);
	l->stats = il->filter.under->stats;
	wake_for_earlier(il, first);
	return got;
}

static uint64_t impair_due_ns(struct io_link *l)
{
	struct io_link *under = link_filter_under(l);
	uint64_t own = impair_next_ns(l);
	uint64_t other = under->ops->due_ns ? under->ops->due_ns(under) : UINT64_MAX;

	return own < other ? own : other;
}

/* Nobody rings when a frame's time comes: until it is near, the stack may sleep (doc/adr/0041). */
static bool impair_pending(struct io_link *l)
{
	uint64_t first = impair_next_ns(l);

	return (first != UINT64_MAX && first <= now_of(of(l)) + LINK_FILTER_NEAR_NS) ||
	       link_filter_under(l)->ops->pending(link_filter_under(l));
}

/* ---- life -------------------------------------------------------------------------------- */

static void say_path(const struct impair_link *il, const struct path *p, const char *dir)
{
	char counters[TEXT], line[TEXT + 64];

	if (!p->late || !il->cfg.say)
		return;
	impair_describe(&p->model, counters, sizeof(counters));
	snprintf(line, sizeof(line), "impair (%s, seed %llu):%s", dir,
		 (unsigned long long)il->cfg.options.model.seed, counters);
	il->cfg.say(line);
}

static void destroy(struct impair_link *il)
{
	impair_line_close(il->out.late);
	impair_line_close(il->in.late);
	free((void *)(uintptr_t)il->filter.l.ops);
	free(il);
}

static void impair_close(struct io_link *l)
{
	struct impair_link *il = of(l);

	say_path(il, &il->out, "out");
	say_path(il, &il->in, "in");
	il->filter.under->ops->close(il->filter.under);
	destroy(il);
}

static uw_status open_path(const struct impair_link *il, enum impair_dir dir, struct path *p)
{
	struct impair_config m = il->cfg.options.model;

	if (!(il->cfg.options.dir & dir))
		return UW_OK;
	m.seed = m.seed * 2 + (dir == IMPAIR_IN); /* the two directions differ */
	impair_init(&p->model, &m);
	return impair_line_open(HELD, ETH + il->filter.l.mtu, &p->late);
}

static struct io_ops *ops_over(const struct io_ops *under)
{
	struct io_ops *o = malloc(sizeof(*o));

	if (!o)
		return NULL;
	*o = link_filter_ops(under);
	o->rx = impair_rx;
	o->tx = impair_tx;
	o->pending = impair_pending;
	o->due_ns = impair_due_ns;
	o->close = impair_close;
	return o;
}

uw_status impair_open(struct io_link *under, const struct impair_link_config *cfg,
		      struct io_link **out)
{
	struct impair_link *il = calloc(1, sizeof(*il));
	uw_status st = UW_E_NOMEM;

	if (!il)
		return st;
	il->cfg = *cfg;
	if (!il->cfg.options.dir)
		il->cfg.options.dir = IMPAIR_OUT;
	il->filter.l = *under;
	il->filter.l.flags &= ~(unsigned)IO_WAITS; /* frames wait here, and nobody rings for them */
	il->filter.under = under;
	il->filter.l.ops = ops_over(under->ops);
	if (il->filter.l.ops)
		st = open_path(il, IMPAIR_OUT, &il->out);
	if (!st)
		st = open_path(il, IMPAIR_IN, &il->in);
	if (st) {
		destroy(il);
		return st;
	}
	if (cfg->options.model.corrupt || cfg->options.model.truncate) {
		il->filter.l.flags |= IO_SUMS;
		il->filter.l.flags &= ~(unsigned)IO_INTACT;
	}
	*out = &il->filter.l;
	return UW_OK;
}

const struct impair *impair_model(const struct io_link *l, enum impair_dir dir)
{
	const struct path *p = dir == IMPAIR_IN ? &of(l)->in : &of(l)->out;

	return p->late ? &p->model : NULL;
}

static uint64_t first_of(const struct path *p)
{
	const struct impair_held *h = p->late ? impair_line_first(p->late) : NULL;

	return h ? h->due_ns : UINT64_MAX;
}

uint64_t impair_next_ns(const struct io_link *l)
{
	uint64_t out = first_of(&of(l)->out), in = first_of(&of(l)->in);

	return out < in ? out : in;
}
