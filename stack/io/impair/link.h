/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link in front of another one that impairs what passes: io/impair/model.h decides,
 * io/impair/line.h holds what is late. Frames that are neither late nor changed are handed on as
 * they are.
 *
 * Over an IO_P2P link nothing is summed, so a damaged header would be believed. With corrupt or
 * truncate the link therefore asks for checksums (IO_SUMS), which both ends must then do: give it
 * to both processes.
 */
#ifndef UWARP_IO_IMPAIR_LINK_H
#define UWARP_IO_IMPAIR_LINK_H

#include "io/impair/options.h"
#include "io/io.h"

struct impair_link_config {
	struct impair_options options;
	uint64_t (*now_ns)(void *arg); /* monotonic */
	void *arg;
	/* Told the counters of each direction when the link closes, a line for each; NULL: nobody
	 * is. */
	void (*say)(const char *line);
};

/* Ownership of `under` passes: closing the one closes the other. UW_E_NOMEM: it stays the caller's.
 */
uw_status impair_open(struct io_link *under, const struct impair_link_config *cfg,
		      struct io_link **out) UW_CHECK;

/* The model of a direction, to read its counters; NULL: frames of that direction are left alone. */
const struct impair *impair_model(const struct io_link *l, enum impair_dir dir);
/* When the next frame that is held is due; UINT64_MAX: none is. */
uint64_t impair_next_ns(const struct io_link *l);

#endif
