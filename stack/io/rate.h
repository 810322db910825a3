/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link that is no faster than it is told to be: it stands in front of another one and lets each
 * frame go when its last bit would have left a port of that rate, preamble, FCS and gap included.
 */
#ifndef UWARP_IO_RATE_H
#define UWARP_IO_RATE_H

#include "io/io.h"

#define RATE_MIN_BPS 1000000ull
#define RATE_MAX_BPS 1000000000000ull

/* Ownership of `under` passes: closing the one closes the other. now_ns is monotonic.
 * UW_E_NOMEM: `under` stays the caller's. */
uw_status rate_open(struct io_link *under, uint64_t bps, uint64_t (*now_ns)(void *arg), void *arg,
		    struct io_link **out) UW_CHECK;

/* "10G", "2.5G", "100M" or plain bits per second; false: none of them, or out of bounds. */
bool rate_parse(const char *text, uint64_t *bps);

#endif
