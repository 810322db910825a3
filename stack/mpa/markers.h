/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPA markers, RFC 5044 §4.3: a 4-octet marker at every 512th octet of the stream, the first one
 * directly before the first FPDU. `phase` is the stream position modulo 512; at phase 0 a marker
 * comes next. FPDUs and markers are multiples of 4 octets, so no 4-octet word is ever split.
 */
#ifndef UWARP_MPA_MARKERS_H
#define UWARP_MPA_MARKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* The size of n octets of FPDU that start at `phase`, with the markers inside, but without a marker
 * directly after the last octet. */
size_t mpa_marked_size(unsigned phase, size_t n);

/* Insert markers into the n octets at p (room for mpa_marked_size). FPDUPTR counts from the
 * ULPDU_Length field. Returns the new size. */
size_t mpa_markers_insert(uint8_t *p, unsigned phase, size_t n);

/* Copy n octets of FPDU, without markers, from a rope that starts at `phase` and holds at least
 * mpa_marked_size(phase, n) octets. *fpduptr_ok becomes 0 if a marker does not point back to the
 * ULPDU_Length field of the FPDU. Returns the octets of the rope that were used. */
size_t mpa_markers_strip(struct uw_rope r, unsigned phase, uint8_t *dst, size_t n, int *fpduptr_ok);

static inline unsigned mpa_phase_add(unsigned phase, size_t n)
{
	return (unsigned)((phase + n) % 512);
}

#endif
