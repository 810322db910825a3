/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/rate.h"

#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "io/link_filter.h"

/* Preamble, FCS and inter-frame gap: what a frame takes on an Ethernet beside its octets. */
#define WIRE_EXTRA 24u
#define WIRE_MIN   (60u + WIRE_EXTRA)
/* What a port's transmit ring holds, and how long it may take to send: frames of 64 KiB would wait
 * for a second otherwise. More than this stays with whoever sends. */
#define QUEUE	 128u
#define QUEUE_NS 5000000u

struct rate_link {
	struct link_filter filter; /* first: an io_link * is a rate_link * */
	uint64_t (*now_ns)(void *arg);
	void *arg;
	struct io_frame *frame[QUEUE];
	uint64_t leaves_ns[QUEUE]; /* when its last bit has gone */
	unsigned head, count;
	uint64_t free_ns; /* when the port can begin with the next one */
};

static struct rate_link *of(const struct io_link *l)
{
	return (struct rate_link *)(uintptr_t)l;
}

static uint64_t duration_ns(const struct rate_link *r, const struct io_frame *f)
{
	uint64_t octets = WIRE_EXTRA;

	for (; f; f = f->next)
		octets += f->len;
	if (octets < WIRE_MIN)
		octets = WIRE_MIN;
	return octets * 8 * 1000000000 / r->filter.l.bps;
}

static bool is_full(const struct rate_link *r, uint64_t now)
{
	return r->count == QUEUE || (r->count && r->free_ns - now >= QUEUE_NS);
}

/* Those whose time has come go to the link. */
static void release(struct rate_link *r, uint64_t now)
{
	struct io_frame *v[QUEUE];
	unsigned n = 0, sent;

	while (n < r->count && r->leaves_ns[(r->head + n) % QUEUE] <= now) {
		v[n] = r->frame[(r->head + n) % QUEUE];
		n++;
	}
	if (!n)
		return;
	sent = r->filter.under->ops->tx(r->filter.under, v, n);
	r->head = (r->head + sent) % QUEUE;
	r->count -= sent;
}

static unsigned rate_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct rate_link *r = of(l);
	uint64_t now = r->now_ns(r->arg);
	unsigned taken = 0, before;

	release(r, now);
	before = r->count;
	if (r->free_ns < now)
		r->free_ns = now;
	while (taken < n && !is_full(r, now)) {
		unsigned at = (r->head + r->count++) % QUEUE;

		r->free_ns += duration_ns(r, v[taken]);
		r->leaves_ns[at] = r->free_ns;
		r->frame[at] = v[taken++];
	}
	r->filter.l.stats.tx_full += taken < n;
	if (!before && r->count)
		link_filter_wake(&r->filter);
	return taken;
}

static unsigned rate_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct rate_link *r = of(l);
	uint64_t full = r->filter.l.stats.tx_full;
	unsigned got;

	if (r->count)
		release(r, r->now_ns(r->arg));
	got = r->filter.under->ops->rx(r->filter.under, v, n);
	r->filter.l.stats = r->filter.under->stats;
	r->filter.l.stats.tx_full = full;
	return got;
}

static uint64_t rate_due_ns(struct io_link *l)
{
	const struct rate_link *r = of(l);

	return r->count ? r->leaves_ns[r->head] : UINT64_MAX;
}

/* Nobody rings when a frame's time comes: until it is near, the stack may sleep. */
static bool rate_pending(struct io_link *l)
{
	struct rate_link *r = of(l);

	return (r->count && r->leaves_ns[r->head] <= r->now_ns(r->arg) + LINK_FILTER_NEAR_NS) ||
	       r->filter.under->ops->pending(r->filter.under);
}

static void rate_close(struct io_link *l)
{
	struct rate_link *r = of(l);

	if (l->env.lock)
		l->env.lock(l->env.arg);
	for (; r->count; r->count--) {
		io_free_chain(r->frame[r->head]);
		r->head = (r->head + 1) % QUEUE;
	}
	if (l->env.unlock)
		l->env.unlock(l->env.arg);
	r->filter.under->ops->close(r->filter.under);
	free((void *)(uintptr_t)l->ops);
	free(r);
}

static struct io_ops *ops_over(const struct io_ops *under)
{
	struct io_ops *o = malloc(sizeof(*o));

	if (!o)
		return NULL;
	*o = link_filter_ops(under);
	o->rx = rate_rx;
	o->tx = rate_tx;
	o->pending = rate_pending;
	o->due_ns = rate_due_ns;
	o->close = rate_close;
	return o;
}

uw_status rate_open(struct io_link *under, uint64_t bps, uint64_t (*now_ns)(void *arg), void *arg,
		    struct io_link **out)
{
	struct rate_link *r = calloc(1, sizeof(*r));
	struct io_ops *ops = ops_over(under->ops);

	if (!r || !ops) {
		free(r);
		free(ops);
		return UW_E_NOMEM;
	}
	r->filter.l = *under;
	r->filter.l.ops = ops;
	r->filter.l.bps = bps;
	r->filter.l.flags &= ~(unsigned)IO_WAITS; /* frames wait here, and nobody rings for them */
	r->filter.under = under;
	r->now_ns = now_ns;
	r->arg = arg;
	*out = &r->filter.l;
	return UW_OK;
}

bool rate_parse(const char *text, uint64_t *bps)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = { { "", 1 }, { "K", 1e3 }, { "M", 1e6 }, { "G", 1e9 } };
	char *end;
	double x = uw_decimal(text, &end);

	if (end == text || *text < '0' || *text > '9')
		return false;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		x *= units[i].factor;
		/* Only now: of a number that does not fit the conversion makes anything. */
		if (!(x >= (double)RATE_MIN_BPS && x <= (double)RATE_MAX_BPS))
			return false;
		*bps = (uint64_t)x;
		return true;
	}
	return false;
}
