/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link filter, such as rate.h or steer.h, is a link above another link. This header has the
 * common part of all filters: the operations that a filter passes on to the link below unchanged.
 */
#ifndef UWARP_IO_LINK_FILTER_H
#define UWARP_IO_LINK_FILTER_H

#include "io/io.h"

struct link_filter {
	struct io_link l; /* first: an io_link * is a link_filter * */
	struct io_link *under;
};

static inline struct io_link *link_filter_under(struct io_link *l)
{
	return ((struct link_filter *)l)->under;
}

/* A frame that is due so soon is pending: a sleep takes as long, however short it is meant to be.
 */
#define LINK_FILTER_NEAR_NS 60000u

/* The operations of a filter above a link with the operations `under`. Operations that `under` does
 * not have stay NULL. The caller sets rx, tx, pending and close. Frames belong to the link below.
 */
struct io_ops link_filter_ops(const struct io_ops *under);

/* A frame begins to wait inside the filter, and nobody rings when its time comes: wake the stack's
 * own thread, which may be asleep for longer than that. */
void link_filter_wake(struct link_filter *f);

#endif
