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
#include <stdio.h>
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

/* Of rdma-core 45: device_cap_flags_ex, and bits of per_transport_caps. */
#define PABI_CAP_FLUSH_GLOBAL	  (1ull << 38)
#define PABI_CAP_FLUSH_PERSISTENT (1ull << 39)
#define PABI_CAP_ATOMIC_WRITE	  (1ull << 40)
enum { PABI_ODP_FLUSH = 1 << 6, PABI_ODP_ATOMIC_WRITE = 1 << 7 };

/* Of rdma-core 59: DMA handles (ibv_alloc_dmah) and ibv_reg_mr_ex. The bits of comp_mask say which
 * members are valid. */
struct ibv_dmah;
struct pabi_dmah { /* struct verbs_dmah, whose first member is struct ibv_dmah */
	struct ibv_context *context;
	uint32_t handle;
};
enum { PABI_DMAH_CPU_ID = 1 << 0, PABI_DMAH_PH = 1 << 1, PABI_DMAH_MEM_TYPE = 1 << 2 };
struct pabi_dmah_attr { /* struct ibv_dmah_init_attr */
	uint32_t comp_mask;
	uint32_t cpu_id;      /* the CPU whose cache the octets are for */
	uint8_t ph;	      /* processing hint of PCI Express, 0 to 3 */
	uint8_t tph_mem_type; /* 0 volatile, 1 persistent memory */
};
enum {
	PABI_MR_IOVA = 1 << 0,
	PABI_MR_ADDR = 1 << 1,
	PABI_MR_FD = 1 << 2,
	PABI_MR_FD_OFFSET = 1 << 3,
	PABI_MR_DMAH = 1 << 4,
};
struct pabi_mr_attr { /* struct ibv_mr_init_attr; later versions add members at its end */
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	struct ibv_dmah *dmah;
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

/* Of later versions of struct ibv_qp_ex. */
struct pabi_wr {
	void (*atomic_write)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			     const void *value);
	void (*flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
		      uint8_t type, uint8_t level);
};

/* The operations by their bits in send_ops_flags. */
enum { PABI_WITH_FLUSH = 1 << 11, PABI_WITH_ATOMIC_WRITE = 1 << 12 };

/* Those of the two operations that a release of libibverbs has; 0: a release that is not known. */
static inline uint64_t pabi_wr_ops(unsigned release)
{
	return (release >= 44 ? PABI_WITH_ATOMIC_WRITE : 0) | (release >= 45 ? PABI_WITH_FLUSH : 0);
}

/* The release by the name of the library's file: libibverbs.so.1.14.44.0 has 44. 0: the name does
 * not say. */
static inline unsigned pabi_release_of(const char *file)
{
	const char *so = strstr(file, ".so.");
	unsigned abi, minor, release, patch;
	char end;

	if (!so || sscanf(so, ".so.%u.%u.%u.%u%c", &abi, &minor, &release, &patch, &end) != 4)
		return 0;
	return release;
}

/* Set VERBS_QP_EX at the offset of comp_mask, and what stands in front of that. If the release is
 * not known, set the mask at the offset of every layout: in one layout the other two places are
 * wr_atomic_write, wr_flush or xrcd, and then the provider supports none of these. */
static inline void pabi_qp_set_ex(struct verbs_qp *vqp, unsigned release, const struct pabi_wr *wr)
{
	const uint32_t mask = VERBS_QP_EX;
	char *at = (char *)vqp;

	if (release < 44)
		memcpy(at + PABI_QP_MASK_V36, &mask, sizeof(mask));
	else
		memcpy(at + PABI_QP_MASK_V36, &wr->atomic_write, sizeof(wr->atomic_write));
	if (!release || release == 44)
		memcpy(at + PABI_QP_MASK_V44, &mask, sizeof(mask));
	else if (release >= 45)
		memcpy(at + PABI_QP_MASK_V44, &wr->flush, sizeof(wr->flush));
	if (!release || release >= 45)
		memcpy(at + PABI_QP_MASK_V45, &mask, sizeof(mask));
}

#endif
