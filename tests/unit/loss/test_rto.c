/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/rto.h"
#include "uwtest.h"

static struct loss_config cfg;
static struct rto t;
static struct rtt r;

static int setup(void **state)
{
	(void)state;
	loss_config_default(&cfg);
	rto_init(&t, &cfg);
	r = (struct rtt){ 0 };
	return 0;
}

/* RFC 6298 §2.1 */
static void before_a_sample_it_is_the_first(void **state)
{
	(void)state;
	assert_int_equal(rto_us(&t, &cfg, &r), cfg.rto_first_us);
}

/* RFC 6298 §2.3 and §2.4: SRTT and four deviations, or what is least. */
static void it_is_srtt_and_more(void **state)
{
	(void)state;
	r = (struct rtt){ .any = true, .smoothed_us = 50000, .var_us = 20000 };
	assert_int_equal(rto_us(&t, &cfg, &r), 130000);
	r.var_us = 10;
	assert_int_equal(rto_us(&t, &cfg, &r), 50000 + cfg.rto_min_us);
}

/* RFC 6298 §5.5 and §2.5; §5.7: a sample ends it. */
static void it_backs_off_to_its_limit(void **state)
{
	(void)state;
	r = (struct rtt){ .any = true, .smoothed_us = 100, .var_us = 10 };
	rto_restart(&t, 1000);
	assert_int_equal(rto_at(&t, &cfg, &r), 1000 + 100 + cfg.rto_min_us);
	rto_fired(&t, 5000);
	assert_int_equal(rto_at(&t, &cfg, &r), 5000 + 2 * (100 + cfg.rto_min_us));
	for (unsigned i = 0; i < 100; i++)
		rto_fired(&t, 5000);
	assert_int_equal(rto_us(&t, &cfg, &r), cfg.rto_max_us);
	assert_int_equal(t.backoff, 101); /* io/lwip/loss_send.c counts on */
	assert_int_equal(t.unanswered, 101);
	rto_restart(&t, 6000);
	assert_int_equal(t.unanswered, 0);
	assert_int_equal(rto_us(&t, &cfg, &r), cfg.rto_max_us); /* until there is a sample */
	t.backoff = 0;
	assert_int_equal(rto_us(&t, &cfg, &r), 100 + cfg.rto_min_us);
}

static void one_that_was_spurious_raises_the_floor(void **state)
{
	(void)state;
	r = (struct rtt){ .any = true, .smoothed_us = 100 };
	rto_fired(&t, 0);
	rto_was_spurious(&t);
	assert_int_equal(rto_us(&t, &cfg, &r), 100 + 2 * cfg.rto_min_us);
	for (unsigned i = 0; i < 20; i++)
		rto_was_spurious(&t);
	assert_in_range(rto_us(&t, &cfg, &r), 200000, 400100);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(before_a_sample_it_is_the_first, setup),
	cmocka_unit_test_setup(it_is_srtt_and_more, setup),
	cmocka_unit_test_setup(it_backs_off_to_its_limit, setup),
	cmocka_unit_test_setup(one_that_was_spurious_raises_the_floor, setup),
};

UWTEST_MAIN(tests)
