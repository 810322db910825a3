/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock for a few instructions, taken by program threads among themselves. */
#ifndef UWARP_ENGINE_LOCK_H
#define UWARP_ENGINE_LOCK_H

#include <sched.h>
#include <stdatomic.h>

struct spin {
	atomic_flag held;
};

static inline void spin_lock(struct spin *s)
{
	unsigned tries = 0;

	/* acquire: pairs with the release in spin_unlock */
	while (atomic_flag_test_and_set_explicit(&s->held, memory_order_acquire)) {
		if (++tries > 64) /* few cores: the holder may need this one */
			sched_yield();
	}
}

static inline void spin_unlock(struct spin *s)
{
	atomic_flag_clear_explicit(&s->held, memory_order_release);
}

#endif
