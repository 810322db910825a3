/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of operations that a provider hands to libibverbs, whose layout is private (pabi.h). */
#ifndef UWARP_PABI_OPS_H
#define UWARP_PABI_OPS_H

#include "pabi.h"

/* The table in the order of libibverbs. USED(result, name, arguments): the provider implements the
 * operation. SKIP(name): the provider does not. NEW(version, result, name, arguments) and
 * SINCE(version, name): the same, and versions before that one do not have the operation. */
/* clang-format off */
#define PABI_OPS(USED, NEW, SKIP, SINCE) \
	USED(int, advise_mr, \
	     (struct ibv_pd *, enum ibv_advise_mr_advice, uint32_t, struct ibv_sge *, uint32_t)) \
	SINCE(64, alloc_buf) \
	USED(struct ibv_dm *, alloc_dm, (struct ibv_context *, struct ibv_alloc_dm_attr *)) \
	NEW(59, struct ibv_dmah *, alloc_dmah, \
	    (struct ibv_context *, struct pabi_dmah_attr *)) \
	USED(struct ibv_mw *, alloc_mw, (struct ibv_pd *, enum ibv_mw_type)) \
	USED(struct ibv_mr *, alloc_null_mr, (struct ibv_pd *)) \
	USED(struct ibv_pd *, alloc_parent_domain, \
	     (struct ibv_context *, struct ibv_parent_domain_init_attr *)) \
	USED(struct ibv_pd *, alloc_pd, (struct ibv_context *)) \
	USED(struct ibv_td *, alloc_td, (struct ibv_context *, struct ibv_td_init_attr *)) \
	SKIP(async_event) SKIP(attach_counters_point_flow) \
	USED(int, attach_mcast, (struct ibv_qp *, const union ibv_gid *, uint16_t)) \
	USED(int, bind_mw, (struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *)) \
	SKIP(close_xrcd) SKIP(cq_event) \
	USED(struct ibv_ah *, create_ah, (struct ibv_pd *, struct ibv_ah_attr *)) \
	SINCE(65, create_comp_cntr) SKIP(create_counters) \
	USED(struct ibv_cq *, create_cq, \
	     (struct ibv_context *, int, struct ibv_comp_channel *, int)) \
	USED(struct ibv_cq_ex *, create_cq_ex, \
	     (struct ibv_context *, struct ibv_cq_init_attr_ex *)) \
	SKIP(create_flow) SKIP(create_flow_action_esp) \
	USED(struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *)) \
	USED(struct ibv_qp *, create_qp_ex, \
	     (struct ibv_context *, struct ibv_qp_init_attr_ex *)) \
	SKIP(create_rwq_ind_table) \
	USED(struct ibv_srq *, create_srq, (struct ibv_pd *, struct ibv_srq_init_attr *)) \
	USED(struct ibv_srq *, create_srq_ex, \
	     (struct ibv_context *, struct ibv_srq_init_attr_ex *)) \
	SKIP(create_wq) \
	NEW(59, int, dealloc_dmah, (struct ibv_dmah *)) \
	USED(int, dealloc_mw, (struct ibv_mw *)) \
	USED(int, dealloc_pd, (struct ibv_pd *)) \
	USED(int, dealloc_td, (struct ibv_td *)) \
	USED(int, dereg_mr, (struct verbs_mr *)) \
	USED(int, destroy_ah, (struct ibv_ah *)) \
	SINCE(65, destroy_comp_cntr) SKIP(destroy_counters) \
	USED(int, destroy_cq, (struct ibv_cq *)) \
	SKIP(destroy_flow) SKIP(destroy_flow_action) \
	USED(int, destroy_qp, (struct ibv_qp *)) \
	SKIP(destroy_rwq_ind_table) \
	USED(int, destroy_srq, (struct ibv_srq *)) \
	SKIP(destroy_wq) \
	USED(int, detach_mcast, (struct ibv_qp *, const union ibv_gid *, uint16_t)) \
	SINCE(62, dm_export_dmabuf_fd) SINCE(64, free_buf) \
	USED(void, free_context, (struct ibv_context *)) \
	USED(int, free_dm, (struct ibv_dm *)) SKIP(get_srq_num) SKIP(import_dm) SKIP(import_mr) SKIP(import_pd) \
	SINCE(65, inc_comp_cntr) SINCE(65, inc_err_comp_cntr) \
	USED(int, modify_cq, (struct ibv_cq *, struct ibv_modify_cq_attr *)) \
	SKIP(modify_flow_action_esp) \
	USED(int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int)) \
	SKIP(modify_qp_rate_limit) \
	USED(int, modify_srq, (struct ibv_srq *, struct ibv_srq_attr *, int)) \
	SKIP(modify_wq) SKIP(open_qp) SKIP(open_xrcd) \
	USED(int, poll_cq, (struct ibv_cq *, int, struct ibv_wc *)) \
	USED(int, post_recv, (struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **)) \
	USED(int, post_send, (struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **)) \
	SKIP(post_srq_ops) \
	USED(int, post_srq_recv, \
	     (struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **)) \
	SINCE(65, qp_attach_comp_cntr) SINCE(65, query_comp_cntr_caps) \
	USED(int, query_device_ex, \
	     (struct ibv_context *, const struct ibv_query_device_ex_input *, \
	      struct ibv_device_attr_ex *, size_t)) \
	SKIP(query_ece) \
	USED(int, query_port, (struct ibv_context *, uint8_t, struct ibv_port_attr *)) \
	NEW(62, int, query_port_speed, (struct ibv_context *, uint32_t, uint64_t *)) \
	USED(int, query_qp, \
	     (struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *)) \
	USED(int, query_qp_data_in_order, (struct ibv_qp *, enum ibv_wr_opcode, uint32_t)) \
	USED(int, query_rt_values, (struct ibv_context *, struct ibv_values_ex *)) \
	USED(int, query_srq, (struct ibv_srq *, struct ibv_srq_attr *)) \
	SINCE(65, read_comp_cntr) SKIP(read_counters) SINCE(65, read_err_comp_cntr) \
	USED(struct ibv_mr *, reg_dm_mr, \
	     (struct ibv_pd *, struct ibv_dm *, uint64_t, size_t, unsigned)) \
	SKIP(reg_dmabuf_mr) \
	USED(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, uint64_t, int)) \
	NEW(59, struct ibv_mr *, reg_mr_ex, (struct ibv_pd *, struct pabi_mr_attr *)) \
	USED(int, req_notify_cq, (struct ibv_cq *, int)) \
	USED(int, rereg_mr, (struct verbs_mr *, int, struct ibv_pd *, void *, size_t, int)) \
	USED(int, resize_cq, (struct ibv_cq *, int)) \
	SINCE(65, set_comp_cntr) SKIP(set_ece) SINCE(65, set_err_comp_cntr) \
	SKIP(unimport_dm) SKIP(unimport_mr) SKIP(unimport_pd)
/* clang-format on */

/* The table that the provider fills in, with the operations of all versions. */
struct pabi_ops {
#define PABI_USED(ret, name, args)	   ret(*name) args;
#define PABI_SKIP(name)			   void (*name)(void);
#define PABI_SINCE(version, name)	   void (*name)(void);
#define PABI_NEW(version, ret, name, args) ret(*name) args;
	PABI_OPS(PABI_USED, PABI_NEW, PABI_SKIP, PABI_SINCE)
#undef PABI_USED
#undef PABI_NEW
#undef PABI_SKIP
#undef PABI_SINCE
};

#define PABI_OPS_MAX (sizeof(struct pabi_ops) / sizeof(void *))

/* Write the table in the layout of a version of libibverbs; returns the number of operations. */
static inline size_t pabi_pack_ops(const struct pabi_ops *ops, unsigned version,
				   void *table[PABI_OPS_MAX])
{
#define PABI_USED(ret, name, args)	   0,
#define PABI_SKIP(name)			   0,
#define PABI_SINCE(version, name)	   version,
#define PABI_NEW(version, ret, name, args) version,
	static const uint8_t since[] = { PABI_OPS(PABI_USED, PABI_NEW, PABI_SKIP, PABI_SINCE) };
#undef PABI_USED
#undef PABI_NEW
#undef PABI_SKIP
#undef PABI_SINCE
	size_t n = 0;

	static_assert(sizeof(since) == PABI_OPS_MAX, "one entry for each operation");
	for (size_t i = 0; i < PABI_OPS_MAX; i++)
		if (since[i] <= version)
			memcpy(&table[n++], (const char *)ops + i * sizeof(void *), sizeof(void *));
	return n;
}

#endif
