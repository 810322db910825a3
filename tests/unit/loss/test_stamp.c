/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 7323 §3 to §5. */
#include "loss/stamp.h"

#include "uwtest.h"

#define MS  UINT64_C(1000)
#define DAY (UINT64_C(86400) * 1000 * MS)

static struct stamp s;
static bool answer;

static int up(void **state)
{
	(void)state;
	s = (struct stamp){ .offset = 7000, .last_ack = 100 };
	stamp_begin(&s, 500, 0);
	return 0;
}

static bool take(uint32_t value, uint32_t seq, uint32_t octets, uint32_t rcv_nxt, uint64_t now_us)
{
	const struct stamp_segment seg = { true, value, seq, octets, rcv_nxt };

	if (!stamp_accepts(&s, &seg, now_us, &answer))
		return false;
	stamp_take(&s, &seg, now_us);
	return true;
}

/* §3.2, appendix A: two NOPs, kind 8, length 10, TSval, TSecr. §5.4: a tick is 1 ms to 1 s. */
static void the_option_is_as_it_should_be(void **state)
{
	static const uint8_t want[] = { 1, 1, 8, 10, 0, 0, 0x1b, 0x5b, 0, 0, 1, 0xf4 };
	uint8_t got[STAMP_OCTETS];

	(void)state;
	stamp_put(&s, 3 * MS + 999, got);
	assert_memory_equal(got, want, sizeof(want));
	assert_int_equal(stamp_now(&s, 4 * MS), 7004);
}

/* §5.3 R1: less than TS.Recent: "send an acknowledgement in reply and drop it". */
static void an_older_value_is_refused(void **state)
{
	(void)state;
	assert_false(take(499, 100, 10, 100, MS));
	assert_true(answer);
	assert_int_equal(s.recent, 500);
	assert_true(take(500, 100, 10, 100, MS));
	assert_true(take(501, 100, 10, 100, MS));
}

/* §5.2: modulo 2^32. */
static void values_wrap(void **state)
{
	(void)state;
	stamp_begin(&s, UINT32_MAX - 1, 0);
	assert_true(take(3, 100, 10, 100, MS));
	assert_int_equal(s.recent, 3);
	assert_false(take(UINT32_MAX, 110, 10, 110, MS));
}

/* RFC 7323 §5.5: TS.Recent of more than 24 days ago refuses nothing. */
static void after_24_days_any_value_is_taken(void **state)
{
	(void)state;
	assert_false(take(1, 100, 10, 100, 23 * DAY));
	assert_true(take(1, 100, 10, 100, 24 * DAY));
	assert_int_equal(s.recent, 1);
}

/* RFC 7323 §4.3 step 2: SEG.SEQ <= Last.ACK.sent: of several that one ACK is for, the first is
 * echoed, and none that lies behind a hole. */
static void what_the_next_ack_is_for_is_echoed(void **state)
{
	(void)state;
	assert_true(take(510, 100, 10, 100, MS));
	assert_int_equal(s.recent, 510);
	assert_true(take(520, 110, 10, 110, MS)); /* no ACK in between */
	assert_true(take(530, 200, 10, 120, MS)); /* a hole */
	assert_int_equal(s.recent, 510);
	s.last_ack = 120;
	assert_true(take(540, 120, 80, 120, MS)); /* fills it */
	assert_int_equal(s.recent, 540);
}

/* §4.3: what was here before says nothing; an ACK without octets does. */
static void an_old_segment_is_not_echoed(void **state)
{
	(void)state;
	assert_true(take(600, 50, 10, 100, MS));
	assert_int_equal(s.recent, 500);
	assert_true(take(600, 100, 0, 100, MS));
	assert_int_equal(s.recent, 600);
}

/* §3.2: "If a non-RST segment is received without a TSopt, a TCP SHOULD silently drop". */
static void a_segment_without_is_dropped_in_silence(void **state)
{
	/* a value that would do, if there were one */
	const struct stamp_segment seg = { .value = 600, .seq = 100, .octets = 10, .rcv_nxt = 100 };

	(void)state;
	assert_false(stamp_accepts(&s, &seg, MS, &answer));
	assert_false(answer);
	stamp_take(&s, &seg, MS);
	assert_int_equal(s.recent, 500);
}

/* RFC 7323 §4.1; a round trip of few ticks is not to be told from the clock's error. */
static void an_echo_tells_the_round_trip(void **state)
{
	(void)state;
	assert_int_equal(stamp_rtt(&s, 7100, 150 * MS), 50 * MS);
	assert_int_equal(stamp_rtt(&s, 7100, 102 * MS), 0);
	assert_int_equal(stamp_rtt(&s, 7100, 50 * MS), 0); /* from the future */
}

#define TEST(fn) cmocka_unit_test_setup(fn, up)

static const struct CMUnitTest tests[] = {
	TEST(the_option_is_as_it_should_be),
	TEST(an_older_value_is_refused),
	TEST(values_wrap),
	TEST(after_24_days_any_value_is_taken),
	TEST(what_the_next_ack_is_for_is_echoed),
	TEST(an_old_segment_is_not_echoed),
	TEST(a_segment_without_is_dropped_in_silence),
	TEST(an_echo_tells_the_round_trip),
};

UWTEST_MAIN(tests)
