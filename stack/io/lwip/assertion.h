/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failed assertions of lwIP (doc/adr/0020). lwIP goes on after one, as in a build without
 * assertions. The first one of a process is written to stderr. The transport counts all of them and
 * ends the connection whose segment led to one. Compiled for each of the two lwIPs.
 */
#ifndef UWARP_LWIP_ASSERTION_H
#define UWARP_LWIP_ASSERTION_H

#include <stdatomic.h>

/* lwIP's own thread (io/seq) fails assertions beside the thread that counts them. The counter
 * orders nothing: relaxed. */
extern _Atomic unsigned lwip_assertions_failed;

/* How many failed since the last call. Any thread. */
static inline unsigned lwip_assertions_take(void)
{
	if (!atomic_load_explicit(&lwip_assertions_failed, memory_order_relaxed))
		return 0;
	return atomic_exchange_explicit(&lwip_assertions_failed, 0, memory_order_relaxed);
}

#endif
