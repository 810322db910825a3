/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mempool.h>

#include "frame.h"
#include "io/fds.h"
#include "io/log.h"
#include "io/shm.h"

_Static_assert(sizeof(struct rte_mbuf) % _Alignof(struct io_frame) == 0,
	       "the private area must be aligned for io_frame");
_Static_assert(RTE_PKTMBUF_HEADROOM >= 128, "io.h promises 128 octets of headroom");

/* mempool header, trailer and the spread over memory channels */
#define OBJECT_EXTRA 256
#define SMALL_PAGE   4096u

/* Without huge pages no object crosses a page unless it is longer than one. */
size_t frame_pools_bytes(unsigned nrx, unsigned ntx, unsigned room)
{
	size_t one = OBJECT_EXTRA + sizeof(struct rte_mbuf) + FRAME_PRIV + FRAME_HEADROOM + room;

	if (one > SMALL_PAGE)
		one = RTE_ALIGN_CEIL(one, SMALL_PAGE);
	else
		one = SMALL_PAGE / (SMALL_PAGE / one);
	return (nrx + ntx) * (one + sizeof(void *));
}

/*
 * Pools of a closed link, for the next one of this process: DPDK clears memory as it is freed,
 * which takes longer than all the rest of a close, and most processes then end.
 */
static struct {
	pthread_mutex_t lock;
	struct frame_pools pools; /* rx NULL: none */
	unsigned room;
} spare = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* What never changes in a buffer's life is written once. */
static void frame_init(struct rte_mempool *mp, void *arg, void *obj, unsigned idx)
{
	struct rte_mbuf *m = obj;
	struct io_frame *f = frame_of(m);

	(void)mp;
	(void)idx;
	f->link = arg;
	f->buf = m->buf_addr;
	f->room = m->buf_len;
}

static void frame_init_shared(struct rte_mempool *mp, void *arg, void *obj, unsigned idx)
{
	const struct frame_arena *a = arg;
	struct io_frame *f = frame_of(obj);

	(void)mp;
	f->buf = a->base + (size_t)idx * a->stride;
	f->room = a->stride;
}

/*
 * Last in, first out ("stack"), because our threads are none of the EAL's and so have no cache
 * of their own: from the default ring each buffer taken would be the coldest of all.
 */
static struct rte_mempool *pool_open(const char *what, unsigned n, unsigned room)
{
	static atomic_uint serial;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "uwarp-%s-%u", what, atomic_fetch_add(&serial, 1));
	struct rte_mempool *mp = rte_pktmbuf_pool_create_by_ops(
		name, n, 0, FRAME_PRIV, (uint16_t)room, SOCKET_ID_ANY, "stack");
	return mp;
}

static struct rte_mempool *tx_open(struct frame_pools *p, unsigned room)
{
	struct frame_arena *a = &p->arena;

	if (!p->shared)
		return pool_open("tx", p->ntx, FRAME_HEADROOM + room);
	a->stride = RTE_ALIGN_CEIL(FRAME_HEADROOM + room, RTE_CACHE_LINE_SIZE);
	a->size = RTE_ALIGN_CEIL((size_t)p->ntx * a->stride, (size_t)SMALL_PAGE);
	a->base = shm_make("uwarp-sent", a->size, SHM_READ_ONLY, &a->fd);
	if (a->base)
		a->fd = fds_keep(a->fd);
	if (a->base && a->fd >= 0)
		return pool_open("tx", p->ntx, 0);
	rte_errno = errno;
	return NULL;
}

static void pool_close(struct rte_mempool *mp)
{
	if (mp && rte_mempool_full(mp))
		rte_mempool_free(mp);
}

/* An arena lives as long as a frame of its pool is in use, as the pool does. */
static void pools_free(struct frame_pools *p)
{
	if (p->shared && (!p->tx || rte_mempool_full(p->tx))) {
		shm_unmap(p->arena.base, p->arena.size);
		fds_close(p->arena.fd);
	}
	pool_close(p->rx);
	pool_close(p->tx);
	p->rx = p->tx = NULL;
	p->arena = (struct frame_arena){ .fd = -1 };
}

/* A cache holds at most 1.5 times its size, so most free buffers stay in the pool. */
static struct rte_mempool_cache *cache_open(const struct rte_mempool *mp)
{
	return rte_mempool_cache_create(RTE_MIN(64u, mp->size / 16 + 1), SOCKET_ID_ANY);
}

static void cache_close(struct rte_mempool_cache *cache, struct rte_mempool *mp)
{
	if (!cache)
		return;
	rte_mempool_cache_flush(cache, mp);
	rte_mempool_cache_free(cache);
}

static bool caches_open(struct frame_pools *p)
{
	if (!p->alone)
		return true;
	p->rx_cache = cache_open(p->rx);
	p->tx_cache = cache_open(p->tx);
	return p->rx_cache && p->tx_cache;
}

static void caches_close(struct frame_pools *p)
{
	cache_close(p->rx_cache, p->rx);
	cache_close(p->tx_cache, p->tx);
	p->rx_cache = p->tx_cache = NULL;
}

/* The spare pools if they fit; if not, their memory is needed for ours. */
static bool spare_take(struct frame_pools *p, unsigned room)
{
	pthread_mutex_lock(&spare.lock);
	bool fit = spare.pools.rx && spare.room == room && spare.pools.nrx == p->nrx &&
		   spare.pools.ntx == p->ntx && spare.pools.shared == p->shared &&
		   spare.pools.alone == p->alone;
	if (fit)
		*p = spare.pools;
	else
		pools_free(&spare.pools);
	spare.pools = (struct frame_pools){ .arena = { .fd = -1 } };
	pthread_mutex_unlock(&spare.lock);
	return fit;
}

uw_status frame_pools_open(struct frame_pools *p, struct io_link *l, unsigned room)
{
	if (!spare_take(p, room)) {
		p->arena = (struct frame_arena){ .fd = -1 };
		p->rx = pool_open("rx", p->nrx, FRAME_HEADROOM + room);
		p->tx = p->rx ? tx_open(p, room) : NULL;
	}
	if (p->tx && caches_open(p)) {
		rte_mempool_obj_iter(p->rx, frame_init, l);
		rte_mempool_obj_iter(p->tx, frame_init, l);
		if (p->shared)
			rte_mempool_obj_iter(p->tx, frame_init_shared, &p->arena);
		return UW_OK;
	}
	uw_status st = log_error(UW_E_NOMEM, "no memory for %u buffers of %u octets: %s%s",
				 p->nrx + p->ntx, room, rte_strerror(rte_errno),
				 rte_errno == EMFILE ? " (ulimit -n)" : "");
	frame_pools_close(p);
	return st;
}

void frame_pools_close(struct frame_pools *p)
{
	caches_close(p);
	bool whole = p->rx && p->tx && rte_mempool_full(p->rx) && rte_mempool_full(p->tx) &&
		     !p->arena.unread;

	pthread_mutex_lock(&spare.lock);
	if (whole && !spare.pools.rx) {
		spare.pools = *p;
		spare.room = rte_pktmbuf_data_room_size(p->rx) - FRAME_HEADROOM;
		*p = (struct frame_pools){ .arena = { .fd = -1 } };
	}
	pthread_mutex_unlock(&spare.lock);
	pools_free(p);
}

static struct io_frame *frame_begin(struct rte_mbuf *m)
{
	struct io_frame *f = frame_of(m);

	f->next = NULL;
	f->data = f->buf + FRAME_HEADROOM;
	f->len = 0;
	f->marks = 0;
	return f;
}

struct io_frame *frame_alloc(struct rte_mempool *mp)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(mp);

	return m ? frame_begin(m) : NULL;
}

void frame_free(struct io_frame *f)
{
	rte_pktmbuf_free_seg(mbuf_of(f));
}

void frame_ref(struct io_frame *f)
{
	rte_mbuf_refcnt_update(mbuf_of(f), 1);
}

unsigned frame_refs(const struct io_frame *f)
{
	return rte_mbuf_refcnt_read(mbuf_of(f));
}

/* What a driver reads of the mbuf is not written: none sees it. */
struct io_frame *frame_take(struct rte_mempool *mp, struct rte_mempool_cache *cache)
{
	void *m;

	return rte_mempool_generic_get(mp, &m, 1, cache) ? NULL : frame_begin(m);
}

void frame_drop(const struct frame_pools *p, struct io_frame *f)
{
	struct rte_mbuf *m = mbuf_of(f);
	uint16_t refs = rte_mbuf_refcnt_read(m);
	void *object = m;

	if (refs > 1)
		rte_mbuf_refcnt_set(m, (uint16_t)(refs - 1));
	else
		rte_mempool_generic_put(m->pool, &object, 1,
					m->pool == p->tx ? p->tx_cache : p->rx_cache);
}

void frame_keep(struct io_frame *f)
{
	struct rte_mbuf *m = mbuf_of(f);

	rte_mbuf_refcnt_set(m, (uint16_t)(rte_mbuf_refcnt_read(m) + 1));
}

unsigned frame_spare_tx(const struct frame_pools *p)
{
	return rte_mempool_avail_count(p->tx) + (p->tx_cache ? p->tx_cache->len : 0);
}
