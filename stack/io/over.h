/* SPDX-License-Identifier: BSD-3-Clause */
/* A link in front of another: what it hands on as it is. */
#ifndef UWARP_IO_OVER_H
#define UWARP_IO_OVER_H

#include "io/io.h"

struct io_over {
	struct io_link l; /* first: an io_link * is an io_over * */
	struct io_link *under;
};

static inline struct io_link *io_under(struct io_link *l)
{
	return ((struct io_over *)l)->under;
}

/* The ops of one over `under`, whose frames stay its own. What that does not have, it has not
 * either; rx, tx, pending and close are for the caller to fill in. */
struct io_ops io_over_ops(const struct io_ops *under);

#endif
