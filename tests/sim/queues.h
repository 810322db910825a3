/* SPDX-License-Identifier: BSD-3-Clause */
/* A port with several receive queues, made from a link that has one: each connection's frames come
 * on one queue, which its addresses and ports choose; what is no segment comes on any. Each queue
 * is a link that a thread of its own may use. */
#ifndef UWARP_SIM_QUEUES_H
#define UWARP_SIM_QUEUES_H

#include "io/io.h"

#define QUEUES_MAX 8u

/* `under` is closed with the last of the n; its frames are those of `base`, which is under it or is
 * it. */
void queues_open(struct io_link *under, struct io_link *base, unsigned n, struct io_link **out);

#endif
