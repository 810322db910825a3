/* SPDX-License-Identifier: BSD-3-Clause */
/* The times, in microseconds, by which the RX thread and polling programs share the work. Private
 * to this room. */
#ifndef UWARP_SCHED_RUN_H
#define UWARP_SCHED_RUN_H

#include "sched/sched.h"

#define TIMER_US      10000u  /* timers run no more often than that */
#define MAX_SLEEP_US  250000u /* the longest that the RX thread sleeps */
#define LONG_YIELD_US 200u    /* a yield that took longer: another thread needs this core */
#define WATCH_US      1000u   /* while the program drives, the RX thread looks at this pace */
/* A sleep that ends before the scheduler's next tick (4 ms) makes the kernel set the core's timer,
 * and set it back on a wake-up: in a virtual machine 15 us each. */
#define LOOK_US 5000u

/* The program does not drive any more: the RX thread looks now. */
void sched_hand_over(struct sched *s);

#endif
