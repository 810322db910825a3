/* SPDX-License-Identifier: BSD-3-Clause */
/* Helper threads, and thread cancellation (pthread_cancel) in the calls that this library answers.
 */
#ifndef UWARP_PRELOAD_THREADS_H
#define UWARP_PRELOAD_THREADS_H

/* Run fn(arg) in a detached thread with all signals blocked. 0 or a negative errno. */
int helper_start(void *(*fn)(void *), void *arg);

/*
 * Programs may cancel a thread in write(), ioctl() or close(). This library's versions of these
 * functions take locks and call the stack, and must not be cancelled there. So cancel_off()
 * disables cancellation, and cancel_restore() restores the state that cancel_off() returned. The
 * pairs nest. A wait in which the program may cancel the thread (GET_EVENT) is put between
 * cancel_allow() and cancel_forbid(), which restore the caller's own state for the time of the
 * wait.
 */
int cancel_off(void);
void cancel_restore(int was);
int cancel_allow(void);
void cancel_forbid(int was);

#endif
