/* SPDX-License-Identifier: BSD-3-Clause */
/* uwarp-btree's messages, as they lie in a mailbox while they are still coming. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wire.h"

#define WORDS (sizeof(struct mail) / sizeof(uint64_t))

/* The slot's first call and the second one, which comes over it. */
static void two_calls(struct mail *first, enum mail_type old, struct mail *second,
		      enum mail_type new)
{
	*first = (struct mail){ .key = 7, .value = 42, .number = 1 };
	mail_seal(first, old);
	*second = (struct mail){ .key = 9, .number = 2 };
	mail_seal(second, new);
}

static void take_what_is_whole(struct mail *box, const struct mail *second)
{
	struct mail got;

	if (mail_take(box, 2, &got))
		assert_memory_equal(&got, second, sizeof(got));
}

static void test_a_whole_message_is_taken(void **state)
{
	struct mail first, second, got;

	(void)state;
	two_calls(&first, MAIL_PUT, &second, MAIL_GET);
	assert_true(mail_take(&first, 1, &got));
	assert_int_equal(got.type, MAIL_PUT);
	assert_false(mail_take(&first, 2, &got));
	assert_true(mail_take(&second, 2, &got));
	assert_int_equal(got.type, MAIL_GET);
}

/* Whatever octets are seen first, no call is taken for another one's type. */
static void test_a_message_that_is_coming_is_not(void **state)
{
	struct mail first, second, box;

	(void)state;
	for (enum mail_type old = MAIL_GET; old <= MAIL_REPLY; old++)
		for (enum mail_type new = MAIL_GET; new <= MAIL_REPLY; new ++)
			for (unsigned mask = 0; mask < 1u << WORDS; mask++) {
				two_calls(&first, old, &second, new);
				box = first;
				for (size_t i = 0; i < WORDS; i++)
					if (mask >> i & 1)
						((uint64_t *)&box)[i] = ((uint64_t *)&second)[i];
				take_what_is_whole(&box, &second);
			}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_message_is_taken),
		cmocka_unit_test(test_a_message_that_is_coming_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
