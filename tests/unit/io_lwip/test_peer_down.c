/* SPDX-License-Identifier: BSD-3-Clause */
/* The process at the other end dies: what it sent before is not lost. */
#include "bed.h"

#include "lwip/def.h"

static int up(void **state)
{
	(void)state;
	bed_open();
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

static void dies(void)
{
	llp_raw.peer_down(&bed.link, lwip_htonl(BED_THEIRS));
	bed_flush();
}

static void its_connections_end(void **state)
{
	struct bed_peer p = bed_connect(40000), q = bed_connect(40001);

	(void)state;
	bed_data(&q, 0, 100);
	dies();
	assert_true(p.user->closed && q.user->closed);
	assert_status(q.user->why, UW_E_LLP_CLOSED);
}

/* Address 0: whatever the link leads to is gone. */
static void all_connections_end(void **state)
{
	struct bed_peer p = bed_connect(40000);

	(void)state;
	llp_raw.peer_down(&bed.link, lwip_htonl(BED_THEIRS + 1));
	assert_false(p.user->closed);
	llp_raw.peer_down(&bed.link, 0);
	assert_true(p.user->closed);
	assert_status(p.user->why, UW_E_LLP_CLOSED);
}

/* It says so, and not that nobody answers. */
static void a_connect_hears_that_nobody_is_there(void **state)
{
	const struct llp_addrs a = { .local = uw_ip_v4(lwip_htonl(BED_OURS)),
				     .remote = uw_ip_v4(lwip_htonl(BED_THEIRS)),
				     .lport = lwip_htons(33000),
				     .rport = lwip_htons(7000) };
	struct bed_conn user = { 0 };

	(void)state;
	assert_status(llp_raw.connect(&bed.link, &a, &user, &user.c), UW_OK);
	bed_flush();
	dies();
	assert_true(user.closed);
	assert_status(user.why, UW_E_UNREACHABLE);
}

/* Its Sends were completed: they arrive when there are receives for them. */
static void a_user_that_waits_gets_what_came(void **state)
{
	struct bed_peer p;

	(void)state;
	bed.pause = true;
	p = bed_connect(40000);
	for (unsigned i = 0; i < 20; i++)
		bed_data(&p, i * 100, 100);
	dies();
	assert_false(p.user->closed);
	bed_pass(1000000);
	assert_false(p.user->closed);
	p.user->pause = false;
	llp_raw.resume(p.user->c);
	assert_int_equal(p.user->got, 2000);
	assert_true(p.user->closed);
	assert_status(p.user->why, UW_E_LLP_CLOSED);
}

/* Nobody is there to answer a FIN. */
static void or_closes_and_nothing_lingers(void **state)
{
	struct bed_peer p;

	(void)state;
	bed.pause = true;
	p = bed_connect(40000);
	bed_data(&p, 0, 100);
	dies();
	llp_raw.close(p.user->c);
	p.user->c = NULL;
	assert_int_equal(llp_raw.lingering(), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(its_connections_end),
	TEST(all_connections_end),
	TEST(a_connect_hears_that_nobody_is_there),
	TEST(a_user_that_waits_gets_what_came),
	TEST(or_closes_and_nothing_lingers),
};

UWTEST_MAIN(tests)
