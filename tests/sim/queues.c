/* SPDX-License-Identifier: BSD-3-Clause */
#include "queues.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DEPTH 8192u
#define TCP   6u
#define UDP   17u

struct port;

struct queue {
	struct io_link l; /* first */
	struct port *p;
	struct io_frame *v[DEPTH];
	unsigned put, got;
};

struct port {
	struct io_link *under, *base;
	unsigned n, open, turn;
	struct queue *q[QUEUES_MAX];
};

/* The links below know no threads, and the two ends of a cable share their frames. One that has
 * kept some frees them later, from within. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static struct queue *of(struct io_link *l)
{
	return (struct queue *)l;
}

/* ---- frames: ours while somebody holds them, the link's below while it works on them -------- */

static void name(struct io_frame *f, struct io_link *l)
{
	for (; f; f = f->next)
		f->link = l;
}

static struct io_frame *queue_alloc(struct io_link *l)
{
	struct io_link *under = of(l)->p->under;
	struct io_frame *f;

	pthread_mutex_lock(&lock);
	f = under->ops->alloc(under);
	name(f, l);
	pthread_mutex_unlock(&lock);
	return f;
}

static void free_locked(struct io_frame *f)
{
	struct io_link *l = f->link, *base = of(l)->p->base;
	bool last = base->ops->refs(f) == 1;

	f->link = base;
	base->ops->free(f);
	if (!last)
		f->link = l;
}

static void queue_free(struct io_frame *f)
{
	pthread_mutex_lock(&lock);
	free_locked(f);
	pthread_mutex_unlock(&lock);
}

static void queue_ref(struct io_frame *f)
{
	pthread_mutex_lock(&lock);
	of(f->link)->p->base->ops->ref(f);
	pthread_mutex_unlock(&lock);
}

static unsigned queue_refs(const struct io_frame *f)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = of(f->link)->p->base->ops->refs(f);
	pthread_mutex_unlock(&lock);
	return n;
}

/* ---- in ---------------------------------------------------------------------------------- */

static bool has_ports(uint8_t protocol)
{
	return protocol == TCP || protocol == UDP;
}

/* Where the ports are, behind headers without options; 0: nowhere. What has the same ports is on
 * one queue, as with a card that hashes them, and so it stays in order. */
static size_t ports_of(const struct io_frame *f)
{
	const uint8_t *at = f->data;

	if (f->len >= 54 && at[12] == 0x08 && at[13] == 0x00 && has_ports(at[23]))
		return 34;
	return f->len >= 74 && at[12] == 0x86 && at[13] == 0xdd && has_ports(at[20]) ? 54 : 0;
}

static unsigned choose(struct port *p, const struct io_frame *f)
{
	size_t at = ports_of(f);
	unsigned hash = 0;

	if (!at)
		return p->turn++ % p->n;
	for (unsigned i = 0; i < 4; i++)
		hash = hash * 31 + f->data[at + i];
	return hash % p->n;
}

static void sort(struct port *p)
{
	struct io_frame *f;

	while (p->under->ops->rx(p->under, &f, 1)) {
		struct queue *q = p->q[choose(p, f)];

		assert_true(q->put - q->got < DEPTH);
		name(f, &q->l);
		q->v[q->put++ % DEPTH] = f;
	}
}

static unsigned queue_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct queue *q = of(l);
	unsigned got = 0;

	pthread_mutex_lock(&lock);
	sort(q->p);
	while (got < n && q->got != q->put)
		v[got++] = q->v[q->got++ % DEPTH];
	pthread_mutex_unlock(&lock);
	return got;
}

static bool queue_pending(struct io_link *l)
{
	struct queue *q = of(l);
	bool any;

	pthread_mutex_lock(&lock);
	any = q->got != q->put || q->p->under->ops->pending(q->p->under);
	pthread_mutex_unlock(&lock);
	return any;
}

/* ---- out --------------------------------------------------------------------------------- */

/* False: there is no room, and the frame is still the caller's. */
static bool send_one(struct io_link *l, struct io_frame *f)
{
	struct io_link *under = of(l)->p->under, *base = of(l)->p->base;
	bool taken;

	/* A reference of ours keeps the buffers until they are named again. */
	for (struct io_frame *b = f; b; b = b->next) {
		base->ops->ref(b);
		b->link = base;
	}
	taken = under->ops->tx(under, &f, 1) == 1;
	while (f) {
		struct io_frame *next = f->next;

		f->link = l;
		free_locked(f);
		f = next;
	}
	return taken;
}

static unsigned queue_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	unsigned taken = 0;

	pthread_mutex_lock(&lock);
	while (taken < n && send_one(l, v[taken]))
		taken++;
	pthread_mutex_unlock(&lock);
	return taken;
}

/* ---- life -------------------------------------------------------------------------------- */

static void queue_close(struct io_link *l)
{
	struct queue *q = of(l);
	struct port *p = q->p;

	pthread_mutex_lock(&lock);
	while (q->got != q->put)
		free_locked(q->v[q->got++ % DEPTH]);
	if (!--p->open) {
		p->under->ops->close(p->under);
		for (unsigned i = 0; i < p->n; i++)
			free(p->q[i]);
		free(p);
	}
	pthread_mutex_unlock(&lock);
}

static const struct io_ops ops = {
	.name = "queue",
	.rx = queue_rx,
	.tx = queue_tx,
	.alloc = queue_alloc,
	.free = queue_free,
	.ref = queue_ref,
	.refs = queue_refs,
	.pending = queue_pending,
	.close = queue_close,
};

void queues_open(struct io_link *under, struct io_link *base, unsigned n, struct io_link **out)
{
	struct port *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->under = under;
	p->base = base;
	p->n = p->open = n;
	for (unsigned i = 0; i < n; i++) {
		p->q[i] = calloc(1, sizeof(*p->q[i]));
		assert_non_null(p->q[i]);
		p->q[i]->l = *under;
		p->q[i]->l.ops = &ops;
		p->q[i]->p = p;
		out[i] = &p->q[i]->l;
	}
}
