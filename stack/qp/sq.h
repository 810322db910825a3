/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send queue. The program adds requests (one thread at a time), the stack takes them under its
 * lock. Each slot holds the request with its SGEs or its inline octets. The caller owns the memory.
 */
#ifndef UWARP_QP_SQ_H
#define UWARP_QP_SQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "uwarp/types.h"

struct sqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t length; /* octets in all */
	uint32_t rkey;
	uint32_t imm_or_inv;
	uint16_t num_sge;
	uint8_t opcode; /* enum uw_wr_opcode */
	uint8_t flags;	/* enum uw_send_flags */
	uint8_t done;
	uint8_t status;	 /* enum uw_status, of a done request */
	uint8_t written; /* WRITE_WITH_IMM: the Write was sent, the Immediate Data is next */
	uint8_t pad;
	uint32_t end; /* of a sent request: qp.out after its last octet */
	uint64_t compare_add, swap;
	/* struct uw_sge[] or inline octets follow */
};

struct sq {
	uint8_t *slots;
	uint32_t slot_size;
	uint32_t mask;	/* slots - 1 */
	uint32_t depth; /* requests that fit, as the program asked; <= mask + 1 */
	uint32_t max_sge, max_inline;
	bool sig_all;
	uint16_t refused; /* opcodes that the QP does not take: bits 1 << enum uw_wr_opcode */
	uint32_t tx;	  /* used by the stack: the next request to transmit */
	/* These fields share a cache line: with thousands of QPs every further line is a cache
	 * miss. */
	_Atomic uint32_t tail; /* written by the program (release), read by sq_ready (acquire) */
	_Atomic uint32_t head; /* written by the stack; requests before head are done */
	/* Slots before `freed` may be used again (release; pairs with sq_post's acquire). As with
	 * hardware, polling a completion frees its request's slot and all before it: so a CQ as
	 * deep as the send queue cannot overflow. */
	_Atomic uint32_t freed;
	uint32_t pushed;	 /* written by the stack: completions pushed so far */
	_Atomic uint32_t polled; /* written by the poller: completions polled so far */
};

/* Is the request a local one, which sends nothing (bind a window, invalidate a key)? */
static inline bool sqe_is_local(const struct sqe *e)
{
	return e->opcode == UW_WR_BIND_MW || e->opcode == UW_WR_LOCAL_INV;
}
/* Is the request a Read, an atomic, FLUSH or ATOMIC WRITE, which is done when its Response has come
 * (RFC 5040 §5.5)? */
static inline bool sqe_is_answered(const struct sqe *e)
{
	const unsigned answered = 1u << UW_WR_RDMA_READ | 1u << UW_WR_ATOMIC_CMP_AND_SWP |
				  1u << UW_WR_ATOMIC_FETCH_AND_ADD | 1u << UW_WR_FLUSH |
				  1u << UW_WR_ATOMIC_WRITE;

	return answered >> e->opcode & 1;
}

/* Octets of slot memory for one request. */
uint32_t sq_slot_size(uint32_t max_sge, uint32_t max_inline);

static inline struct sqe *sq_at(const struct sq *sq, uint32_t i)
{
	return (struct sqe *)(sq->slots + (size_t)(i & sq->mask) * sq->slot_size);
}
static inline struct uw_sge *sqe_sge(struct sqe *e)
{
	return (struct uw_sge *)(e + 1);
}
static inline uint8_t *sqe_inline(struct sqe *e)
{
	return (uint8_t *)(e + 1);
}

/* Program: copy a request in. UW_E_NOMEM full, UW_E_INVAL opcode or number of SGEs, UW_E_LEN inline
 * data too long or message over 2^32-1 octets (RFC 5040 §5.2, RFC 5041 §5.1). */
uw_status sq_post(struct sq *sq, const struct uw_send_wr *wr) UW_CHECK;

/* Program: post all n requests, or none if one of them fails. Errors as above. */
uw_status sq_post_all(struct sq *sq, const struct uw_send_wr *wr, unsigned n) UW_CHECK;

/* Stack: count a completion that is about to become visible. */
static inline void sq_pushed(struct sq *sq)
{
	sq->pushed++;
}
/* Poller, one at a time for each CQ: n completions were polled; the slots before `upto` are free.
 */
void sq_polled(struct sq *sq, uint32_t upto, uint32_t n);
/* Stack: requests before `head` are done, and the last of them asked for no completion. Frees their
 * slots, unless completions wait to be polled: then a later completion or a later call frees them.
 */
void sq_free_unsignaled(struct sq *sq);

/* Stack: is there a request that has not been started? */
static inline bool sq_ready(const struct sq *sq)
{
	return sq->tx != atomic_load_explicit(&sq->tail, memory_order_acquire);
}
static inline bool sq_empty(const struct sq *sq)
{
	return atomic_load_explicit(&sq->head, memory_order_relaxed) ==
	       atomic_load_explicit(&sq->tail, memory_order_acquire);
}

#endif
