/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/icrc.h"

#include "uwtest.h"
#include "vectors.h"

static unsigned ip_len(const struct vector *v)
{
	return v->p[0] >> 4 == 4 ? 20 : 40;
}

/* IBA §7.8.1, annex A17.3.3: what Linux's rxe computed for each of its packets. */
static void every_captured_packet_has_our_icrc(void **state)
{
	struct vectors x = vectors_read("rxe-roce.txt");

	(void)state;
	assert_true(x.n > 50);
	for (size_t i = 0; i < x.n; i++) {
		const struct vector *v = &x.v[i];
		struct uw_span s = { v->p, v->n - 4 };

		if (roce_icrc(uw_rope_of(&s), ip_len(v)) != roce_icrc_get(v->p + v->n - 4))
			fail_msg("line %u", v->line);
	}
	vectors_free(&x);
}

static uint32_t icrc_of(const uint8_t *p, size_t n)
{
	struct uw_span s = { p, n };

	return roce_icrc(uw_rope_of(&s), p[0] >> 4 == 4 ? 20 : 40);
}

/* IBA §7.8.1, annex A17.3.3: what routers may change is not covered, all else is. */
static void only_what_changes_on_the_way_is_left_out(void **state)
{
	static const uint8_t free4[] = { 1, 8, 10, 11, 26, 27, 32 },
			     free6[] = { 1, 2, 3, 7, 46, 47, 52 };
	struct vectors x = vectors_read("rxe-roce.txt");

	(void)state;
	for (size_t i = 0; i < x.n; i++) {
		const struct vector *v = &x.v[i];
		const uint8_t *left_out = ip_len(v) == 20 ? free4 : free6;
		uint32_t was = icrc_of(v->p, v->n - 4);

		for (size_t at = 1; at < v->n - 4; at++) {
			bool covered = !memchr(left_out, (int)at, sizeof(free4));

			v->p[at] ^= 0x10;
			if ((icrc_of(v->p, v->n - 4) != was) != covered)
				fail_msg("line %u, octet %zu", v->line, at);
			v->p[at] ^= 0x10;
		}
		break; /* all are alike */
	}
	vectors_free(&x);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_captured_packet_has_our_icrc),
	cmocka_unit_test(only_what_changes_on_the_way_is_left_out),
};

UWTEST_MAIN(tests)
