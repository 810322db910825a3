/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPA on the wire: RFC 5044 §4 (FPDU), §7.1.1 (start-up frames); RFC 6581 §9 (enhanced frames).
 * Layout only, no state.
 */
#ifndef UWARP_WIRE_MPA_WIRE_H
#define UWARP_WIRE_MPA_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/be.h"
#include "base/span.h"
#include "base/status.h"

/* ---- start-up frames --------------------------------------------------------------------- */

struct mpa_start_wire {
	uint8_t key[16];
	uint8_t bits; /* enum mpa_start_bits */
	uint8_t rev;
	uint8_t pd_length[2];
};
static_assert(sizeof(struct mpa_start_wire) == 20, "RFC 5044 §7.1.1 figure 7");

enum mpa_start_bits {
	MPA_BIT_M = 0x80, /* the sender of this frame wants to receive markers */
	MPA_BIT_C = 0x40, /* the sender of this frame wants CRCs */
	MPA_BIT_R = 0x20, /* Reply: rejected */
	MPA_BIT_S = 0x10, /* RFC 6581 §9: private data starts with IRD/ORD */
};

/* RFC 6581 §9, the first four octets of the private data when S is set. */
struct mpa_enhanced_wire {
	uint8_t ird[2]; /* bit A 0x8000, bit B 0x4000, then the IRD in 14 bits */
	uint8_t ord[2]; /* bit C 0x8000, bit D 0x4000, then the ORD in 14 bits */
};
static_assert(sizeof(struct mpa_enhanced_wire) == 4, "RFC 6581 §9");

#define MPA_PD_MAX     512u /* RFC 5044 §7.1.1 */
#define MPA_START_MAX  (sizeof(struct mpa_start_wire) + MPA_PD_MAX)
#define MPA_RD_NO_NEGO 0x3fffu /* RFC 6581 §9.1: no automatic negotiation */
#define MPA_RD_MAX     0x3ffeu

/* which zero-length message opens the stream, RFC 6581 §9.2 */
enum mpa_rtr {
	MPA_RTR_NONE = 0,
	MPA_RTR_SEND = 1,  /* bit B of struct mpa_enhanced_wire */
	MPA_RTR_WRITE = 2, /* bit C */
	MPA_RTR_READ = 4,  /* bit D */
};

/* A start-up frame, decoded. */
struct mpa_start {
	bool reply;
	bool markers, crc, reject, enhanced;
	uint8_t rev;
	/* the next three lines: only in enhanced frames */
	bool p2p;     /* RFC 6581 §9, bit A */
	unsigned rtr; /* enum mpa_rtr bits */
	uint16_t ird, ord;
	struct uw_span pd; /* private data of the program, without the four enhanced octets */
};

/* Write s as a frame into out (MPA_START_MAX octets); returns its length.
 * s->pd.n <= 512, or 508 when enhanced. */
size_t mpa_start_encode(const struct mpa_start *s, uint8_t *out);

/* Read one frame from the octets received so far. s->pd points into in. UW_MORE: the frame is not
 * complete; *used is 0. UW_E_MPA_FRAME: neither key, PD_Length over 512, or enhanced with less than
 * 4 octets (RFC 5044 §7.1.1, RFC 6581 §9). The caller checks the revision. */
uw_status mpa_start_decode(struct uw_span in, struct mpa_start *s, size_t *used) UW_CHECK;

/* ---- FPDU -------------------------------------------------------------------------------- */

#define MPA_LENGTH_SIZE 2u
#define MPA_CRC_SIZE	4u
#define MPA_MARKER_SIZE 4u
#define MPA_MARKER_STEP 512u   /* RFC 5044 §4.3 */
#define MPA_ULPDU_MAX	64768u /* RFC 5044 §3: MULPDU upper bound */
#define MPA_MULPDU_MIN	128u

/* Pad octets after a ULPDU of n octets: FPDUs are multiples of 4 (RFC 5044 §4.1). */
static inline unsigned mpa_pad(size_t n)
{
	return (unsigned)(-(MPA_LENGTH_SIZE + n) & 3);
}

/* An FPDU's size on the wire, markers not counted. */
static inline size_t mpa_fpdu_size(size_t ulpdu)
{
	return MPA_LENGTH_SIZE + ulpdu + mpa_pad(ulpdu) + MPA_CRC_SIZE;
}

/* RFC 5044 §4.4: the CRC field holds the CRC least significant octet first (appendix figures 5
 * and 6 show it). */
static inline void mpa_put_crc(uint8_t *p, uint32_t crc)
{
	p[0] = (uint8_t)crc;
	p[1] = (uint8_t)(crc >> 8);
	p[2] = (uint8_t)(crc >> 16);
	p[3] = (uint8_t)(crc >> 24);
}

static inline uint32_t mpa_get_crc(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif
