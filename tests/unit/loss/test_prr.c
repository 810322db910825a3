/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/prr.h"
#include "uwtest.h"

#define MSS 1000u

/* RFC 6937 §3: half as much goes as is delivered, while there is more in flight than ssthresh. */
static void it_sends_in_proportion(void **state)
{
	struct prr p;
	uint32_t pipe = 19 * MSS, out = 0;

	(void)state;
	prr_begin(&p, 20 * MSS);
	for (unsigned i = 0; i < 8; i++) {
		struct prr_ack a = { MSS, pipe -= MSS, 10 * MSS, MSS, true };
		uint32_t n = prr_acked(&p, &a) / MSS * MSS;

		prr_sent(&p, n);
		pipe += n;
		out += n;
	}
	assert_in_range(out, 4 * MSS, 5 * MSS);
}

/* RFC 6937 §3: below ssthresh it grows back by a segment more than was delivered (SSRB), and with
 * further losses only by what was (CRB). */
static void it_catches_up_below_the_threshold(void **state)
{
	struct prr_ack a = { MSS, 2 * MSS, 10 * MSS, MSS, true };
	struct prr p;

	(void)state;
	prr_begin(&p, 20 * MSS);
	prr_sent(&p, MSS);
	assert_int_equal(prr_acked(&p, &a), 2 * MSS);
	a.progress = false;
	assert_int_equal(prr_acked(&p, &a), MSS);
	a.pipe = 10 * MSS - 200;
	assert_int_equal(prr_acked(&p, &a), 200);
}

static void the_first_goes_at_once(void **state)
{
	struct prr_ack a = { 0, 19 * MSS, 10 * MSS, MSS, false };
	struct prr p;

	(void)state;
	prr_begin(&p, 20 * MSS);
	assert_int_equal(prr_acked(&p, &a), MSS);
	prr_sent(&p, MSS);
	assert_int_equal(prr_acked(&p, &a), 0);
	prr_begin(&p, 0);
	prr_acked(&p, &a); /* nothing was outstanding: no division by it */
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(it_sends_in_proportion),
	cmocka_unit_test(it_catches_up_below_the_threshold),
	cmocka_unit_test(the_first_goes_at_once),
};

UWTEST_MAIN(tests)
