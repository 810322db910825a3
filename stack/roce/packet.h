/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A RoCEv2 packet from its IP header to its ICRC: IBA volume 1, annex A17. A received packet is
 * checked once, here; what comes behind need not look at its octets again. A packet that is sent is
 * made whole here, IP and UDP headers included, since the ICRC covers them.
 */
#ifndef UWARP_ROCE_PACKET_H
#define UWARP_ROCE_PACKET_H

#include "base/ip.h"
#include "base/span.h"
#include "roce/headers.h"
#include "roce/opcode.h"

#define ROCE_UDP_PORT 4791u
#define ROCE_GRH      40u /* octets in front of a received datagram, IBA §11.4.1.2 */
#define ROCE_MTU_MAX  4096u
#define ROCE_HOPS     64u

/* Largest number of octets in front of a payload, and behind it. */
#define ROCE_HEAD_MAX (40u + 8 + ROCE_BTH + ROCE_RETH + ROCE_IMM)
#define ROCE_TAIL_MAX (3u + ROCE_ICRC)

enum roce_verdict {
	ROCE_GOOD,
	ROCE_BAD_HEADER, /* cut short, lengths disagree, transport version, IP options, fragment */
	ROCE_BAD_SUM,	 /* a checksum of IP or UDP */
	ROCE_BAD_ICRC,
	ROCE_BAD_PKEY,
	ROCE_BAD_OPCODE,
};

/* A packet that is good. */
struct roce_packet {
	struct uw_ip src, dst;
	const struct roce_op *op;
	struct roce_bth bth;
	struct roce_deth deth;	/* UD */
	struct roce_reth reth;	/* roce_op_has_reth(op) */
	uint32_t imm_be;	/* op->imm */
	struct uw_rope payload; /* without pad octets */
	uint8_t ip[40];		/* the IP header as it came: 20 octets, or 40 of IPv6 */
};

/* Check a packet: `in` begins with its IP header, and octets behind its end are ignored. UDP's port
 * is the caller's to look at. */
enum roce_verdict roce_packet_read(struct uw_rope in, struct roce_packet *p);

/* The 40 octets in front of a received datagram: the IPv6 header, or 20 of zero and the IPv4 header
 * (annex A17.4.3). `infiniband`: always a GRH (IBA §8.3), whose GIDs are the addresses. */
void roce_packet_grh(const struct roce_packet *p, bool infiniband, uint8_t grh[ROCE_GRH]);

/* From where to where. */
struct roce_path {
	struct uw_ip src, dst; /* of one version */
	uint8_t tos, hops;     /* TOS or traffic class; TTL or hop limit */
	uint16_t src_port;     /* UDP */
};

/* What goes in front of a payload. */
struct roce_head {
	const struct roce_path *path;
	/* IPv4. Any value will do, since no packet is cut (RFC 6864 §4.1). The stack sends 0: a
	 * program may read the header in its receive buffer, and check its sum, while the next
	 * packet of the flow is placed there. udaddy does. */
	uint16_t ip_id;
	struct roce_op op;
	struct roce_bth bth; /* opcode and pad are filled in */
	struct roce_deth deth;
	struct roce_reth reth;
	uint32_t imm_be;
};

/* Octets of all headers. */
unsigned roce_head_size(const struct roce_head *h);
/* Write headers, pad and ICRC around a payload of n octets, which is in `out` already, behind
 * roce_head_size(h) octets of room and in front of ROCE_TAIL_MAX. Returns the packet's length. */
size_t roce_packet_write(struct roce_head *h, uint8_t *out, size_t n);

/* The UDP source port that a UC QP, and that a UD QP uses: the same for all packets of a flow, so
 * that they stay on one way through the network. As Linux's drivers compute it. */
uint16_t roce_uc_port(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn);
uint16_t roce_ud_port(uint32_t qpn);

#endif
