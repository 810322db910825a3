/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/impair/model.h"

#include <string.h>

#include "uwtest.h"

#define LEN	1014u /* with 24 octets of overhead 1038 */
#define FRAMES	100000u
#define PERCENT (IMPAIR_ONE / 100)
#define MS	1000000ull

static struct impair_verdict one(struct impair *m, uint64_t now)
{
	struct impair_verdict v;

	impair_decide(m, LEN, now, &v);
	return v;
}

static void run(struct impair *m, const struct impair_config *c, unsigned frames)
{
	impair_init(m, c);
	for (unsigned i = 0; i < frames; i++)
		one(m, i);
}

/* Of FRAMES with a chance of 1% at least 800 and at most 1200: more than six standard deviations.
 */
static void about_one_percent(uint64_t n)
{
	assert_in_range(n, FRAMES / 125, FRAMES * 12 / 1000);
}

static void without_impairment_frames_leave_at_once(void **state)
{
	const struct impair_config c = { .seed = 1 };
	struct impair m;

	(void)state;
	impair_init(&m, &c);
	for (unsigned i = 0; i < 1000; i++) {
		struct impair_verdict v = one(&m, 5 * i);

		assert_int_equal(v.copies, 1);
		assert_int_equal(v.copy[0].due_ns, 5 * i);
		assert_false(impair_changes(&v.copy[0], LEN));
	}
	assert_int_equal(m.count[IMPAIR_FRAMES], 1000);
	for (unsigned e = IMPAIR_FRAMES + 1; e < IMPAIR_EVENTS; e++)
		assert_int_equal(m.count[e], 0);
}

static void each_chance_is_met(void **state)
{
	const struct impair_config c = { .seed = 3,
					 .drop = PERCENT,
					 .reorder = PERCENT,
					 .duplicate = PERCENT,
					 .corrupt = PERCENT,
					 .truncate = PERCENT,
					 .reorder_ns = MS };
	struct impair m;

	(void)state;
	run(&m, &c, FRAMES);
	about_one_percent(m.count[IMPAIR_DROPPED]);
	about_one_percent(m.count[IMPAIR_REORDERED]);
	about_one_percent(m.count[IMPAIR_DUPLICATED]);
	about_one_percent(m.count[IMPAIR_CORRUPTED]);
	about_one_percent(m.count[IMPAIR_TRUNCATED]);
}

static void the_same_seed_decides_the_same_whenever_frames_come(void **state)
{
	struct impair_config c = {
		.seed = 3, .drop = PERCENT, .duplicate = PERCENT, .corrupt = PERCENT
	};
	struct impair a, b, other;
	unsigned differ = 0;

	(void)state;
	impair_init(&a, &c);
	impair_init(&b, &c);
	c.seed++;
	impair_init(&other, &c);
	for (unsigned i = 0; i < FRAMES; i++) {
		struct impair_verdict va = one(&a, i), vb = one(&b, 12345 + 77 * i),
				      vo = one(&other, i);

		assert_int_equal(va.copies, vb.copies);
		assert_int_equal(va.copy[0].corrupt_at, vb.copy[0].corrupt_at);
		assert_int_equal(va.copy[0].corrupt_with, vb.copy[0].corrupt_with);
		differ += va.copies != vo.copies;
	}
	assert_true(differ > FRAMES / 100);
}

/* One more impairment does not move the others' decisions. */
static void decisions_do_not_shift_each_other(void **state)
{
	struct impair_config c = { .seed = 9, .drop = PERCENT };
	struct impair a, b;

	(void)state;
	impair_init(&a, &c);
	c.corrupt = c.duplicate = c.truncate = 50 * PERCENT;
	c.jitter_ns = MS;
	impair_init(&b, &c);
	for (unsigned i = 0; i < FRAMES; i++)
		assert_int_equal(one(&a, i).copies == 0, one(&b, i).copies == 0);
	about_one_percent(a.count[IMPAIR_DROPPED]);
}

static void every_nth(void **state)
{
	const struct impair_config c = { .drop_nth = 7 };
	struct impair m;

	(void)state;
	impair_init(&m, &c);
	for (unsigned i = 1; i <= 700; i++)
		assert_int_equal(one(&m, i).copies, i % 7 != 0);
	assert_int_equal(m.count[IMPAIR_DROPPED_NTH], 100);
}

/* Gilbert-Elliott: a burst begins at 1% of the frames outside and lasts 10 on average. */
static void losses_come_in_bursts(void **state)
{
	const struct impair_config c = { .seed = 5,
					 .burst_begin = PERCENT,
					 .burst_end = 10 * PERCENT,
					 .burst_drop = IMPAIR_ONE };
	unsigned bursts = 0;
	bool was = false;
	struct impair m;

	(void)state;
	impair_init(&m, &c);
	for (unsigned i = 0; i < FRAMES; i++) {
		bool lost = !one(&m, i).copies;

		bursts += lost && !was;
		was = lost;
	}
	assert_in_range(bursts, FRAMES / 150, FRAMES / 75);
	assert_in_range(m.count[IMPAIR_DROPPED_BURST], 8 * bursts, 12 * bursts);
}

static void a_reordered_frame_is_passed_by_others(void **state)
{
	const struct impair_config c = { .seed = 2, .reorder = PERCENT, .reorder_ns = MS };
	struct impair m;

	(void)state;
	impair_init(&m, &c);
	for (unsigned i = 0; i < 10000; i++) {
		uint64_t before = m.count[IMPAIR_REORDERED];
		struct impair_verdict v = one(&m, i);

		assert_int_equal(v.copy[0].due_ns,
				 i + (m.count[IMPAIR_REORDERED] > before ? MS : 0));
	}
}

static void delay_and_jitter_keep_the_order(void **state)
{
	const struct impair_config c = { .seed = 2, .delay_ns = 5 * MS, .jitter_ns = MS };
	uint64_t last = 0, most = 0;
	struct impair m;

	(void)state;
	impair_init(&m, &c);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t now = i * MS / 2, due = one(&m, now).copy[0].due_ns;

		assert_in_range(due - now, 5 * MS, 6 * MS);
		assert_true(due >= last);
		last = due;
		most = due - now > most ? due - now : most;
	}
	assert_true(most > 5 * MS + MS / 2);
}

/* 1038 octets on the wire at 1 Gb/s: 8,304 ns each. */
static void a_rate_spaces_frames_and_its_queue_is_limited(void **state)
{
	const struct impair_config c = { .bps = 1000000000, .queue = 10 * LEN, .ecn = 5 * LEN };
	unsigned marked = 0, passed = 0;
	struct impair m;

	(void)state;
	impair_init(&m, &c);
	for (unsigned i = 0; i < 20; i++) {
		struct impair_verdict v = one(&m, 0);

		if (!v.copies)
			continue;
		assert_int_equal(v.copy[0].due_ns, 8304 * ++passed);
		marked += v.copy[0].mark;
	}
	assert_in_range(passed, 9, 11);
	assert_int_equal(marked, passed - 5);
	assert_int_equal(m.count[IMPAIR_DROPPED_QUEUE], 20 - passed);
	assert_int_equal(one(&m, 100 * MS).copy[0].due_ns,
			 100 * MS + 8304); /* nothing was saved up */
}

static void blackouts(void **state)
{
	const struct impair_config c = { .blackout_at_ns = 10 * MS,
					 .blackout_len_ns = 2 * MS,
					 .blackout_every_ns = 100 * MS };
	const uint64_t start = 77 * MS;
	struct impair m;

	(void)state;
	impair_init(&m, &c);
	for (uint64_t t = 0; t < 500; t++) {
		bool dark = t >= 10 && (t - 10) % 100 < 2;

		assert_int_equal(one(&m, start + t * MS).copies, !dark);
	}
	assert_int_equal(m.count[IMPAIR_DROPPED_BLACKOUT], 10);
}

static void larger_packets_are_lost_from_a_time_on(void **state)
{
	const struct impair_config c = { .mtu = LEN - 14 - 1, .mtu_at_ns = 5 * MS };
	struct impair_verdict v;
	struct impair m;

	(void)state;
	impair_init(&m, &c);
	assert_int_equal(one(&m, MS).copies, 1);
	assert_int_equal(one(&m, 6 * MS - 1).copies, 1);
	assert_int_equal(one(&m, 6 * MS).copies, 0);
	impair_decide(&m, LEN - 1, 6 * MS, &v);
	assert_int_equal(v.copies, 1);
	assert_int_equal(m.count[IMPAIR_DROPPED_MTU], 1);
}

/* Any octet, headers too, and never to what it was; no frame shorter than an Ethernet header. */
static void damage_is_anywhere(void **state)
{
	const struct impair_config c = { .seed = 1,
					 .corrupt = IMPAIR_ONE,
					 .truncate = IMPAIR_ONE / 2 };
	bool hit[64] = { false };
	struct impair m;

	(void)state;
	impair_init(&m, &c);
	for (unsigned i = 0; i < 10000; i++) {
		uint8_t frame[64] = { 0 };
		struct impair_verdict v;
		unsigned changed = 0;

		impair_decide(&m, sizeof(frame), i, &v);
		assert_in_range(v.copy[0].len, IMPAIR_LEN_MIN, sizeof(frame));
		assert_true(impair_changes(&v.copy[0], sizeof(frame)));
		impair_change(&m, &v.copy[0], frame);
		for (unsigned k = 0; k < sizeof(frame); k++) {
			changed += frame[k] != 0;
			hit[k] = hit[k] || frame[k];
			assert_true(!frame[k] || k < v.copy[0].len);
		}
		assert_int_equal(changed, 1);
	}
	for (unsigned k = 0; k < COUNT(hit); k++)
		assert_true(hit[k]);
}

static void a_repeated_frame_is_whole_the_second_time(void **state)
{
	const struct impair_config c = { .duplicate = IMPAIR_ONE, .corrupt = IMPAIR_ONE };
	struct impair m;
	struct impair_verdict v;

	(void)state;
	impair_init(&m, &c);
	v = one(&m, 5);
	assert_int_equal(v.copies, 2);
	assert_true(impair_changes(&v.copy[0], LEN));
	assert_false(impair_changes(&v.copy[1], LEN));
	assert_int_equal(v.copy[1].due_ns, 5);
}

static uint16_t sum(const uint8_t *p, unsigned n)
{
	uint32_t s = 0;

	for (unsigned i = 0; i < n; i += 2)
		s += (uint32_t)p[i] << 8 | p[i + 1];
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)s;
}

/* RFC 3168, 5: only ECT packets become CE; the IPv4 header checksum stays right. */
static void congestion_is_marked_where_it_may_be(void **state)
{
	const struct impair_copy c = { .len = 64, .mark = true };
	struct impair m;

	(void)state;
	memset(&m, 0, sizeof(m));
	for (unsigned tos = 0; tos < 256; tos++) {
		uint8_t f[64] = { [12] = 8,  [14] = 0x45, [15] = (uint8_t)tos,
				  [17] = 50, [22] = 64,	  [23] = 6,
				  [26] = 10, [30] = 10,	  [33] = (uint8_t)(tos * 7) };
		uint16_t check = (uint16_t)~sum(f + 14, 20);

		f[24] = (uint8_t)(check >> 8);
		f[25] = (uint8_t)check;
		impair_change(&m, &c, f);
		assert_int_equal(f[15], tos & 3 ? tos | 3 : tos);
		assert_int_equal(sum(f + 14, 20), 0xffff);
	}
	assert_int_equal(m.count[IMPAIR_MARKED], 128);
	for (unsigned ecn = 0; ecn < 4; ecn++) {
		uint8_t f[64] = {
			[12] = 0x86, [13] = 0xdd, [14] = 0x60, [15] = (uint8_t)(ecn << 4 | 0xc5)
		};

		impair_change(&m, &c, f);
		assert_int_equal(f[15], (ecn == 1 || ecn == 2 ? 3u << 4 : ecn << 4) | 0xc5);
	}
	assert_int_equal(m.count[IMPAIR_MARKED], 130);
}

static void counters_are_told_by_name(void **state)
{
	const struct impair_config c = { .drop_nth = 2 };
	char text[64], small[12];
	struct impair m;

	(void)state;
	run(&m, &c, 10);
	impair_describe(&m, text, sizeof(text));
	assert_string_equal(text, " frames 10 dropped_nth 5");
	impair_describe(&m, small, sizeof(small));
	assert_string_equal(small, " frames 10");
	for (unsigned e = 0; e < IMPAIR_EVENTS; e++)
		assert_non_null(impair_event_name((enum impair_event)e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_impairment_frames_leave_at_once),
		cmocka_unit_test(each_chance_is_met),
		cmocka_unit_test(the_same_seed_decides_the_same_whenever_frames_come),
		cmocka_unit_test(decisions_do_not_shift_each_other),
		cmocka_unit_test(every_nth),
		cmocka_unit_test(losses_come_in_bursts),
		cmocka_unit_test(a_reordered_frame_is_passed_by_others),
		cmocka_unit_test(delay_and_jitter_keep_the_order),
		cmocka_unit_test(a_rate_spaces_frames_and_its_queue_is_limited),
		cmocka_unit_test(blackouts),
		cmocka_unit_test(larger_packets_are_lost_from_a_time_on),
		cmocka_unit_test(damage_is_anywhere),
		cmocka_unit_test(a_repeated_frame_is_whole_the_second_time),
		cmocka_unit_test(congestion_is_marked_where_it_may_be),
		cmocka_unit_test(counters_are_told_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
