/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/record.h"
#include "record_sound.h"
#include "uwtest.h"

static struct sent slot[64];

static void entries_keep_their_order(void **state)
{
	struct record r;

	(void)state;
	record_init(&r, slot, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_non_null(record_append(&r, 100 * i, 100, i));
	assert_true(record_full(&r));
	assert_null(record_append(&r, 400, 100, 4));
	assert_int_equal(r.octets[SENT_FLYING], 400);
	record_pop(&r);
	assert_non_null(record_append(&r, 400, 100, 4));
	assert_int_equal(record_at(&r, r.first)->seq, 100);
	assert_true(record_sound(&r));
}

static void a_segment_is_found_by_its_number(void **state)
{
	struct record r;

	(void)state;
	record_init(&r, slot, 16);
	for (uint32_t i = 0; i < 10; i++)
		record_append(&r, 0xffffff00u + 100 * i, 100, i); /* wraps */
	assert_int_equal(record_find(&r, 0xffffff00u), r.first);
	assert_int_equal(record_at(&r, record_find(&r, 0xffffff01u))->seq, 0xffffff64u);
	assert_int_equal(record_at(&r, record_find(&r, 0xffffff00u + 500))->seq, 244);
	assert_int_equal(record_find(&r, 1000), r.end);
}

static void states_have_their_sums_and_lists(void **state)
{
	struct record r;

	(void)state;
	record_init(&r, slot, 8);
	for (uint32_t i = 0; i < 5; i++)
		record_append(&r, 10 * i, 10, i);
	record_set(&r, 1, SENT_SACKED);
	record_set(&r, 3, SENT_LOST);
	record_set(&r, 0, SENT_LOST);
	assert_int_equal(r.octets[SENT_FLYING], 20);
	assert_int_equal(r.octets[SENT_SACKED], 10);
	assert_int_equal(r.octets[SENT_LOST], 20);
	assert_int_equal(r.lost.first, 3);
	record_sort_lost(&r);
	assert_int_equal(r.lost.first, 0);
	assert_true(record_sound(&r));
}

/* Sent again: behind all others; marked lost by mistake: back to where it was. */
static void the_flying_are_in_the_order_of_sending(void **state)
{
	struct record r;

	(void)state;
	record_init(&r, slot, 8);
	for (uint32_t i = 0; i < 4; i++)
		record_append(&r, 10 * i, 10, i);
	record_set(&r, 0, SENT_LOST);
	record_set(&r, 1, SENT_LOST);
	record_at(&r, 0)->sent_us = 9;
	record_set(&r, 0, SENT_FLYING);
	assert_int_equal(r.flying.last, 0);
	record_set(&r, 1, SENT_FLYING);
	assert_int_equal(r.flying.first, 1);
	assert_true(record_sound(&r));
}

/* The same of all of them, in whatever order they were sent and marked. */
static void all_that_are_lost_fly_again(void **state)
{
	struct prng rng = { 3 };
	struct record r;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		uint64_t before = 0;

		record_init(&r, slot, 32);
		for (uint32_t i = 0; i < 32; i++)
			record_append(&r, 10 * i, 10, i / 2);
		for (uint32_t i = 0; i < 32; i++)
			record_set(&r, prng_below(&rng, 32), prng_below(&rng, 3));
		for (uint32_t id = r.lost.first; id != RECORD_NONE; id = record_at(&r, id)->after)
			record_at(&r, id)->sent_us = prng_below(&rng, 40);
		record_unmark(&r);
		assert_true(record_sound(&r));
		assert_int_equal(r.lost.first, RECORD_NONE);
		assert_int_equal(r.octets[SENT_LOST], 0);
		for (uint32_t id = r.flying.first; id != RECORD_NONE;
		     id = record_at(&r, id)->after) {
			assert_true(before <= record_at(&r, id)->sent_us);
			before = record_at(&r, id)->sent_us;
		}
	}
}

/* Half of what is in flight, as after a burst of losses that were none: each finds its place in a
 * step. A walk for each would be 2^36 steps, some minutes. */
static void many_fly_again_at_once(void **state)
{
	enum { N = 1 << 19 };
	struct sent *many = calloc(N, sizeof(*many));
	struct record r;

	(void)state;
	assert_non_null(many);
	record_init(&r, many, N);
	for (uint32_t i = 0; i < N; i++)
		record_append(&r, 10 * i, 10, i);
	for (uint32_t i = 0; i < N / 2; i++)
		record_set(&r, i, SENT_LOST);
	record_unmark(&r);
	assert_int_equal(r.flying.first, 0);
	assert_int_equal(r.flying.last, N - 1);
	free(many);
}

static void it_grows_with_what_it_has(void **state)
{
	static struct sent more[16];
	struct record r;

	(void)state;
	record_init(&r, slot, 4);
	r.first = r.end = RECORD_IDS - 1; /* its numbers wrap, too */
	for (uint32_t i = 0; i < 4; i++)
		record_append(&r, 10 * i, 10, i);
	record_set(&r, RECORD_IDS, SENT_SACKED);
	record_set(&r, 0, SENT_LOST);
	record_grow(&r, more, 16);
	assert_int_equal(record_count(&r), 4);
	assert_true(record_sound(&r));
	assert_non_null(record_append(&r, 40, 10, 5));
	assert_true(record_sound(&r));
}

/* Long segments become those of the wire: each has the times, the state and the tag of the long
 * one.
 */
static void long_ones_are_cut(void **state)
{
	struct record r;
	int tag;

	(void)state;
	record_init(&r, slot, 4);
	record_append(&r, 0xfffffff0u, 100, 1);
	record_append(&r, 84, 1050, 2)->tag = &tag;
	record_append(&r, 1134, 300, 3);
	record_pop(&r);
	record_set(&r, 2, SENT_SACKED);
	assert_int_equal(record_pieces(&r, 100), 11 + 3);
	record_cut(&r, slot + 16, 16, 100);
	assert_true(record_sound(&r));
	assert_int_equal(record_count(&r), 14);
	assert_int_equal(r.octets[SENT_FLYING], 1050);
	assert_int_equal(r.sacked, 3);
	for (uint32_t i = 0; i < 11; i++) {
		const struct sent *s = record_at(&r, (r.first + i) & RECORD_IDS);

		assert_int_equal(s->seq, 84 + 100 * i);
		assert_int_equal(s->len, i < 10 ? 100 : 50);
		assert_int_equal(s->sent_us, 2);
		assert_ptr_equal(s->tag, &tag);
	}
}

static void the_front_of_the_first_goes(void **state)
{
	struct record r;

	(void)state;
	record_init(&r, slot, 4);
	record_append(&r, 0xfffffff0u, 1000, 1);
	record_append(&r, 984, 10, 1);
	record_trim(&r, 300);
	assert_int_equal(record_at(&r, 0)->seq, 284);
	assert_int_equal(record_at(&r, 0)->len, 700);
	assert_int_equal(r.octets[SENT_FLYING], 710);
	assert_true(record_sound(&r));
}

/* Whatever happens in whatever order, lists and sums say what the entries say. */
static void it_stays_sound(void **state)
{
	struct prng rng = { 7 };
	struct record r;
	uint32_t seq = 0xfffff000u;

	(void)state;
	record_init(&r, slot, 64);
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t n = record_count(&r);

		if (!n || (prng_below(&rng, 3) == 0 && !record_full(&r))) {
			uint32_t len = prng_below(&rng, 1460) + 1;

			record_append(&r, seq, len, i);
			seq += len;
		} else if (prng_below(&rng, 4) == 0) {
			record_pop(&r);
		} else {
			record_set(&r, (r.first + prng_below(&rng, n)) & RECORD_IDS,
				   prng_below(&rng, 3));
		}
		assert_true(record_sound(&r));
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(entries_keep_their_order),
	cmocka_unit_test(a_segment_is_found_by_its_number),
	cmocka_unit_test(states_have_their_sums_and_lists),
	cmocka_unit_test(the_flying_are_in_the_order_of_sending),
	cmocka_unit_test(all_that_are_lost_fly_again),
	cmocka_unit_test(many_fly_again_at_once),
	cmocka_unit_test(it_grows_with_what_it_has),
	cmocka_unit_test(long_ones_are_cut),
	cmocka_unit_test(the_front_of_the_first_goes),
	cmocka_unit_test(it_stays_sound),
};

UWTEST_MAIN(tests)
