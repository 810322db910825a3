/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * _exit() runs no destructor, and a signal handler may call it while the thread it interrupted
 * holds the stack's lock. So the caller does not close the engine itself: a thread that waits for
 * this from the start on does, and the caller waits for that thread for a limited time. The two
 * talk through one futex word; the caller's side uses atomics and system calls only.
 */
#include "exit.h"

#include <limits.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

#include <linux/futex.h>

#include "libc/raw.h"
#include "libc/threads.h"
#include "loader.h"
#include "sysfs/tree.h"

enum { NOBODY, WAITING, EXITING, ENDED };

static struct {
	atomic_int word;
	_Atomic pid_t pid; /* the process that has the thread; a forked child starts its own */
} last;

static void wait_while(int value, const struct timespec *limit)
{
	syscall(SYS_futex, &last.word, FUTEX_WAIT_PRIVATE, value, limit, NULL, 0);
}

static void set_word(int value)
{
	/* release: pairs with the acquires in await_exit() and loader_exiting() */
	atomic_store_explicit(&last.word, value, memory_order_release);
	syscall(SYS_futex, &last.word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *await_exit(void *arg)
{
	prctl(PR_SET_NAME, "uwarp-exit");
	while (atomic_load_explicit(&last.word, memory_order_acquire) == WAITING)
		wait_while(WAITING, NULL);
	loader_end();
	set_word(ENDED);
	return arg;
}

void loader_exiting(void)
{
	static const struct timespec limit = { .tv_sec = 3 }; /* the engine's own is 2 */
	int waiting = WAITING;

	tree_remove();
	if (atomic_load_explicit(&last.pid, memory_order_relaxed) != getpid() ||
	    !atomic_compare_exchange_strong(&last.word, &waiting, EXITING))
		return;
	set_word(EXITING);
	if (atomic_load_explicit(&last.word, memory_order_acquire) == EXITING)
		wait_while(EXITING, &limit);
}

void exit_watch(void)
{
	pid_t self = getpid();

	if (atomic_exchange_explicit(&last.pid, self, memory_order_relaxed) == self)
		return;
	atomic_store_explicit(&last.word, WAITING, memory_order_relaxed);
	if (helper_start(await_exit, NULL))
		atomic_store_explicit(&last.word, NOBODY, memory_order_relaxed);
}
