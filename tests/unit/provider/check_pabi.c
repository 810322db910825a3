/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pabi.h against rdma-core's own libibverbs/driver.h, both in one translation unit: ours under
 * other names. Built and run by check-pabi.sh with -DRDMA_CORE=<major version>.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#define verbs_mr	 our_mr
#define verbs_cq	 our_cq
#define verbs_qp	 our_qp
#define verbs_match_ent	 our_match_ent
#define verbs_sysfs_dev	 our_sysfs_dev
#define verbs_device	 our_device
#define verbs_device_ops our_device_ops
#define VERBS_QP_EX	 OUR_QP_EX
#include "pabi_ops.h"
#undef verbs_mr
#undef verbs_cq
#undef verbs_qp
#undef verbs_match_ent
#undef verbs_sysfs_dev
#undef verbs_device
#undef verbs_device_ops
#undef VERBS_QP_EX
#include <infiniband/driver.h>

static int bad;

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	printf("differs: %s\n", what);
	bad = 1;
}

#define STRUCT(ours, theirs) check(sizeof(struct ours) == sizeof(struct theirs), "size of " #theirs)
#define FIELD(ours, theirs, f)                                                                     \
	check(offsetof(struct ours, f) == offsetof(struct theirs, f) &&                            \
		      sizeof(((struct ours *)0)->f) == sizeof(((struct theirs *)0)->f),            \
	      #theirs "." #f)
#define SAME_TYPE(a, b) __builtin_types_compatible_p(__typeof__(a), __typeof__(b))

/* Where libibverbs of this version looks for our operation n, given the table we make for it. */
#define OP_PLACE(f)                                                                                \
	check(place[offsetof(struct pabi_ops, f) / sizeof(void *)] ==                              \
		      offsetof(struct verbs_context_ops, f) / sizeof(void *),                      \
	      "place of verbs_context_ops." #f);
#define OP_TYPE(ret, f, args)                                                                      \
	OP_PLACE(f)                                                                                \
	check(SAME_TYPE(((struct pabi_ops *)0)->f,                                                 \
			((struct verbs_context_ops *)0)                                            \
				->f) || /* take a struct verbs_mr, here of two names */            \
		      !strcmp(#f, "dereg_mr") ||                                                   \
		      !strcmp(#f, "rereg_mr"),                                                     \
	      "type of verbs_context_ops." #f);
#define OP_SINCE(version, f) OP_SINCE_##version(f)
/* Its arguments are structures of our own names. */
#define OP_NEW(version, ret, f, args) OP_SINCE_##version(f)
#define OP_NOT_HERE(f)
#if RDMA_CORE >= 59
#define OP_SINCE_59(f) OP_PLACE(f)
#else
#define OP_SINCE_59(f) OP_NOT_HERE(f)
#endif
#if RDMA_CORE >= 62
#define OP_SINCE_62(f) OP_PLACE(f)
#else
#define OP_SINCE_62(f) OP_NOT_HERE(f)
#endif
#if RDMA_CORE >= 64
#define OP_SINCE_64(f) OP_PLACE(f)
#else
#define OP_SINCE_64(f) OP_NOT_HERE(f)
#endif
#if RDMA_CORE >= 65
#define OP_SINCE_65(f) OP_PLACE(f)
#else
#define OP_SINCE_65(f) OP_NOT_HERE(f)
#endif

static void check_devices(void)
{
	STRUCT(our_match_ent, verbs_match_ent);
	FIELD(our_match_ent, verbs_match_ent, kind);
	check(VERBS_MATCH_SENTINEL == 0, "the end of a match table");
	STRUCT(our_sysfs_dev, verbs_sysfs_dev);
	FIELD(our_sysfs_dev, verbs_sysfs_dev, ibdev_name);
	FIELD(our_sysfs_dev, verbs_sysfs_dev, node_guid);
	FIELD(our_sysfs_dev, verbs_sysfs_dev, node_type);
	FIELD(our_sysfs_dev, verbs_sysfs_dev, abi_ver);
	STRUCT(our_device, verbs_device);
	FIELD(our_device, verbs_device, ops);
	FIELD(our_device, verbs_device, refcount);
	FIELD(our_device, verbs_device, sysfs);
	STRUCT(our_device_ops, verbs_device_ops);
	FIELD(our_device_ops, verbs_device_ops, match_min_abi_version);
	FIELD(our_device_ops, verbs_device_ops, match_max_abi_version);
	FIELD(our_device_ops, verbs_device_ops, match_table);
	FIELD(our_device_ops, verbs_device_ops, match_device);
	FIELD(our_device_ops, verbs_device_ops, alloc_context);
	FIELD(our_device_ops, verbs_device_ops, alloc_device);
	FIELD(our_device_ops, verbs_device_ops, uninit_device);
}

static void check_objects(void)
{
	STRUCT(our_mr, verbs_mr);
	FIELD(our_mr, verbs_mr, mr_type);
	FIELD(our_mr, verbs_mr, access);
	check(IBV_MR_TYPE_MR == 0, "IBV_MR_TYPE_MR");
	STRUCT(our_cq, verbs_cq);
	check(sizeof(struct our_qp) >= sizeof(struct verbs_qp), "size of verbs_qp");
	FIELD(our_qp, verbs_qp, comp_mask);
	check((int)OUR_QP_EX == (int)VERBS_QP_EX, "VERBS_QP_EX");
	check(offsetof(struct verbs_qp, comp_mask) == (RDMA_CORE >= 45	 ? PABI_QP_MASK_V45
						       : RDMA_CORE == 44 ? PABI_QP_MASK_V44
									 : PABI_QP_MASK_V36),
	      "where this version has verbs_qp.comp_mask");
}

/* Read and written by operations of version 59. */
static void check_handles(void)
{
#if RDMA_CORE >= 59
	STRUCT(pabi_dmah, verbs_dmah);
	FIELD(pabi_dmah_attr, ibv_dmah_init_attr, cpu_id);
	FIELD(pabi_dmah_attr, ibv_dmah_init_attr, ph);
	FIELD(pabi_dmah_attr, ibv_dmah_init_attr, tph_mem_type);
	FIELD(pabi_mr_attr, ibv_mr_init_attr, length);
	FIELD(pabi_mr_attr, ibv_mr_init_attr, access);
	FIELD(pabi_mr_attr, ibv_mr_init_attr, comp_mask);
	FIELD(pabi_mr_attr, ibv_mr_init_attr, iova);
	FIELD(pabi_mr_attr, ibv_mr_init_attr, addr);
	FIELD(pabi_mr_attr, ibv_mr_init_attr, fd);
	FIELD(pabi_mr_attr, ibv_mr_init_attr, fd_offset);
	FIELD(pabi_mr_attr, ibv_mr_init_attr, dmah);
	check(PABI_DMAH_CPU_ID == (int)IBV_DMAH_INIT_ATTR_MASK_CPU_ID &&
		      PABI_DMAH_PH == (int)IBV_DMAH_INIT_ATTR_MASK_PH &&
		      PABI_DMAH_MEM_TYPE == (int)IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE,
	      "bits of ibv_dmah_init_attr.comp_mask");
	check(PABI_MR_IOVA == (int)IBV_REG_MR_MASK_IOVA &&
		      PABI_MR_ADDR == (int)IBV_REG_MR_MASK_ADDR &&
		      PABI_MR_FD == (int)IBV_REG_MR_MASK_FD &&
		      PABI_MR_FD_OFFSET == (int)IBV_REG_MR_MASK_FD_OFFSET &&
		      PABI_MR_DMAH == (int)IBV_REG_MR_MASK_DMAH,
	      "bits of ibv_mr_init_attr.comp_mask");
#endif
}

static void check_context(void)
{
	check(sizeof(struct verbs_context) == pabi_context_size(RDMA_CORE),
	      "size of verbs_context");
	check(offsetof(struct verbs_context, context) + sizeof(struct ibv_context) ==
		      sizeof(struct verbs_context),
	      "verbs_context ends with ibv_context");
	check(offsetof(struct verbs_context, sz) + sizeof(size_t) ==
		      offsetof(struct verbs_context, context),
	      "verbs_context.sz comes right before");
}

static void check_table(void)
{
	static struct pabi_ops mark;
	void *table[PABI_OPS_MAX];
	size_t place[PABI_OPS_MAX] = { 0 }, n;

	for (size_t i = 0; i < PABI_OPS_MAX; i++)
		((char **)&mark)[i] = (char *)&mark + i;
	n = pabi_pack_ops(&mark, RDMA_CORE, table);
	check(n * sizeof(void *) == sizeof(struct verbs_context_ops), "number of operations");
	for (size_t i = 0; i < n; i++)
		place[(char *)table[i] - (char *)&mark] = i;
	PABI_OPS(OP_TYPE, OP_NEW, OP_PLACE, OP_SINCE)
}

static void check_functions(void)
{
	struct pabi_functions *f = NULL;

	check(SAME_TYPE(f->init_and_alloc_context, &_verbs_init_and_alloc_context),
	      "_verbs_init_and_alloc_context");
	check(SAME_TYPE(f->uninit_context, &verbs_uninit_context), "verbs_uninit_context");
}

int main(void)
{
	check_devices();
	check_objects();
	check_handles();
	check_context();
	check_table();
	check_functions();
	if (!bad)
		printf("pabi.h is rdma-core %d's: %zu operations, a context of %zu octets, "
		       "verbs_qp.comp_mask at %zu\n",
		       RDMA_CORE, sizeof(struct verbs_context_ops) / sizeof(void *),
		       sizeof(struct verbs_context), offsetof(struct verbs_qp, comp_mask));
	return bad;
}
