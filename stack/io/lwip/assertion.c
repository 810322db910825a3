/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/lwip/assertion.h"

#include <stdatomic.h>
#include <stdio.h>

#include "arch/cc.h"

/* lwIP's own thread (io/seq) fails assertions beside the thread that counts them. The counter
 * orders nothing: relaxed. */
static _Atomic unsigned failed;

void uw_lwip_assertion_failed(const char *what, const char *file, int line)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	atomic_fetch_add_explicit(&failed, 1, memory_order_relaxed);
	if (!atomic_flag_test_and_set(&said))
		fprintf(stderr,
			"uwarp: lwip: assertion failed: %s (%s:%d); the connection ends; please "
			"report "
			"this\n",
			what, file, line);
}

unsigned lwip_assertions_take(void)
{
	if (!atomic_load_explicit(&failed, memory_order_relaxed))
		return 0;
	return atomic_exchange_explicit(&failed, 0, memory_order_relaxed);
}
