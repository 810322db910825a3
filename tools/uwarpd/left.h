/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client had when it ended is its user's alone for a while: whoever had it at once would get
 * what peers still send to the dead client, and could go on in its place. A peer's connection is
 * reset by its next segment, and a uwarp peer asks after UWARP_KEEPALIVE_MS, 4 s, if it has none.
 */
#ifndef UWARPD_LEFT_H
#define UWARPD_LEFT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { LEFT_SECOND_US = 1000000, LEFT_KEEP_US = 60 * LEFT_SECOND_US };

/* Of a port, or a QP. */
struct left {
	uid_t uid;
	uint32_t until_s; /* 0: it was never left */
};

/* The second in which the time is over. */
static inline uint32_t left_until(uint64_t until_us)
{
	return (uint32_t)(until_us / LEFT_SECOND_US) + 1;
}

static inline bool left_is_over(uint32_t until_s, uint64_t now_us)
{
	return now_us / LEFT_SECOND_US >= until_s;
}

static inline void left_by(struct left *l, uid_t uid, uint64_t until_us)
{
	*l = (struct left){ uid, left_until(until_us) };
}

/* May a client of that user have it? */
static inline bool left_to(const struct left *l, uid_t uid, uint64_t now_us)
{
	return l->uid == uid || left_is_over(l->until_s, now_us);
}

#endif
