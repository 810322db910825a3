/* SPDX-License-Identifier: BSD-3-Clause */
/* Helper threads, and thread cancellation (pthread_cancel) in the calls that this library answers.
 */
#ifndef UWARP_PRELOAD_THREADS_H
#define UWARP_PRELOAD_THREADS_H

/* Run fn(arg) in a detached thread with all signals blocked. 0 or a negative errno. */
int helper_start(void *(*fn)(void *), void *arg);

/*
 * Programs may cancel a thread in write(), ioctl() or close(). Our version of these takes locks and
 * calls the stack, and must not be cut short there. So cancel_off() disables cancellation and
 * cancel_restore(), with what cancel_off() returned, gives back the state that the caller had. They
 * nest. A wait that the program may cancel (GET_EVENT) stands between cancel_allow() and
 * cancel_forbid(), which set the caller's own state for that long.
 */
int cancel_off(void);
void cancel_restore(int was);
int cancel_allow(void);
void cancel_forbid(int was);

#endif
