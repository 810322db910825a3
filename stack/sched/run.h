/* SPDX-License-Identifier: BSD-3-Clause */
/* Times, in microseconds, that the RX thread and polling programs share. Private to this room. */
#ifndef UWARP_SCHED_RUN_H
#define UWARP_SCHED_RUN_H

#include "sched/sched.h"

#define TIMER_US      10000u  /* timers run at most this often */
#define MAX_SLEEP_US  250000u /* the longest that the RX thread sleeps */
#define LONG_YIELD_US 200u    /* a yield this long: another thread needs this core */
#define WATCH_US      1000u   /* while the program drives, how often the RX thread checks that */
#define WAIT_DOUBT_US 100000u /* a program that went away: so long it does not wait by itself */
/* Sleeps on a doorbell that may not be rung last this long. A shorter sleep, which ends before the
 * scheduler's next tick (4 ms), makes the kernel set the timer of the core and reset the timer on a
 * wake-up; in a virtual machine each costs 15 us. */
#define LOOK_US 5000u

/* Does a thread that waits poll sockets of the link? Then frames may come without a ring on the
 * doorbell, and frames may be lost on the way, so that timers matter. */
static inline bool sched_has_sockets(const struct sched *s)
{
	return s->wait.able && s->wait.fd[1] >= 0;
}

/* Did sched.poller find its CQs empty again and again within WATCH_US? It may have noted that later
 * than `now` was read. */
static inline bool sched_has_polled(const struct sched *s, uint64_t now)
{
	uint64_t at = atomic_load_explicit(&s->polled_us, memory_order_relaxed);

	return (int64_t)(now - at) < (int64_t)WATCH_US;
}

/* May posts wait on the post ring for the program's next ones? If each frame costs a system call,
 * and the RX thread watches the program. */
bool sched_may_hold(const struct sched *s);

/* The program stops driving: wake the RX thread at once. */
void sched_hand_over(struct sched *s);

/* The doorbell says that somebody looks, and a thread that waits for its completions alone may rely
 * on the RX thread: it had better notice at once when that one stops. */
void sched_end_doze(struct sched *s);

/* Announce a sleep on the futex of the doorbell. False: a thread of the program sleeps on the
 * link's descriptors, and is rung instead. */
bool sched_say_asleep(struct sched *s);

/* A thread of the program runs the stack: does the RX thread watch it, and run the stack should it
 * not come back? */
bool sched_app_comes_back(const struct sched *s);

#endif
