/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

#include "uwtest.h"

/* A generator that counts: its octets are 0, 1, 2, ... over all batches. */
struct counter {
	unsigned fills;
	size_t asked;
	uint32_t next; /* the next number that it makes */
};

static void count(void *arg, void *p, size_t n)
{
	struct counter *c = arg;

	c->fills++;
	c->asked += n;
	for (size_t i = 0; i < n; i += sizeof(c->next), c->next++)
		memcpy((uint8_t *)p + i, &c->next, sizeof(c->next));
}

#define NUMBERS (UW_RANDOM_BATCH / sizeof(uint32_t))

/* RFC 5040 §8.1.1, RFC 6528, RFC 6056: every number is new octets of the generator; none comes
 * twice and none is left out. */
static void every_octet_is_given_out_once(void **state)
{
	struct counter c = { 0 };
	struct uw_random r;

	(void)state;
	uw_random_init(&r, count, &c);
	assert_int_equal(c.fills, 0);
	for (uint32_t i = 0; i < 5 * NUMBERS + 1; i++)
		assert_int_equal(uw_random_u32(&r), i);
}

static void octets_are_fetched_a_batch_at_a_time(void **state)
{
	struct counter c = { 0 };
	struct uw_random r;

	(void)state;
	uw_random_init(&r, count, &c);
	for (unsigned i = 0; i < NUMBERS; i++)
		uw_random_u32(&r);
	assert_int_equal(c.fills, 1);
	assert_int_equal(c.asked, UW_RANDOM_BATCH);
	uw_random_u32(&r);
	assert_int_equal(c.fills, 2);
}

/* What was given out is not in memory any more. */
static void what_was_given_out_is_erased(void **state)
{
	struct counter c = { .next = 1 };
	struct uw_random r;
	uint32_t x;

	(void)state;
	uw_random_init(&r, count, &c);
	for (unsigned i = 0; i < 10; i++)
		uw_random_u32(&r);
	for (unsigned i = 0; i < NUMBERS; i++) {
		memcpy(&x, r.batch + i * sizeof(x), sizeof(x));
		assert_int_equal(x, i < 10 ? 0 : i + 1);
	}
}

/* As after fork(): the child's numbers are not those that its parent gives out. */
static void a_forgotten_batch_is_not_given_out(void **state)
{
	static const uint8_t nothing[UW_RANDOM_BATCH];
	struct counter c = { 0 };
	struct uw_random r;

	(void)state;
	uw_random_init(&r, count, &c);
	assert_int_equal(uw_random_u32(&r), 0);
	uw_random_forget(&r);
	assert_memory_equal(r.batch, nothing, sizeof(nothing));
	assert_int_equal(uw_random_u32(&r), NUMBERS);
	assert_int_equal(c.fills, 2);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_octet_is_given_out_once),
	cmocka_unit_test(octets_are_fetched_a_batch_at_a_time),
	cmocka_unit_test(what_was_given_out_is_erased),
	cmocka_unit_test(a_forgotten_batch_is_not_given_out),
};

UWTEST_MAIN(tests)
