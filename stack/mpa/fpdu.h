/* SPDX-License-Identifier: BSD-3-Clause */
/* FPDUs: each has a length, one ULPDU, pad octets and a CRC. RFC 5044 §4, §5, §6. */
#ifndef UWARP_MPA_FPDU_H
#define UWARP_MPA_FPDU_H

#include <stdbool.h>

#include "base/span.h"
#include "base/stats.h"
#include "base/status.h"
#include "wire/mpa_wire.h"

/* ---- receive ----------------------------------------------------------------------------- */

struct mpa_rx {
	bool crc;	  /* check the CRC, RFC 5044 §4.4 */
	bool markers;	  /* the peer sends markers, since we asked for them */
	unsigned phase;	  /* markers: stream position modulo 512 */
	uint8_t *scratch; /* markers: MPA_FPDU_MAX octets, owned by the caller; else NULL */
	/* markers: the last FPDU without its markers, valid until the next call */
	struct uw_span flat;
	/* the error that ended the stream: no more FPDUs are delivered, RFC 5044 §8 */
	uw_status failed;
	struct uw_stats *stats;
};

#define MPA_FPDU_MAX (MPA_LENGTH_SIZE + 65535u + 3u + MPA_CRC_SIZE)

/*
 * Look for one whole FPDU at the start of `in`.
 *  UW_OK    *ulpdu is its ULPDU, *used its octets in `in` (drop them after use)
 *  UW_MORE  the FPDU is not complete; *used = 0; call again with the same octets and more
 *  other    UW_E_MPA_CRC, UW_E_MPA_MARKER: the stream has failed; later calls return the same error
 */
uw_status mpa_rx_next(struct mpa_rx *rx, struct uw_rope in, struct uw_rope *ulpdu,
		      size_t *used) UW_CHECK;

/* Undo the last mpa_rx_next, which returned these values of ulpdu and used: the next call returns
 * the same FPDU. */
void mpa_rx_put_back(struct mpa_rx *rx, struct uw_rope ulpdu, size_t used);

/* ---- transmit ---------------------------------------------------------------------------- */

struct mpa_tx {
	bool crc;	/* generate the CRC */
	bool markers;	/* the peer asked for markers, RFC 5044 §4.3 */
	unsigned phase; /* markers: stream position modulo 512 */
	struct uw_stats *stats;
};

/* RFC 5044 §4.5: the largest ULPDU whose FPDU fits emss octets, between 128 and 64768. */
size_t mpa_mulpdu(size_t emss, bool markers);

/* The largest ULPDU whose FPDU, markers included, fits into `room` octets of a segment; 0: none
 * fits. */
size_t mpa_tx_fit(const struct mpa_tx *tx, size_t room);

/* Where the ULPDU goes in a segment whose next free octet is p. */
static inline uint8_t *mpa_tx_ulpdu(uint8_t *p)
{
	return p + MPA_LENGTH_SIZE;
}

/* Complete the FPDU around the n octets at mpa_tx_ulpdu(p): length, pad, CRC, markers. Returns its
 * size. */
size_t mpa_tx_finish(struct mpa_tx *tx, uint8_t *p, size_t n);

#endif
