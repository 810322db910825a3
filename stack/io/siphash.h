/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of words to 64 bits. Without the key
 * nobody can predict a hash or find two inputs with the same hash. A word counts as the eight
 * octets that the word has in memory on a little-endian machine.
 */
#ifndef UWARP_IO_SIPHASH_H
#define UWARP_IO_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t k[2];
};

static inline uint64_t siphash_rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void siphash_rounds(uint64_t v[4], unsigned n)
{
	while (n--) {
		v[0] += v[1];
		v[1] = siphash_rotate(v[1], 13) ^ v[0];
		v[0] = siphash_rotate(v[0], 32);
		v[2] += v[3];
		v[3] = siphash_rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = siphash_rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = siphash_rotate(v[1], 17) ^ v[2];
		v[2] = siphash_rotate(v[2], 32);
	}
}

static inline uint64_t siphash(const struct siphash_key *key, const uint64_t *words, size_t n)
{
	uint64_t v[4] = { key->k[0] ^ 0x736f6d6570736575u, key->k[1] ^ 0x646f72616e646f6du,
			  key->k[0] ^ 0x6c7967656e657261u, key->k[1] ^ 0x7465646279746573u };
	uint64_t length = (uint64_t)n * 8 << 56;

	for (size_t i = 0; i <= n; i++) {
		uint64_t m = i < n ? words[i] : length;

		v[3] ^= m;
		siphash_rounds(v, 2);
		v[0] ^= m;
	}
	v[2] ^= 0xff;
	siphash_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
