/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/hystart.h"

#include "loss/cc.h"
#include "loss/seq.h"

/* RFC 9406 §4.3 */
#define MIN_THRESH_US	   4000u
#define MAX_THRESH_US	   16000u
#define MIN_THRESH_DIVISOR 8u
#define SAMPLES		   8u
#define CSS_GROWTH_DIVISOR 4u
#define CSS_ROUNDS	   5u

void hystart_init(struct hystart *h)
{
	*h = (struct hystart){ .last_min_us = UINT64_MAX, .now_min_us = UINT64_MAX };
}

static void new_round(struct hystart *h, uint32_t nxt)
{
	h->last_min_us = h->now_min_us;
	h->now_min_us = UINT64_MAX;
	h->samples = 0;
	h->window_end = nxt;
	if (h->css)
		h->css_rounds++;
}

static uint64_t threshold(uint64_t last_us)
{
	uint64_t us = last_us / MIN_THRESH_DIVISOR;

	return us < MIN_THRESH_US ? MIN_THRESH_US : us > MAX_THRESH_US ? MAX_THRESH_US : us;
}

/* RFC 9406 §4.2 */
uint32_t hystart_acked(struct hystart *h, const struct cc_ack *a)
{
	if (!h->begun || seq_leq(h->window_end, a->una)) {
		new_round(h, a->nxt);
		h->begun = true;
	}
	if (a->rtt_us) {
		h->samples++;
		if (a->rtt_us < h->now_min_us)
			h->now_min_us = a->rtt_us;
	}
	h->done = h->css && h->css_rounds >= CSS_ROUNDS;
	if (h->done)
		return 0;
	if (h->samples < SAMPLES || h->last_min_us == UINT64_MAX)
		return h->css ? CSS_GROWTH_DIVISOR : 1;
	if (!h->css && h->now_min_us >= h->last_min_us + threshold(h->last_min_us)) {
		h->css = true;
		h->css_rounds = 0;
		h->css_baseline_us = h->now_min_us;
	} else if (h->css && h->now_min_us < h->css_baseline_us) {
		h->css = false; /* it was a passing delay */
	}
	return h->css ? CSS_GROWTH_DIVISOR : 1;
}
