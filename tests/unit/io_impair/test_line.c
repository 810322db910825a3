/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/impair/line.h"

#include <string.h>

#include "uwtest.h"

static struct impair_line *open_line(unsigned frames)
{
	struct impair_line *q;

	assert_status(impair_line_open(frames, 16, &q), UW_OK);
	return q;
}

static void add(struct impair_line *q, uint64_t due, uint8_t mark)
{
	uint8_t *p = impair_line_add(q, due, 1);

	assert_non_null(p);
	*p = mark;
}

static void the_first_due_is_first_and_equals_keep_their_order(void **state)
{
	static const uint64_t due[] = { 30, 10, 20, 10, 30, 0, 20, 10 };
	static const uint8_t want[] = { 5, 1, 3, 7, 2, 6, 0, 4 };
	struct impair_line *q = open_line(COUNT(due));

	(void)state;
	for (unsigned i = 0; i < COUNT(due); i++)
		add(q, due[i], (uint8_t)i);
	for (unsigned i = 0; i < COUNT(want); i++) {
		const struct impair_held *h = impair_line_first(q);

		assert_non_null(h);
		assert_int_equal(h->octets[0], want[i]);
		assert_int_equal(h->due_ns, due[want[i]]);
		impair_line_remove_first(q);
	}
	assert_null(impair_line_first(q));
	impair_line_close(q);
}

static void room_is_limited_and_comes_back(void **state)
{
	struct impair_line *q = open_line(3);

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		while (impair_line_count(q) < 3)
			add(q, 100 - i, (uint8_t)i);
		assert_null(impair_line_add(q, 0, 1));
		impair_line_remove_first(q);
	}
	impair_line_remove_first(q);
	assert_null(impair_line_add(q, 0, 17)); /* longer than the room */
	assert_non_null(impair_line_add(q, 0, 16));
	impair_line_close(q);
}

/* Thousands in any order: what comes out is sorted, and each frame's octets are its own. */
static void many(void **state)
{
	struct impair_line *q = open_line(1000);
	uint64_t last = 0, x = 1;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t due = (x = x * 6364136223846793005u + 1442695040888963407u) >> 40;

		memcpy(impair_line_add(q, due, sizeof(due)), &due, sizeof(due));
	}
	for (unsigned i = 0; i < 1000; i++) {
		const struct impair_held *h = impair_line_first(q);

		assert_true(h->due_ns >= last);
		assert_memory_equal(h->octets, &h->due_ns, sizeof(h->due_ns));
		last = h->due_ns;
		impair_line_remove_first(q);
	}
	impair_line_close(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_due_is_first_and_equals_keep_their_order),
		cmocka_unit_test(room_is_limited_and_comes_back),
		cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
