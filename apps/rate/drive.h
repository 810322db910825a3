/* SPDX-License-Identifier: BSD-3-Clause */
/* The client: senders, each a QP with its window of slots, and what is looked at afterwards. */
#ifndef RATE_DRIVE_H
#define RATE_DRIVE_H

#include "rate.h"
#include "team.h"

struct sender {
	struct conn conn;
	struct region local; /* a slot for each operation under way */
	struct rate_wish wish;
	struct rate_offer offer;
	uint64_t posted, done; /* operations */
	uint64_t *posted_at;   /* clock_ns() of the signalled ones, by slot */
};

struct driver {
	struct member *member;
	const struct rate_options *options;
	struct rate_point point;
	struct device device;
	struct comp comp;
	struct sender *sender;
	uint64_t begun;
};

struct rate_job {
	const struct rate_options *options;
	struct rate_point point;
};

static inline uint32_t drive_slots(const struct driver *d)
{
	return d->options->common.window;
}

int drive_open(struct member *m);
void drive_close(struct member *m);
/* Is everything where it belongs? 0, -EBADMSG after a line that says what is not, or another error.
 */
int drive_check(struct driver *d);

#endif
