/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of libibverbs' provider ABI that this provider needs, for rdma-core v36 to v65: the ABIs
 * that libibverbs calls IBVERBS_PRIVATE_34, _57, _59, _64 and _65. Distributions ship no header for
 * it; names and layouts are those of rdma-core's libibverbs/driver.h, and
 * tests/unit/provider/check-pabi.sh compares the two for every version at hand.
 *
 * What differs between the versions is chosen when the provider is loaded (provider/abi.c):
 *   - the table of operations has grown, in the middle: pabi_pack_ops();
 *   - struct verbs_context, which is public, has grown at its front: pabi_context_size();
 *   - struct ibv_qp_ex, which is public, has grown at its end: pabi_qp_set_ex().
 * The name of the ABI says none of this: v62 inserted operations and kept the name.
 */
#ifndef UWARP_PABI_H
#define UWARP_PABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include <infiniband/verbs.h>

struct pabi_list_node {
	struct pabi_list_node *next, *prev;
};

struct verbs_mr {
	struct ibv_mr ibv_mr;
	int mr_type; /* 0: an ordinary MR */
	int access;
};

struct verbs_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	};
};

enum { VERBS_QP_EX = 1 << 1 };

struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
	};
	uint32_t comp_mask; /* VERBS_QP_EX: qp_ex is there. See pabi_qp_set_ex() */
	void *xrcd;
	void *room[2]; /* of a later version's qp_ex */
};

struct verbs_match_ent {
	void *driver_data;
	union {
		const char *modalias;
		uint64_t driver_id;
	} u;
	uint16_t vendor, device;
	uint8_t kind; /* 0 ends a table */
};

struct verbs_sysfs_dev {
	struct pabi_list_node entry;
	void *provider_data;
	const struct verbs_match_ent *match;
	unsigned int flags;
	char sysfs_name[IBV_SYSFS_NAME_MAX];
	dev_t sysfs_cdev;
	char ibdev_name[IBV_SYSFS_NAME_MAX];
	char ibdev_path[IBV_SYSFS_PATH_MAX];
	char modalias[512];
	uint64_t node_guid;
	uint32_t driver_id;
	enum ibv_node_type node_type;
	int ibdev_idx;
	uint32_t num_ports;
	uint32_t abi_ver;
	struct timespec time_created;
};

struct verbs_device_ops;

struct verbs_device {
	struct ibv_device device;
	const struct verbs_device_ops *ops;
	atomic_int refcount;
	struct pabi_list_node entry;
	struct verbs_sysfs_dev *sysfs;
	uint64_t core_support;
};

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version, match_max_abi_version;
	const struct verbs_match_ent *match_table; /* libibverbs walks it: never NULL */
	const struct verbs_device_ops **static_providers;
	bool (*match_device)(struct verbs_sysfs_dev *dev);
	struct verbs_context *(*alloc_context)(struct ibv_device *dev, int cmd_fd, void *priv);
	struct verbs_context *(*import_context)(struct ibv_device *dev, int cmd_fd);
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *dev);
	void (*uninit_device)(struct verbs_device *dev);
};

/* The table in its order. USED(result, name, arguments) is what we fill, SKIP(name) the rest;
 * SINCE(version, name) is what versions before that one do not have. */
/* clang-format off */
#define PABI_OPS(USED, SKIP, SINCE) \
	USED(int, advise_mr, \
	     (struct ibv_pd *, enum ibv_advise_mr_advice, uint32_t, struct ibv_sge *, uint32_t)) \
	SINCE(64, alloc_buf) SKIP(alloc_dm) SINCE(59, alloc_dmah) \
	USED(struct ibv_mw *, alloc_mw, (struct ibv_pd *, enum ibv_mw_type)) \
	USED(struct ibv_mr *, alloc_null_mr, (struct ibv_pd *)) \
	USED(struct ibv_pd *, alloc_parent_domain, \
	     (struct ibv_context *, struct ibv_parent_domain_init_attr *)) \
	USED(struct ibv_pd *, alloc_pd, (struct ibv_context *)) \
	USED(struct ibv_td *, alloc_td, (struct ibv_context *, struct ibv_td_init_attr *)) \
	SKIP(async_event) SKIP(attach_counters_point_flow) SKIP(attach_mcast) \
	USED(int, bind_mw, (struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *)) \
	SKIP(close_xrcd) SKIP(cq_event) SKIP(create_ah) \
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
	SKIP(create_wq) SINCE(59, dealloc_dmah) \
	USED(int, dealloc_mw, (struct ibv_mw *)) \
	USED(int, dealloc_pd, (struct ibv_pd *)) \
	USED(int, dealloc_td, (struct ibv_td *)) \
	USED(int, dereg_mr, (struct verbs_mr *)) \
	SKIP(destroy_ah) SINCE(65, destroy_comp_cntr) SKIP(destroy_counters) \
	USED(int, destroy_cq, (struct ibv_cq *)) \
	SKIP(destroy_flow) SKIP(destroy_flow_action) \
	USED(int, destroy_qp, (struct ibv_qp *)) \
	SKIP(destroy_rwq_ind_table) \
	USED(int, destroy_srq, (struct ibv_srq *)) \
	SKIP(destroy_wq) SKIP(detach_mcast) SINCE(62, dm_export_dmabuf_fd) SINCE(64, free_buf) \
	USED(void, free_context, (struct ibv_context *)) \
	SKIP(free_dm) SKIP(get_srq_num) SKIP(import_dm) SKIP(import_mr) SKIP(import_pd) \
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
	SINCE(62, query_port_speed) \
	USED(int, query_qp, \
	     (struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *)) \
	USED(int, query_qp_data_in_order, (struct ibv_qp *, enum ibv_wr_opcode, uint32_t)) \
	USED(int, query_rt_values, (struct ibv_context *, struct ibv_values_ex *)) \
	USED(int, query_srq, (struct ibv_srq *, struct ibv_srq_attr *)) \
	SINCE(65, read_comp_cntr) SKIP(read_counters) SINCE(65, read_err_comp_cntr) SKIP(reg_dm_mr) SKIP(reg_dmabuf_mr) \
	USED(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, uint64_t, int)) \
	SINCE(59, reg_mr_ex) \
	USED(int, req_notify_cq, (struct ibv_cq *, int)) \
	USED(int, rereg_mr, (struct verbs_mr *, int, struct ibv_pd *, void *, size_t, int)) \
	USED(int, resize_cq, (struct ibv_cq *, int)) \
	SINCE(65, set_comp_cntr) SKIP(set_ece) SINCE(65, set_err_comp_cntr) \
	SKIP(unimport_dm) SKIP(unimport_mr) SKIP(unimport_pd)
/* clang-format on */

/* What the provider fills: the operations of all versions. */
struct pabi_ops {
#define PABI_USED(ret, name, args) ret(*name) args;
#define PABI_SKIP(name)		   void (*name)(void);
#define PABI_SINCE(version, name)  void (*name)(void);
	PABI_OPS(PABI_USED, PABI_SKIP, PABI_SINCE)
#undef PABI_USED
#undef PABI_SKIP
#undef PABI_SINCE
};

#define PABI_OPS_MAX (sizeof(struct pabi_ops) / sizeof(void *))

/* The table as libibverbs of that version reads it; returns how many operations it has. */
static inline size_t pabi_pack_ops(const struct pabi_ops *ops, unsigned version,
				   void *table[PABI_OPS_MAX])
{
#define PABI_USED(ret, name, args) 0,
#define PABI_SKIP(name)		   0,
#define PABI_SINCE(version, name)  version,
	static const uint8_t since[] = { PABI_OPS(PABI_USED, PABI_SKIP, PABI_SINCE) };
#undef PABI_USED
#undef PABI_SKIP
#undef PABI_SINCE
	size_t n = 0;

	static_assert(sizeof(since) == PABI_OPS_MAX, "one entry for each operation");
	for (size_t i = 0; i < PABI_OPS_MAX; i++)
		if (since[i] <= version)
			memcpy(&table[n++], (const char *)ops + i * sizeof(void *), sizeof(void *));
	return n;
}

/* The private functions of libibverbs that we call. They carry the ABI's name as their symbol
 * version, so we look them up instead of linking with them. */
struct pabi_functions {
	void (*register_driver)(const struct verbs_device_ops *ops);
	void *(*init_and_alloc_context)(struct ibv_device *device, int cmd_fd, size_t alloc_size,
					struct verbs_context *context_offset, uint32_t driver_id);
	void (*uninit_context)(struct verbs_context *context);
	void (*set_ops)(struct verbs_context *context, const void *ops);
};

/* The size of that version's struct verbs_context. It ends with struct ibv_context and, right in
 * front of that, its size; what came after v36 stands before query_port. */
static inline size_t pabi_context_size(unsigned version)
{
	const size_t grown = version >= 64 ? 6 : version >= 62 ? 4 : version >= 59 ? 3 : 0;

	return sizeof(struct verbs_context) - offsetof(struct verbs_context, query_port) +
	       grown * sizeof(void *);
}

/* Where libibverbs looks for verbs_qp.comp_mask: right behind struct ibv_qp_ex, which ends with
 * wr_abort up to v43, has wr_atomic_write from v44 on and wr_flush from v45 on. */
#define PABI_QP_MASK_V36 (offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void *))
#define PABI_QP_MASK_V44 (PABI_QP_MASK_V36 + sizeof(void *))
#define PABI_QP_MASK_V45 (PABI_QP_MASK_V44 + sizeof(void *))

static_assert(offsetof(struct verbs_qp, comp_mask) >= PABI_QP_MASK_V36 &&
		      offsetof(struct verbs_qp, comp_mask) <= PABI_QP_MASK_V45,
	      "struct ibv_qp_ex is none of those that v36 to v65 have");
static_assert(sizeof(struct verbs_qp) >= PABI_QP_MASK_V45 + sizeof(uint32_t), "verbs_qp: room");
#if defined(__x86_64__)
static_assert(PABI_QP_MASK_V36 == 344 && PABI_QP_MASK_V45 == 360, "verbs_qp.comp_mask");
#endif

/* Say that qp_ex is there, so that the libibverbs of each layout sees it. What is not the mask to
 * it is wr_atomic_write, wr_flush or xrcd: nobody reads them who has not asked for an atomic
 * write, a flush operation or an XRC domain, all of which we refuse. */
static inline void pabi_qp_set_ex(struct verbs_qp *vqp)
{
	const uint32_t mask = VERBS_QP_EX;

	memcpy((char *)vqp + PABI_QP_MASK_V36, &mask, sizeof(mask));
	memcpy((char *)vqp + PABI_QP_MASK_V44, &mask, sizeof(mask));
	memcpy((char *)vqp + PABI_QP_MASK_V45, &mask, sizeof(mask));
}

#endif
