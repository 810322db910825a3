/* SPDX-License-Identifier: BSD-3-Clause */
#include "datagram_frame.h"

static struct switch_qps qps;

static int qps_up(void **state)
{
	table_up(state);
	qps.holder[ALICES_QP] = ALICE;
	qps.holder[BOBS_QP] = BOB;
	qps.n[ALICE] = qps.n[BOB] = 1;
	qps.manages[ALICE] = true;
	qps.manages[BOB] = qps.may_ask_all = false;
	memset(qps.asked, 0, sizeof(qps.asked));
	table.qps = &qps;
	return 0;
}

static struct octets out(uint32_t source, uint32_t dest)
{
	return datagram(true, UD_SEND, source, dest, 100);
}

static struct octets in(uint32_t dest)
{
	return datagram(false, UD_SEND, 99, dest, 100);
}

/* IBA Annex A17.9.2: the port; the UDP source port is no QP's. */
static void a_client_sends_from_its_qp(void **state)
{
	struct octets f = out(ALICES_QP, 99);

	(void)state;
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	assert_int_equal(from(ALICE, &f).tcp, 0);
	assert_drop(from(BOB, &f), source_qp);
	f = out(NOBODYS_QP, 99);
	assert_drop(from(ALICE, &f), source_qp);
	uw_put16(f.h + 36, 4790);
	assert_drop(from(ALICE, &f), protocol);
}

static void management_needs_its_qp(void **state)
{
	struct octets f = management(true, QUESTION, OF_UDP);

	(void)state;
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	assert_drop(from(BOB, &f), source_qp);
	uw_put32(f.h + 30, OURS);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_CM);
}

/* Each client that has QP 1 may get a copy. */
static void what_is_copied_has_one_length(void **state)
{
	struct octets f = out(MANAGES_QP, MANAGES_QP);

	(void)state;
	uw_put32(f.h + 30, OURS);
	assert_drop(from(ALICE, &f), length);
	for (uint32_t n = 0; n < 1400; n += n == 252 ? 8 : 4) {
		f = datagram(false, UD_SEND, 99, MANAGES_QP, n);
		assert_drop(came(&f), length);
	}
	f = management(false, QUESTION, OF_UDP);
	f.len++;
	assert_drop(came(&f), length);
}

static void assert_to(struct switch_result r, uint16_t client)
{
	assert_int_equal(r.verdict, SWITCH_TO_CLIENT);
	assert_int_equal(r.client, client);
}

/* What names whom it is for wakes nobody else (doc/adr/0040). */
static void a_question_about_a_qp_goes_to_its_client(void **state)
{
	struct octets f = management(false, QUESTION, OF_RC);

	(void)state;
	assert_drop(came(&f), no_holder);
	uw_put32(f.h + MAD_AT + 76, ALICES_QP);
	assert_to(came(&f), ALICE);
	uw_put32(f.h + MAD_AT + 76, BOBS_QP);
	assert_drop(came(&f), no_holder); /* he could not answer */
	qps.manages[BOB] = true;
	assert_to(came(&f), BOB);
	f = management(true, QUESTION, OF_RC);
	uw_put32(f.h + MAD_AT + 76, BOBS_QP);
	uw_put32(f.h + 30, OURS);
	assert_to(from(ALICE, &f), BOB);
	f = management(false, QUESTION, OF_UDP);
	assert_int_equal(came(&f).verdict, SWITCH_TO_CM);
}

/* Its claim may have failed, and is made when it is asked for. */
static void all_are_asked_about_an_unknown_qp_now_and_then(void **state)
{
	struct octets f = management(false, QUESTION, OF_RC);

	(void)state;
	qps.may_ask_all = true;
	assert_int_equal(came(&f).verdict, SWITCH_TO_CM);
	assert_drop(came(&f), no_holder);
	uw_put32(f.h + MAD_AT + 76, ALICES_QP);
	assert_to(came(&f), ALICE);
}

static void an_answer_goes_to_who_asked(void **state)
{
	struct octets f = management(true, QUESTION, OF_UDP), a = management(false, ANSWER, OF_UDP);

	(void)state;
	assert_drop(came(&a), no_holder);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	assert_to(came(&a), ALICE);
	a.h[MAD_AT + 15]++;
	assert_drop(came(&a), no_holder);
	a.h[MAD_AT + 15]--;
	a.h[MAD_AT + 8]++; /* at the same place */
	assert_drop(came(&a), no_holder);
	a.h[MAD_AT + 8]--;
	qps.manages[BOB] = true; /* he has heard it, and asks the same, or something at its place */
	for (unsigned i = 0; i < 3; i++) {
		f.h[MAD_AT + 8] = i == 1;
		assert_int_equal(from(BOB, &f).verdict, SWITCH_TO_PORT);
		assert_to(came(&a), ALICE);
	}
	qps.second += SWITCH_ASKED_S;
	assert_int_equal(from(BOB, &f).verdict, SWITCH_TO_PORT);
	assert_to(came(&a), BOB);
}

/* Whatever else comes to the QP would be understood by nobody: doc/adr/0039. */
static void other_management_wakes_nobody(void **state)
{
	struct octets f = management(false, 0x10, OF_UDP); /* a ConnectRequest */

	(void)state;
	assert_drop(came(&f), protocol);
	f = management(false, QUESTION, OF_UDP);
	f.h[MAD_AT + 1] = 4; /* of performance */
	assert_drop(came(&f), protocol);
}

/* BOBS_QP is at this port of mine, says somebody. */
static struct octets answer_of_rc(uint32_t qpn)
{
	struct octets f = management(true, ANSWER, OF_RC);

	put_qp(&f, MAD_AT + 32, qpn);
	return f;
}

/* doc/adr/0048 */
static void who_has_a_qp_says_where_it_is(void **state)
{
	struct octets f = answer_of_rc(ALICES_QP);

	(void)state;
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	f = answer_of_rc(BOBS_QP);
	assert_drop(from(ALICE, &f), source_qp);
	f.h[BTH_AT]++; /* with immediate data all of it would be elsewhere */
	assert_drop(from(ALICE, &f), source_qp);
	f = answer_of_rc(BOBS_QP);
	f.h[MAD_AT + 41] = 0x11; /* of rdma_cm */
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	f = answer_of_rc(BOBS_QP);
	f.h[MAD_AT + 17] = QUESTION;
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	f = answer_of_rc(NOBODYS_QP);
	uw_put32(f.h + 30, OURS);
	assert_drop(from(ALICE, &f), source_qp);
}

/* IBA §9.6.1.1: UC names no source QP. */
static void uc_needs_any_qp(void **state)
{
	struct octets f = datagram(true, UC_SEND, 0, 99, 100);

	(void)state;
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	qps.n[ALICE] = 0;
	assert_drop(from(ALICE, &f), source_qp);
}

static void nothing_else_is_sent(void **state)
{
	struct octets f = datagram(true, RC_SEND, ALICES_QP, 99, 100), g = out(ALICES_QP, 99);

	(void)state;
	assert_drop(from(ALICE, &f), protocol);
	g.h[20] = 0x20;
	assert_drop(from(ALICE, &g), fragment);
	g = out(ALICES_QP, 99);
	uw_put32(g.h + 26, THEIRS);
	assert_drop(from(ALICE, &g), source_addr);
	g = out(ALICES_QP, 99);
	g.gso_size = 40;
	assert_drop(from(ALICE, &g), merge);
	g = out(ALICES_QP, 99);
	g.h[30] = 239;
	assert_drop(from(ALICE, &g), target);
	table.qps = NULL;
	g = out(ALICES_QP, 99);
	assert_drop(from(ALICE, &g), protocol);
}

static void lengths_fit(void **state)
{
	struct octets f = out(ALICES_QP, 99);

	(void)state;
	f.len--;
	assert_drop(from(ALICE, &f), length);
	f.len++;
	uw_put16(f.h + 38, 60);
	assert_drop(from(ALICE, &f), length);
	f = datagram(true, UD_SEND, ALICES_QP, 99, MTU - 52);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
	f = datagram(true, UD_SEND, ALICES_QP, 99, MTU - 51);
	assert_drop(from(ALICE, &f), length);
	f = out(ALICES_QP, 99);
	f.len = 57;
	assert_drop(from(ALICE, &f), protocol);
}

/* What is read of a packet is in the packet, not behind it. */
static void the_headers_are_in_the_packet(void **state)
{
	struct octets f = out(ALICES_QP, 99);

	(void)state;
	uw_put16(f.h + 16, 20 + 8 + 4);
	uw_put16(f.h + 38, 8 + 4);
	assert_drop(from(ALICE, &f), length);
	/* a BTH and an ICRC: whole for UC, without a DETH for UD */
	uw_put16(f.h + 16, 20 + 8 + 12 + 4);
	uw_put16(f.h + 38, 8 + 12 + 4);
	assert_drop(from(ALICE, &f), length);
	f.h[BTH_AT] = UC_SEND;
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_PORT);
}

/* RFC 1112 §6.4, RFC 1122 §3.2.1.3: no group by its MAC, no address of the host itself. */
static void nothing_goes_to_groups_or_loopback(void **state)
{
	struct octets f = out(ALICES_QP, 99), g = in(BOBS_QP);

	(void)state;
	f.h[0] |= 1;
	assert_drop(from(ALICE, &f), target);
	f = out(ALICES_QP, 99);
	f.h[30] = 127;
	assert_drop(from(ALICE, &f), target);
	g.h[0] |= 1;
	assert_drop(came(&g), target);
}

static void clients_reach_each_other(void **state)
{
	struct octets f = out(ALICES_QP, BOBS_QP);

	(void)state;
	uw_put32(f.h + 30, OURS);
	assert_int_equal(from(ALICE, &f).verdict, SWITCH_TO_CLIENT);
	assert_int_equal(from(ALICE, &f).client, BOB);
	put_qp(&f, DEST_QP, NOBODYS_QP);
	assert_drop(from(ALICE, &f), no_holder);
}

static void what_comes_goes_to_the_qps_client(void **state)
{
	struct octets f = in(BOBS_QP), g = in(NOBODYS_QP);

	(void)state;
	assert_int_equal(came(&f).verdict, SWITCH_TO_CLIENT);
	assert_int_equal(came(&f).client, BOB);
	assert_drop(came(&g), no_holder);
	f.len += 4; /* the wire's padding */
	assert_int_equal(came(&f).verdict, SWITCH_TO_CLIENT);
	f.h[33]++;
	assert_drop(came(&f), target);
}

#define TEST(fn) cmocka_unit_test_setup(fn, qps_up)

static const struct CMUnitTest tests[] = {
	TEST(a_client_sends_from_its_qp),
	TEST(management_needs_its_qp),
	TEST(who_has_a_qp_says_where_it_is),
	TEST(uc_needs_any_qp),
	TEST(nothing_else_is_sent),
	TEST(lengths_fit),
	TEST(the_headers_are_in_the_packet),
	TEST(nothing_goes_to_groups_or_loopback),
	TEST(what_is_copied_has_one_length),
	TEST(a_question_about_a_qp_goes_to_its_client),
	TEST(all_are_asked_about_an_unknown_qp_now_and_then),
	TEST(an_answer_goes_to_who_asked),
	TEST(other_management_wakes_nobody),
	TEST(clients_reach_each_other),
	TEST(what_comes_goes_to_the_qps_client),
};

UWTEST_MAIN(tests)
