/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/impair/options.h"

#include <string.h>

#include "decimal_comma.h"
#include "uwtest.h"

static struct impair_options good(const char *text)
{
	struct impair_options o;
	char why[256] = "";

	assert_null(impair_parse(text, &o, why, sizeof(why)));
	return o;
}

static void bad(const char *text, const char *says)
{
	struct impair_options o;
	char why[256] = "";

	assert_ptr_equal(impair_parse(text, &o, why, sizeof(why)), why);
	if (!strstr(why, says))
		fail_msg("%s: '%s' does not say '%s'", text, why, says);
}

static void nothing_is_no_impairment(void **state)
{
	const struct impair_options none = { 0 };
	struct impair_options o = good("");

	(void)state;
	assert_memory_equal(&o, &none, sizeof(o));
}

static void chances(void **state)
{
	struct impair_config c =
		good("seed=7,drop=0.1%,duplicate=0.5,corrupt=100%,truncate=0.0001%").model;

	(void)state;
	assert_int_equal(c.seed, 7);
	assert_int_equal(c.drop, IMPAIR_ONE / 1000);
	assert_int_equal(c.duplicate, IMPAIR_ONE / 2);
	assert_int_equal(c.corrupt, IMPAIR_ONE);
	assert_int_equal(c.truncate, 1000);
}

static void times_rates_and_sizes(void **state)
{
	struct impair_config c =
		good("delay=2.5ms,jitter=100us,rate=2.5G,queue=64K,ecn=1000").model;

	(void)state;
	assert_int_equal(c.delay_ns, 2500000);
	assert_int_equal(c.jitter_ns, 100000);
	assert_int_equal(c.bps, 2500000000u);
	assert_int_equal(c.queue, 65536);
	assert_int_equal(c.ecn, 1000);
	assert_int_equal(good("rate=1G").model.queue, 1u << 20);
}

static void values_of_several_parts(void **state)
{
	struct impair_config c = good("burst=1%:8,reorder=2%,blackout=2s+500ms,mtu=1400").model;

	(void)state;
	assert_int_equal(c.burst_begin, IMPAIR_ONE / 100);
	assert_int_equal(c.burst_end, IMPAIR_ONE / 8);
	assert_int_equal(c.burst_drop, IMPAIR_ONE);
	assert_int_equal(c.reorder_ns, 1000000);
	assert_int_equal(c.blackout_at_ns, 2000000000u);
	assert_int_equal(c.blackout_len_ns, 500000000);
	assert_int_equal(c.blackout_every_ns, 0);
	assert_int_equal(c.mtu, 1400);
	c = good("burst=1%:8:25%,reorder=2%:50us,blackout=0s+1ms/1s,mtu=1400@3s,nth=100").model;
	assert_int_equal(c.burst_drop, IMPAIR_ONE / 4);
	assert_int_equal(c.reorder_ns, 50000);
	assert_int_equal(c.blackout_every_ns, 1000000000);
	assert_int_equal(c.mtu_at_ns, 3000000000u);
	assert_int_equal(c.drop_nth, 100);
}

static void directions(void **state)
{
	(void)state;
	assert_int_equal(good("dir=out").dir, IMPAIR_OUT);
	assert_int_equal(good("dir=in").dir, IMPAIR_IN);
	assert_int_equal(good("dir=both").dir, IMPAIR_OUT | IMPAIR_IN);
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	bad("loss=1%", "loss: no such impairment; known are seed drop");
	bad("drop", "drop=: must be a percentage");
	bad("drop=101%", "drop=101%: must be");
	bad("drop=-1%", "drop=-1%: must be");
	bad("drop=nan", "drop=nan: must be");
	bad("drop=1%%", "drop=1%%: must be");
	bad("drop=1%,delay=5", "delay=5: must be a time");
	bad("delay=1e99s", "must be a time");
	bad("seed=x", "seed=x: must be a number");
	bad("nth=0", "nth=0: must be");
	bad("burst=1%", "burst=1%: must be chance:frames");
	bad("burst=1%:0.5", "must be chance:frames");
	bad("blackout=1s", "must be time+time");
	bad("blackout=0s+2s/1s", "must be time+time");
	bad("mtu=x@1s", "must be octets");
	bad("rate=10", "must be bits per second");
	bad("queue=64K", "need a rate");
	bad("ecn=64K", "need a rate");
	bad("dir=up", "out, in or both");
	bad("drop=0000000000000000000000000000000000000000000000000000000000000000001", "too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_no_impairment),
		cmocka_unit_test(chances),
		cmocka_unit_test(times_rates_and_sizes),
		cmocka_unit_test(values_of_several_parts),
		cmocka_unit_test(directions),
		cmocka_unit_test(what_is_wrong_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
