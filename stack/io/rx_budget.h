/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A limit, for the whole process, of received octets that no user of TCP has used up yet
 * (doc/adr/0025; RFC 5042 §6.4.1, §6.4.4). Three quantities are counted:
 *
 * - Receive buffers of links ("pinned"). A link whose buffers are all pinned receives nothing more
 * for any connection. Above the limit, octets are copied out of the buffers into allocated memory,
 * those held longest first.
 * - Octets of such copies. A connection may hold an eighth of what is still free, so that later
 *   connections find room too, and RX_COPIED_FLOOR in any case.
 * - Octets by which receive windows were enlarged ("promised", io/lwip/pcb/rx_window.c).
 *
 * Any thread. The counters order no other memory access: relaxed.
 */
#ifndef UWARP_IO_RX_BUDGET_H
#define UWARP_IO_RX_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Most pinned buffers: a quarter of the smallest receive pool (io/memif/fabric.c). */
#define RX_PINNED_MAX 256
/* Most copied octets of the process; octets that one connection may always hold. */
#define RX_COPIED_MAX	((ptrdiff_t)64 << 20)
#define RX_COPIED_FLOOR ((ptrdiff_t)16 << 10)

struct rx_budget {
	_Atomic int pinned;
	_Atomic ptrdiff_t copied;
	_Atomic ptrdiff_t promised;
};
extern struct rx_budget rx_budget;

/* Add n, which may be negative, to the count. */
static inline void rx_budget_pin(int n)
{
	atomic_fetch_add_explicit(&rx_budget.pinned, n, memory_order_relaxed);
}
static inline void rx_budget_copy(ptrdiff_t octets)
{
	atomic_fetch_add_explicit(&rx_budget.copied, octets, memory_order_relaxed);
}

/* Add octets, which may be negative, to what windows promise. */
static inline void rx_budget_promise(ptrdiff_t octets)
{
	atomic_fetch_add_explicit(&rx_budget.promised, octets, memory_order_relaxed);
}
/* What windows may still promise: the same sum as of the copies, since it may come to that. */
static inline size_t rx_budget_unpromised(void)
{
	ptrdiff_t free =
		RX_COPIED_MAX - atomic_load_explicit(&rx_budget.promised, memory_order_relaxed);

	return free > 0 ? (size_t)free : 0;
}

static inline bool rx_budget_pinned_too_many(void)
{
	return atomic_load_explicit(&rx_budget.pinned, memory_order_relaxed) > RX_PINNED_MAX;
}
/* May a connection that holds `held` copied octets take more? */
static inline bool rx_budget_has_room(size_t held)
{
	ptrdiff_t free =
		RX_COPIED_MAX - atomic_load_explicit(&rx_budget.copied, memory_order_relaxed);

	return (ptrdiff_t)held < RX_COPIED_FLOOR || (ptrdiff_t)held <= free / 8;
}

#endif
