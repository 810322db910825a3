/* SPDX-License-Identifier: BSD-3-Clause */
/* Registration with libibverbs, device matching, contexts, and the table of operations. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define DEVICE_PREFIX "uwarp"

/* Found once, before main() or in the first ibv_get_device_list(); libibverbs gives a provider no
 * place to keep it. */
static const struct uwarp_host *host;

const struct uwarp_host *uwarp_provider_host(void)
{
	return host;
}

int uwarp_stack_get(struct uwarp_stack *stack)
{
	stack->api = host->api();
	if (!stack->api || stack->api->version != UW_API_VERSION)
		return -ENODEV;
	stack->engine = host->engine();
	return stack->engine ? 0 : -ENODEV;
}

void uwarp_say(const char *fmt, ...)
{
	char line[256] = "uwarp: ";
	const size_t at = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + at, sizeof(line) - at, fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s\n", line);
}

static void free_context(struct ibv_context *ibctx)
{
	struct uwarp_context *ctx = to_uwarp_context(ibctx);

	uwarp_async_close(ctx);
	uwarp_abi_context_free(ctx);
}

/* What is missing here libibverbs answers with EOPNOTSUPP. */
static const struct pabi_ops uwarp_ops = {
	.free_context = free_context,
	.query_device_ex = uwarp_query_device,
	.query_port = uwarp_query_port,
	.alloc_pd = uwarp_alloc_pd,
	.dealloc_pd = uwarp_dealloc_pd,
	.alloc_td = uwarp_alloc_td,
	.dealloc_td = uwarp_dealloc_td,
	.alloc_parent_domain = uwarp_alloc_parent_domain,
	.reg_mr = uwarp_reg_mr,
	.rereg_mr = uwarp_rereg_mr,
	.alloc_null_mr = uwarp_alloc_null_mr,
	.advise_mr = uwarp_advise_mr,
	.alloc_mw = uwarp_alloc_mw,
	.dealloc_mw = uwarp_dealloc_mw,
	.bind_mw = uwarp_bind_mw,
	.query_rt_values = uwarp_query_rt_values,
	.dereg_mr = uwarp_dereg_mr,
	.create_cq = uwarp_create_cq,
	.create_cq_ex = uwarp_create_cq_ex,
	.poll_cq = uwarp_poll_cq,
	.req_notify_cq = uwarp_req_notify_cq,
	.resize_cq = uwarp_resize_cq,
	.modify_cq = uwarp_modify_cq,
	.destroy_cq = uwarp_destroy_cq,
	.create_srq = uwarp_create_srq,
	.create_srq_ex = uwarp_create_srq_ex,
	.modify_srq = uwarp_modify_srq,
	.query_srq = uwarp_query_srq,
	.destroy_srq = uwarp_destroy_srq,
	.post_srq_recv = uwarp_post_srq_recv,
	.create_qp = uwarp_create_qp,
	.create_qp_ex = uwarp_create_qp_ex,
	.query_qp = uwarp_query_qp,
	.query_qp_data_in_order = uwarp_query_qp_data_in_order,
	.modify_qp = uwarp_modify_qp,
	.destroy_qp = uwarp_destroy_qp,
	.post_send = uwarp_post_send,
	.post_recv = uwarp_post_recv,
};

/* Opening the device leaves the engine alone: programs open it and then fork. */
static struct verbs_context *alloc_context(struct ibv_device *dev, int cmd_fd, void *priv)
{
	struct uwarp_context *ctx = uwarp_abi_context_new(dev, cmd_fd, &uwarp_ops);
	int rc;

	(void)priv;
	if (!ctx)
		return NULL;
	ctx->ibctx.num_comp_vectors = 1;
	rc = uwarp_async_open(ctx);
	if (rc) {
		uwarp_abi_context_free(ctx);
		return uwarp_fail(rc);
	}
	return uwarp_abi_context(ctx);
}

static bool match_device(struct verbs_sysfs_dev *dev)
{
	return strncmp(dev->ibdev_name, DEVICE_PREFIX, strlen(DEVICE_PREFIX)) == 0;
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *sysfs)
{
	(void)sysfs;
	return calloc(1, sizeof(struct verbs_device));
}

static void uninit_device(struct verbs_device *dev)
{
	free(dev);
}

static const struct verbs_match_ent no_matches[1];

const struct verbs_device_ops uwarp_device_ops = {
	.name = "uwarp",
	.match_min_abi_version = 0,
	.match_max_abi_version = UINT32_MAX,
	.match_table = no_matches,
	.match_device = match_device,
	.alloc_context = alloc_context,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
};

static __attribute__((constructor)) void register_driver(void)
{
	__typeof__(uwarp_host) *get;

	*(void **)&get = dlsym(RTLD_DEFAULT, "uwarp_host");
	host = get ? get(UWARP_HOST_VERSION) : NULL;
	if (!host) {
		uwarp_say("start the program with uwarp-run");
		return;
	}
	uwarp_abi_register(&uwarp_device_ops);
}
