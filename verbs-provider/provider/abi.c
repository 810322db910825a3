/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copies of libibverbs in this process, and how to speak to each (pabi.h).
 *
 * There may be several: a Python wheel brings its own, under a name such as
 * libibverbs-1de1263b.so.1.14.48.0, beside the distribution's. The dynamic loader loads this
 * provider once, whichever copy asks. So every copy is found by what is mapped, gets its own table
 * of driver operations, and each context knows the copy that made it.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pabi_ops.h"
#include "base/log.h"
#include "provider.h"

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

#define COPIES_MAX 8

struct uwarp_ibverbs {
	struct verbs_device_ops ops; /* what this copy was given */
	struct pabi_functions fn;
	unsigned version; /* one of `steps` */
	unsigned release; /* 0: not known */
	char name[256];	  /* its file */
};

static struct {
	pthread_mutex_t lock;
	unsigned n;
	unsigned long long looked_at; /* dlpi_adds of the last look */
	struct uwarp_ibverbs copy[COPIES_MAX];
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool find(void *lib, const char *name, void *function)
{
	void *symbol = dlsym(lib, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol;
}

static bool find_register(void *lib, struct uwarp_ibverbs *c)
{
	for (size_t i = 0; i < COUNT(register_names); i++)
		if (find(lib, register_names[i], &c->fn.register_driver))
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

/* NULL, or what is wrong with this copy. */
static const char *find_all(void *lib, struct uwarp_ibverbs *c)
{
	c->version = find_version(lib);
	if (!c->version)
		return "is older than rdma-core 36";
	if (!find_register(lib, c) ||
	    !find(lib, "_verbs_init_and_alloc_context", &c->fn.init_and_alloc_context) ||
	    !find(lib, "verbs_uninit_context", &c->fn.uninit_context) ||
	    !find(lib, "verbs_set_ops", &c->fn.set_ops))
		return "has an unknown provider ABI (known: rdma-core 36 to 65)";
	return NULL;
}

/* ---- the copies ---------------------------------------------------------------------------- */

/* The files of the loaded objects. Nothing may be looked up while the loader walks its list. */
struct objects {
	char **name;
	size_t n, room;
	unsigned long long adds;
};

static int note_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct objects *o = arg;
	size_t room = o->room ? o->room * 2 : 64;
	char **more;

	(void)size;
	o->adds = info->dlpi_adds;
	if (!info->dlpi_name || !info->dlpi_name[0])
		return 0;
	if (o->n == o->room) {
		more = realloc(o->name, room * sizeof(*more));
		if (!more)
			return 1;
		o->name = more;
		o->room = room;
	}
	o->name[o->n] = strdup(info->dlpi_name);
	o->n += o->name[o->n] != NULL;
	return 0;
}

/* A handle of the object if it is a libibverbs, else NULL. A symbol found by the handle of another
 * object is one of its dependencies'. */
static void *open_ibverbs(const char *name)
{
	void *lib = dlopen(name, RTLD_LAZY | RTLD_NOLOAD), *symbol;
	Dl_info info;

	if (!lib)
		return NULL;
	symbol = dlsym(lib, "ibv_get_device_list");
	if (symbol && dladdr(symbol, &info) && info.dli_fname && !strcmp(info.dli_fname, name))
		return lib;
	dlclose(lib);
	return NULL;
}

static bool is_known(const char *name)
{
	for (unsigned i = 0; i < known.n; i++)
		if (!strcmp(known.copy[i].name, name))
			return true;
	return false;
}

/* The name that it was loaded by may be a symbolic link's, such as libibverbs.so.1. */
static unsigned release_of(const char *name)
{
	char *path = realpath(name, NULL), *base = path ? strrchr(path, '/') : NULL;
	unsigned release = base ? pabi_release_of(base) : 0;

	free(path);
	return release;
}

/* The handle is never closed: libibverbs does not unload its providers either. */
static void add_copy(const char *name, void *lib, const struct verbs_device_ops *ops)
{
	struct uwarp_ibverbs *c = &known.copy[known.n];
	const char *wrong;

	if (known.n == COPIES_MAX)
		return;
	snprintf(c->name, sizeof(c->name), "%s", name);
	known.n++;
	wrong = find_all(lib, c);
	if (wrong) {
		uw_log("no device for %s: it %s", name, wrong);
		return;
	}
	c->release = release_of(name);
	c->ops = *ops;
	c->fn.register_driver(&c->ops);
}

void uwarp_abi_register(const struct verbs_device_ops *ops)
{
	struct objects o = { 0 };
	void *lib;

	pthread_mutex_lock(&known.lock);
	dl_iterate_phdr(note_object, &o);
	for (size_t i = 0; i < o.n; i++) {
		if (o.adds != known.looked_at && !is_known(o.name[i])) {
			lib = open_ibverbs(o.name[i]);
			if (lib)
				add_copy(o.name[i], lib, ops);
		}
		free(o.name[i]);
	}
	free(o.name);
	known.looked_at = o.adds;
	if (!known.n)
		uw_log("no device: this process has no libibverbs");
	pthread_mutex_unlock(&known.lock);
}

const struct verbs_device_ops *uwarp_abi_ops(void)
{
	return known.n ? &known.copy[0].ops : NULL;
}

/* ---- contexts ------------------------------------------------------------------------------ */

struct verbs_context *uwarp_abi_context(struct uwarp_context *ctx)
{
	char *end = (char *)(&ctx->ibctx + 1);

	return (struct verbs_context *)(end - pabi_context_size(ctx->lib->version));
}

unsigned uwarp_abi_release(const struct uwarp_context *ctx)
{
	return ctx->lib->release;
}

void uwarp_abi_context_free(struct uwarp_context *ctx)
{
	struct verbs_context *vctx = uwarp_abi_context(ctx);

	ctx->lib->fn.uninit_context(vctx);
	free(vctx);
}

/* libibverbs has written the size of its struct verbs_context right in front of the last member. */
static bool size_is_right(const struct uwarp_context *ctx)
{
	size_t size;

	memcpy(&size, (const char *)ctx - sizeof(size), sizeof(size));
	if (size == pabi_context_size(ctx->lib->version))
		return true;
	uw_log("%s has an unknown struct verbs_context", ctx->lib->name);
	return false;
}

struct uwarp_context *uwarp_abi_context_new(struct ibv_device *dev, int cmd_fd,
					    const struct pabi_ops *ops)
{
	const struct verbs_device *vdev = uwarp_container(dev, struct verbs_device, device);
	const struct uwarp_ibverbs *lib = uwarp_container(vdev->ops, struct uwarp_ibverbs, ops);
	const size_t before = pabi_context_size(lib->version) - sizeof(struct ibv_context);
	struct uwarp_context *ctx;
	void *table[PABI_OPS_MAX];
	char *room;

	/* libibverbs' part is at the offset 0, which it wants as a pointer */
	room = lib->fn.init_and_alloc_context(dev, cmd_fd, before + sizeof(*ctx), NULL, 0);
	if (!room)
		return NULL;
	ctx = (struct uwarp_context *)(room + before);
	ctx->lib = lib;
	if (!size_is_right(ctx)) {
		uwarp_abi_context_free(ctx);
		return uwarp_fail(-ENODEV);
	}
	pabi_pack_ops(ops, lib->version, table);
	lib->fn.set_ops(uwarp_abi_context(ctx), table);
	return ctx;
}
