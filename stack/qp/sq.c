/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp/sq.h"

#include <assert.h>
#include <limits.h>
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
	bool no_sge; /* the request itself says all */
} ops[] = {
	[UW_WR_RDMA_WRITE] = { true, true, false, false },
	[UW_WR_RDMA_WRITE_WITH_IMM] = { true, true, false, false },
	[UW_WR_SEND] = { true, true, false, false },
	[UW_WR_SEND_WITH_IMM] = { true, true, false, false },
	[UW_WR_RDMA_READ] = { true, false, false, false },
	[UW_WR_ATOMIC_CMP_AND_SWP] = { true, false, true, false },
	[UW_WR_ATOMIC_FETCH_AND_ADD] = { true, false, true, false },
	[UW_WR_LOCAL_INV] = { true, false, false, true },
	[UW_WR_BIND_MW] = { true, false, false, true },
	[UW_WR_SEND_WITH_INV] = { true, true, false, false },
	[UW_WR_FLUSH] = { true, false, false, true },
	[UW_WR_ATOMIC_WRITE] = { true, false, false, true },
};

static inline bool takes(const struct sq *sq, uint32_t opcode)
{
	return opcode < sizeof(ops) / sizeof(ops[0]) && ops[opcode].known &&
	       !(sq->refused >> opcode & 1);
}

static uw_status check(const struct sq *sq, const struct uw_send_wr *wr, uint64_t length)
{
	bool inl = wr->flags & UW_SEND_INLINE;

	if (!takes(sq, wr->opcode))
		return UW_E_INVAL;
	if (inl && !ops[wr->opcode].may_inline)
		return UW_E_INVAL;
	if (ops[wr->opcode].atomic && length != 8)
		return UW_E_INVAL;
	if (ops[wr->opcode].no_sge && wr->num_sge)
		return UW_E_INVAL;
	if (length > UW_MSG_MAX || (inl && length > sq->max_inline))
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

/* Before the list is read: one that is longer than its QP takes may be longer than it is. A list of
 * inline data may be longer; a negative number of verbs is above INT_MAX here. */
static inline bool is_too_many(const struct sq *sq, const struct uw_send_wr *wr)
{
	return wr->num_sge > sq->max_sge &&
	       (!(wr->flags & UW_SEND_INLINE) || wr->num_sge > INT_MAX);
}

static uint64_t length_of(const struct uw_send_wr *wr)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length;
}

/* pairs with the release in sq_free: the slots before it are free */
static uint32_t room(const struct sq *sq, uint32_t tail)
{
	return sq->depth - (tail - atomic_load_explicit(&sq->freed, memory_order_acquire));
}

static void put(struct sq *sq, uint32_t tail, const struct uw_send_wr *wr, uint64_t length)
{
	struct sqe *e = sq_at(sq, tail);

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
}

uw_status sq_post(struct sq *sq, const struct uw_send_wr *wr)
{
	uint32_t tail = atomic_load_explicit(&sq->tail, memory_order_relaxed);
	uint64_t length;
	uw_status st;

	if (!room(sq, tail))
		return UW_E_NOMEM;
	if (is_too_many(sq, wr))
		return UW_E_INVAL;
	length = length_of(wr);
	st = check(sq, wr, length);
	if (st)
		return st;
	put(sq, tail, wr, length);
	atomic_store_explicit(&sq->tail, tail + 1, memory_order_release);
	return UW_OK;
}

uw_status sq_post_all(struct sq *sq, const struct uw_send_wr *wr, unsigned n)
{
	uint32_t tail = atomic_load_explicit(&sq->tail, memory_order_relaxed);

	if (room(sq, tail) < n)
		return UW_E_NOMEM;
	for (unsigned i = 0; i < n; i++) {
		uint64_t length;
		uw_status st;

		if (is_too_many(sq, &wr[i]))
			return UW_E_INVAL;
		length = length_of(&wr[i]);
		st = check(sq, &wr[i], length);
		if (st)
			return st;
		put(sq, tail + i, &wr[i], length); /* nobody sees it before tail moves */
	}
	atomic_store_explicit(&sq->tail, tail + n, memory_order_release);
	return UW_OK;
}

/* ---- slots come back --------------------------------------------------------------------- */

/* Forward only: the poller and the stack both come here. */
static void sq_free(struct sq *sq, uint32_t upto)
{
	uint32_t freed = atomic_load_explicit(&sq->freed, memory_order_relaxed);

	while ((int32_t)(upto - freed) > 0 &&
	       !atomic_compare_exchange_weak_explicit(&sq->freed, &freed, upto,
						      memory_order_release, memory_order_relaxed))
		;
}

void sq_polled(struct sq *sq, uint32_t upto, uint32_t n)
{
	uint32_t heard = atomic_load_explicit(&sq->polled, memory_order_relaxed);

	sq_free(sq, upto);
	atomic_store_explicit(&sq->polled, heard + n, memory_order_release);
}

void sq_free_unsignaled(struct sq *sq)
{
	/* pairs with the release in sq_polled; while completions wait, theirs free these, too, or
	 * the next request does */
	if (atomic_load_explicit(&sq->polled, memory_order_acquire) == sq->pushed)
		sq_free(sq, atomic_load_explicit(&sq->head, memory_order_relaxed));
}
