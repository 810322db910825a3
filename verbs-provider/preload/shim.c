/* SPDX-License-Identifier: BSD-3-Clause */
#include "shim.h"

#include <pthread.h>
#include <signal.h>

#include "fdtab.h"
#include "host_priv.h"
#include "ucma.h"

/* Enough for the stack's resolve calls and one of libc's resolver. */
#define HELPER_STACK (256 * 1024)

int shim_spawn(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	sigfillset(&all);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, HELPER_STACK);
	pthread_attr_setsigmask_np(&attr, &all);
	err = pthread_create(&thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return -err;
}

static _Thread_local int caller_state;

int shim_enter(void)
{
	int was = caller_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &caller_state);
	return was;
}

void shim_leave(int was)
{
	int mine = caller_state, ignored;

	caller_state = was;
	pthread_setcancelstate(mine, &ignored);
}

int shim_allow_cancel(void)
{
	int was;

	pthread_setcancelstate(caller_state, &was);
	return was;
}

void shim_forbid_cancel(int was)
{
	int ignored;

	pthread_setcancelstate(was, &ignored);
}

/* The order of the locks: host, then ucma, then the descriptor table. The stack lock comes before
 * the last two (callbacks), and fork() takes none of the stack's. */
static void prepare(void)
{
	host_fork_prepare();
	ucma_fork_prepare();
	fdtab_fork_prepare();
}

static void parent(void)
{
	fdtab_fork_parent();
	ucma_fork_parent();
	host_fork_parent();
}

static void child(void)
{
	bool lost = host_fork_child();

	ucma_fork_child(lost);
	fdtab_fork_child(); /* last: it lights the descriptors of what is still queued */
}

static void watch(void)
{
	pthread_atfork(prepare, parent, child);
}

void shim_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
