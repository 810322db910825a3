/* SPDX-License-Identifier: BSD-3-Clause */
/* What must be called after code of ISA-L that may use wide registers. */
#ifndef UWARP_BASE_WIDE_H
#define UWARP_BASE_WIDE_H

#ifdef __x86_64__
#include <immintrin.h>

/* Up to 2.30 ISA-L comes back from AVX-512 with the upper halves of the registers in use. All SSE
 * code behind it is slowed down then, which costs a 1 KB message as much as all the rest. */
__attribute__((target("avx"), noinline, unused)) static void uw_leave_avx(void)
{
	_mm256_zeroupper();
}

static inline void uw_leave_wide_registers(void)
{
	if (__builtin_cpu_supports("avx"))
		uw_leave_avx();
}
#else
static inline void uw_leave_wide_registers(void)
{
}
#endif

#endif
