/* SPDX-License-Identifier: BSD-3-Clause */
#include "next.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "raw.h"

/* Threads that race here write the same values; `ready` (release/acquire) makes them whole. */
static struct next table;
static atomic_bool ready;

/* With raw.h: the kernel's struct stat is libc's on the machines that we are for. */
static int kernel_fstat(int fd, struct stat *st)
{
	return raw_fstat(fd, st);
}

static int kernel_fstat64(int fd, struct stat64 *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

static int kernel_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

void next_fill(struct next *t)
{
	if (!t->fstat)
		t->fstat = kernel_fstat;
	if (!t->fstat64)
		t->fstat64 = kernel_fstat64;
	if (!t->fstatat)
		t->fstatat = kernel_fstatat;
}

static void resolve(void)
{
#define NEXT_LOOKUP(ret, name, args)                                                               \
	__atomic_store_n((void **)&table.name, dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED);
	NEXT_LIST(NEXT_LOOKUP)
#undef NEXT_LOOKUP
	next_fill(&table);
	atomic_store_explicit(&ready, true, memory_order_release);
}

const struct next *next_fn(void)
{
	if (UNLIKELY(!atomic_load_explicit(&ready, memory_order_acquire)))
		resolve();
	return &table;
}
