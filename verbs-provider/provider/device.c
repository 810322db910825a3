/* SPDX-License-Identifier: BSD-3-Clause */
/* Registration with libibverbs, device matching and contexts. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "base/log.h"
#include "provider.h"

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

/* As RoCE there are no LIDs. If the link does not start, that has been said; nobody will be reached
 * either way. */
void uwarp_query_for_lids(const struct uwarp_stack *stack, struct uw_device_attr *dev)
{
	stack->api->engine_query(stack->engine, dev);
	if (!dev->addr_is_unknown || (dev->roce && !dev->infiniband))
		return;
	stack->api->engine_start(stack->engine);
	stack->api->engine_query(stack->engine, dev);
}

void uwarp_free_context(struct ibv_context *ibctx)
{
	struct uwarp_context *ctx = to_uwarp_context(ibctx);

	uwarp_async_close(ctx);
	uwarp_abi_context_free(ctx);
}

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
	return !strcmp(dev->ibdev_name, uwarp_device_name());
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

static void look_for_libibverbs(void)
{
	uwarp_abi_register(&uwarp_device_ops);
}

static __attribute__((constructor)) void register_driver(void)
{
	__typeof__(uwarp_host) *get;

	*(void **)&get = dlsym(RTLD_DEFAULT, "uwarp_host");
	host = get ? get(UWARP_HOST_VERSION) : NULL;
	if (!host) {
		uw_log("no device: start the program with uwarp-run");
		return;
	}
	look_for_libibverbs();
	host->on_discovery(look_for_libibverbs);
}
