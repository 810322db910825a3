/* SPDX-License-Identifier: BSD-3-Clause */
/* CM-less RC: who connects, what the Request says, what becomes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cm/rc.h"

static void a_hello_is_read_as_it_was_written(void **state)
{
	struct rc_hello h = {
		.from = 0x00abcdef, .to = 17, .refusal = RC_OTHER_PEER, .rnr_retry = 3
	};
	struct rc_hello got;
	uint8_t pd[sizeof(struct rc_wire) + 4] = { 0 };

	(void)state;
	rc_hello_encode(&h, pd);
	assert_memory_equal(pd, "uwRC\1\2\4\0\0\xab\xcd\xef\0\0\0\x11", sizeof(struct rc_wire));
	assert_true(rc_hello_decode((struct uw_span){ pd, sizeof(struct rc_wire) }, &got));
	assert_int_equal(got.from, h.from);
	assert_int_equal(got.to, h.to);
	assert_int_equal(got.refusal, h.refusal);
	assert_int_equal(got.rnr_retry, 3);
	assert_true(rc_hello_decode((struct uw_span){ pd, sizeof(pd) }, &got));
	for (unsigned n = 0; n <= RC_RNR_FOR_EVER; n++) {
		h.rnr_retry = (uint8_t)n;
		rc_hello_encode(&h, pd);
		assert_true(rc_hello_decode((struct uw_span){ pd, sizeof(pd) }, &got));
		assert_int_equal(got.rnr_retry, n);
	}
	pd[6] = 0; /* one that does not say */
	assert_true(rc_hello_decode((struct uw_span){ pd, sizeof(pd) }, &got));
	assert_int_equal(got.rnr_retry, RC_RNR_FOR_EVER);
}

/* InfiniBand specification, volume 1, §9.7.5.2.8, table 45: in milliseconds. */
static void a_wait_is_as_long_as_the_retries(void **state)
{
	const struct {
		uint8_t timer, retry;
		double ms;
	} rows[] = {
		{ 0, 5, 6 * 655.36 }, { 0, 6, 7 * 655.36 }, { 31, 6, 7 * 491.52 }, { 30, 6, 3000 },
		{ 12, 6, 3000 },      { 1, 0, 3000 },	    { 31, 0, 3000 },	   { 0, 0, 3000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(rc_rnr_wait_us(rows[i].timer, rows[i].retry),
				 (uint64_t)(rows[i].ms * 1000));
	for (unsigned timer = 0; timer < 32; timer++)
		assert_true(rc_rnr_wait_us((uint8_t)timer, RC_RNR_FOR_EVER) == UINT64_MAX);
}

static void what_is_not_ours_is_no_hello(void **state)
{
	struct rc_hello h = { .from = 1, .to = 2 }, got;
	uint8_t pd[sizeof(struct rc_wire)];

	(void)state;
	rc_hello_encode(&h, pd);
	assert_false(rc_hello_decode((struct uw_span){ pd, sizeof(pd) - 1 }, &got));
	assert_false(rc_hello_decode((struct uw_span){ NULL, 0 }, &got));
	pd[0] ^= 1;
	assert_false(rc_hello_decode((struct uw_span){ pd, sizeof(pd) }, &got));
	pd[0] ^= 1;
	pd[4] = 2; /* version */
	assert_false(rc_hello_decode((struct uw_span){ pd, sizeof(pd) }, &got));
	pd[4] = 1;
	pd[5] = 99; /* a refusal of a later day: worth another try */
	assert_true(rc_hello_decode((struct uw_span){ pd, sizeof(pd) }, &got));
	assert_int_equal(got.refusal, RC_NOT_READY);
}

static struct rc_end end(uint32_t addr_be, uint32_t qpn)
{
	return (struct rc_end){ uw_ip_v4(addr_be), qpn };
}

static void exactly_one_of_two_connects(void **state)
{
	const struct rc_end ends[] = {
		end(0x0100007f, 16),
		end(0x0100007f, 17),
		end(0x0200007f, 16),
		end(0x0100017f, 2),
		end(0x0a00000a, 1),
		end(0xff00000a, 0xffffff),
		{ { { 0xfd, [15] = 1 } }, 1 },
		{ { { 0xfd, [15] = 2 } }, 1 },
		{ { { 0xfe, 0x80, [15] = 1 } }, 1 },
	};
	const unsigned n = sizeof(ends) / sizeof(ends[0]);

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		assert_false(rc_connects(&ends[i], &ends[i]));
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(rc_connects(&ends[i], &ends[k]),
					     rc_connects(&ends[k], &ends[i]));
	}
}

static void a_request_is_judged_by_what_its_qp_is(void **state)
{
	const struct rc_end low = end(0x0100007f, 16), high = end(0x0200007f, 16),
			    other = end(0x0100007f, 99);
	static const struct {
		enum rc_phase phase;
		bool wanted;
		enum rc_verdict verdict;
		enum rc_refusal why;
	} rows[] = {
		{ RC_NO_QP, false, RC_REFUSE, RC_NO_SUCH_QP },
		{ RC_NAMES_NOBODY, false, RC_PARK, RC_NOT_READY },
		{ RC_AWAITS, true, RC_TAKE, RC_NOT_READY },
		{ RC_AWAITS, false, RC_PARK_BRIEFLY, RC_OTHER_PEER },
		{ RC_HAS_HAD_ONE, true, RC_PARK, RC_NOT_READY },
		{ RC_HAS_HAD_ONE, false, RC_PARK_BRIEFLY, RC_OTHER_PEER },
	};
	enum rc_refusal why;

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct rc_end *named = rows[i].phase < RC_AWAITS ? NULL
					     : rows[i].wanted	       ? &low
								       : &other;
		enum rc_verdict v = rc_judge(rows[i].phase, &high, named, &low, &why);

		assert_int_equal(v, rows[i].verdict);
		if (v != RC_TAKE)
			assert_int_equal(why, rows[i].why);
	}
	/* a caller that should have been called */
	assert_int_equal(rc_judge(RC_AWAITS, &low, &high, &high, &why), RC_REFUSE);
	assert_int_equal(why, RC_WRONG_SIDE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_is_read_as_it_was_written),
		cmocka_unit_test(a_wait_is_as_long_as_the_retries),
		cmocka_unit_test(what_is_not_ours_is_no_hello),
		cmocka_unit_test(exactly_one_of_two_connects),
		cmocka_unit_test(a_request_is_judged_by_what_its_qp_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
