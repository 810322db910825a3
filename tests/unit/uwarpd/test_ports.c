/* SPDX-License-Identifier: BSD-3-Clause */
#include "bed.h"

static enum switch_msg_why claim(struct bed *b, unsigned client, uint16_t port)
{
	return ports_claim(&b->s, &b->c[client], htons(port), IO_V4);
}

static void a_port_has_one_holder(void **state)
{
	struct bed *b = *state;

	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
	assert_int_equal(claim(b, BOB, 0), SWITCH_IN_USE);
	assert_int_equal(b->c[ALICE].ports, 2);
	assert_int_equal(b->port.claimed, 1);
}

/* RFC 9293 §3.1: a connection has addresses of one version, and the kernel counts ports so, too. */
static void a_port_of_each_version_is_one_by_itself(void **state)
{
	struct bed *b = *state;
	struct client *alice = &b->c[ALICE], *bob = &b->c[BOB];

	assert_int_equal(ports_claim(&b->s, alice, htons(7000), IO_V6), SWITCH_NOT_YOURS);
	b->s.table.n_ip6 = 1;
	assert_int_equal(ports_claim(&b->s, alice, htons(7000), IO_V6), SWITCH_GRANTED);
	assert_int_equal(b->port.version, IO_V6);
	assert_int_equal(ports_claim(&b->s, bob, htons(7000), IO_V6), SWITCH_IN_USE);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_GRANTED);
	assert_int_equal(b->port.version, IO_V4);
	assert_int_equal(alice->ports, 2);
	ports_release(&b->s, bob, htons(7000), IO_V6); /* not its own */
	ports_release(&b->s, alice, htons(7000), IO_V6);
	assert_int_equal(b->s.linger_n, 1);
	ports_release(&b->s, bob, htons(7000), IO_V4);
	assert_int_equal(b->s.linger_n, 2);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_GRANTED);
	b->s.now_us = 10000000;
	ports_tick(&b->s);
	assert_int_equal(b->s.table.holder6[7000], SWITCH_NOBODY);
	assert_int_equal(b->s.table.holder[7000], BOB);
	assert_int_equal(alice->ports, 1);
	assert_int_equal(ports_claim(&b->s, bob, htons(7000), IO_V6), SWITCH_GRANTED);
	ports_release_all(&b->s, bob);
	assert_int_equal(b->s.table.holder6[7000], SWITCH_NOBODY);
	assert_int_equal(b->s.table.holder[7000], SWITCH_NOBODY);
	assert_int_equal(bob->ports, 0);
}

static void low_ports_are_roots(void **state)
{
	struct bed *b = *state;

	assert_int_equal(claim(b, ALICE, 1023), SWITCH_NO_RIGHT);
	b->c[ALICE].uid = 0;
	assert_int_equal(claim(b, ALICE, 1023), SWITCH_GRANTED);
}

static void ports_of_a_client_are_limited(void **state)
{
	struct bed *b = *state;

	for (uint16_t i = 0; i < 4; i++)
		assert_int_equal(claim(b, ALICE, (uint16_t)(7000 + i)), SWITCH_GRANTED);
	assert_int_equal(claim(b, ALICE, 7004), SWITCH_LIMIT);
	assert_int_equal(claim(b, BOB, 7004), SWITCH_GRANTED);
}

/* Whatever its processes do, and the next ones that it starts. */
static void ports_of_a_user_are_limited(void **state)
{
	struct bed *b = *state;

	b->s.user_ports = 4;
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	assert_int_equal(claim(b, ALICE, 7001), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, 7002), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, 7003), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, 7004), SWITCH_LIMIT);
	assert_int_equal(claim(b, BOB, 7003), SWITCH_GRANTED); /* it has that one */
	b->c[BOB].uid = 1001;
	assert_int_equal(claim(b, BOB, 7004), SWITCH_GRANTED);
	b->s.now_us = 1000000;
	ports_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(claim(b, ALICE, 7005), SWITCH_LIMIT); /* they are still its user's */
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	b->s.now_us += 1000000;
	ports_tick(&b->s);
	assert_int_equal(b->s.linger_n, 0);
	assert_int_equal(claim(b, ALICE, 7005), SWITCH_GRANTED);
}

/* One that the port refuses does not count. */
static void a_refused_one_is_nobodys(void **state)
{
	struct bed *b = *state;

	b->s.user_ports = 1;
	b->port.refuses = 7000;
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_IN_USE);
	assert_int_equal(claim(b, ALICE, 7001), SWITCH_GRANTED);
	assert_int_equal(claim(b, ALICE, 7002), SWITCH_LIMIT);
}

/* Callers hear at once that nobody is there, and ask who has the QP (doc/adr/0048). */
static void the_usual_port_of_rc_is_nobodys(void **state)
{
	struct bed *b = *state;

	b->s.table.n_ip6 = 1;
	assert_int_equal(claim(b, ALICE, SWITCH_RC_PORT), SWITCH_IN_USE);
	assert_int_equal(claim(b, BOB, SWITCH_RC_PORT), SWITCH_IN_USE);
	assert_int_equal(b->port.claimed, 1);
	assert_true(b->s.table.refuses && !b->s.table.refuses6);
	assert_int_equal(ports_claim(&b->s, &b->c[BOB], htons(SWITCH_RC_PORT), IO_V6),
			 SWITCH_IN_USE);
	assert_true(b->s.table.refuses6);
	assert_int_equal(b->port.version, IO_V6);
	assert_int_equal(b->c[ALICE].ports + b->c[BOB].ports, 2);
}

/* Where nobody hears the questions there is no other way. */
static void without_questions_the_first_one_has_it(void **state)
{
	struct bed *b = *state;

	b->port.deaf = true;
	assert_int_equal(claim(b, ALICE, SWITCH_RC_PORT), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, SWITCH_RC_PORT), SWITCH_IN_USE);
	assert_false(b->s.table.refuses);
	b->port.deaf = false;
	assert_int_equal(claim(b, ALICE, SWITCH_RC_PORT), SWITCH_GRANTED);
}

static void a_port_of_the_kernels_is_refused(void **state)
{
	struct bed *b = *state;

	b->port.refuses = 7000;
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_IN_USE);
	assert_int_equal(b->c[ALICE].ports, 1);
	assert_int_equal(b->s.table.holder[7000], SWITCH_NOBODY);
}

static void a_released_port_stays_its_clients_for_a_while(void **state)
{
	struct bed *b = *state;

	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	ports_release(&b->s, &b->c[BOB], htons(7000), IO_V4); /* not its own */
	assert_int_equal(b->s.linger_n, 0);
	ports_release(&b->s, &b->c[ALICE], htons(7000), IO_V4);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
	b->s.now_us = 9999999;
	ports_tick(&b->s);
	assert_int_equal(b->s.table.holder[7000], ALICE);
	b->s.now_us = 10000000;
	ports_tick(&b->s);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_GRANTED);
	assert_int_equal(b->port.released, 1);
}

static void one_that_is_claimed_again_stays(void **state)
{
	struct bed *b = *state;

	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	ports_release(&b->s, &b->c[ALICE], htons(7000), IO_V4);
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	b->s.now_us = 20000000;
	ports_tick(&b->s);
	assert_int_equal(b->s.table.holder[7000], ALICE);
}

static void who_ends_loses_all_at_once(void **state)
{
	struct bed *b = *state;

	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	assert_int_equal(claim(b, ALICE, 7001), SWITCH_GRANTED);
	ports_release(&b->s, &b->c[ALICE], htons(7001), IO_V4);
	ports_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(b->c[ALICE].ports, 0);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, 7001), SWITCH_GRANTED);
	b->s.now_us = 20000000; /* the entry of the old one is void */
	ports_tick(&b->s);
	assert_int_equal(b->s.table.holder[7001], BOB);
}

/* Each costs the port system calls, and frames wait meanwhile. */
static void the_port_gets_them_back_a_few_at_a_time(void **state)
{
	struct bed *b = *state;

	b->s.o.max_ports = 200;
	for (uint16_t i = 0; i < 100; i++)
		assert_int_equal(claim(b, ALICE, (uint16_t)(7000 + i)), SWITCH_GRANTED);
	ports_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(b->c[ALICE].ports, 0);
	assert_int_equal(b->port.released, 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(b->s.table.holder[7000 + i], SWITCH_NOBODY);
	for (unsigned before = 0; b->s.linger_n; before = b->port.released) {
		b->s.now_us += 1000;
		ports_tick(&b->s);
		ports_tick(&b->s); /* not twice at the same time */
		assert_true(b->port.released > before && b->port.released - before <= 4);
	}
	assert_int_equal(b->port.released, 101); /* and ALICES */
}

/* The port has it still: it is neither asked for it again nor gets it back. */
static void one_that_was_left_may_be_taken_at_once(void **state)
{
	struct bed *b = *state;

	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	ports_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_GRANTED);
	assert_int_equal(b->port.claimed, 1);
	for (unsigned i = 0; i < 4; i++) {
		b->s.now_us += 1000;
		ports_tick(&b->s);
	}
	assert_int_equal(b->port.released, 1); /* ALICES, which she had all along */
	assert_int_equal(b->s.table.holder[7000], BOB);
	ports_release(&b->s, &b->c[BOB], htons(7000), IO_V4);
	b->s.now_us += 10000000;
	ports_tick(&b->s);
	assert_int_equal(b->port.released, 2);
}

/* Peers still send to the client that is dead. */
static void one_that_was_left_is_its_users_for_a_while(void **state)
{
	struct bed *b = *state;
	struct client *bob = &b->c[BOB];

	b->s.now_us = 1999999;
	bob->uid = 1001;
	b->s.table.n_ip6 = 1;
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	assert_int_equal(claim(b, ALICE, 7001), SWITCH_GRANTED);
	assert_int_equal(ports_claim(&b->s, &b->c[ALICE], htons(7002), IO_V6), SWITCH_GRANTED);
	ports_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
	assert_int_equal(ports_claim(&b->s, bob, htons(7002), IO_V6), SWITCH_IN_USE);
	assert_int_equal(claim(b, BOB, 7002), SWITCH_GRANTED); /* of the other version */
	b->s.now_us += 1000;
	ports_tick(&b->s); /* the port has it back: those peers are reset */
	assert_int_equal(b->port.released, 4);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
	b->s.now_us += 60000000 - 1000;
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
	assert_int_equal(claim(b, ALICE, 7001), SWITCH_GRANTED); /* another process of that user */
	b->s.now_us += 1000000;
	assert_int_equal(claim(b, BOB, 7000), SWITCH_GRANTED);
	assert_int_equal(ports_claim(&b->s, bob, htons(7002), IO_V6), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, 7001), SWITCH_IN_USE);
}

/* It has no connections any more. */
static void one_that_was_released_before_stays_no_longer(void **state)
{
	struct bed *b = *state;

	b->c[BOB].uid = 1001;
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	ports_release(&b->s, &b->c[ALICE], htons(7000), IO_V4);
	b->s.now_us += 1000000;
	ports_release_all(&b->s, &b->c[ALICE]);
	ports_tick(&b->s);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
	b->s.now_us += 10000000; /* as ports_release has it */
	assert_int_equal(claim(b, BOB, 7000), SWITCH_GRANTED);
}

static void a_user_keeps_no_more_than_its_processes_may_have(void **state)
{
	struct bed *b = *state;

	b->s.o.max_per_user = 0;
	ports_release_all(&b->s, &b->c[ALICE]); /* the bed's own: nothing is kept */
	b->s.o.max_per_user = 1;
	b->s.o.max_ports = 3;
	b->c[BOB].uid = 1001;
	for (uint16_t port = 7000; port < 7006; port += 3) {
		for (uint16_t i = 0; i < 3; i++)
			assert_int_equal(claim(b, ALICE, port + i), SWITCH_GRANTED);
		ports_release_all(&b->s, &b->c[ALICE]);
		b->s.now_us += 1000;
		ports_tick(&b->s);
	}
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
	assert_int_equal(claim(b, BOB, 7002), SWITCH_IN_USE);
	assert_int_equal(claim(b, BOB, 7003), SWITCH_GRANTED);
}

/* A port that its user might not keep counts for the next one, though the kernel has not got it
 * back yet. */
static void one_that_was_not_kept_counts_for_who_takes_it(void **state)
{
	struct bed *b = *state;

	b->s.o.max_per_user = 0; /* nothing is kept */
	b->s.user_ports = 1;
	b->c[BOB].uid = 1001;
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, 7001), SWITCH_GRANTED);
	ports_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_LIMIT);
	b->s.user_ports = 2;
	assert_int_equal(claim(b, BOB, 7000), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, 7002), SWITCH_LIMIT);
	b->s.user_ports = 1;
	assert_int_equal(claim(b, ALICE, 7003), SWITCH_GRANTED);
	assert_int_equal(b->port.claimed - b->port.released, 3);
}

/* One that claims and releases a port for ever takes nobody's place, and the port gets what it
 * leaves a few at a time. */
static void the_others_ports_stay_theirs_whatever_one_releases(void **state)
{
	struct bed *b = *state;

	b->c[BOB].uid = 1001;
	for (unsigned i = 0; i < 20000; i++) {
		assert_int_equal(claim(b, BOB, 7000), SWITCH_GRANTED);
		ports_release(&b->s, &b->c[BOB], htons(7000), IO_V4);
	}
	assert_int_equal(claim(b, ALICE, 7001), SWITCH_GRANTED);
	ports_release(&b->s, &b->c[ALICE], htons(7001), IO_V4);
	assert_int_equal(b->s.table.holder[7001], ALICE);
	ports_release_all(&b->s, &b->c[BOB]);
	assert_int_equal(b->port.released, 0);
	assert_int_equal(b->s.linger_n, 3);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(a_port_has_one_holder, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_port_of_each_version_is_one_by_itself, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(low_ports_are_roots, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(ports_of_a_client_are_limited, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(ports_of_a_user_are_limited, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_refused_one_is_nobodys, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(the_usual_port_of_rc_is_nobodys, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(without_questions_the_first_one_has_it, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_port_of_the_kernels_is_refused, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_released_port_stays_its_clients_for_a_while, bed_up,
					bed_down),
	cmocka_unit_test_setup_teardown(one_that_is_claimed_again_stays, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(who_ends_loses_all_at_once, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(the_port_gets_them_back_a_few_at_a_time, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(one_that_was_left_may_be_taken_at_once, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(one_that_was_left_is_its_users_for_a_while, bed_up,
					bed_down),
	cmocka_unit_test_setup_teardown(one_that_was_released_before_stays_no_longer, bed_up,
					bed_down),
	cmocka_unit_test_setup_teardown(one_that_was_not_kept_counts_for_who_takes_it, bed_up,
					bed_down),
	cmocka_unit_test_setup_teardown(a_user_keeps_no_more_than_its_processes_may_have, bed_up,
					bed_down),
	cmocka_unit_test_setup_teardown(the_others_ports_stay_theirs_whatever_one_releases, bed_up,
					bed_down),
};

UWTEST_MAIN(tests)
