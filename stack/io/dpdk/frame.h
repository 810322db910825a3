/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames are mbufs: struct io_frame is the mbuf's private area, so each is found from the other
 * by arithmetic. A frame in the stack's hands is a chain of io_frames whose mbufs are single;
 * the mbuf chain exists only while DPDK looks at it.
 */
#ifndef UWARP_IO_DPDK_FRAME_H
#define UWARP_IO_DPDK_FRAME_H

#include <rte_mbuf.h>

#include "io/io.h"

/* A cache line multiple, so that the octets behind it begin on a line. */
#define FRAME_PRIV RTE_ALIGN_CEIL(sizeof(struct io_frame), RTE_CACHE_LINE_SIZE)

enum {
	FRAME_ETHER = 14,
	FRAME_BURST = 32,
	FRAME_HEADROOM = RTE_PKTMBUF_HEADROOM,
	FRAME_ROOM_MAX = UINT16_MAX - RTE_PKTMBUF_HEADROOM,
};

/* Received frames and frames to send have pools of their own: however much is waiting for its
 * acknowledgement, the acknowledgement finds a buffer. */
struct frame_pools {
	struct rte_mempool *rx, *tx;
	unsigned nrx, ntx;
};

/* room: octets behind the headroom, at most FRAME_ROOM_MAX. */
size_t frame_pools_bytes(unsigned nrx, unsigned ntx, unsigned room);
UW_CHECK uw_status frame_pools_open(struct frame_pools *p, struct io_link *l, unsigned room);
/* Buffers that somebody still holds stay where they are, and with them their pool: an XDP socket's
 * driver never gives back what it was to receive into. */
void frame_pools_close(struct frame_pools *p);

static inline struct io_frame *frame_of(struct rte_mbuf *m)
{
	return (struct io_frame *)(void *)(m + 1);
}

static inline struct rte_mbuf *mbuf_of(const struct io_frame *f)
{
	return (struct rte_mbuf *)(uintptr_t)f - 1;
}

/* A received mbuf chain becomes a frame chain; octets in *len. */
static inline struct io_frame *frame_from_mbuf(struct rte_mbuf *m, uint32_t *len)
{
	struct io_frame *head = frame_of(m), **link = &head;

	*len = m->pkt_len;
	while (m) {
		struct rte_mbuf *next = m->next;
		struct io_frame *f = frame_of(m);

		f->data = rte_pktmbuf_mtod(m, uint8_t *);
		f->len = m->data_len;
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

/* A frame chain becomes an mbuf chain to send. Takes no reference. */
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

/* io_ops */
struct io_frame *frame_alloc(struct rte_mempool *mp);
void frame_free(struct io_frame *f);
void frame_ref(struct io_frame *f);
unsigned frame_refs(const struct io_frame *f);

#endif
