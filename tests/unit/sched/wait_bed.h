/* SPDX-License-Identifier: BSD-3-Clause */
/* A stack whose frames threads of the program wait for. The RX thread's file is part of this one,
 * since its decisions are its own. */
#ifndef UWARP_TESTS_SCHED_WAIT_BED_H
#define UWARP_TESTS_SCHED_WAIT_BED_H

#include "sched/rx_thread.c"

#include "fake.h"

struct bed {
	struct fakes w;
	struct sched *s;
	struct rx_thread t;
	_Atomic uint32_t events;
	struct uw_wait wait;
	int fd;
};

static inline void open_bed(struct bed *b, enum uw_threads model)
{
	memset(b, 0, sizeof(*b));
	fakes_open(&b->w, 1, model);
	b->s = &b->w.f[0].s;
	b->fd = doorbell_eventfd();
	assert_true(b->fd >= 0);
	b->s->wait = (struct sched_link){ .able = true,
					  .fd = { b->fd, -1, -1 },
					  .ring = doorbell_ring_of(&b->s->own_doorbell, b->fd) };
	atomic_store(&b->s->started, true);
	b->t = (struct rx_thread){ .s = b->s, .nap_us = NAP_MIN_US, .timers_us = UINT64_MAX };
	b->wait.events = &b->events;
}

static inline void close_bed(struct bed *b)
{
	close(b->fd);
}

static inline uint32_t word(const struct bed *b)
{
	return atomic_load(&b->s->own_doorbell);
}

static inline bool left(struct bed *b)
{
	return left_to_waiter(&b->t, atomic_load(&b->s->handover) - 1); /* no sleep */
}

static inline void pass(struct bed *b, uint64_t us)
{
	atomic_fetch_add(&b->w.now_us, us);
}

static inline void *begin_elsewhere(void *arg)
{
	struct bed *b = arg;

	return (void *)(uintptr_t)sched_app_wait_begin(b->s, &b->wait);
}

static inline enum uw_wait_how of_another_thread(struct bed *b)
{
	pthread_t other;
	void *how;

	assert_int_equal(pthread_create(&other, NULL, begin_elsewhere, b), 0);
	assert_int_equal(pthread_join(other, &how), 0);
	return (enum uw_wait_how)(uintptr_t)how;
}

#endif
