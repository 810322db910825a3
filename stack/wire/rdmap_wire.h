/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMAP headers on the wire: RFC 5040 §4, RFC 7306 §4. Layout and opcode table, no state. */
#ifndef UWARP_WIRE_RDMAP_WIRE_H
#define UWARP_WIRE_RDMAP_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/be.h"
#include "base/span.h"
#include "wire/ddp_wire.h"

/* RFC 5040 §4.3 figure 4, RFC 7306 §4.1 figure 2 */
enum rdmap_opcode {
	RDMAP_WRITE = 0x0,
	RDMAP_READ_REQUEST = 0x1,
	RDMAP_READ_RESPONSE = 0x2,
	RDMAP_SEND = 0x3,
	RDMAP_SEND_INV = 0x4,
	RDMAP_SEND_SE = 0x5,
	RDMAP_SEND_SE_INV = 0x6,
	RDMAP_TERMINATE = 0x7,
	RDMAP_IMM = 0x8,
	RDMAP_IMM_SE = 0x9,
	RDMAP_ATOMIC_REQUEST = 0xa,
	RDMAP_ATOMIC_RESPONSE = 0xb,
	/* RFC 6580 §3.4 reserves 0xf for experiments. uwarp uses it (doc/adr/0004) for a Send whose
	   RsvdULP32 is the immediate data of verbs; a solicited one has RDMAP_CTRL_SE in the
	   control octet. */
	RDMAP_SEND_IMM = 0xf,
	RDMAP_OPCODES = 16,
};

enum rdmap_qn { RDMAP_QN_SEND, RDMAP_QN_READ, RDMAP_QN_TERMINATE, RDMAP_QN_ATOMIC, RDMAP_QNS };

#define RDMAP_VERSION 1u /* RV, RFC 5040 §4.1 */

/* The control octet in DDP's RsvdULP: RV 0xc0, reserved 0x30, opcode 0x0f. */
static inline uint8_t rdmap_ctrl(unsigned opcode)
{
	return (uint8_t)(RDMAP_VERSION << 6 | opcode);
}
static inline unsigned rdmap_ctrl_opcode(uint8_t ctrl)
{
	return ctrl & 0x0f;
}
static inline unsigned rdmap_ctrl_version(uint8_t ctrl)
{
	return ctrl >> 6;
}

/* The properties of each opcode (RFC 5040 §4.3 figure 4). */
struct rdmap_op {
	const char *name; /* NULL: not assigned */
	bool tagged;
	uint8_t qn;	  /* untagged only */
	uint8_t hdr;	  /* octets of RDMAP header after DDP's */
	bool payload;	  /* payload may follow */
	bool invalidates; /* DDP's RsvdULP32 is an STag to invalidate */
	bool solicited;
};
extern const struct rdmap_op rdmap_ops[RDMAP_OPCODES];

/* RFC 5040 §4.4 */
struct rdmap_read_wire {
	uint8_t sink_stag[4];
	uint8_t sink_to[8];
	uint8_t size[4];
	uint8_t src_stag[4];
	uint8_t src_to[8];
};
static_assert(sizeof(struct rdmap_read_wire) == 28, "RFC 5040 §4.4");

struct rdmap_read {
	uint32_t sink_stag, size, src_stag;
	uint64_t sink_to, src_to;
};
void rdmap_read_encode(const struct rdmap_read *r, uint8_t *out);
void rdmap_read_decode(const uint8_t *in, struct rdmap_read *r);

/* RFC 7306 §6.3: exactly 8 octets; the first four are the immediate data of verbs. */
#define RDMAP_IMM_SIZE 8u
#define RDMAP_CTRL_SE  0x10u /* RDMAP_SEND_IMM only */

/* RFC 7306 §5.1 figure 5; the last two are uwarp's own (doc/adr/0033), from the end of what the RFC
 * leaves unassigned. */
enum rdmap_aop {
	RDMAP_FETCH_ADD = 0,
	RDMAP_CMP_SWAP = 2,
	/* add_swap: length; add_swap_mask: enum rdmap_flush */
	RDMAP_FLUSH = 14,
	/* add_swap: the eight octets, the first one in memory in the most significant place */
	RDMAP_ATOMIC_WRITE = 15,
};

/* The bits are those of InfiniBand's FETH, with placement and selectivity in one mask. */
enum rdmap_flush {
	RDMAP_FLUSH_GLOBAL = 1,
	RDMAP_FLUSH_PERSISTENT = 2,
	RDMAP_FLUSH_REGION = 0x10, /* all of the region: TO and length mean nothing */
	RDMAP_FLUSH_BITS = 0x13,
};

/* RFC 7306 §5.2.1 */
struct rdmap_atomic_wire {
	uint8_t aop[4]; /* the operation is in the low four bits */
	uint8_t req_id[4];
	uint8_t stag[4];
	uint8_t to[8];
	uint8_t add_swap[8];
	uint8_t add_swap_mask[8];
	uint8_t compare[8];
	uint8_t compare_mask[8];
};
static_assert(sizeof(struct rdmap_atomic_wire) == 52, "RFC 7306 figure 4");

struct rdmap_atomic {
	uint8_t aop; /* enum rdmap_aop */
	uint32_t req_id, stag;
	uint64_t to, add_swap, add_swap_mask, compare, compare_mask;
};
void rdmap_atomic_encode(const struct rdmap_atomic *a, uint8_t *out);
void rdmap_atomic_decode(const uint8_t *in, struct rdmap_atomic *a);

/* RFC 7306 §5.2.2 */
struct rdmap_atomic_resp_wire {
	uint8_t req_id[4];
	uint8_t original[8];
};
static_assert(sizeof(struct rdmap_atomic_resp_wire) == 12, "RFC 7306 figure 6");

struct rdmap_atomic_resp {
	uint32_t req_id;
	uint64_t original;
};
void rdmap_atomic_resp_encode(const struct rdmap_atomic_resp *r, uint8_t *out);
void rdmap_atomic_resp_decode(const uint8_t *in, struct rdmap_atomic_resp *r);

/* RFC 5040 §4.8 */
struct rdmap_term_wire {
	uint8_t layer_etype; /* layer in the high nibble */
	uint8_t code;
	uint8_t hdrct; /* enum rdmap_hdrct */
	uint8_t reserved;
};
static_assert(sizeof(struct rdmap_term_wire) == 4, "RFC 5040 §4.8");

enum rdmap_hdrct { RDMAP_TERM_M = 0x80, RDMAP_TERM_D = 0x40, RDMAP_TERM_R = 0x20 };

/* Largest Terminate payload: control, DDP segment length, DDP header, Read Request header. */
#define RDMAP_TERM_MAX (4u + 2u + DDP_HDR_MAX + 28u) /* = 52, as an Atomic Request */

struct rdmap_term {
	uint8_t layer, etype, code;
	bool has_ddp;	     /* M and D: length and header of the segment in error are present */
	uint16_t ddp_length; /* DDP segment length: header and payload, as received */
	uint8_t ddp_hdr[DDP_HDR_MAX];
	uint8_t ddp_hdr_len; /* 14 or 18 */
	bool has_rdmap;	     /* R: the header of the Read Request in error is present */
	uint8_t rdmap_hdr[28];
	bool siw_order; /* decode only: the layer and type were in the bit order of Linux siw */
};
/* Write a Terminate; returns the octets written (4 .. RDMAP_TERM_MAX). */
unsigned rdmap_term_encode(const struct rdmap_term *t, uint8_t *out);
/* UW_E_RDMAP_UNSPEC: the message is shorter than its flags say. Also accepts the bit order of Linux
 * siw (layer in the low nibble), recognised since only certain pairs of layer and type exist. */
uw_status rdmap_term_decode(struct uw_span in, struct rdmap_term *t) UW_CHECK;

#endif
