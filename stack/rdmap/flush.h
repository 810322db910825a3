/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FLUSH and ATOMIC WRITE at the end that is asked (doc/adr/0033). Both are carried out when they
 * come: whatever comes behind them on the stream finds them done.
 */
#ifndef UWARP_RDMAP_FLUSH_H
#define UWARP_RDMAP_FLUSH_H

#include "rdmap/rdmap.h"

static inline bool rdmap_is_placement(const struct rdmap_atomic *a)
{
	return a->aop == RDMAP_FLUSH || a->aop == RDMAP_ATOMIC_WRITE;
}

/* Carry it out. UW_E_RDMAP_STAG and the other protection errors: the peer may not.
 * UW_E_RDMAP_OPCODE: not a FLUSH that we know. UW_E_RDMAP_STREAM_CATASTROPHIC: not aligned, or the
 * memory cannot be made persistent. */
uw_status rdmap_place(const struct rdmap_stream *s, const struct rdmap_atomic *a) UW_CHECK;

#endif
