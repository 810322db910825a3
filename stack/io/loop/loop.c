/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/loop/loop.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define HEADROOM 128u

struct loop_frame {
	struct io_frame f;
	unsigned refs;
	struct loop_frame *next; /* pool, or the cable */
	uint64_t at_us;		 /* on the cable: when it arrives */
	uint8_t octets[];
};

struct loop_link {
	struct io_link l;
	struct loop_config cfg;
	struct loop_link *peer;		 /* NULL: single */
	struct loop_frame *cable, *last; /* towards this end, by arrival */
	struct loop_frame *pool;
	unsigned out, made;
	uint64_t rng;
	struct loop_fault_stats faults;
	_Atomic uint32_t doorbell;
};

static struct loop_link *of(const struct io_link *l)
{
	return (struct loop_link *)(uintptr_t)l;
}
static struct loop_frame *frame_of(const struct io_frame *f)
{
	return (struct loop_frame *)((uintptr_t)f - offsetof(struct loop_frame, f));
}

/* ---- frames ------------------------------------------------------------------------------ */

static struct io_frame *frame_alloc(struct io_link *l)
{
	struct loop_link *ll = of(l);
	struct loop_frame *f = ll->pool;
	uint32_t room = HEADROOM + 14 + ll->cfg.mtu;

	if (f) {
		ll->pool = f->next;
	} else if (ll->made < ll->cfg.max_frames) {
		f = malloc(sizeof(*f) + room);
		ll->made += f != NULL;
	}
	if (!f) {
		l->stats.no_frame++;
		return NULL;
	}
	memset(&f->f, 0, sizeof(f->f));
	f->f.link = l;
	f->f.buf = f->octets;
	f->f.room = room;
	f->f.data = f->octets + HEADROOM;
	f->refs = 1;
	ll->out++;
	return &f->f;
}

static void frame_free(struct io_frame *iof)
{
	struct loop_frame *f = frame_of(iof);
	struct loop_link *ll = of(iof->link);

	if (--f->refs)
		return;
	f->next = ll->pool;
	ll->pool = f;
	ll->out--;
}

static void frame_ref(struct io_frame *f)
{
	frame_of(f)->refs++;
}

static unsigned frame_refs(const struct io_frame *f)
{
	return frame_of(f)->refs;
}

/* ---- the cable --------------------------------------------------------------------------- */

/* splitmix64: any seed will do, 0 too. */
static uint32_t chance(struct loop_link *ll)
{
	uint64_t z = ll->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) % 1000000);
}

static void put_on_cable(struct loop_link *to, struct loop_frame *f, uint64_t at)
{
	struct loop_frame **p = &to->cable;

	f->at_us = at;
	if (to->cable && to->last->at_us <= at)
		p = &to->last->next;
	while (*p && (*p)->at_us <= at)
		p = &(*p)->next;
	f->next = *p;
	*p = f;
	if (!f->next)
		to->last = f;
}

/* A copy in the receiver's pool: the sender may change its own buffer afterwards. */
static void carry(struct loop_link *from, const struct io_frame *f, uint64_t at)
{
	struct io_frame *copy = frame_alloc(&from->peer->l);

	if (!copy)
		return;
	for (; f; f = f->next) {
		memcpy(copy->data + copy->len, f->data, f->len);
		copy->len += f->len;
	}
	put_on_cable(from->peer, frame_of(copy), at);
}

static void send_one(struct loop_link *ll, struct io_frame *f, uint64_t now)
{
	uint64_t at = now + ll->cfg.delay_us;

	if (!ll->peer || chance(ll) < ll->cfg.drop_ppm) {
		ll->faults.dropped++;
		return;
	}
	if (chance(ll) < ll->cfg.reorder_ppm) {
		ll->faults.reordered++;
		at += ll->cfg.reorder_us;
	}
	carry(ll, f, at);
	if (chance(ll) < ll->cfg.dup_ppm) {
		ll->faults.repeated++;
		carry(ll, f, at + 1);
	}
}

static unsigned link_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct loop_link *ll = of(l);
	uint64_t now = ll->cfg.now_us(ll->cfg.arg);

	for (unsigned i = 0; i < n; i++) {
		l->stats.tx_frames++;
		for (const struct io_frame *b = v[i]; b; b = b->next)
			l->stats.tx_bytes += b->len;
		send_one(ll, v[i], now);
		io_free_chain(v[i]);
	}
	return n;
}

static unsigned link_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct loop_link *ll = of(l);
	uint64_t now = ll->cfg.now_us(ll->cfg.arg);
	unsigned got = 0;

	while (got < n && ll->cable && ll->cable->at_us <= now) {
		struct loop_frame *f = ll->cable;

		ll->cable = f->next;
		v[got++] = &f->f;
		l->stats.rx_frames++;
		l->stats.rx_bytes += f->f.len;
	}
	return got;
}

static bool link_pending(struct io_link *l)
{
	struct loop_link *ll = of(l);

	return ll->cable && ll->cable->at_us <= ll->cfg.now_us(ll->cfg.arg);
}

void loop_set_drop(struct io_link *l, uint32_t ppm)
{
	of(l)->cfg.drop_ppm = ppm;
}

uint64_t loop_next_us(const struct io_link *l)
{
	return of(l)->cable ? of(l)->cable->at_us : UINT64_MAX;
}

struct loop_fault_stats loop_faults(const struct io_link *l)
{
	return of(l)->faults;
}

unsigned loop_frames_out(const struct io_link *l)
{
	return of(l)->out;
}

/* ---- life -------------------------------------------------------------------------------- */

static void link_close(struct io_link *l)
{
	struct loop_link *ll = of(l);

	while (ll->cable) {
		struct loop_frame *f = ll->cable;

		ll->cable = f->next;
		frame_free(&f->f);
	}
	while (ll->pool) {
		struct loop_frame *f = ll->pool;

		ll->pool = f->next;
		free(f);
	}
	if (ll->peer)
		ll->peer->peer = NULL;
	free(ll);
}

static const struct io_ops ops = {
	.name = "loop",
	.rx = link_rx,
	.tx = link_tx,
	.alloc = frame_alloc,
	.free = frame_free,
	.ref = frame_ref,
	.refs = frame_refs,
	.pending = link_pending,
	.close = link_close,
};

static struct loop_link *make(const struct loop_config *cfg, const struct io_env *env, unsigned end)
{
	struct loop_link *ll = calloc(1, sizeof(*ll));

	if (!ll)
		return NULL;
	ll->cfg = *cfg;
	if (!ll->cfg.max_frames)
		ll->cfg.max_frames = 4096;
	ll->rng = cfg->seed + end;
	ll->l.ops = &ops;
	if (env)
		ll->l.env = *env;
	ll->l.addr = cfg->addr[end];
	ll->l.mask = cfg->mask;
	ll->l.mtu = cfg->mtu;
	ll->l.headroom = HEADROOM;
	ll->l.flags = cfg->flags;
	ll->l.bps = IO_BPS_UNKNOWN;
	ll->l.doorbell = &ll->doorbell;
	io_mac_of(cfg->addr[end], ll->l.mac);
	return ll;
}

uw_status loop_open_pair(const struct loop_config *cfg, const struct io_env *env,
			 struct io_link *out[2])
{
	struct loop_link *a = make(cfg, env, 0), *b = make(cfg, env, 1);

	if (!a || !b) {
		free(a);
		free(b);
		return UW_E_NOMEM;
	}
	a->peer = b;
	b->peer = a;
	out[0] = &a->l;
	out[1] = &b->l;
	return UW_OK;
}

uw_status loop_open_single(const struct loop_config *cfg, const struct io_env *env,
			   struct io_link **out)
{
	struct loop_link *a = make(cfg, env, 0);

	if (!a)
		return UW_E_NOMEM;
	*out = &a->l;
	return UW_OK;
}
