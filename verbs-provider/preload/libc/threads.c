/* SPDX-License-Identifier: BSD-3-Clause */
#include "threads.h"

#include <pthread.h>
#include <signal.h>

/* Enough for the stack's resolve calls and one of libc's resolver. */
#define HELPER_STACK (256 * 1024)

int helper_start(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, was;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	sigfillset(&all);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, HELPER_STACK);
	/* The thread inherits it; pthread_attr_setsigmask_np() is newer than the wheel's
	 * glibc 2.28. */
	pthread_sigmask(SIG_SETMASK, &all, &was);
	err = pthread_create(&thread, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

/* Of the innermost cancel_off(): what its caller had. */
static _Thread_local int caller_state;

int cancel_off(void)
{
	int was = caller_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &caller_state);
	return was;
}

void cancel_restore(int was)
{
	int mine = caller_state, ignored;

	caller_state = was;
	pthread_setcancelstate(mine, &ignored);
}

int cancel_allow(void)
{
	int was;

	pthread_setcancelstate(caller_state, &was);
	return was;
}

void cancel_forbid(int was)
{
	int ignored;

	pthread_setcancelstate(was, &ignored);
}
