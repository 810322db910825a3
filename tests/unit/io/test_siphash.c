/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/siphash.h"

#include "io/isn.h"
#include "uwtest.h"

/* The authors' test vectors: key 00 01 .. 0f, input 00 01 .. of 0, 8 and 16 octets. */
static void the_authors_vectors(void **state)
{
	const struct siphash_key key = { { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u } };
	const uint64_t words[] = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u };

	(void)state;
	assert_true(siphash(&key, words, 0) == 0x726fdb47dd0e0e31u);
	assert_true(siphash(&key, words, 1) == 0x93f5f5799a932462u);
	assert_true(siphash(&key, words, 2) == 0x3f2acc7f57c29bdbu);
}

/* RFC 6528 §3: a clock of 4 us, and a function of both ends and the key. */
static void sequence_numbers(void **state)
{
	const struct siphash_key key = { { 1, 2 } }, other = { { 1, 3 } };
	const struct uw_ip a = uw_ip_v4(1), b = uw_ip_v4(2);
	const uint16_t ports[] = { 3, 4 }, swapped[] = { 4, 3 };
	uint32_t at = tcp_isn(&key, &a, &b, ports, 1000);

	(void)state;
	assert_int_equal(tcp_isn(&key, &a, &b, ports, 1004), at + 1);
	assert_int_equal(tcp_isn(&key, &a, &b, ports, 1000 + 4000000), at + 1000000);
	assert_int_not_equal(tcp_isn(&other, &a, &b, ports, 1000), at);
	assert_int_not_equal(tcp_isn(&key, &b, &a, ports, 1000), at);
	assert_int_not_equal(tcp_isn(&key, &a, &b, swapped, 1000), at);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(the_authors_vectors),
	cmocka_unit_test(sequence_numbers),
};

UWTEST_MAIN(tests)
