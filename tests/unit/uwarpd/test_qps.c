/* SPDX-License-Identifier: BSD-3-Clause */
#include "bed.h"

#include "io_switch/datagram_frame.h"

static enum switch_msg_why claim(struct bed *b, unsigned client, uint32_t qpn)
{
	return qps_claim(&b->s, &b->c[client], qpn);
}

static uint16_t holder(const struct bed *b, uint32_t qpn)
{
	return b->s.table.qps->holder[qpn];
}

static void a_qp_has_one_holder(void **state)
{
	struct bed *b = *state;

	assert_int_equal(claim(b, ALICE, ALICES_QP), SWITCH_GRANTED);
	assert_int_equal(claim(b, ALICE, ALICES_QP), SWITCH_GRANTED);
	assert_int_equal(claim(b, BOB, ALICES_QP), SWITCH_IN_USE);
	assert_int_equal(b->c[ALICE].n_qps, 1);
	assert_int_equal(claim(b, ALICE, 0), SWITCH_NOT_YOURS);
	assert_int_equal(claim(b, ALICE, SWITCH_QPN_END), SWITCH_NOT_YOURS);
}

static void qps_of_a_client_are_limited(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(claim(b, ALICE, 1000 + i), SWITCH_GRANTED);
	assert_int_equal(claim(b, ALICE, 1005), SWITCH_LIMIT);
	assert_int_equal(claim(b, BOB, 1005), SWITCH_GRANTED);
}

/* What it has sent may still be in the conduit. */
static void a_released_qp_stays_its_clients_for_a_while(void **state)
{
	struct bed *b = *state;
	struct octets f = datagram(true, UD_SEND, ALICES_QP, 99, 0);

	claim(b, ALICE, ALICES_QP);
	bed_put(b, ALICE, &f);
	qps_release(&b->s, &b->c[ALICE], ALICES_QP);
	qps_tick(&b->s);
	forward_round(&b->s);
	assert_int_equal(b->port.n_sent, 1);
	b->s.now_us += 2000000;
	qps_tick(&b->s);
	assert_int_equal(holder(b, ALICES_QP), SWITCH_NOBODY);
	assert_int_equal(b->s.lingering_qps, 0);
	assert_int_equal(b->s.table.qps->n[ALICE], 0);
}

static void a_qp_that_is_claimed_again_stays(void **state)
{
	struct bed *b = *state;

	claim(b, ALICE, ALICES_QP);
	qps_release(&b->s, &b->c[ALICE], ALICES_QP);
	qps_release(&b->s, &b->c[BOB], ALICES_QP);
	assert_int_equal(b->s.lingering_qps, 1);
	assert_int_equal(claim(b, ALICE, ALICES_QP), SWITCH_GRANTED);
	b->s.now_us += 2000000;
	qps_tick(&b->s);
	assert_int_equal(holder(b, ALICES_QP), ALICE);
}

/* One that is released, even twice, neither counts twice nor takes another one along. */
static void the_others_stay(void **state)
{
	struct bed *b = *state;

	claim(b, ALICE, ALICES_QP);
	claim(b, ALICE, 7000);
	claim(b, ALICE, 7001);
	qps_release(&b->s, &b->c[ALICE], ALICES_QP);
	b->s.now_us += 500000;
	qps_release(&b->s, &b->c[ALICE], ALICES_QP);
	assert_int_equal(b->s.lingering_qps, 1);
	b->s.now_us += 600000; /* the second release is none */
	qps_tick(&b->s);
	assert_int_equal(holder(b, ALICES_QP), SWITCH_NOBODY);
	assert_int_equal(holder(b, 7000), ALICE);
	assert_int_equal(b->s.lingering_qps, 0);
	qps_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(holder(b, 7000), SWITCH_NOBODY);
	assert_int_equal(holder(b, 7001), SWITCH_NOBODY);
}

static void who_leaves_leaves_none(void **state)
{
	struct bed *b = *state;

	claim(b, ALICE, ALICES_QP);
	claim(b, ALICE, 7000);
	claim(b, ALICE, MANAGES_QP);
	b->s.table.qps->asked[5] = (struct switch_asked){ 5, ALICE, 0 };
	b->s.table.qps->asked[6] = (struct switch_asked){ 6, BOB, 0 };
	qps_release(&b->s, &b->c[ALICE], 7000);
	qps_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(b->s.table.qps->asked[5].client, SWITCH_NOBODY);
	assert_int_equal(b->s.table.qps->asked[6].client, BOB);
	assert_int_equal(holder(b, ALICES_QP), SWITCH_NOBODY);
	assert_int_equal(holder(b, 7000), SWITCH_NOBODY);
	assert_false(b->s.table.qps->manages[ALICE]);
	assert_int_equal(b->s.lingering_qps, 0);
}

/* Peers still send to the client that is dead. */
static void what_was_left_is_its_users_for_a_while(void **state)
{
	struct bed *b = *state;

	b->c[BOB].uid = 1001;
	claim(b, ALICE, ALICES_QP);
	claim(b, ALICE, 7000);
	qps_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(claim(b, BOB, ALICES_QP), SWITCH_IN_USE);
	b->s.now_us += 60000000;
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED); /* another process of that user */
	b->s.now_us += 1000000;
	assert_int_equal(claim(b, BOB, ALICES_QP), SWITCH_GRANTED);
	for (unsigned i = 0; i < LEFT_PIECES; i++)
		qps_tick(&b->s);
	for (unsigned i = 0; i < LEFT_PIECES; i++)
		assert_null(b->s.left_qps[i]); /* the memory is free again */
}

static void a_user_leaves_no_more_than_its_processes_may_have(void **state)
{
	struct bed *b = *state;

	b->s.o.max_per_user = 1;
	b->s.o.max_ports = 3;
	b->c[BOB].uid = 1001;
	for (uint32_t qpn = 7000; qpn < 7006; qpn += 3) {
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(claim(b, ALICE, qpn + i), SWITCH_GRANTED);
		qps_release_all(&b->s, &b->c[ALICE]);
	}
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
	assert_int_equal(claim(b, BOB, 7002), SWITCH_IN_USE);
	assert_int_equal(claim(b, BOB, 7003), SWITCH_GRANTED);
	qps_release_all(&b->s, &b->c[BOB]); /* counted by itself */
	assert_int_equal(claim(b, ALICE, 7003), SWITCH_IN_USE);
	b->s.now_us += 61000000;
	assert_int_equal(claim(b, ALICE, 7000), SWITCH_GRANTED);
	qps_release_all(&b->s, &b->c[ALICE]);
	assert_int_equal(claim(b, BOB, 7000), SWITCH_IN_USE);
}

/* Who ends with as many QPs as it may have, wherever they are, costs no time that others notice,
 * nor much memory: the numbers are random. */
static void what_is_left_takes_little_memory(void **state)
{
	struct bed *b = *state;
	size_t octets = 0;

	b->s.o.max_ports = 4096;
	for (uint32_t i = 0; i < 4096; i++)
		assert_int_equal(claim(b, ALICE, i * 4096 + 7), SWITCH_GRANTED);
	qps_release_all(&b->s, &b->c[ALICE]);
	for (unsigned i = 0; i < LEFT_PIECES; i++)
		octets += b->s.left_qps[i] ? sizeof(struct left_piece) : 0;
	assert_in_range(octets, 1, 8 << 20);
}

static void requests_go_to_all_that_take_part(void **state)
{
	struct octets f = management(true, QUESTION, OF_UDP), got;
	struct octets wire = management(false, QUESTION, OF_UDP);
	struct bed *b = *state;

	uw_put32(f.h + 30, OURS);
	claim(b, ALICE, MANAGES_QP);
	bed_put(b, ALICE, &f);
	b->port.coming[b->port.n_coming++] = wire;
	forward_round(&b->s);
	assert_true(bed_take(b, ALICE, &got)); /* that of the wire alone */
	assert_memory_equal(got.h, wire.h, 6);
	assert_false(bed_take(b, ALICE, &got) || bed_take(b, BOB, &got));
	claim(b, BOB, MANAGES_QP);
	bed_put(b, ALICE, &f);
	forward_round(&b->s);
	assert_true(bed_take(b, BOB, &got));
	assert_false(bed_take(b, ALICE, &got));
}

static void all_are_asked_once_in_a_tick(void **state)
{
	struct bed *b = *state;

	b->s.table.qps->may_ask_all = false;
	b->s.now_us = 7000000;
	qps_tick(&b->s);
	assert_true(b->s.table.qps->may_ask_all);
	assert_int_equal(b->s.table.qps->second, 7);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, bed_up, bed_down)

static const struct CMUnitTest tests[] = {
	TEST(a_qp_has_one_holder),
	TEST(qps_of_a_client_are_limited),
	TEST(a_released_qp_stays_its_clients_for_a_while),
	TEST(a_qp_that_is_claimed_again_stays),
	TEST(the_others_stay),
	TEST(who_leaves_leaves_none),
	TEST(what_was_left_is_its_users_for_a_while),
	TEST(a_user_leaves_no_more_than_its_processes_may_have),
	TEST(what_is_left_takes_little_memory),
	TEST(requests_go_to_all_that_take_part),
	TEST(all_are_asked_once_in_a_tick),
};

UWTEST_MAIN(tests)
