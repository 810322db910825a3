/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pabi.h against rdma-core's own libibverbs/driver.h, both in one translation unit: ours under
 * other names. Built and run by check-pabi.sh with -DRDMA_CORE=<major version>.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#define verbs_mr		      our_mr
#define verbs_cq		      our_cq
#define verbs_qp		      our_qp
#define verbs_match_ent		      our_match_ent
#define verbs_sysfs_dev		      our_sysfs_dev
#define verbs_device		      our_device
#define verbs_device_ops	      our_device_ops
#define verbs_context_ops	      our_context_ops
#define VERBS_QP_EX		      OUR_QP_EX
#define verbs_register_driver_34      our_register_driver
#define _verbs_init_and_alloc_context our_init_and_alloc_context
#define verbs_uninit_context	      our_uninit_context
#define verbs_set_ops		      our_set_ops
#include "pabi.h"
#undef verbs_mr
#undef verbs_cq
#undef verbs_qp
#undef verbs_match_ent
#undef verbs_sysfs_dev
#undef verbs_device
#undef verbs_device_ops
#undef verbs_context_ops
#undef VERBS_QP_EX
#undef verbs_register_driver_34
#undef _verbs_init_and_alloc_context
#undef verbs_uninit_context
#undef verbs_set_ops
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
#define OP_PLACE(f)	FIELD(our_context_ops, verbs_context_ops, f);
#define OP_TYPE(ret, f, args)                                                                      \
	FIELD(our_context_ops, verbs_context_ops, f);                                              \
	check(SAME_TYPE(((struct our_context_ops *)0)->f, ((struct verbs_context_ops *)0)->f) ||   \
		      !strcmp(#f, "dereg_mr") /* takes a struct verbs_mr, here of two names */,    \
	      "type of verbs_context_ops." #f);

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
	STRUCT(our_qp, verbs_qp);
	FIELD(our_qp, verbs_qp, comp_mask);
	check((int)OUR_QP_EX == (int)VERBS_QP_EX, "VERBS_QP_EX");
	check(offsetof(struct verbs_qp, comp_mask) ==
		      (RDMA_CORE >= 45 ? PABI_QP_MASK_V45 : PABI_QP_MASK_V44),
	      "where this version has verbs_qp.comp_mask");
}

static void check_functions(void)
{
	check(sizeof(struct verbs_context_ops) == PABI_OPS * sizeof(void *), "number of ops");
	PABI_OPS_V36(OP_TYPE, OP_PLACE)
	check(SAME_TYPE(&_verbs_init_and_alloc_context, &our_init_and_alloc_context),
	      "_verbs_init_and_alloc_context");
	check(SAME_TYPE(&verbs_uninit_context, &our_uninit_context), "verbs_uninit_context");
}

int main(void)
{
	check_devices();
	check_objects();
	check_functions();
	if (!bad)
		printf("pabi.h is rdma-core %d's: %zu ops, verbs_qp.comp_mask at %zu\n", RDMA_CORE,
		       sizeof(struct verbs_context_ops) / sizeof(void *),
		       offsetof(struct verbs_qp, comp_mask));
	return bad;
}
