/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FPDUs: one ULPDU each, length in front, pad and CRC behind. RFC 5044 §4, §5, §6.
 */
#ifndef UWARP_MPA_FPDU_H
#define UWARP_MPA_FPDU_H

#include <stdbool.h>

#include "base/span.h"
#include "base/stats.h"
#include "base/status.h"
#include "wire/mpa_wire.h"

/* ---- receive ----------------------------------------------------------------------------- */

struct mpa_rx {
	bool crc;	     /* check it, RFC 5044 §4.4 */
	bool markers;	     /* the peer sends them because we asked */
	unsigned phase;	     /* markers: stream position modulo 512 */
	uint8_t *scratch;    /* markers: MPA_FPDU_MAX octets of the caller's, else NULL */
	struct uw_span flat; /* markers: the stripped FPDU, valid until the next call */
	uw_status failed;    /* RFC 5044 §8: after an error nothing more is delivered */
	struct uw_stats *stats;
};

#define MPA_FPDU_MAX (MPA_LENGTH_SIZE + 65535u + 3u + MPA_CRC_SIZE)

/* Look for one whole FPDU at the start of `in`.
 *  UW_OK    *ulpdu is its ULPDU, *used the octets it took from `in` (drop them after use)
 *  UW_MORE  it is not all there; *used = 0; call again with the same octets and more
 *  other    UW_E_MPA_CRC, UW_E_MPA_MARKER: nothing more will be delivered; repeats itself */
uw_status mpa_rx_next(struct mpa_rx *rx, struct uw_rope in, struct uw_rope *ulpdu,
		      size_t *used) UW_CHECK;

/* Take back the last mpa_rx_next, which gave these values of ulpdu and used: the same FPDU will
 * come again. */
void mpa_rx_put_back(struct mpa_rx *rx, struct uw_rope ulpdu, size_t used);

/* ---- transmit ---------------------------------------------------------------------------- */

struct mpa_tx {
	bool crc;	/* generate it */
	bool markers;	/* the peer asked for them, RFC 5044 §4.3 */
	unsigned phase; /* markers: stream position modulo 512 */
	struct uw_stats *stats;
};

/* RFC 5044 §4.5: the largest ULPDU whose FPDU fits emss octets, between 128 and 64768. */
size_t mpa_mulpdu(size_t emss, bool markers);

/* The largest ULPDU whose FPDU, markers included, fits the `room` octets left in a segment now;
 * 0 when none does. */
size_t mpa_tx_fit(const struct mpa_tx *tx, size_t room);

/* Where the ULPDU goes in a segment whose next free octet is p. */
static inline uint8_t *mpa_tx_ulpdu(uint8_t *p)
{
	return p + MPA_LENGTH_SIZE;
}

/* Make the FPDU around the n octets that were put at mpa_tx_ulpdu(p); returns its whole size. */
size_t mpa_tx_finish(struct mpa_tx *tx, uint8_t *p, size_t n);

#endif
