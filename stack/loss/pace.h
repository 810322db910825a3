/* SPDX-License-Identifier: BSD-3-Clause */
/* Pacing spreads segments over time with a token bucket: octets are earned at a rate and spent by
 * sending. */
#ifndef UWARP_LOSS_PACE_H
#define UWARP_LOSS_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
	uint64_t rate;	   /* octets per second; 0: not paced */
	int64_t earned;	   /* octets times 10^6; below 0: more was sent than was earned */
	uint64_t until_us; /* time up to which `earned` is computed */
};

/* Change the rate. The first call also earns a full burst. */
void pace_set(struct pace *p, uint64_t rate, uint64_t now_us);
void pace_sent(struct pace *p, uint32_t octets, uint64_t now_us);
/* May a segment be sent now? */
bool pace_open(struct pace *p, uint64_t now_us);
/* When pace_open will be true; 0: now. */
uint64_t pace_at(const struct pace *p);

#endif
