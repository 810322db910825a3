/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame's octets as a pbuf, without a copy: the pbuf lies in the frame's own memory
 * (io_frame.llp). Compiled for each of the two lwIPs (io/lwip, io/seq). */
#ifndef UWARP_LWIP_FRAME_H
#define UWARP_LWIP_FRAME_H

#include <assert.h>
#include <stddef.h>

#include "io/io.h"
#include "lwip/pbuf.h"

static_assert(sizeof(struct pbuf_custom) <= IO_LLP_ROOM, "a pbuf lives in each frame");

static inline struct pbuf_custom *edge_pbuf(struct io_frame *f)
{
	return (struct pbuf_custom *)f->llp;
}
static inline struct io_frame *edge_frame(struct pbuf *p)
{
	return (struct io_frame *)((uint8_t *)p - offsetof(struct io_frame, llp));
}

/* lwIP has freed the pbuf. */
#if NO_SYS
static inline void edge_frame_done(struct io_frame *f)
{
	f->link->ops->free(f);
}
#else
void edge_frame_done(struct io_frame *f);
#endif

/* A received frame, a chain of buffers, as a chain of pbufs. Each pbuf frees its own buffer. */
struct pbuf *edge_wrap_rx(struct io_frame *f);
struct pbuf *edge_wrap_tx(struct io_frame *f);
/* Is p one of edge_wrap_tx's, with nothing behind it? */
bool edge_is_tx(const struct pbuf *p);

#endif
