/* SPDX-License-Identifier: BSD-3-Clause */
/* A link in front of another: what it hands on as it is. */
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

/* The ops of one over `under`, whose frames stay its own. What that does not have, it has not
 * either; rx, tx, pending and close are for the caller to fill in. */
struct io_ops link_filter_ops(const struct io_ops *under);

#endif
