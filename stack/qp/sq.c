/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp/sq.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct sqe) == 64, "SGEs follow at 8-octet alignment");

uint32_t sq_slot_size(uint32_t max_sge, uint32_t max_inline)
{
	size_t sge = max_sge * sizeof(struct uw_sge);
	size_t body = sge > max_inline ? sge : max_inline;

	return (uint32_t)((sizeof(struct sqe) + body + 63) & ~(size_t)63);
}

/* What each verbs opcode needs; opcodes without a row are refused. */
static const struct {
	bool known;
	bool may_inline;
	bool atomic; /* exactly one SGE of 8 octets */
} ops[] = {
	[UW_WR_RDMA_WRITE] = { true, true, false },
	[UW_WR_RDMA_WRITE_WITH_IMM] = { true, true, false },
	[UW_WR_SEND] = { true, true, false },
	[UW_WR_SEND_WITH_IMM] = { true, true, false },
	[UW_WR_RDMA_READ] = { true, false, false },
	[UW_WR_ATOMIC_CMP_AND_SWP] = { true, false, true },
	[UW_WR_ATOMIC_FETCH_AND_ADD] = { true, false, true },
	[UW_WR_SEND_WITH_INV] = { true, true, false },
};

static uw_status check(const struct sq *sq, const struct uw_send_wr *wr, uint64_t length)
{
	bool inl = wr->flags & UW_SEND_INLINE;

	if (wr->opcode >= sizeof(ops) / sizeof(ops[0]) || !ops[wr->opcode].known)
		return UW_E_INVAL;
	if (inl && !ops[wr->opcode].may_inline)
		return UW_E_INVAL;
	if (ops[wr->opcode].atomic && length != 8)
		return UW_E_INVAL;
	if (!inl && wr->num_sge > sq->max_sge)
		return UW_E_INVAL;
	if (length > UINT32_MAX || (inl && length > sq->max_inline))
		return UW_E_LEN;
	return UW_OK;
}

static void copy_inline(struct sqe *e, const struct uw_send_wr *wr)
{
	uint8_t *p = sqe_inline(e);

	for (uint32_t i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		memcpy(p, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		p += wr->sg_list[i].length;
	}
}

uw_status sq_post(struct sq *sq, const struct uw_send_wr *wr)
{
	uint32_t tail = atomic_load_explicit(&sq->tail, memory_order_relaxed);
	struct sqe *e = sq_at(sq, tail);
	uint64_t length = 0;
	uw_status st;

	/* pairs with the release of head in the reaper: the slot is free */
	if (tail - atomic_load_explicit(&sq->head, memory_order_acquire) >= sq->depth)
		return UW_E_NOMEM;
	for (uint32_t i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	st = check(sq, wr, length);
	if (st)
		return st;
	*e = (struct sqe){ .wr_id = wr->wr_id,
			   .remote_addr = wr->remote_addr,
			   .length = length,
			   .rkey = wr->rkey,
			   .compare_add = wr->compare_add,
			   .swap = wr->swap,
			   .imm_or_inv = wr->imm_or_inv,
			   .num_sge = (uint16_t)wr->num_sge,
			   .opcode = (uint8_t)wr->opcode,
			   .flags = (uint8_t)(wr->flags | (sq->sig_all ? UW_SEND_SIGNALED : 0)) };
	if (wr->flags & UW_SEND_INLINE)
		copy_inline(e, wr);
	else if (wr->num_sge)
		memcpy(sqe_sge(e), wr->sg_list, wr->num_sge * sizeof(struct uw_sge));
	atomic_store_explicit(&sq->tail, tail + 1, memory_order_release);
	return UW_OK;
}
