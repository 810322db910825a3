/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum (RFC 1071): by vectors where there are some, else in a form that compilers
 * vectorise (built at -O3). */
#include "arch/cc.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

/* Octets after which the lanes of 32 bits are emptied: each gains at most 2^16 for every 32. */
#define BLOCK 65536u

/*
 * The CPU multiplies and adds signed words only: each is taken 2^15 too low, which is made up for
 * at the end. n is a multiple of 32.
 */
static uint64_t sum_words(const uint8_t *p, size_t n)
{
	const __m128i bias = _mm_set1_epi16(INT16_MIN), one = _mm_set1_epi16(1);
	__m128i a = _mm_setzero_si128(), b = a;
	int32_t lane[4];
	int64_t sum = (int64_t)(n / 2) << 15;

	for (size_t i = 0; i < n; i += 32) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
		__m128i w = _mm_loadu_si128((const __m128i *)(const void *)(p + i + 16));

		a = _mm_add_epi32(a, _mm_madd_epi16(_mm_xor_si128(v, bias), one));
		b = _mm_add_epi32(b, _mm_madd_epi16(_mm_xor_si128(w, bias), one));
	}
	/* apart: together they might not fit */
	_mm_storeu_si128((__m128i *)(void *)lane, a);
	for (unsigned i = 0; i < 4; i++)
		sum += lane[i];
	_mm_storeu_si128((__m128i *)(void *)lane, b);
	for (unsigned i = 0; i < 4; i++)
		sum += lane[i];
	return (uint64_t)sum;
}
#else
#define BLOCK 64u

static uint64_t sum_words(const uint8_t *p, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i += 4) {
		uint32_t w;

		memcpy(&w, p + i, 4);
		sum += w;
	}
	return sum;
}
#endif

uint16_t uw_lwip_checksum(const void *data, int len)
{
	const uint8_t *p = data;
	uint64_t sum = 0;
	size_t n = (size_t)len;

	while (n >= 32) {
		size_t part = n < BLOCK ? n & ~(size_t)31 : BLOCK;

		sum += sum_words(p, part);
		p += part;
		n -= part;
	}
	for (; n >= 2; n -= 2, p += 2) {
		uint16_t w;

		memcpy(&w, p, 2);
		sum += w;
	}
	if (n) { /* the odd octet is the first of a word that ends with a zero */
		uint16_t w = 0;

		memcpy(&w, p, 1);
		sum += w;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}
