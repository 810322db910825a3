/* SPDX-License-Identifier: BSD-3-Clause */
/* A link without a kernel tells the network of its groups (RFC 2236). */
#include "bed.h"

#include "base/be.h"
#include "base/sum.h"
#include "io/member/member.h"

#define SECOND 1000000u

static struct uw_ip group;

static int up(void **state)
{
	(void)state;
	bed_open_network();
	bed.link.flags |= IO_NEIGHBOURS;
	group = uw_ip_v4(htobe32(0xef010203));
	bed_pass(3 * SECOND); /* the address is announced */
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

static void a_router_asks(void)
{
	uint8_t f[MEMBER_FRAME];

	assert_int_equal(member_frame(&bed.link, &group, false, f), 46);
	f[38] = 0x11;
	f[39] = 10;
	uw_put16(f + 40, 0);
	uw_put16(f + 40, (uint16_t)~uw_sum_fold(uw_sum_add(0, f + 38, 8)));
	bed_in_frame(f, 46);
}

static void it_is_told_of_groups(void **state)
{
	(void)state;
	assert_status(llp_raw.group(&bed.link, &group, true), UW_OK);
	assert_int_equal(bed.stats.member_tx, 1);
	assert_true(llp_raw.next_timer_us() <= MEMBER_REPORT_US);
	bed_pass(11 * SECOND);
	assert_int_equal(bed.stats.member_tx, 2);
	assert_true(llp_raw.next_timer_us() == UINT64_MAX);
	a_router_asks();
	assert_int_equal(bed.stats.member_rx, 1);
	assert_true(llp_raw.next_timer_us() <= SECOND);
	bed_pass(2 * SECOND);
	assert_int_equal(bed.stats.member_tx, 3);
	assert_status(llp_raw.group(&bed.link, &group, false), UW_OK);
	assert_int_equal(bed.stats.member_tx, 4);
	assert_status(llp_raw.group(&bed.link, &group, false), UW_OK);
	a_router_asks();
	bed_pass(2 * SECOND);
	assert_int_equal(bed.stats.member_tx, 4);
}

static uw_status kernels(struct io_link *l, const struct uw_ip *g, bool in)
{
	(void)l;
	(void)g;
	(void)in;
	return UW_OK;
}

/* Between processes, and where a kernel does it. */
static void others_need_no_telling(void **state)
{
	struct io_ops ops = *bed.link.ops;
	const struct io_ops *before = bed.link.ops;

	(void)state;
	bed.link.flags &= ~(unsigned)IO_NEIGHBOURS;
	assert_status(llp_raw.group(&bed.link, &group, true), UW_OK);
	bed.link.flags |= IO_NEIGHBOURS;
	ops.group = kernels;
	bed.link.ops = &ops;
	assert_status(llp_raw.group(&bed.link, &group, true), UW_OK);
	a_router_asks();
	bed_pass(11 * SECOND);
	bed.link.ops = before;
	assert_int_equal(bed.stats.member_tx, 0);
	assert_int_equal(bed.stats.member_rx, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_told_of_groups, up, down),
		cmocka_unit_test_setup_teardown(others_need_no_telling, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
