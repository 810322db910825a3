/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet of RoCEv2 over IPv4, for a switch whose clients have QPs. */
#ifndef UWARP_TESTS_IO_SWITCH_DATAGRAM_FRAME_H
#define UWARP_TESTS_IO_SWITCH_DATAGRAM_FRAME_H

#include "frame.h"

enum { UD_SEND = 0x64, UC_SEND = 0x24, RC_SEND = 4 };
enum { ALICES_QP = 0x123456, BOBS_QP = 0xabcdef, NOBODYS_QP = 0x777777, MANAGES_QP = 1 };
enum { BTH_AT = 42, DEST_QP = BTH_AT + 5, SOURCE_QP = BTH_AT + 17 };

static inline void put_qp(struct octets *f, unsigned at, uint32_t qpn)
{
	f->h[at] = (uint8_t)(qpn >> 16);
	uw_put16(f->h + at + 1, (uint16_t)qpn);
}

/* BTH, DETH, so much payload, ICRC. */
static inline struct octets datagram(bool out, uint8_t opcode, uint32_t source, uint32_t dest,
				     uint32_t payload)
{
	struct octets f = segment(out, 50000, 4791, 0);
	uint32_t udp = 8 + 12 + 8 + payload + 4;

	f.len = 34 + udp;
	uw_put16(f.h + 16, (uint16_t)(20 + udp));
	f.h[23] = 17;
	memset(f.h + 38, 0, 40);
	uw_put16(f.h + 38, (uint16_t)udp);
	f.h[BTH_AT] = opcode;
	put_qp(&f, DEST_QP, dest);
	put_qp(&f, SOURCE_QP, source);
	return f;
}

enum { MAD_AT = SOURCE_QP + 3, QUESTION = 0x17, ANSWER = 0x18, OF_RC = 0x01fd, OF_UDP = 0x0111 };

/* IBA §12.11.1, §12.11.2. The question is about NOBODYS_QP. */
static inline struct octets management(bool sent, uint8_t attribute, uint16_t space)
{
	struct octets f = datagram(sent, UD_SEND, MANAGES_QP, MANAGES_QP, 256);
	uint8_t *mad = f.h + MAD_AT;

	memset(mad, 0, 256);
	mad[1] = 7;
	mad[15] = 77; /* of the transaction */
	mad[17] = attribute;
	uw_put16(mad + (attribute == ANSWER ? 40 : 36), space);
	if (attribute == QUESTION)
		uw_put32(mad + 76, NOBODYS_QP);
	return f;
}

#endif
