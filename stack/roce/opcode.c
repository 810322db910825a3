/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/opcode.h"

#include <stddef.h>

#include "roce/headers.h"

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The lower five bits mean the same in both transports. */
static const struct roce_op rows[] = {
	{ .code = 0x20, .transport = ROCE_UC, .first = true },
	{ .code = 0x21, .transport = ROCE_UC },
	{ .code = 0x22, .transport = ROCE_UC, .last = true },
	{ .code = 0x23, .transport = ROCE_UC, .last = true, .imm = true },
	{ .code = 0x24, .transport = ROCE_UC, .first = true, .last = true },
	{ .code = 0x25, .transport = ROCE_UC, .first = true, .last = true, .imm = true },
	{ .code = 0x26, .transport = ROCE_UC, .write = true, .first = true },
	{ .code = 0x27, .transport = ROCE_UC, .write = true },
	{ .code = 0x28, .transport = ROCE_UC, .write = true, .last = true },
	{ .code = 0x29, .transport = ROCE_UC, .write = true, .last = true, .imm = true },
	{ .code = 0x2a, .transport = ROCE_UC, .write = true, .first = true, .last = true },
	{ .code = 0x2b,
	  .transport = ROCE_UC,
	  .write = true,
	  .first = true,
	  .last = true,
	  .imm = true },
	{ .code = 0x64, .transport = ROCE_UD, .first = true, .last = true },
	{ .code = 0x65, .transport = ROCE_UD, .first = true, .last = true, .imm = true },
};

const struct roce_op *roce_op_of(uint8_t code)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (rows[i].code == code)
			return &rows[i];
	}
	return NULL;
}

static bool same(const struct roce_op *a, const struct roce_op *b)
{
	return a->transport == b->transport && a->write == b->write && a->first == b->first &&
	       a->last == b->last && a->imm == b->imm;
}

uint8_t roce_op_code(const struct roce_op *what)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (same(&rows[i], what))
			return rows[i].code;
	}
	return 0;
}

unsigned roce_op_headers(const struct roce_op *op)
{
	return (op->transport == ROCE_UD ? ROCE_DETH : 0) + (roce_op_has_reth(op) ? ROCE_RETH : 0) +
	       (op->imm ? ROCE_IMM : 0);
}
