/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of InfiniBand's transport in a RoCEv2 packet: InfiniBand Architecture Specification
 * (IBA) volume 1, §9.2 and §9.3. Layout only, no state. Numbers are in host order in the structs
 * and big-endian on the wire.
 */
#ifndef UWARP_ROCE_HEADERS_H
#define UWARP_ROCE_HEADERS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/be.h"

#define ROCE_QPN_MASK  0xffffffu
#define ROCE_PSN_MASK  0xffffffu
#define ROCE_PKEY      0xffffu	   /* the default partition, full member: the only P_Key here */
#define ROCE_OWN_QKEY  0x80000000u /* bit of a request's Q_Key: that of its QP instead */
#define ROCE_MULTICAST 0xffffffu   /* destination QP of a packet to a multicast group */

/* Base transport header, IBA §9.2. */
struct roce_bth_wire {
	uint8_t opcode;
	uint8_t bits; /* SE 80, M 40, pad count 30, TVer 0f */
	uint8_t pkey[2];
	uint8_t resv8a;
	uint8_t dest_qp[3];
	uint8_t ack; /* A 80, reserved 7f */
	uint8_t psn[3];
};
static_assert(sizeof(struct roce_bth_wire) == 12, "IBA §9.2");

/* Datagram extended transport header, IBA §9.3.3. */
struct roce_deth_wire {
	uint8_t qkey[4];
	uint8_t reserved;
	uint8_t src_qp[3];
};
static_assert(sizeof(struct roce_deth_wire) == 8, "IBA §9.3.3");

/* RDMA extended transport header, IBA §9.3.1. */
struct roce_reth_wire {
	uint8_t va[8];
	uint8_t rkey[4];
	uint8_t length[4];
};
static_assert(sizeof(struct roce_reth_wire) == 16, "IBA §9.3.1");

#define ROCE_BTH  12u
#define ROCE_DETH 8u
#define ROCE_RETH 16u
#define ROCE_IMM  4u /* immediate data, IBA §9.3.6 */
#define ROCE_ICRC 4u

struct roce_bth {
	uint8_t opcode; /* roce/opcode.h */
	bool solicited; /* SE */
	bool ack;	/* the sender asks for an acknowledge */
	uint8_t pad;	/* octets behind the payload, 0 to 3 */
	uint8_t version;
	uint16_t pkey;
	uint32_t dest_qp;
	uint32_t psn;
};

struct roce_deth {
	uint32_t qkey;
	uint32_t src_qp;
};

struct roce_reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t length; /* of the whole message */
};

/* Each encoder writes a whole header, reserved bits 0; each decoder ignores reserved bits. The
 * caller has made sure of the room, or that the octets are there. */
void roce_bth_encode(const struct roce_bth *h, uint8_t *out);
void roce_bth_decode(const uint8_t *in, struct roce_bth *h);
void roce_deth_encode(const struct roce_deth *h, uint8_t *out);
void roce_deth_decode(const uint8_t *in, struct roce_deth *h);
void roce_reth_encode(const struct roce_reth *h, uint8_t *out);
void roce_reth_decode(const uint8_t *in, struct roce_reth *h);

/* A PSN or QP number: three octets. */
static inline void roce_put24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	uw_put16(p + 1, (uint16_t)v);
}
static inline uint32_t roce_be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | uw_be16(p + 1);
}

#endif
