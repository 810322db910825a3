/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TEST DOUBLE of libibverbs.so.1 of one version: it has the symbols by which that version is told
 * from others (fake_ibverbs.map gives them their versions), keeps the table that it is handed and
 * makes contexts of that version's size. Built with -DFAKE_VERSION, -DFAKE_ABI and -DFAKE_CONTEXT.
 */
#include <stdlib.h>

#include "fake_ibverbs.h"

#define EXPORT	    __attribute__((visibility("default")))
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
/* under an assembler's name: the public header may declare it otherwise */
#define MARKER(version, symbol)                                                                    \
	EXPORT void mark_##version(void) __asm__(symbol);                                          \
	void mark_##version(void)                                                                  \
	{                                                                                          \
	}

MARKER(any, "ibv_get_device_list") /* by which a libibverbs is known */

/* clang-format off */
#if FAKE_VERSION >= 36
MARKER(36, "ibv_query_qp_data_in_order")
#endif
#if FAKE_VERSION >= 59
MARKER(59, "ibv_reg_mr_ex")
#endif
#if FAKE_VERSION >= 62
MARKER(62, "ibv_query_port_speed")
#endif
#if FAKE_VERSION >= 64
MARKER(64, "ibv_alloc_buf")
#endif
#if FAKE_VERSION >= 65
MARKER(65, "ibv_create_comp_cntr")
#endif
/* clang-format on */

EXPORT struct fake_ibverbs fake_ibverbs;

EXPORT void JOIN(verbs_register_driver_, FAKE_ABI)(const struct verbs_device_ops *ops);
EXPORT void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t size,
					   struct verbs_context *offset, uint32_t driver_id);
EXPORT void verbs_uninit_context(struct verbs_context *context);
EXPORT void verbs_set_ops(struct verbs_context *context, void *const *ops);

void JOIN(verbs_register_driver_, FAKE_ABI)(const struct verbs_device_ops *ops)
{
	fake_ibverbs.driver = ops;
	fake_ibverbs.registered++;
}

void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t size,
				    struct verbs_context *offset, uint32_t driver_id)
{
	char *room = calloc(1, size), *end = room + (size_t)offset + FAKE_CONTEXT;
	struct ibv_context *ibctx = (struct ibv_context *)end - 1;

	(void)driver_id;
	if (end > room + size)
		abort();
	ibctx->device = device;
	ibctx->cmd_fd = cmd_fd;
	ibctx->async_fd = -1;
	((size_t *)ibctx)[-1] = FAKE_CONTEXT;
	fake_ibverbs.start = (struct verbs_context *)(room + (size_t)offset);
	fake_ibverbs.ibctx = ibctx;
	return room;
}

void verbs_uninit_context(struct verbs_context *context)
{
	fake_ibverbs.ended = context;
}

void verbs_set_ops(struct verbs_context *context, void *const *ops)
{
	if (context != fake_ibverbs.start)
		abort();
	for (size_t i = 0; i < FAKE_OPS; i++)
		fake_ibverbs.ops[i] = ops[i];
}
