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
#include "uverbs/watch.h"

/* A signal handler forks on top of a thread that has one of the last two: whoever has a lock of the
 * stack may wait for it, so the fork waits for none. The child ends or execs in the handler. */
static _Thread_local bool on_top;

static void prepare(void)
{
	on_top = cm_locked_here || fdtab_is_locked_here();
	if (on_top)
		return;
	watch_settle(-1); /* the child has the same epoll */
	loader_fork_prepare();
	cm_fork_prepare();
	fdtab_fork_prepare();
}

static void parent(void)
{
	if (on_top)
		return;
	fdtab_fork_parent();
	cm_fork_parent();
	loader_fork_parent();
}

static void child(void)
{
	bool lost;

	if (on_top) {
		cm_fork_free_lock();
		fdtab_fork_free_lock();
		return;
	}
	lost = loader_fork_child();
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
