/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for objects: unpredictable, unique, never 0 or 1. */
#include <errno.h>

#include "uwtest.h"
#include "verbs/idmap.h"

#define MANY 5000u

static int what[MANY];

static uint32_t add(struct idmap *m, void *p, uint32_t random)
{
	uint32_t id;

	assert_int_equal(idmap_add(m, p, random, &id), 0);
	assert_ptr_equal(idmap_get(m, id), p);
	assert_true(id < 1u << IDMAP_BITS);
	return id;
}

static void a_number_is_as_random_as_it_can_be(void **state)
{
	struct idmap m = { 0 };

	(void)state;
	assert_null(idmap_get(&m, 5));
	assert_int_equal(add(&m, &what[0], 0x123456), 0x123456);
	assert_int_equal(add(&m, &what[1], 0xff654321), 0x654321); /* 24 bits */
	/* the place is taken: the next one, and the upper bits stay */
	assert_int_equal(add(&m, &what[2], 0xabcd56), 0xabcd57);
	assert_null(idmap_get(&m, 0x123457));
	assert_null(idmap_get(&m, 0xabcd56));
	idmap_free(&m);
	assert_int_equal(m.n, 0);
}

static void none_is_0_or_1(void **state)
{
	struct idmap m = { 0 };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		uint32_t id = add(&m, &what[i], i % 2);

		assert_true(id > 1);
	}
	assert_null(idmap_get(&m, 0));
	assert_null(idmap_get(&m, 1));
	idmap_free(&m);
}

static void it_grows_and_keeps_all(void **state)
{
	struct prng r = { 11 };
	struct idmap m = { 0 };
	uint32_t id[MANY];

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		id[i] = add(&m, &what[i], (uint32_t)prng_next(&r));
	assert_true(m.n > MANY && !(m.n & (m.n - 1)));
	assert_int_equal(m.used, MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_ptr_equal(idmap_get(&m, id[i]), &what[i]);
	idmap_free(&m);
}

/* All that begin at one place: each finds another one, and all are found again. */
static void the_same_random_number_again_and_again(void **state)
{
	struct idmap m = { 0 };
	uint32_t id[600];

	(void)state;
	for (unsigned i = 0; i < COUNT(id); i++)
		id[i] = add(&m, &what[i], 0);
	for (unsigned i = 0; i < COUNT(id); i++)
		assert_ptr_equal(idmap_get(&m, id[i]), &what[i]);
	idmap_free(&m);
}

static void what_is_removed_is_not_found_and_its_place_is_free(void **state)
{
	struct idmap m = { 0 };
	uint32_t a = add(&m, &what[0], 0x11aa07), b = add(&m, &what[1], 0x22bb07);

	(void)state;
	idmap_remove(&m, a);
	assert_int_equal(m.used, 1);
	assert_null(idmap_get(&m, a));
	assert_ptr_equal(idmap_get(&m, b), &what[1]);
	assert_int_equal(add(&m, &what[2], 0x33cc07), 0x33cc07);
	assert_null(idmap_get(&m, a)); /* the old number is not the new object's */
	idmap_free(&m);
}

static void as_things_come_and_go_it_does_not_grow(void **state)
{
	struct prng r = { 3 };
	struct idmap m = { 0 };
	uint32_t id[100];

	(void)state;
	for (unsigned i = 0; i < COUNT(id); i++)
		id[i] = add(&m, &what[i], (uint32_t)prng_next(&r));
	for (unsigned k = 0; k < 20000; k++) {
		unsigned i = prng_below(&r, COUNT(id));

		idmap_remove(&m, id[i]);
		id[i] = add(&m, &what[i], (uint32_t)prng_next(&r));
	}
	assert_int_equal(m.used, COUNT(id));
	assert_int_equal(m.n, 256);
	idmap_free(&m);
}

static void at_last_it_is_full(void **state)
{
	struct prng r = { 5 };
	struct idmap m = { 0 };
	uint32_t id;

	(void)state;
	for (unsigned i = 0; i < IDMAP_MAX; i++)
		assert_int_equal(idmap_add(&m, &what[i % MANY], (uint32_t)prng_next(&r), &id), 0);
	assert_int_equal(idmap_add(&m, &what[0], 7, &id), -ENOMEM);
	idmap_remove(&m, id);
	assert_int_equal(idmap_add(&m, &what[0], 7, &id), 0);
	idmap_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_is_as_random_as_it_can_be),
		cmocka_unit_test(none_is_0_or_1),
		cmocka_unit_test(it_grows_and_keeps_all),
		cmocka_unit_test(the_same_random_number_again_and_again),
		cmocka_unit_test(what_is_removed_is_not_found_and_its_place_is_free),
		cmocka_unit_test(as_things_come_and_go_it_does_not_grow),
		cmocka_unit_test(at_last_it_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
