/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of libibverbs' provider ABI (symbol version IBVERBS_PRIVATE_34, rdma-core v36 to v56)
 * that this provider needs. Distributions ship no header for it; names and layouts are those of
 * rdma-core's libibverbs/driver.h, and tests/unit/provider/check-pabi.sh compares the two.
 *
 * Between v36 and v56 the layouts follow the public <infiniband/verbs.h> and nothing else: the
 * only visible step is that v45 added one pointer to struct ibv_qp_ex.
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

#define PABI_OPS 76

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
	uint32_t comp_mask; /* VERBS_QP_EX: qp_ex is there */
	void *xrcd;
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

/* The table in its order. USED(result, name, arguments) is what we fill, SKIP(name) the rest. */
/* clang-format off */
#define PABI_OPS_V36(USED, SKIP) \
	SKIP(advise_mr) SKIP(alloc_dm) SKIP(alloc_mw) SKIP(alloc_null_mr) \
	SKIP(alloc_parent_domain) \
	USED(struct ibv_pd *, alloc_pd, (struct ibv_context *)) \
	SKIP(alloc_td) SKIP(async_event) SKIP(attach_counters_point_flow) SKIP(attach_mcast) \
	SKIP(bind_mw) SKIP(close_xrcd) SKIP(cq_event) SKIP(create_ah) SKIP(create_counters) \
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
	SKIP(create_srq_ex) SKIP(create_wq) SKIP(dealloc_mw) \
	USED(int, dealloc_pd, (struct ibv_pd *)) \
	SKIP(dealloc_td) \
	USED(int, dereg_mr, (struct verbs_mr *)) \
	SKIP(destroy_ah) SKIP(destroy_counters) \
	USED(int, destroy_cq, (struct ibv_cq *)) \
	SKIP(destroy_flow) SKIP(destroy_flow_action) \
	USED(int, destroy_qp, (struct ibv_qp *)) \
	SKIP(destroy_rwq_ind_table) \
	USED(int, destroy_srq, (struct ibv_srq *)) \
	SKIP(destroy_wq) SKIP(detach_mcast) \
	USED(void, free_context, (struct ibv_context *)) \
	SKIP(free_dm) SKIP(get_srq_num) SKIP(import_dm) SKIP(import_mr) SKIP(import_pd) \
	SKIP(modify_cq) SKIP(modify_flow_action_esp) \
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
	USED(int, query_device_ex, \
	     (struct ibv_context *, const struct ibv_query_device_ex_input *, \
	      struct ibv_device_attr_ex *, size_t)) \
	SKIP(query_ece) \
	USED(int, query_port, (struct ibv_context *, uint8_t, struct ibv_port_attr *)) \
	USED(int, query_qp, \
	     (struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *)) \
	USED(int, query_qp_data_in_order, (struct ibv_qp *, enum ibv_wr_opcode, uint32_t)) \
	SKIP(query_rt_values) \
	USED(int, query_srq, (struct ibv_srq *, struct ibv_srq_attr *)) \
	SKIP(read_counters) SKIP(reg_dm_mr) SKIP(reg_dmabuf_mr) \
	USED(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, uint64_t, int)) \
	USED(int, req_notify_cq, (struct ibv_cq *, int)) \
	SKIP(rereg_mr) \
	USED(int, resize_cq, (struct ibv_cq *, int)) \
	SKIP(set_ece) SKIP(unimport_dm) SKIP(unimport_mr) SKIP(unimport_pd)
/* clang-format on */

struct verbs_context_ops {
#define PABI_USED(ret, name, args) ret(*name) args;
#define PABI_SKIP(name)		   void (*name)(void);
	PABI_OPS_V36(PABI_USED, PABI_SKIP)
#undef PABI_USED
#undef PABI_SKIP
};

void verbs_register_driver_34(const struct verbs_device_ops *ops);
void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t alloc_size,
				    struct verbs_context *context_offset, uint32_t driver_id);
void verbs_uninit_context(struct verbs_context *context);
void verbs_set_ops(struct verbs_context *context, const struct verbs_context_ops *ops);

/* Where libibverbs looks for verbs_qp.comp_mask: right after struct ibv_qp_ex, which ends with
 * wr_atomic_write up to v44 and has one pointer more from v45 on. */
#define PABI_QP_MASK_V44 (offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *))
#define PABI_QP_MASK_V45 (PABI_QP_MASK_V44 + sizeof(void *))

static_assert(sizeof(struct verbs_context_ops) == PABI_OPS * sizeof(void *), "ops of v36-v56");
static_assert(offsetof(struct verbs_qp, comp_mask) == sizeof(struct ibv_qp_ex), "verbs_qp");
static_assert(offsetof(struct verbs_qp, comp_mask) == PABI_QP_MASK_V44 ||
		      offsetof(struct verbs_qp, comp_mask) == PABI_QP_MASK_V45,
	      "struct ibv_qp_ex is neither v44's nor that of v45-v56");
static_assert(sizeof(struct verbs_qp) >= PABI_QP_MASK_V45 + sizeof(uint32_t), "verbs_qp: room");
#if defined(__x86_64__)
static_assert(PABI_QP_MASK_V44 == 352 && PABI_QP_MASK_V45 == 360, "verbs_qp.comp_mask");
#endif

/* Say that qp_ex is there, so that the libibverbs of either layout sees it, whichever we were
 * built with. In the other layout's eyes the second word is wr_flush or xrcd: libibverbs reads
 * neither unless asked for a flush operation or an XRC domain, which we refuse. */
static inline void pabi_qp_set_ex(struct verbs_qp *vqp)
{
	const uint32_t mask = VERBS_QP_EX;

	memcpy((char *)vqp + PABI_QP_MASK_V44, &mask, sizeof(mask));
	memcpy((char *)vqp + PABI_QP_MASK_V45, &mask, sizeof(mask));
}

#endif
