/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(): the child must find every lock of this library free and everything it guards whole. So
 * the thread that forks takes them all before, in the order in which they are taken elsewhere too:
 * the loader's lock, the stack's locks, the locks of rdma_cm, the lock of the descriptor table.
 * Callbacks of the stack take the last two while they hold the stack's. The folder of sysfs/tree.h
 * is the parent's; the child forgets it.
 */
#include <pthread.h>
#include <stdbool.h>

#include "libc/fdtab.h"
#include "loader.h"
#include "rdma_cm/rdma_cm.h"
#include "sysfs/tree.h"

static void prepare(void)
{
	loader_fork_prepare();
	cm_fork_prepare();
	fdtab_fork_prepare();
}

static void parent(void)
{
	fdtab_fork_parent();
	cm_fork_parent();
	loader_fork_parent();
}

static void child(void)
{
	bool lost = loader_fork_child();

	cm_fork_child(lost);
	tree_fork_child();
	/* Last, because it makes the descriptors of what is still queued readable. */
	fdtab_fork_child();
}

static void watch(void)
{
	pthread_atfork(prepare, parent, child);
}

void loader_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
