/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link filter (link_filter.h) that impairs the frames that pass: io/impair/model.h decides,
 * io/impair/line.h holds delayed frames. Frames that are neither delayed nor changed are handed on
 * without a copy.
 *
 * An IO_P2P link uses no checksums, so a damaged header would be accepted. With corrupt or truncate
 * the link therefore turns checksums on (IO_SUMS). Both ends must do so: configure the impairment
 * in both processes.
 */
#ifndef UWARP_IO_IMPAIR_LINK_H
#define UWARP_IO_IMPAIR_LINK_H

#include "io/impair/options.h"
#include "io/io.h"

struct impair_link_config {
	struct impair_options options;
	uint64_t (*now_ns)(void *arg); /* monotonic */
	void *arg;
	/* Called when the link closes, with a line of counters for each direction. May be NULL. */
	void (*say)(const char *line);
};

/* The new link owns `under`: closing the one closes the other. UW_E_NOMEM: `under` stays the
 * caller's. */
uw_status impair_open(struct io_link *under, const struct impair_link_config *cfg,
		      struct io_link **out) UW_CHECK;

/* The model of a direction, to read its counters; NULL: that direction is not impaired. */
const struct impair *impair_model(const struct io_link *l, enum impair_dir dir);
/* Time at which the next held frame is due; UINT64_MAX: none is held. */
uint64_t impair_next_ns(const struct io_link *l);

#endif
