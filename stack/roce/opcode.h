/* SPDX-License-Identifier: BSD-3-Clause */
/* The opcodes of UC and UD packets: IBA volume 1, §9.2.1, table 38. */
#ifndef UWARP_ROCE_OPCODE_H
#define UWARP_ROCE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* The upper three bits of the opcode say which transport it is of. */
enum roce_transport { ROCE_RC = 0x00, ROCE_UC = 0x20, ROCE_UD = 0x60 };

struct roce_op {
	uint8_t code;
	uint8_t transport; /* enum roce_transport */
	bool write;	   /* of an RDMA WRITE; else of a SEND */
	bool first, last;  /* both: the only packet of its message */
	bool imm;	   /* has immediate data */
};

/* The row of an opcode; NULL: unknown here. */
const struct roce_op *roce_op_of(uint8_t code);

/* The opcode of a packet of a message. A UD message has one packet, a SEND's. */
uint8_t roce_op_code(const struct roce_op *what);

/* Which headers follow the BTH: octets of all. */
static inline bool roce_op_has_reth(const struct roce_op *op)
{
	return op->write && op->first;
}
unsigned roce_op_headers(const struct roce_op *op);

#endif
