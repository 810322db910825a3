/* SPDX-License-Identifier: BSD-3-Clause */
/* Which libibverbs has loaded us, and how to speak to it: see pabi.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define LIBIBVERBS "libibverbs.so.1"

/* The ABIs by name, the newest first: libibverbs has one of these symbols. */
static const char *const register_names[] = {
	"verbs_register_driver_65", "verbs_register_driver_64", "verbs_register_driver_59",
	"verbs_register_driver_57", "verbs_register_driver_34",
};

/* The versions that inserted operations, by a public symbol that each of them brought. */
static const struct {
	unsigned version;
	const char *symbol, *symbol_version;
} steps[] = {
	{ 65, "ibv_create_comp_cntr", "IBVERBS_1.18" },
	{ 64, "ibv_alloc_buf", "IBVERBS_1.17" },
	{ 62, "ibv_query_port_speed", "IBVERBS_1.16" },
	{ 59, "ibv_reg_mr_ex", "IBVERBS_1.15" },
	{ 36, "ibv_query_qp_data_in_order", "IBVERBS_1.14" },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Set before main() or in the first ibv_get_device_list(), and not changed any more. */
static struct pabi_functions ibverbs;
static unsigned ibverbs_version;

static bool find(void *lib, const char *name, void *function)
{
	void *symbol = dlsym(lib, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol;
}

static bool find_register(void *lib)
{
	for (size_t i = 0; i < COUNT(register_names); i++)
		if (find(lib, register_names[i], &ibverbs.register_driver))
			return true;
	return false;
}

static unsigned find_version(void *lib)
{
	for (size_t i = 0; i < COUNT(steps); i++)
		if (dlvsym(lib, steps[i].symbol, steps[i].symbol_version))
			return steps[i].version;
	return 0;
}

static const char *find_all(void *lib)
{
	if (!lib)
		return LIBIBVERBS " is not loaded";
	ibverbs_version = find_version(lib);
	if (!ibverbs_version)
		return LIBIBVERBS " is older than rdma-core 36";
	if (!find_register(lib) ||
	    !find(lib, "_verbs_init_and_alloc_context", &ibverbs.init_and_alloc_context) ||
	    !find(lib, "verbs_uninit_context", &ibverbs.uninit_context) ||
	    !find(lib, "verbs_set_ops", &ibverbs.set_ops))
		return LIBIBVERBS " has an unknown provider ABI (known: rdma-core 36 to 65)";
	return NULL;
}

/* We are not linked with libibverbs, which would bind us to one ABI, and it need not be in the
 * global scope. The handle is never closed: libibverbs does not unload its providers either. */
void uwarp_abi_register(const struct verbs_device_ops *ops)
{
	const char *wrong = find_all(dlopen(LIBIBVERBS, RTLD_LAZY | RTLD_NOLOAD));

	if (wrong)
		fprintf(stderr, "uwarp: no device: %s\n", wrong);
	else
		ibverbs.register_driver(ops);
}

struct verbs_context *uwarp_abi_context(struct uwarp_context *ctx)
{
	char *end = (char *)(&ctx->ibctx + 1);

	return (struct verbs_context *)(end - pabi_context_size(ibverbs_version));
}

void uwarp_abi_context_free(struct uwarp_context *ctx)
{
	struct verbs_context *vctx = uwarp_abi_context(ctx);

	ibverbs.uninit_context(vctx);
	free(vctx);
}

/* libibverbs has written the size of its struct verbs_context right in front of the last member. */
static bool size_is_right(const struct uwarp_context *ctx)
{
	size_t size;

	memcpy(&size, (const char *)ctx - sizeof(size), sizeof(size));
	if (size == pabi_context_size(ibverbs_version))
		return true;
	fprintf(stderr, "uwarp: " LIBIBVERBS " has an unknown struct verbs_context\n");
	return false;
}

struct uwarp_context *uwarp_abi_context_new(struct ibv_device *dev, int cmd_fd,
					    const struct pabi_ops *ops)
{
	const size_t before = pabi_context_size(ibverbs_version) - sizeof(struct ibv_context);
	struct uwarp_context *ctx;
	void *table[PABI_OPS_MAX];
	char *room;

	/* libibverbs' part is at the offset 0, which it wants as a pointer */
	room = ibverbs.init_and_alloc_context(dev, cmd_fd, before + sizeof(*ctx), NULL, 0);
	if (!room)
		return NULL;
	ctx = (struct uwarp_context *)(room + before);
	if (!size_is_right(ctx)) {
		uwarp_abi_context_free(ctx);
		return uwarp_fail(-ENODEV);
	}
	pabi_pack_ops(ops, ibverbs_version, table);
	ibverbs.set_ops(uwarp_abi_context(ctx), table);
	return ctx;
}
