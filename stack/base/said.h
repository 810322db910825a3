/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines on stderr that come as often as somebody tries something in vain: each is said once a
 * minute, and only so many different ones in a minute. Any thread; all zero: nothing was said.
 */
#ifndef UWARP_BASE_SAID_H
#define UWARP_BASE_SAID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spin.h"

#define SAID_LINES 32u
#define SAID_US	   60000000u

struct said_line {
	uint64_t who, what, until_us; /* until_us 0: the place is free */
};

struct said {
	struct spin lock;
	struct said_line line[SAID_LINES];
};

/* May `what` be said of `who` now (monotonic)? If so it counts as said. Both are numbers that the
 * caller makes of what the line is about. */
bool said_may(struct said *s, uint64_t who, uint64_t what, uint64_t now_us);
/* It went well with `who`: whatever is wrong next time is news. */
void said_forget(struct said *s, uint64_t who);

#endif
