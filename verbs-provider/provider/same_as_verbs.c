/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compile-time proof that what the provider passes through without a look has the same values and
 * layout in uwarp.h and in <infiniband/verbs.h>. No code.
 */
#include "provider.h"

#define SAME(a, b)		static_assert((long)(a) == (long)(b), #a " is " #b)
#define SAME_NAME(family, name) SAME(UW_##family##_##name, IBV_##family##_##name)
#define SAME_SIZE(a, b)                                                                            \
	static_assert(sizeof(a) == sizeof(b) && _Alignof(a) == _Alignof(b),                        \
		      #a " is laid out as " #b)
#define SAME_FIELD(a, fa, b, fb)                                                                   \
	static_assert(offsetof(a, fa) == offsetof(b, fb) &&                                        \
			      sizeof(((a *)0)->fa) == sizeof(((b *)0)->fb),                        \
		      #a "." #fa " is " #b "." #fb)
#define WC(f)  SAME_FIELD(struct uw_wc, f, struct ibv_wc, f)
#define SGE(f) SAME_FIELD(struct uw_sge, f, struct ibv_sge, f)

SAME_SIZE(struct uw_wc, struct ibv_wc);
WC(wr_id);
WC(status);
WC(opcode);
WC(vendor_err);
WC(byte_len);
SAME_FIELD(struct uw_wc, imm_or_inv, struct ibv_wc, imm_data);
SAME_FIELD(struct uw_wc, imm_or_inv, struct ibv_wc, invalidated_rkey);
WC(qp_num);
WC(src_qp);
WC(wc_flags);
WC(pkey_index);
WC(slid);
WC(sl);
WC(dlid_path_bits);

SAME_SIZE(struct uw_sge, struct ibv_sge);
SGE(addr);
SGE(length);
SGE(lkey);

SAME_NAME(WC, SUCCESS);
SAME_NAME(WC, LOC_LEN_ERR);
SAME_NAME(WC, LOC_QP_OP_ERR);
SAME_NAME(WC, LOC_EEC_OP_ERR);
SAME_NAME(WC, LOC_PROT_ERR);
SAME_NAME(WC, WR_FLUSH_ERR);
SAME_NAME(WC, MW_BIND_ERR);
SAME_NAME(WC, BAD_RESP_ERR);
SAME_NAME(WC, LOC_ACCESS_ERR);
SAME_NAME(WC, REM_INV_REQ_ERR);
SAME_NAME(WC, REM_ACCESS_ERR);
SAME_NAME(WC, REM_OP_ERR);
SAME_NAME(WC, RETRY_EXC_ERR);
SAME_NAME(WC, RNR_RETRY_EXC_ERR);
SAME_NAME(WC, FATAL_ERR);
SAME_NAME(WC, GENERAL_ERR);

SAME_NAME(WC, SEND);
SAME_NAME(WC, RDMA_WRITE);
SAME_NAME(WC, RDMA_READ);
SAME_NAME(WC, COMP_SWAP);
SAME_NAME(WC, FETCH_ADD);
SAME_NAME(WC, BIND_MW);
SAME_NAME(WC, LOCAL_INV);
SAME_NAME(WC, RECV);
SAME_NAME(WC, RECV_RDMA_WITH_IMM);

SAME_NAME(WC, WITH_IMM);
SAME_NAME(WC, WITH_INV);

SAME_NAME(WR, RDMA_WRITE);
SAME_NAME(WR, RDMA_WRITE_WITH_IMM);
SAME_NAME(WR, SEND);
SAME_NAME(WR, SEND_WITH_IMM);
SAME_NAME(WR, RDMA_READ);
SAME_NAME(WR, ATOMIC_CMP_AND_SWP);
SAME_NAME(WR, ATOMIC_FETCH_AND_ADD);
SAME_NAME(WR, LOCAL_INV);
SAME_NAME(WR, BIND_MW);
SAME_NAME(WR, SEND_WITH_INV);

SAME_NAME(SEND, FENCE);
SAME_NAME(SEND, SIGNALED);
SAME_NAME(SEND, SOLICITED);
SAME_NAME(SEND, INLINE);

SAME_NAME(ACCESS, LOCAL_WRITE);
SAME_NAME(ACCESS, REMOTE_WRITE);
SAME_NAME(ACCESS, REMOTE_READ);
SAME_NAME(ACCESS, REMOTE_ATOMIC);
SAME_NAME(ACCESS, MW_BIND);
SAME_NAME(ACCESS, ZERO_BASED);
SAME_NAME(ACCESS, ON_DEMAND);
SAME_NAME(ACCESS, HUGETLB);

SAME_NAME(QPS, RESET);
SAME_NAME(QPS, INIT);
SAME_NAME(QPS, RTR);
SAME_NAME(QPS, RTS);
SAME_NAME(QPS, SQD);
SAME_NAME(QPS, SQE);
SAME_NAME(QPS, ERR);

SAME_NAME(EVENT, QP_FATAL);
SAME_NAME(EVENT, QP_REQ_ERR);
SAME_NAME(EVENT, QP_ACCESS_ERR);
SAME_NAME(EVENT, COMM_EST);
SAME_NAME(EVENT, SQ_DRAINED);
SAME_NAME(EVENT, SRQ_ERR);
SAME_NAME(EVENT, SRQ_LIMIT_REACHED);
SAME_NAME(EVENT, QP_LAST_WQE_REACHED);
