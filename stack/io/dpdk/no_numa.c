/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the bundled libraries (option `bundled`): in place of libnuma, whose shared form wants a
 * newer C library than promised, and whose static form cannot be part of a shared library. DPDK is
 * told that there is no NUMA, and memory comes from wherever the kernel takes it.
 */
#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stddef.h>

int numa_available(void)
{
	return -1;
}

struct bitmask *numa_allocate_nodemask(void)
{
	return NULL;
}

void numa_bitmask_free(struct bitmask *mask)
{
	(void)mask;
}

void numa_set_localalloc(void)
{
}

void numa_set_preferred(int node)
{
	(void)node;
}

long get_mempolicy(int *mode, unsigned long *mask, unsigned long max, void *addr, unsigned flags)
{
	(void)mode;
	(void)mask;
	(void)max;
	(void)addr;
	(void)flags;
	errno = ENOSYS;
	return -1;
}

long set_mempolicy(int mode, const unsigned long *mask, unsigned long max)
{
	(void)mode;
	(void)mask;
	(void)max;
	errno = ENOSYS;
	return -1;
}
