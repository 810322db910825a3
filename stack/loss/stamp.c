/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/stamp.h"

#include "base/be.h"
#include "loss/seq.h"

#define VALID_US  (UINT64_C(24) * 86400 * 1000000) /* RFC 7323 §5.5 */
#define RTT_LEAST 4u				   /* ticks: the clock's error is a quarter then */
#define RTT_MOST  60000u

enum { NO_OPERATION = 1, TIMESTAMPS = 8, LENGTH = 10 };

uint32_t stamp_now(const struct stamp *s, uint64_t now_us)
{
	return s->offset + (uint32_t)(now_us / STAMP_TICK_US);
}

void stamp_begin(struct stamp *s, uint32_t value, uint64_t now_us)
{
	s->on = true;
	s->recent = value;
	s->recent_us = now_us;
}

void stamp_put(const struct stamp *s, uint64_t now_us, uint8_t *out)
{
	out[0] = out[1] = NO_OPERATION;
	out[2] = TIMESTAMPS;
	out[3] = LENGTH;
	uw_put32(out + 4, stamp_now(s, now_us));
	uw_put32(out + 8, s->recent);
}

/* RFC 7323 §5.3 step R1, §5.5: after 24 days TS.Recent tells nothing. */
static bool is_old(const struct stamp *s, uint32_t value, uint64_t now_us)
{
	return seq_lt(value, s->recent) && now_us - s->recent_us < VALID_US;
}

/* RFC 7323 §4.3 step 2, of a segment that is new or touches what is expected. */
static bool is_recent(const struct stamp *s, const struct stamp_segment *seg)
{
	return seq_leq(seg->seq, s->last_ack) && seq_leq(seg->rcv_nxt, seg->seq + seg->octets);
}

bool stamp_accepts(const struct stamp *s, const struct stamp_segment *seg, uint64_t now_us,
		   bool *answer)
{
	*answer = seg->stamped; /* §3.2: dropped in silence */
	return seg->stamped && !is_old(s, seg->value, now_us);
}

void stamp_take(struct stamp *s, const struct stamp_segment *seg, uint64_t now_us)
{
	if (!seg->stamped || !is_recent(s, seg))
		return;
	s->recent = seg->value;
	s->recent_us = now_us;
}

uint64_t stamp_rtt(const struct stamp *s, uint32_t echo, uint64_t now_us)
{
	uint32_t ticks = stamp_now(s, now_us) - echo;

	if (ticks < RTT_LEAST || ticks > RTT_MOST)
		return 0;
	return (uint64_t)ticks * STAMP_TICK_US;
}
