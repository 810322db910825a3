/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/rx_window.h"

static void begin(struct rx_window *w, uint64_t now_us)
{
	w->taken = 0;
	w->look_at = w->size / 4; /* with less in a round trip it need not grow */
	w->since_us = now_us;
}

void rx_window_init(struct rx_window *w, uint32_t size)
{
	*w = (struct rx_window){ .size = size };
}

static uint64_t interval(uint64_t rtt_us)
{
	return rtt_us == UINT64_MAX || rtt_us < RX_WINDOW_RTT_US ? RX_WINDOW_RTT_US : rtt_us;
}

/* What the sender needs, by what the user takes in a round trip. */
static uint64_t need(struct rx_window *w, uint64_t rate)
{
	uint64_t last = w->rate ? w->rate : rate;

	w->rate = rate;
	return rate > last ? 2 * rate + 4 * (rate - last) : 2 * rate;
}

uint32_t rx_window_grow(struct rx_window *w, uint64_t rtt_us, uint32_t most, uint64_t now_us)
{
	uint64_t rtt = interval(rtt_us), elapsed = now_us - w->since_us, want;
	uint32_t before = w->size;

	if (!w->since_us) {
		begin(w, now_us);
		return 0;
	}
	if (elapsed < rtt) { /* in bursts more comes at once than in the long run */
		w->look_at += w->size / 8;
		return 0;
	}
	want = need(w, (uint64_t)w->taken * rtt / elapsed);
	if (want > most)
		want = most;
	if (want > w->size)
		w->size = (uint32_t)want;
	begin(w, now_us);
	return w->size - before;
}
