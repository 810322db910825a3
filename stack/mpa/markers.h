/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPA markers, RFC 5044 §4.3: a 4-octet marker at every 512th octet of the stream, counted from
 * the first FPDU, which one precedes. `phase` below is the stream position modulo 512: 0 means
 * that a marker stands exactly here. FPDUs and markers are multiples of 4, so nothing is ever cut.
 */
#ifndef UWARP_MPA_MARKERS_H
#define UWARP_MPA_MARKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* Octets that n octets of FPDU occupy when they start at `phase`, the markers inside counted, one
 * that would stand right behind the last octet not. */
size_t mpa_marked_size(unsigned phase, size_t n);

/* Spread n octets at p (room for mpa_marked_size) and put the markers in; FPDUPTR counts from the
 * ULPDU_Length field. Returns the new size. */
size_t mpa_markers_insert(uint8_t *p, unsigned phase, size_t n);

/* Copy n octets of FPDU out of a rope that has markers, starting at `phase`; the rope holds
 * mpa_marked_size(phase, n) octets or more. *fpduptr_ok turns 0 if a marker does not point back to
 * the FPDU's ULPDU_Length field. Returns the octets of rope that this took. */
size_t mpa_markers_strip(struct uw_rope r, unsigned phase, uint8_t *dst, size_t n, int *fpduptr_ok);

static inline unsigned mpa_phase_add(unsigned phase, size_t n)
{
	return (unsigned)((phase + n) % 512);
}

#endif
