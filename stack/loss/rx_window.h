/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How large a receive window is to be: dynamic right-sizing (Fisk and Feng). A sender that the
 * window limits gets one window of octets in a round trip, so the window becomes twice what the
 * user took in one, and more while that grows: a sender in slow start sends twice as much in the
 * next round trip, and while it repeats a lost segment it needs room behind the hole for about as
 * much again. It never shrinks (RFC 9293 §3.8.6: SHOULD-14).
 */
#ifndef UWARP_LOSS_RX_WINDOW_H
#define UWARP_LOSS_RX_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* What a connection begins with. */
#define RX_WINDOW_FIRST (512u << 10)
/* A host may not run the program for so long: a shorter round trip counts as this. */
#define RX_WINDOW_RTT_US 10000u

struct rx_window {
	uint32_t size;	   /* octets, when the user has taken all that came; 0: not in use */
	uint32_t taken;	   /* octets since since_us */
	uint32_t look_at;  /* value of `taken` at which to look at the clock next */
	uint64_t since_us; /* 0: no interval has begun */
	uint64_t rate;	   /* octets taken in a round trip when last looked at; 0: unknown */
};

void rx_window_init(struct rx_window *w, uint32_t size);
/* The user took n octets. True: call rx_window_grow. */
static inline bool rx_window_taken(struct rx_window *w, uint32_t n)
{
	w->taken += n;
	return w->size && w->taken >= w->look_at;
}
/* rtt_us: the least round trip, UINT64_MAX if none is known. most: no larger than that. Returns by
 * how many octets the window grows. */
uint32_t rx_window_grow(struct rx_window *w, uint64_t rtt_us, uint32_t most, uint64_t now_us);

#endif
