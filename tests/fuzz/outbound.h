/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a QP sends, read by a reader of its own: whole FPDUs with right lengths, pads, CRCs and
 * markers, headers as the RFCs have them, messages in order, never more reads than ORD, nothing
 * behind a Terminate. RFC 5044 §4, RFC 5041 §4, RFC 5040 §4, RFC 7306.
 */
#ifndef UWARP_FUZZ_OUTBOUND_H
#define UWARP_FUZZ_OUTBOUND_H

#include "fuzz.h"
#include "wire/rdmap_wire.h"

#define ASKED_MAX 64u

/* A read or atomic that the QP asked of the peer and that has not been answered. */
struct asked {
	bool atomic;
	uint32_t stag; /* the sink's, or the atomic's request id */
	uint32_t size;
};

struct outbound {
	bool crc, markers;
	unsigned phase; /* stream position modulo 512 */
	uint16_t ord;
	uint32_t msn[RDMAP_QNS]; /* the next of each queue */
	uint32_t mo[RDMAP_QNS];	 /* of the message under way */
	bool ended;		 /* a Terminate went out */
	uint64_t fpdus;
	struct asked asked[ASKED_MAX];
	unsigned asked_n;
};

void outbound_init(struct outbound *o, bool crc, bool markers, uint16_t ord);
/* Octets in the order in which they were sent; each call has whole FPDUs. */
void outbound_check(struct outbound *o, const uint8_t *p, size_t n);
/* The oldest of what was asked has been answered. */
void outbound_answered(struct outbound *o);

#endif
