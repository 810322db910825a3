/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ibv_wr_* interface: requests are collected between ibv_wr_start() and ibv_wr_complete() and
 * posted together. A mistake in one of them makes ibv_wr_complete() refuse them all.
 */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

struct uwarp_batch {
	pthread_mutex_t lock; /* held from start to complete or abort */
	uint32_t n, max;
	int error;		 /* of the first mistake; positive errno */
	struct uw_send_wr *wr;	 /* max + 1: the last takes what does not fit and is never posted */
	struct uw_send_wr *last; /* what the setters set */
	struct uw_sge *sge;	 /* max_sge for each request */
	uint8_t *inline_buf; /* max_inline octets for each: the program may reuse its own at once */
	uint32_t max_sge, max_inline;
};

/* The operations that the stack has. */
#define SEND_OPS_HERE                                                                              \
	((uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |                           \
		    IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |                     \
		    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                \
		    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |      \
		    IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW))
#define UD_OPS_HERE ((uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM))
#define UC_OPS_HERE                                                                                \
	(UD_OPS_HERE | (uint64_t)(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM))
#define FLUSH_TYPES (UW_FLUSH_GLOBAL | UW_FLUSH_PERSISTENT)

static struct uwarp_qp *of(struct ibv_qp_ex *ibqp)
{
	return uwarp_container(ibqp, struct uwarp_qp, vqp.qp_ex);
}

static void mistake(struct uwarp_batch *b, int error)
{
	if (!b->error)
		b->error = error;
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct uwarp_batch *b = of(ibqp)->batch;

	pthread_mutex_lock(&b->lock);
	b->n = 0;
	b->error = 0;
	b->last = &b->wr[b->max];
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct uwarp_qp *qp = of(ibqp);
	struct uwarp_batch *b = qp->batch;
	int error = b->error;

	if (!error && b->n)
		error = -qp->api->post_send_all(qp->uw, b->wr, b->n);
	pthread_mutex_unlock(&b->lock);
	if (error)
		errno = error;
	return error;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	pthread_mutex_unlock(&of(ibqp)->batch->lock);
}

/* ---- builders ---- */

static struct uw_send_wr *build(struct ibv_qp_ex *ibqp, enum uw_wr_opcode opcode)
{
	struct uwarp_batch *b = of(ibqp)->batch;

	if (b->n == b->max)
		mistake(b, ENOMEM);
	b->last = &b->wr[b->n];
	if (b->n < b->max)
		b->n++;
	*b->last = (struct uw_send_wr){
		.wr_id = ibqp->wr_id,
		.opcode = opcode,
		.flags = ibqp->wr_flags & ~(unsigned)UW_SEND_INLINE,
	};
	return b->last;
}

static void wr_send(struct ibv_qp_ex *ibqp)
{
	build(ibqp, UW_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm)
{
	build(ibqp, UW_WR_SEND_WITH_IMM)->imm_or_inv = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	build(ibqp, UW_WR_SEND_WITH_INV)->imm_or_inv = invalidate_rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ibqp, uint32_t invalidate_rkey)
{
	build(ibqp, UW_WR_LOCAL_INV)->imm_or_inv = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	if (!uwarp_fill_bind(build(ibqp, UW_WR_BIND_MW), mw, rkey, info))
		mistake(of(ibqp)->batch, EINVAL);
}

static struct uw_send_wr *build_rdma(struct ibv_qp_ex *ibqp, enum uw_wr_opcode op, uint32_t rkey,
				     uint64_t addr)
{
	struct uw_send_wr *wr = build(ibqp, op);

	wr->rkey = rkey;
	wr->remote_addr = addr;
	return wr;
}

static void wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr)
{
	build_rdma(ibqp, UW_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm)
{
	build_rdma(ibqp, UW_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr)->imm_or_inv = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr)
{
	build_rdma(ibqp, UW_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct uw_send_wr *wr = build_rdma(ibqp, UW_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);

	wr->compare_add = compare;
	wr->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
				uint64_t value)
{
	build_rdma(ibqp, UW_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr)->compare_add = value;
}

static void wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr,
			    const void *value)
{
	struct uw_send_wr *wr = build_rdma(ibqp, UW_WR_ATOMIC_WRITE, rkey, remote_addr);

	memcpy(&wr->compare_add, value, sizeof(wr->compare_add));
}

static void wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	struct uw_send_wr *wr = build_rdma(ibqp, UW_WR_FLUSH, rkey, remote_addr);

	if (!type || (type & ~FLUSH_TYPES) || level > UW_FLUSH_MR)
		mistake(of(ibqp)->batch, EINVAL);
	wr->compare_add = len;
	wr->swap = UW_FLUSH_WISH(type, level);
}

/* ---- setters ---- */

static void wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	uwarp_fill_to(of(ibqp)->batch->last, ah, qpn, qkey);
}

static struct uw_sge *set_sges(struct uwarp_batch *b, uint32_t n)
{
	struct uw_sge *sge = &b->sge[(size_t)(b->last - b->wr) * b->max_sge];

	b->last->sg_list = sge;
	b->last->num_sge = n;
	return sge;
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge, const struct ibv_sge *list)
{
	struct uwarp_batch *b = of(ibqp)->batch;

	if (num_sge > b->max_sge)
		mistake(b, EINVAL);
	else if (num_sge)
		memcpy(set_sges(b, (uint32_t)num_sge), list, num_sge * sizeof(*list));
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ibqp, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num_buf,
				    const struct ibv_data_buf *list)
{
	struct uwarp_batch *b = of(ibqp)->batch;
	uint8_t *buf = &b->inline_buf[(size_t)(b->last - b->wr) * b->max_inline];
	uint32_t used = 0;

	for (size_t i = 0; i < num_buf; i++) {
		if (list[i].length > b->max_inline - used) {
			mistake(b, EINVAL);
			return;
		}
		if (list[i].length)
			memcpy(buf + used, list[i].addr, list[i].length);
		used += (uint32_t)list[i].length;
	}
	*set_sges(b, 1) = (struct uw_sge){ .addr = (uintptr_t)buf, .length = used };
	b->last->flags |= UW_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ibqp, 1, &buf);
}

/* ---- life ---- */

static void set_functions(struct ibv_qp_ex *qp)
{
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_send_inv = wr_send_inv;
	qp->wr_local_inv = wr_local_inv;
	qp->wr_bind_mw = wr_bind_mw;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
}

bool uwarp_batch_wanted(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
}

static uint64_t ops_of(const struct ibv_qp_init_attr_ex *attr)
{
	switch (attr->qp_type) {
	case IBV_QPT_UD:
		return UD_OPS_HERE;
	case IBV_QPT_UC:
		return UC_OPS_HERE;
	default:
		return SEND_OPS_HERE |
		       pabi_wr_ops(uwarp_abi_release(to_uwarp_context(attr->pd->context)));
	}
}

bool uwarp_batch_possible(const struct ibv_qp_init_attr_ex *attr)
{
	return !(attr->send_ops_flags & ~ops_of(attr));
}

int uwarp_batch_create(struct uwarp_qp *qp)
{
	static const struct pabi_wr later = { wr_atomic_write, wr_flush };
	struct uwarp_batch *b = calloc(1, sizeof(*b));
	size_t n = (size_t)qp->cap.max_send_wr + 1;

	if (!b)
		return -ENOMEM;
	qp->batch = b;
	pthread_mutex_init(&b->lock, NULL);
	b->max = qp->cap.max_send_wr;
	b->max_sge = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
	b->max_inline = qp->cap.max_inline_data;
	b->wr = calloc(n, sizeof(*b->wr));
	b->sge = calloc(n * b->max_sge, sizeof(*b->sge));
	b->inline_buf = calloc(n, b->max_inline ? b->max_inline : 1);
	if (!b->wr || !b->sge || !b->inline_buf)
		return -ENOMEM; /* the caller destroys the QP, and this with it */
	set_functions(&qp->vqp.qp_ex);
	pabi_qp_set_ex(&qp->vqp, uwarp_abi_release(qp->async.ctx), &later);
	return 0;
}

void uwarp_batch_destroy(struct uwarp_qp *qp)
{
	struct uwarp_batch *b = qp->batch;

	if (!b)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b->inline_buf);
	free(b->sge);
	free(b->wr);
	free(b);
}
