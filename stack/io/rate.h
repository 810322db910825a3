/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link filter (link_filter.h) that limits the rate of sending. The filter hands a frame to the
 * link below when a port of that rate would have sent the frame's last bit. Preamble, FCS and
 * interframe gap count.
 */
#ifndef UWARP_IO_RATE_H
#define UWARP_IO_RATE_H

#include "io/io.h"

#define RATE_MIN_BPS 1000000ull
#define RATE_MAX_BPS 1000000000000ull

/* *out owns `under` from now on: closing it closes `under`. now_ns is a monotonic clock.
 * UW_E_NOMEM: `under` stays the caller's. */
uw_status rate_open(struct io_link *under, uint64_t bps, uint64_t (*now_ns)(void *arg), void *arg,
		    struct io_link **out) UW_CHECK;

/* Parse "10G", "2.5G", "100M" or a number of bits per second. False: text has none of these forms,
 * or the rate is not within RATE_MIN_BPS to RATE_MAX_BPS. */
bool rate_parse(const char *text, uint64_t *bps);

#endif
