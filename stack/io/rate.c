/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/rate.h"

#include <stdlib.h>
#include <string.h>

/* Preamble, FCS and inter-frame gap: what a frame takes on an Ethernet beside its octets. */
#define WIRE_EXTRA 24u
#define WIRE_MIN   (60u + WIRE_EXTRA)
/* What a port's transmit ring holds. More than this stays with whoever sends. */
#define QUEUE 128u

struct rate_link {
	struct io_link l; /* first: an io_link * is a rate_link * */
	struct io_link *under;
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
	return octets * 8 * 1000000000 / r->l.bps;
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
	sent = r->under->ops->tx(r->under, v, n);
	r->head = (r->head + sent) % QUEUE;
	r->count -= sent;
}

static unsigned rate_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct rate_link *r = of(l);
	uint64_t now = r->now_ns(r->arg);
	unsigned taken = 0;

	release(r, now);
	if (r->free_ns < now)
		r->free_ns = now;
	while (taken < n && r->count < QUEUE) {
		unsigned at = (r->head + r->count++) % QUEUE;

		r->free_ns += duration_ns(r, v[taken]);
		r->leaves_ns[at] = r->free_ns;
		r->frame[at] = v[taken++];
	}
	r->l.stats.tx_full += taken < n;
	return taken;
}

static unsigned rate_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct rate_link *r = of(l);
	uint64_t full = r->l.stats.tx_full;
	unsigned got;

	if (r->count)
		release(r, r->now_ns(r->arg));
	got = r->under->ops->rx(r->under, v, n);
	r->l.stats = r->under->stats;
	r->l.stats.tx_full = full;
	return got;
}

/* Nobody rings when a frame's time comes. */
static bool rate_pending(struct io_link *l)
{
	return of(l)->count || of(l)->under->ops->pending(of(l)->under);
}

static struct io_frame *rate_alloc(struct io_link *l)
{
	return of(l)->under->ops->alloc(of(l)->under);
}

static struct io_frame *rate_refer(struct io_link *l, const uint8_t *p, uint32_t n)
{
	return of(l)->under->ops->refer(of(l)->under, p, n);
}

static void frame_own(struct io_frame *f)
{
	f->link->ops->own(f);
}

static void frame_free(struct io_frame *f)
{
	f->link->ops->free(f);
}

static void frame_ref(struct io_frame *f)
{
	f->link->ops->ref(f);
}

static unsigned frame_refs(const struct io_frame *f)
{
	return f->link->ops->refs(f);
}

static uw_status rate_resolve(struct io_link *l, struct uw_ip *to, uint16_t port,
			      unsigned timeout_ms)
{
	return of(l)->under->ops->resolve(of(l)->under, to, port, timeout_ms);
}

static uw_status rate_claim(struct io_link *l, uint16_t port)
{
	return of(l)->under->ops->claim_port(of(l)->under, port);
}

static void rate_release(struct io_link *l, uint16_t port)
{
	of(l)->under->ops->release_port(of(l)->under, port);
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
	r->under->ops->close(r->under);
	free((void *)(uintptr_t)l->ops);
	free(r);
}

/* What the link does not have, we have not either. */
static struct io_ops *ops_over(const struct io_ops *under)
{
	struct io_ops *o = malloc(sizeof(*o));

	if (!o)
		return NULL;
	*o = (struct io_ops){
		.name = under->name,
		.rx = rate_rx,
		.tx = rate_tx,
		.alloc = rate_alloc,
		.free = frame_free,
		.refer = rate_refer,
		.own = frame_own,
		.ref = frame_ref,
		.refs = frame_refs,
		.pending = rate_pending,
		.resolve = under->resolve ? rate_resolve : NULL,
		.claim_port = under->claim_port ? rate_claim : NULL,
		.release_port = under->release_port ? rate_release : NULL,
		.close = rate_close,
	};
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
	r->l = *under;
	r->l.ops = ops;
	r->l.bps = bps;
	r->under = under;
	r->now_ns = now_ns;
	r->arg = arg;
	*out = &r->l;
	return UW_OK;
}

bool rate_parse(const char *text, uint64_t *bps)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = { { "", 1 }, { "K", 1e3 }, { "M", 1e6 }, { "G", 1e9 } };
	char *end;
	double x = strtod(text, &end);

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
