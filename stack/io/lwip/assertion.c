/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/lwip/assertion.h"

#include "base/log.h"
#include "arch/cc.h"

_Atomic unsigned lwip_assertions_failed;

void uw_lwip_assertion_failed(const char *what, const char *file, int line)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	atomic_fetch_add_explicit(&lwip_assertions_failed, 1, memory_order_relaxed);
	if (!atomic_flag_test_and_set(&said))
		uw_log("lwip: assertion failed: %s (%s:%d); its connection ends; please "
		       "report "
		       "this",
		       what, file, line);
}
