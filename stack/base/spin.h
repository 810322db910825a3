/* SPDX-License-Identifier: BSD-3-Clause */
/* A spin lock of one octet, for sections of a few instructions. All zero: not locked. */
#ifndef UWARP_BASE_SPIN_H
#define UWARP_BASE_SPIN_H

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct spin {
	atomic_flag held;
};

static inline void spin_lock(struct spin *s)
{
	unsigned tries = 0;

	/* acquire: pairs with the release in spin_unlock */
	while (atomic_flag_test_and_set_explicit(&s->held, memory_order_acquire)) {
		if (++tries <= 64)
			continue;
		/* the holder may need this core to go on; not libc's, which may run the stack */
		if (tries <= 256)
			syscall(SYS_sched_yield);
		else /* it has a lower real-time priority, and a yield does not let it run */
			syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
}

static inline void spin_unlock(struct spin *s)
{
	atomic_flag_clear_explicit(&s->held, memory_order_release);
}

/* After fork, in the child: free the lock, whose holder does not exist in the child. */
static inline void spin_reset(struct spin *s)
{
	spin_unlock(s);
}

#endif
