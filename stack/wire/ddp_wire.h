/* SPDX-License-Identifier: BSD-3-Clause */
/* DDP segment headers on the wire: RFC 5041 §4. Layout only, no state. */
#ifndef UWARP_WIRE_DDP_WIRE_H
#define UWARP_WIRE_DDP_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/be.h"
#include "base/span.h"
#include "base/status.h"

/* RFC 5041 §4.2 */
struct ddp_tagged_wire {
	uint8_t ctrl;
	uint8_t rsvd_ulp; /* RDMAP's control octet */
	uint8_t stag[4];
	uint8_t to[8];
};
static_assert(sizeof(struct ddp_tagged_wire) == 14, "RFC 5041 §4.2");

/* RFC 5041 §4.3 */
struct ddp_untagged_wire {
	uint8_t ctrl;
	uint8_t rsvd_ulp;
	uint8_t rsvd_ulp32[4];
	uint8_t qn[4];
	uint8_t msn[4];
	uint8_t mo[4];
};
static_assert(sizeof(struct ddp_untagged_wire) == 18, "RFC 5041 §4.3");

#define DDP_CTRL_TAGGED	  0x80u
#define DDP_CTRL_LAST	  0x40u
#define DDP_CTRL_DV	  0x03u
#define DDP_VERSION	  1u
#define DDP_TAGGED_SIZE	  14u
#define DDP_UNTAGGED_SIZE 18u
#define DDP_HDR_MAX	  DDP_UNTAGGED_SIZE

struct ddp_hdr {
	bool tagged, last;
	uint8_t version;
	uint8_t rsvd_ulp;     /* the octet that DDP leaves to its user: the RDMAP control octet */
	uint32_t stag;	      /* tagged */
	uint64_t to;	      /* tagged */
	uint32_t rsvd_ulp32;  /* untagged: RDMAP's Invalidate STag */
	uint32_t qn, msn, mo; /* untagged */
};

static inline unsigned ddp_hdr_size(bool tagged)
{
	return tagged ? DDP_TAGGED_SIZE : DDP_UNTAGGED_SIZE;
}

/* Write h (version DDP_VERSION, reserved bits 0: RFC 5041 §4.1); returns its size. */
unsigned ddp_hdr_encode(const struct ddp_hdr *h, uint8_t *out);

/* Read the header at the start of a ULPDU. UW_E_DDP_LOCAL: the ULPDU is shorter than its header.
 * Reserved bits are ignored; the caller checks the version. */
uw_status ddp_hdr_decode(struct uw_span in, struct ddp_hdr *h) UW_CHECK;

#endif
