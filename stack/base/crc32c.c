/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc32c.h"

#include <isa-l/crc.h>
#include <string.h>

#include "base/wide.h"

/*
 * ISA-L folds with (V)PCLMUL or PMULL and wins from a few hundred octets on; below that the one
 * instruction of the CPU wins because it needs no set-up (doc/adr/0001).
 */
#define UW_CRC_SHORT 256

#if defined(__SSE4_2__)
#include <immintrin.h>
#define CRC_HW 1
static inline uint32_t step8(uint32_t c, uint64_t v)
{
	return (uint32_t)_mm_crc32_u64(c, v);
}
static inline uint32_t step4(uint32_t c, uint32_t v)
{
	return _mm_crc32_u32(c, v);
}
static inline uint32_t step1(uint32_t c, uint8_t v)
{
	return _mm_crc32_u8(c, v);
}
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define CRC_HW 1
static inline uint32_t step8(uint32_t c, uint64_t v)
{
	return __crc32cd(c, v);
}
static inline uint32_t step4(uint32_t c, uint32_t v)
{
	return __crc32cw(c, v);
}
static inline uint32_t step1(uint32_t c, uint8_t v)
{
	return __crc32cb(c, v);
}
#endif

#ifdef CRC_HW
static inline uint32_t step_at(uint32_t c, const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return step8(c, v);
}

static uint32_t crc_short(uint32_t c, const uint8_t *p, size_t n)
{
	for (; n >= 32; n -= 32, p += 32) {
		c = step_at(c, p);
		c = step_at(c, p + 8);
		c = step_at(c, p + 16);
		c = step_at(c, p + 24);
	}
	for (; n >= 8; n -= 8, p += 8)
		c = step_at(c, p);
	if (n >= 4) { /* an FPDU without its CRC is a multiple of 4 */
		uint32_t v;

		memcpy(&v, p, 4);
		c = step4(c, v);
		n -= 4;
		p += 4;
	}
	while (n--)
		c = step1(c, *p++);
	return c;
}
#endif

uint32_t uw_crc32c_add(uint32_t state, const void *p, size_t n)
{
	/* ISA-L takes an int length and reads only. */
	const size_t chunk = 1u << 30;
	const uint8_t *b = p;

#ifdef CRC_HW
	if (n < UW_CRC_SHORT)
		return crc_short(state, b, n);
#endif
	while (n) {
		size_t k = n < chunk ? n : chunk;

		state = crc32_iscsi((unsigned char *)(uintptr_t)b, (int)k, state);
		b += k;
		n -= k;
	}
	uw_leave_wide_registers();
	return state;
}
