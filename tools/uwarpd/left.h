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

enum { LEFT_KEEP_S = 60, LEFT_SECOND_US = 1000000 };

/* Of a port, or a QP. */
struct left {
	uid_t uid;
	uint32_t until_s; /* 0: it was never left */
};

static inline void left_by(struct left *l, uid_t uid, uint64_t now_us)
{
	*l = (struct left){ uid, (uint32_t)(now_us / LEFT_SECOND_US) + LEFT_KEEP_S + 1 };
}

/* May a client of that user have it? */
static inline bool left_to(const struct left *l, uid_t uid, uint64_t now_us)
{
	return l->uid == uid || now_us / LEFT_SECOND_US >= l->until_s;
}

#endif
