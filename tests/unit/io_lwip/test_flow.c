/* SPDX-License-Identifier: BSD-3-Clause */
/* What a stranger could foretell about a connection, but cannot. */
#include "bed.h"

#include "io/lwip/conn.h"

#define FLOWS 16u

struct seen {
	uint32_t hash[FLOWS], isn[FLOWS];
};

static void look(uint64_t seed, struct seen *s)
{
	bed_open_seeded(seed);
	for (unsigned i = 0; i < FLOWS; i++) {
		struct bed_peer p = bed_connect((uint16_t)(20000 + i));

		s->hash[i] = p.user->c->hash;
		s->isn[i] = p.ack - 1;
	}
	bed_close();
}

static unsigned same(const uint32_t *a, const uint32_t *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FLOWS; i++)
		n += a[i] == b[i];
	return n;
}

/* Who knows the addresses does not know the slot. */
static void the_table_has_a_key(void **state)
{
	struct seen one, two;

	(void)state;
	look(1, &one);
	look(2, &two);
	assert_in_range(same(one.hash, two.hash), 0, 1);
	look(1, &two);
	assert_int_equal(same(one.hash, two.hash), FLOWS);
}

/* RFC 6528 §3: M + F(localip, localport, remoteip, remoteport, secretkey). The key is the
 * process's, so that the clock alone is between two numbers of the same pair of ends. */
static void initial_sequence_numbers_follow_the_clock(void **state)
{
	struct seen one, two;
	uint64_t between;

	(void)state;
	look(3, &one);
	between = bed.now_us;
	look(4, &two);
	between = bed.now_us - between;
	for (unsigned i = 0; i < FLOWS; i++)
		assert_in_range(two.isn[i] - one.isn[i], 1, between / 4 + 1);
	/* And not from one port to the next. */
	for (unsigned i = 1; i < FLOWS; i++)
		assert_true(one.isn[i] - one.isn[i - 1] > 100000 ||
			    one.isn[i - 1] - one.isn[i] > 100000);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(the_table_has_a_key),
	cmocka_unit_test(initial_sequence_numbers_follow_the_clock),
};

UWTEST_MAIN(tests)
