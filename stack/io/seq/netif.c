/* SPDX-License-Identifier: BSD-3-Clause */
/* Links as lwIP interfaces. The link is the engine's, so what lwIP's own thread sends waits in a
 * ring until the engine takes it; everybody else has the stack lock. */
#include <stdlib.h>
#include <string.h>

#include "io/lwip/frame.h"
#include "io/lwip/nif.h"
#include "io/seq/seq.h"

#define LOOK_AHEAD 8u
#define MANY	   256u /* frames; every pool has more */

struct seq_link *seq_link_of(const struct io_link *l)
{
	for (unsigned i = 0; i < SEQ_LINKS; i++) {
		if (seq.links[i].io == l)
			return &seq.links[i];
	}
	return NULL;
}

/* ---- frames that lwIP has done with ------------------------------------------------------ */

void edge_frame_done(struct io_frame *f)
{
	struct io_frame *head = atomic_load_explicit(&seq.freed, memory_order_relaxed);

	if (!seq_is_lwips()) {
		f->link->ops->free(f);
		return;
	}
	do {
		f->next = head;
		/* release: pairs with the acquire in seq_give_back; next is visible */
	} while (!atomic_compare_exchange_weak_explicit(&seq.freed, &head, f, memory_order_release,
							memory_order_relaxed));
}

void seq_give_back(void)
{
	struct io_frame *f;

	if (!atomic_load_explicit(&seq.freed, memory_order_relaxed))
		return;
	f = atomic_exchange_explicit(&seq.freed, NULL, memory_order_acquire);
	while (f) {
		struct io_frame *next = f->next;

		f->next = NULL;
		f->link->ops->free(f);
		f = next;
	}
}

/* ---- frames that connections fill -------------------------------------------------------- */

static bool ring_empty(const struct seq_out *o)
{
	return atomic_load_explicit(&o->put, memory_order_acquire) ==
	       atomic_load_explicit(&o->got, memory_order_relaxed);
}

/* Connections keep frames until they are acknowledged: not all, or nothing would be. */
static bool keep_spares(struct seq_link *sl)
{
	while (sl->held >= MANY && sl->spares < SEQ_SPARE) {
		struct io_frame *f = sl->io->ops->alloc(sl->io);

		if (!f)
			return false;
		sl->spare[sl->spares++] = f;
	}
	return true;
}

struct io_frame *seq_frame(struct seq_link *sl)
{
	struct io_frame *f;

	if (sl->tx_n >= SEQ_BURST / 2 || !ring_empty(&sl->out) || !keep_spares(sl))
		return NULL;
	f = sl->io->ops->alloc(sl->io);
	sl->held += f != NULL;
	return f;
}

void seq_frame_done(struct seq_link *sl, struct io_frame *f)
{
	f->link->ops->free(f);
	if (--sl->held)
		return;
	while (sl->spares)
		sl->io->ops->free(sl->spare[--sl->spares]);
}

/* ---- out, by the ring -------------------------------------------------------------------- */

/* Under the core lock. */
static err_t put(struct seq_link *sl, struct pbuf *p, bool self)
{
	struct seq_out *o = &sl->out;
	unsigned at = atomic_load_explicit(&o->put, memory_order_relaxed);

	/* lwIP leaves the segment queued on an error and tries again later. */
	if (at - atomic_load_explicit(&o->got, memory_order_acquire) == SEQ_OUT)
		return ERR_MEM;
	/* Its octets are another's, who may be told that they have arrived. */
	if (p->next)
		p = pbuf_clone(PBUF_RAW, PBUF_RAM, p);
	else
		pbuf_ref(p);
	if (!p)
		return ERR_MEM;
	o->v[at % SEQ_OUT] = p;
	o->self[at % SEQ_OUT] = self;
	atomic_store_explicit(&o->put, at + 1, memory_order_release);
	/* Of others who send whoever has the stack lock sees to it. */
	if (self || seq_is_lwips())
		seq.cfg.wake(seq.cfg.arg);
	return ERR_OK;
}

/* A packet, copied into a frame, which is empty if it does not fit; NULL: there is no frame. */
static struct io_frame *copy_of(struct seq_link *sl, const struct pbuf *p)
{
	struct io_link *l = sl->io;
	struct io_frame *f = l->ops->alloc(l);

	if (!f && sl->spares)
		f = sl->spare[--sl->spares];
	if (!f)
		return NULL;
	if (p->tot_len <= f->room - (uint32_t)(f->data - f->buf))
		f->len = pbuf_copy_partial(p, f->data, p->tot_len, 0);
	else
		l->stats.tx_drops++;
	seq.cfg.stats->tcp_tx_copied += f->len;
	return f;
}

/* The next packet; NULL: none, or no frame for it. */
static struct io_frame *take(struct seq_link *sl, bool *self)
{
	struct seq_out *o = &sl->out;
	unsigned at = atomic_load_explicit(&o->got, memory_order_relaxed);
	struct io_frame *f;

	if (ring_empty(o))
		return NULL;
	f = copy_of(sl, o->v[at % SEQ_OUT]);
	if (!f)
		return NULL;
	*self = o->self[at % SEQ_OUT];
	pbuf_free(o->v[at % SEQ_OUT]);
	atomic_store_explicit(&o->got, at + 1, memory_order_release);
	return f;
}

static void capture(const struct io_frame *f)
{
	if (seq.cfg.capture)
		seq.cfg.capture(seq.cfg.arg, f);
}

static void queue(struct seq_link *sl, struct io_frame *f)
{
	if (!f->len) {
		sl->io->ops->free(f);
		return;
	}
	capture(f);
	sl->txq[sl->tx_n++] = f;
}

static void fill(struct seq_link *sl)
{
	while (sl->tx_n < SEQ_BURST) {
		bool self;
		struct io_frame *f = take(sl, &self);

		if (!f)
			return;
		if (self && f->len) {
			seq_input(sl->io, f);
			seq.cfg.wake(seq.cfg.arg); /* who flushes does not look */
		} else {
			queue(sl, f);
		}
	}
}

/* How many the link took. */
static unsigned offer(struct seq_link *sl)
{
	unsigned n = sl->io->ops->tx(sl->io, sl->txq, sl->tx_n);

	sl->tx_n -= n;
	memmove(sl->txq, sl->txq + n, sl->tx_n * sizeof(sl->txq[0]));
	return n;
}

static bool flush(struct seq_link *sl)
{
	do {
		fill(sl);
		if (!sl->tx_n)
			return false;
	} while (offer(sl));
	return true;
}

bool seq_flush_links(void)
{
	bool left = false;

	seq_give_back();
	for (unsigned i = 0; i < SEQ_LINKS; i++) {
		if (seq.links[i].io)
			left |= flush(&seq.links[i]);
	}
	return left;
}

/* ---- out, at once ------------------------------------------------------------------------ */

/* A segment that is all of a frame and has not been sent before, which is the rule: NULL else. */
static struct io_frame *whole_frame(const struct pbuf *p)
{
	const struct pbuf *octets = p->next;
	struct io_frame *f = seq.fresh;

	if (!octets || octets->next)
		return NULL;
	for (unsigned i = 0; f && i < LOOK_AHEAD; i++, f = seq_tx(f)->next) {
		if (seq_tx(f)->p == octets->payload && seq_tx(f)->n == octets->len) {
			seq.fresh = seq_tx(f)->next;
			return f;
		}
	}
	return NULL;
}

/* The headers go in front of the octets. */
static struct io_frame *in_place(struct io_frame *f, const struct pbuf *headers)
{
	f->link->ops->ref(f);
	f->data = seq_tx(f)->p - headers->len;
	f->len = headers->len + seq_tx(f)->n;
	f->next = NULL;
	memcpy(f->data, headers->payload, headers->len);
	return f;
}

static struct io_frame *to_frame(struct seq_link *sl, const struct pbuf *p)
{
	struct io_frame *f = whole_frame(p);

	return f && p->len <= sl->io->headroom ? in_place(f, p) : copy_of(sl, p);
}

/* False: the link is full, or has no frame. */
static bool send_now(struct seq_link *sl, const struct pbuf *p)
{
	struct io_frame *f;

	if (sl->tx_n == SEQ_BURST && !offer(sl))
		return false;
	f = to_frame(sl, p);
	if (f)
		queue(sl, f);
	return f;
}

static struct seq_link *link_of_nif(struct netif *nif)
{
	return (struct seq_link *)((uint8_t *)nif - offsetof(struct seq_link, nif));
}

err_t edge_nif_send(struct netif *nif, struct pbuf *p)
{
	struct seq_link *sl = link_of_nif(nif);

	if (seq_is_lwips() || !ring_empty(&sl->out))
		return put(sl, p, false);
	/* lwIP keeps a segment that met an error, and remembers that an ACK is due. */
	return send_now(sl, p) ? ERR_OK : ERR_MEM;
}

/* lwIP is at work and takes nothing in. */
err_t edge_nif_send_self(struct netif *nif, struct pbuf *p)
{
	return put(link_of_nif(nif), p, true);
}

/* ---- in ---------------------------------------------------------------------------------- */

void seq_input(struct io_link *l, struct io_frame *f)
{
	struct seq_link *sl = seq_link_of(l);
	struct pbuf *p;

	capture(f);
	p = edge_wrap_rx(f);
	if (!edge_nif_wants(l, p, seq.cfg.stats)) {
		pbuf_free(p);
		return;
	}
	edge_nif_trust(&sl->nif, f);
	seq.taking = true;
	if (sl->nif.input(p, &sl->nif) != ERR_OK)
		pbuf_free(p);
	seq.taking = false;
}

/* ---- set-up ------------------------------------------------------------------------------ */

static err_t netif_up(void *arg)
{
	struct seq_link *sl = arg;

	return edge_nif_up(&sl->nif, sl->io, tcpip_input) ? ERR_OK : ERR_IF;
}

/* Its connections end with it. */
static err_t netif_down(void *arg)
{
	struct seq_link *sl = arg;

	netif_remove(&sl->nif);
	return ERR_OK;
}

void seq_add_link(struct io_link *l)
{
	struct seq_link *sl = seq_link_of(NULL);

	if (!sl)
		return;
	sl->io = l;
	seq_call(netif_up, sl);
}

static void drop_out(struct seq_link *sl)
{
	struct seq_out *o = &sl->out;
	unsigned at = atomic_load(&o->got), end = atomic_load(&o->put);

	for (; at != end; at++)
		pbuf_free(o->v[at % SEQ_OUT]);
	for (unsigned i = 0; i < sl->tx_n; i++)
		sl->io->ops->free(sl->txq[i]);
}

void seq_remove_link(struct io_link *l)
{
	struct seq_link *sl = seq_link_of(l);
	struct llp_conn *c, *next;

	if (!sl)
		return;
	for (c = seq.conns; c; c = next) {
		next = c->next;
		if (c->sl == sl)
			seq_conn_drop(c);
	}
	seq_call(netif_down, sl);
	drop_out(sl);
	seq_poll(); /* records of what has ended, and frames */
	memset(sl, 0, sizeof(*sl));
}
