/* SPDX-License-Identifier: BSD-3-Clause */
/* Another host begins to use our address (RFC 5227 §2.4). */
#include "bed.h"

#include "base/be.h"
#include "base/sum.h"
#include "io/addr.h"
#include "io/dad/dad.h"

#define SECOND 1000000u

static int up(void **state)
{
	(void)state;
	bed_open_network();
	bed.link.flags |= IO_NEIGHBOURS;
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

/* ARP: "10.0.0.<host> is at 02:...:<host>", to everybody. */
static void somebody_says(uint32_t address)
{
	uint8_t f[42] = { 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0,
			  9,   8,   6,	 0,   1,   8,	0, 6, 4, 0, 1 };

	memcpy(f + 22, f + 6, 6);
	uw_put32(f + 28, address);
	uw_put32(f + 38, address);
	bed_in_frame(f, sizeof(f));
}

/* RFC 5227 §2.3: twice, two seconds apart, and then no more. */
static void it_is_announced(void **state)
{
	unsigned before;

	(void)state;
	bed_flush(); /* lwIP's own, as its interface came up */
	before = bed.announced;
	bed_pass(10000);
	assert_int_equal(bed.announced, before + 1);
	assert_true(llp_raw.next_timer_us() <= 2 * SECOND);
	bed_pass(3 * SECOND);
	assert_int_equal(bed.announced, before + 2);
	assert_true(llp_raw.next_timer_us() == UINT64_MAX);
	bed_pass(30 * SECOND);
	assert_int_equal(bed.announced, before + 2);
}

/* RFC 5227 §2.4 (c): answered once in ten seconds, counted each time; a connection goes on. */
static void it_is_defended(void **state)
{
	struct bed_peer p = bed_connect(7000);
	unsigned before;

	(void)state;
	bed_pass(3 * SECOND);
	before = bed.announced;
	for (unsigned i = 0; i < 5; i++)
		somebody_says(BED_OURS);
	assert_int_equal(bed.stats.ip_conflicts, 5);
	assert_int_equal(bed.announced, before + 1);
	bed_pass(11 * SECOND);
	somebody_says(BED_OURS);
	assert_int_equal(bed.announced, before + 2);
	bed_data(&p, 0, 10);
	assert_int_equal(p.user->got, 10);
}

/* Of several stacks one does it: the others get copies. */
static void a_copy_is_somebody_elses_to_answer(void **state)
{
	unsigned before;

	(void)state;
	bed_pass(3 * SECOND);
	before = bed.announced;
	bed.copy = true;
	somebody_says(BED_OURS);
	assert_int_equal(bed.stats.ip_conflicts, 0);
	assert_int_equal(bed.announced, before);
}

static void what_others_say_of_others(void **state)
{
	unsigned before;

	(void)state;
	bed_pass(3 * SECOND);
	before = bed.announced;
	somebody_says(BED_THEIRS + 5);
	assert_int_equal(bed.announced, before);
	assert_int_equal(bed.stats.ip_conflicts, 0);
}

/* Of an IPv6 address it is counted and said; an ARP request would tell nobody of it. */
static void an_ipv6_address_is_not_announced_by_arp(void **state)
{
	uint8_t f[DAD_FRAME], *p = f + 14, *m = p + 40;
	unsigned before;

	(void)state;
	io_set_ip6(&bed.link, NULL, 0);
	bed_pass(3 * SECOND);
	before = bed.announced;
	assert_int_equal(dad_probe(&bed.link, 1, f), 78);
	f[11] ^= 1;
	m[0] = 136; /* an advertisement */
	uw_put16(m + 2, 0);
	uw_put16(m + 2, (uint16_t)~uw_sum_fold(uw_sum_add(uw_sum_add(24 + 58, p + 8, 32), m, 24)));
	bed_in_frame(f, 78);
	assert_int_equal(bed.stats.ip_conflicts, 1);
	assert_int_equal(bed.announced, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_announced, up, down),
		cmocka_unit_test_setup_teardown(it_is_defended, up, down),
		cmocka_unit_test_setup_teardown(an_ipv6_address_is_not_announced_by_arp, up, down),
		cmocka_unit_test_setup_teardown(a_copy_is_somebody_elses_to_answer, up, down),
		cmocka_unit_test_setup_teardown(what_others_say_of_others, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
