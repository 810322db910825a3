/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames in DPDK's mbufs. A struct io_frame is the private area of an mbuf, so frame_of and mbuf_of
 * convert by arithmetic. The stack links the buffers of a frame by io_frame.next. The mbufs are
 * linked by rte_mbuf.next only between frame_to_mbuf and the driver, and between the driver and
 * frame_from_mbuf.
 */
#ifndef UWARP_IO_DPDK_FRAME_H
#define UWARP_IO_DPDK_FRAME_H

#include <rte_mbuf.h>

#include "io/io.h"

/* A multiple of the cache line size, so that the octets of the frame begin on a cache line. */
#define FRAME_PRIV RTE_ALIGN_CEIL(sizeof(struct io_frame), RTE_CACHE_LINE_SIZE)

enum {
	FRAME_ETHER = 14,
	FRAME_BURST = 32,
	FRAME_HEADROOM = RTE_PKTMBUF_HEADROOM,
	FRAME_ROOM_MAX = UINT16_MAX - RTE_PKTMBUF_HEADROOM,
};

/* Memory for the octets of frames to send that other processes may read. */
struct frame_arena {
	uint8_t *base; /* NULL: none */
	size_t size;
	uint32_t stride; /* octets for each frame */
	int fd;
	/* Another process may still read octets of frames that are free. So nobody writes there
	 * any more: when the pools are closed they are not kept for the next link. */
	bool unread;
};

/* Two pools of buffers for one link. Frames to receive have a pool of their own, so that an
 * acknowledgement can be received even if all buffers to send wait for it. */
struct frame_pools {
	struct rte_mempool *rx, *tx;
	unsigned nrx, ntx;
	bool shared;		  /* the octets of frames to send are to lie in an arena */
	struct frame_arena arena; /* with `shared` */
	/* One thread at a time uses the pools, under a lock, and no driver does: frames need no
	 * locked instructions (doc/adr/0066). frame_take, frame_drop and frame_keep are for these,
	 * frame_alloc, frame_free and frame_ref for all others. */
	bool alone;
	struct rte_mempool_cache *rx_cache, *tx_cache; /* with `alone`: free buffers, used first */
};

/* frame_pools_bytes: octets of memory for both pools. room: octets of a buffer after the headroom,
 * at most FRAME_ROOM_MAX. */
size_t frame_pools_bytes(unsigned nrx, unsigned ntx, unsigned room);
UW_CHECK uw_status frame_pools_open(struct frame_pools *p, struct io_link *l, unsigned room);
/* A pool with buffers in use is not freed. (The driver of XDP sockets never gives back its receive
 * buffers.) */
void frame_pools_close(struct frame_pools *p);

static inline struct io_frame *frame_of(struct rte_mbuf *m)
{
	return (struct io_frame *)(void *)(m + 1);
}

static inline struct rte_mbuf *mbuf_of(const struct io_frame *f)
{
	return (struct rte_mbuf *)(uintptr_t)f - 1;
}

/* Convert a received mbuf chain to a frame chain; *len: octets of the frame. */
static inline struct io_frame *frame_from_mbuf(struct rte_mbuf *m, uint32_t *len)
{
	struct io_frame *head = frame_of(m), **link = &head;

	*len = m->pkt_len;
	while (m) {
		struct rte_mbuf *next = m->next;
		struct io_frame *f = frame_of(m);

		f->data = rte_pktmbuf_mtod(m, uint8_t *);
		f->len = m->data_len;
		f->marks = 0;
		m->next = NULL;
		m->nb_segs = 1;
		*link = f;
		link = &f->next;
		m = next;
	}
	*link = NULL;
	return head;
}

static inline uint32_t frame_len(const struct io_frame *f)
{
	uint32_t len = 0;

	for (; f; f = f->next)
		len += f->len;
	return len;
}

/* Convert a frame chain to an mbuf chain for sending. Takes no reference. */
static inline struct rte_mbuf *frame_to_mbuf(struct io_frame *f, uint32_t len)
{
	struct rte_mbuf *head = mbuf_of(f);
	uint16_t segs = 0;

	for (; f; f = f->next) {
		struct rte_mbuf *m = mbuf_of(f);

		m->data_off = (uint16_t)(f->data - f->buf);
		m->data_len = (uint16_t)f->len;
		m->next = f->next ? mbuf_of(f->next) : NULL;
		segs++;
	}
	head->nb_segs = segs;
	head->pkt_len = len;
	return head;
}

/* For pools with `alone`, under the lock of their link.
 * frame_take: a frame of one reference from p->rx and p->rx_cache, or p->tx and p->tx_cache; NULL:
 * the pool is empty. frame_drop: drop one reference of a frame of p. frame_keep: add one. */
struct io_frame *frame_take(struct rte_mempool *mp, struct rte_mempool_cache *cache);
void frame_drop(const struct frame_pools *p, struct io_frame *f);
void frame_keep(struct io_frame *f);
/* How many buffers to send are free, in p->tx and p->tx_cache. */
unsigned frame_spare_tx(const struct frame_pools *p);

/* alloc, free, ref and refs of struct io_ops. */
struct io_frame *frame_alloc(struct rte_mempool *mp);
void frame_free(struct io_frame *f);
void frame_ref(struct io_frame *f);
unsigned frame_refs(const struct io_frame *f);

#endif
