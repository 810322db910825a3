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

/* Of rdma-core 65: a permission to allocate memory that a confidential guest shares with its
 * host. */
enum { UWARP_PARENT_DOMAIN_CC_UNPROTECTED = 1 << 2 };

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
	void *room[2]; /* room for the longer struct ibv_qp_ex of later versions */
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

/* The private functions of libibverbs that we call. Their symbol version is the name of the ABI, so
 * we look the functions up instead of linking with them. */
struct pabi_functions {
	void (*register_driver)(const struct verbs_device_ops *ops);
	void *(*init_and_alloc_context)(struct ibv_device *device, int cmd_fd, size_t alloc_size,
					struct verbs_context *context_offset, uint32_t driver_id);
	void (*uninit_context)(struct verbs_context *context);
	void (*set_ops)(struct verbs_context *context, const void *ops);
};

/* The size of struct verbs_context in a version of libibverbs. The struct ends with its own size
 * and struct ibv_context. Members added after v36 come before query_port. */
static inline size_t pabi_context_size(unsigned version)
{
	const size_t grown = version >= 64 ? 6 : version >= 62 ? 4 : version >= 59 ? 3 : 0;

	return sizeof(struct verbs_context) - offsetof(struct verbs_context, query_port) +
	       grown * sizeof(void *);
}

/* The offset of verbs_qp.comp_mask: directly after struct ibv_qp_ex, which ends with wr_abort up to
 * v43, wr_atomic_write in v44, and wr_flush from v45 on. */
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

/* Set VERBS_QP_EX at the offset of comp_mask in every layout, since the version that reads the mask
 * may differ. In one layout the other two places are wr_atomic_write, wr_flush or xrcd, which are
 * used only for atomic writes, flush operations or XRC domains; the provider supports none of
 * these. */
static inline void pabi_qp_set_ex(struct verbs_qp *vqp)
{
	const uint32_t mask = VERBS_QP_EX;

	memcpy((char *)vqp + PABI_QP_MASK_V36, &mask, sizeof(mask));
	memcpy((char *)vqp + PABI_QP_MASK_V44, &mask, sizeof(mask));
	memcpy((char *)vqp + PABI_QP_MASK_V45, &mask, sizeof(mask));
}

#endif
