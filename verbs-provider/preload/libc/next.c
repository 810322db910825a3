/* SPDX-License-Identifier: BSD-3-Clause */
#include "next.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "raw.h"

/* Threads that race here write the same values; `ready` (release/acquire) makes them whole. */
static struct next table;
static atomic_bool ready;

static void resolve(void)
{
#define NEXT_LOOKUP(ret, name, args)                                                               \
	__atomic_store_n((void **)&table.name, dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED);
	NEXT_LIST(NEXT_LOOKUP)
#undef NEXT_LOOKUP
	atomic_store_explicit(&ready, true, memory_order_release);
}

const struct next *next_fn(void)
{
	if (UNLIKELY(!atomic_load_explicit(&ready, memory_order_acquire)))
		resolve();
	return &table;
}
