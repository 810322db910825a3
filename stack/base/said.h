/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits the lines on stderr that say why something failed, since whoever fails may try again at
 * once: each line once a minute, and SAID_LINES different ones in a minute at most. Any thread may
 * call these functions. A struct that is all zero is ready: nothing was said.
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
/* It worked with `who`: the next failure is said at once. */
void said_forget(struct said *s, uint64_t who);

#endif
