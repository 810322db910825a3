/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests and completions. Values and layouts are those of verbs (asserted by the provider),
 * so the provider passes the structs on without conversion. The protocol layers use these structs
 * too.
 */
#ifndef UWARP_TYPES_H
#define UWARP_TYPES_H

#include <stdint.h>

/* Octets in a message at most. RFC 5041 §5.1 has twice as many; programs keep lengths in an int. */
#define UW_MSG_MAX 0x7fffffffu

/* = IBV_ACCESS_* */
enum uw_access {
	UW_ACCESS_LOCAL_WRITE = 1,
	UW_ACCESS_REMOTE_WRITE = 2,
	UW_ACCESS_REMOTE_READ = 4,
	UW_ACCESS_REMOTE_ATOMIC = 8,
	UW_ACCESS_MW_BIND = 16,	   /* windows may be bound to the region */
	UW_ACCESS_ZERO_BASED = 32, /* addresses in it begin with 0 */
	UW_ACCESS_ON_DEMAND = 64,
	UW_ACCESS_HUGETLB = 128,
	UW_ACCESS_FLUSH_GLOBAL = 256,
	UW_ACCESS_FLUSH_PERSISTENT = 512,
	UW_ACCESS_ALL = 1023,
	UW_ACCESS_OPTIONAL = 0x3ff00000, /* may be ignored, and is */
};

/* = enum ibv_wc_status */
enum uw_wc_status {
	UW_WC_SUCCESS,
	UW_WC_LOC_LEN_ERR,
	UW_WC_LOC_QP_OP_ERR,
	UW_WC_LOC_EEC_OP_ERR,
	UW_WC_LOC_PROT_ERR,
	UW_WC_WR_FLUSH_ERR,
	UW_WC_MW_BIND_ERR,
	UW_WC_BAD_RESP_ERR,
	UW_WC_LOC_ACCESS_ERR,
	UW_WC_REM_INV_REQ_ERR,
	UW_WC_REM_ACCESS_ERR,
	UW_WC_REM_OP_ERR,
	UW_WC_RETRY_EXC_ERR,
	UW_WC_RNR_RETRY_EXC_ERR,
	UW_WC_FATAL_ERR = 19,
	UW_WC_GENERAL_ERR = 21,
};

/* = enum ibv_wc_opcode */
enum uw_wc_opcode {
	UW_WC_SEND,
	UW_WC_RDMA_WRITE,
	UW_WC_RDMA_READ,
	UW_WC_COMP_SWAP,
	UW_WC_FETCH_ADD,
	UW_WC_BIND_MW,
	UW_WC_LOCAL_INV,
	UW_WC_FLUSH = 8,
	UW_WC_ATOMIC_WRITE,
	UW_WC_RECV = 1 << 7,
	UW_WC_RECV_RDMA_WITH_IMM,
};

/* = enum ibv_wc_flags */
enum uw_wc_flags {
	UW_WC_WITH_IMM = 1 << 1,
	UW_WC_WITH_INV = 1 << 3,
};

/* laid out as struct ibv_wc */
struct uw_wc {
	uint64_t wr_id;
	uint32_t status;     /* enum uw_wc_status */
	uint32_t opcode;     /* enum uw_wc_opcode; undefined unless success */
	uint32_t vendor_err; /* enum uw_status of the stack, for diagnosis */
	uint32_t byte_len;
	uint32_t imm_or_inv; /* imm_data in network order, or the invalidated rkey */
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t wc_flags;
	uint16_t pkey_index;
	uint16_t slid; /* a datagram: the lower half of the sender's IPv4 address; else 0 */
	uint8_t sl, dlid_path_bits;
};

/* laid out as struct ibv_sge */
struct uw_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/* = enum ibv_wr_opcode */
enum uw_wr_opcode {
	UW_WR_RDMA_WRITE,
	UW_WR_RDMA_WRITE_WITH_IMM,
	UW_WR_SEND,
	UW_WR_SEND_WITH_IMM,
	UW_WR_RDMA_READ,
	UW_WR_ATOMIC_CMP_AND_SWP,
	UW_WR_ATOMIC_FETCH_AND_ADD,
	UW_WR_LOCAL_INV,
	UW_WR_BIND_MW,
	UW_WR_SEND_WITH_INV,
	UW_WR_FLUSH = 14,
	UW_WR_ATOMIC_WRITE,
};

/* = enum ibv_placement_type, a mask */
enum uw_flush_type { UW_FLUSH_GLOBAL = 1, UW_FLUSH_PERSISTENT = 2 };

/* = enum ibv_selectivity_level */
enum uw_flush_level { UW_FLUSH_RANGE, UW_FLUSH_MR };

/* = enum ibv_send_flags */
enum uw_send_flags {
	UW_SEND_FENCE = 1,
	UW_SEND_SIGNALED = 2,
	UW_SEND_SOLICITED = 4,
	UW_SEND_INLINE = 8,
};

struct uw_send_wr {
	uint64_t wr_id;
	const struct uw_sge *sg_list; /* read during the call only */
	uint32_t num_sge;
	uint32_t opcode; /* enum uw_wr_opcode */
	uint32_t flags;	 /* enum uw_send_flags */
	uint32_t imm_or_inv;
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t compare_add, swap; /* atomics */
	/* UW_WR_FLUSH: compare_add is the length, swap is UW_FLUSH_WISH(). UW_WR_ATOMIC_WRITE:
	 * compare_add has the eight octets as they are in memory. Neither has SGEs. */
	/* UW_WR_BIND_MW: rkey is the new rkey of the window, imm_or_inv the lkey of the region,
	 * remote_addr the address, swap the length, compare_add the access rights. UW_WR_LOCAL_INV:
	 * imm_or_inv is the key. */
};

/* What a FLUSH is to do: enum uw_flush_type and enum uw_flush_level in one number. */
#define UW_FLUSH_WISH(type, level) ((uint64_t)(type) | (uint64_t)(level) << 8)

struct uw_recv_wr {
	uint64_t wr_id;
	const struct uw_sge *sg_list; /* read during the call only */
	uint32_t num_sge;
};

/* Asynchronous events of a QP or SRQ, by the verbs values (enum ibv_event_type). */
enum uw_event {
	UW_EVENT_QP_FATAL = 1,
	UW_EVENT_QP_REQ_ERR = 2,
	UW_EVENT_QP_ACCESS_ERR = 3,
	UW_EVENT_COMM_EST = 4,
	UW_EVENT_SQ_DRAINED = 5,
	UW_EVENT_SRQ_ERR = 14,
	UW_EVENT_SRQ_LIMIT_REACHED = 15,
	UW_EVENT_QP_LAST_WQE_REACHED = 16,
};

/* = enum ibv_qp_state */
enum uw_qp_state {
	UW_QPS_RESET,
	UW_QPS_INIT,
	UW_QPS_RTR,
	UW_QPS_RTS,
	UW_QPS_SQD,
	UW_QPS_SQE,
	UW_QPS_ERR,
};

#endif
