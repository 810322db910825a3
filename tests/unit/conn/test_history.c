/* SPDX-License-Identifier: BSD-3-Clause */
/* What a connection remembers, what is said of its end, and walks over connections that end. */
#include <arpa/inet.h>

#include "conn/verdict.h"
#include "world.h"

/* ---- history ------------------------------------------------------------------------------- */

static void the_oldest_event_gives_way(void **state)
{
	struct history h = { 0 };

	(void)state;
	for (unsigned i = 0; i < HISTORY_EVENTS + 3; i++)
		history_add(&h, i * 1000, i % 2 ? LLP_RTO : LLP_PROBE, i);
	assert_int_equal(history_count(&h), HISTORY_EVENTS);
	for (unsigned i = 0; i < HISTORY_EVENTS; i++) {
		assert_int_equal(history_at(&h, i)->arg, i + 3);
		assert_int_equal(history_at(&h, i)->first_us, (i + 3) * 1000);
	}
	assert_int_equal(history_last(&h, LLP_PROBE)->arg, HISTORY_EVENTS + 2);
	assert_null(history_last(&h, LLP_RESET));
}

static void what_repeats_is_counted(void **state)
{
	struct history h = { 0 };

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		history_add(&h, 5000 + i * 2000, LLP_SENT_AGAIN, i);
	assert_int_equal(history_count(&h), 1);
	assert_int_equal(history_at(&h, 0)->count, 1000);
	assert_int_equal(history_at(&h, 0)->for_ms, 1998);
	assert_int_equal(history_at(&h, 0)->arg, 999);
	history_add(&h, 0, HISTORY_STATE, CONN_STREAMING);
	history_add(&h, 0, HISTORY_STATE, CONN_ENDED);
	assert_int_equal(history_count(&h), 3);
}

static void every_event_has_a_text(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HISTORY_KINDS; i++)
		assert_non_null(history_text(i));
	assert_string_equal(history_text(HISTORY_KINDS), "?");
	for (unsigned i = 0; i < CONN_STATES; i++)
		assert_string_not_equal(conn_state_name(i), "?");
}

static void states_are_remembered(void **state)
{
	struct world *w = world_open(1);
	struct world_qp *q = world_qp(w, 2, NULL);
	struct conn *c = world_streaming(w, 0, q);
	uint32_t n = history_count(&c->history);

	(void)state;
	assert_int_equal(history_at(&c->history, n - 1)->kind, HISTORY_STATE);
	assert_int_equal(history_at(&c->history, n - 1)->arg, CONN_STREAMING);
	conn_llp_user.note(c, LLP_RTO, 40);
	assert_int_equal(history_last(&c->history, LLP_RTO)->arg, 40);
	world_qp_free(q);
	world_close(w);
}

/* ---- what happened ------------------------------------------------------------------------- */

static unsigned told;
static char said[CONN_VERDICT_TEXT];

static void on_failed(void *arg, const struct conn *c, uw_status why)
{
	assert_ptr_equal(arg, &told);
	told++;
	conn_verdict(c, why, said);
}

/* TCP sends again after each timeout. */
static void gives_up(struct conn *c, uint32_t timeouts)
{
	for (uint32_t i = 0; i < timeouts; i++) {
		conn_llp_user.note(c, LLP_RTO, 100 << i);
		conn_llp_user.note(c, LLP_SENT_AGAIN, 1);
	}
	conn_llp_user.note(c, LLP_TIMEOUTS, timeouts);
}

/* The QP of a connection to 10.0.0.2:7471 with `posted` requests fails. */
static void fails(int note, uint32_t arg, uw_status why, unsigned posted)
{
	struct world *w = world_open(1);
	struct world_qp *q = world_qp(w, 2, NULL);
	struct conn *c = world_streaming(w, 0, q);

	w->d.hooks.failed = on_failed;
	w->d.hooks.failed_arg = &told;
	c->remote = uw_ip_v4(inet_addr("10.0.0.2"));
	c->rport = htons(7471);
	told = 0;
	*said = '\0';
	for (unsigned i = 0; i < posted; i++)
		world_post_write(q, i, 32);
	if (note == LLP_UNANSWERED && arg)
		gives_up(c, 7);
	if (note >= 0)
		conn_llp_user.note(c, (enum llp_note)note, arg);
	conn_qp_down(c->qp, why);
	world_qp_free(q);
	world_close(w);
}

static void one_sentence_says_what_happened(void **state)
{
	static const struct {
		int note;
		uint32_t arg;
		uw_status why;
		const char *text;
	} rows[] = {
		{ LLP_UNANSWERED, 12345, UW_E_LLP_CLOSED,
		  "peer 10.0.0.2:7471 sent no ACK for 12.3 s: TCP gave up after 7 timeouts in a "
		  "row" },
		{ LLP_UNANSWERED, 0, UW_E_LLP_CLOSED,
		  "peer 10.0.0.2:7471 sent no ACK: TCP gave up" },
		{ LLP_SILENT, 17000, UW_E_LLP_CLOSED,
		  "peer 10.0.0.2:7471 sent nothing for 17.0 s and answered no keepalive" },
		{ LLP_RESET, 0, UW_E_LLP_CLOSED,
		  "peer 10.0.0.2:7471 reset the TCP connection (RST)" },
		{ LLP_PROCESS_GONE, 0, UW_E_LLP_CLOSED,
		  "the process of peer 10.0.0.2:7471 has ended" },
		{ -1, 0, UW_E_LLP_CLOSED, "the TCP connection to peer 10.0.0.2:7471 is lost" },
		{ -1, 0, UW_OK,
		  "peer 10.0.0.2:7471 closed the connection while 2 requests were not done" },
		{ -1, 0, UW_E_DDP_NO_BUFFER,
		  "peer 10.0.0.2:7471 sent a message, and no receive was posted for it in time" },
		{ -1, 0, UW_E_NOMEM,
		  "a completion queue of the QP connected to peer 10.0.0.2:7471 overflowed" },
	};

	(void)state;
	for (unsigned i = 0; i < COUNT(rows); i++) {
		fails(rows[i].note, rows[i].arg, rows[i].why, 2);
		assert_int_equal(told, 1);
		assert_string_equal(said, rows[i].text);
	}
	for (uw_status st = UW_OK; st < UW_STATUS_COUNT; st++) {
		fails(-1, 0, st, 1);
		assert_int_equal(told, st != UW_E_FLUSHED);
		assert_true(!told || strstr(said, "peer 10.0.0.2:7471"));
	}
}

static void an_orderly_end_is_no_failure(void **state)
{
	(void)state;
	fails(-1, 0, UW_OK, 0);
	assert_int_equal(told, 0);
	fails(-1, 0, UW_E_FLUSHED, 3);
	assert_int_equal(told, 0);
}

/* ---- walks --------------------------------------------------------------------------------- */

static void a_walk_survives_ends_and_beginnings(void **state)
{
	struct world *w = world_open(1);
	struct stack *s = world_stack(w, 0);
	struct conn *c[6], *first, *late;
	struct conn_walk walk, other;

	(void)state;
	for (unsigned i = 0; i < COUNT(c); i++)
		c[i] = conn_create(s, CONN_INITIATOR);
	conn_walk_begin(&walk, s);
	conn_walk_begin(&other, s);
	first = conn_walk_next(&walk);
	assert_ptr_equal(first, c[5]); /* the newest is in front */
	conn_free(c[5]);
	conn_free(c[4]);
	conn_free(c[3]);
	late = conn_create(s, CONN_INITIATOR);
	assert_ptr_equal(conn_walk_next(&walk), c[2]);
	assert_ptr_equal(conn_walk_next(&other), c[2]);
	conn_free(c[2]);
	assert_ptr_equal(conn_walk_next(&walk), c[1]);
	conn_walk_end(&walk);
	assert_ptr_equal(conn_walk_next(&other), c[1]);
	assert_ptr_equal(conn_walk_next(&other), c[0]);
	conn_free(c[0]);
	assert_null(conn_walk_next(&other));
	conn_walk_end(&other);
	assert_null(s->walks);
	conn_free(c[1]);
	conn_free(late);
	world_close(w);
}

static void a_report_has_what_was_asked_of_the_qp(void **state)
{
	struct world *w = world_open(1);
	struct world_qp *q = world_qp(w, 2, NULL);
	struct conn *c = world_streaming(w, 0, q);
	struct conn_report r;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		world_post_write(q, i, 32);
	world_post_recv(&q->c.qp.own_rq, 1);
	conn_report(c, &r);
	assert_string_equal(r.state, "streaming");
	assert_int_equal(r.qpn, 2);
	assert_int_equal(r.sends, 3);
	assert_int_equal(r.recvs, 1);
	world_qp_free(q);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_event_gives_way),
		cmocka_unit_test(what_repeats_is_counted),
		cmocka_unit_test(every_event_has_a_text),
		cmocka_unit_test(states_are_remembered),
		cmocka_unit_test(one_sentence_says_what_happened),
		cmocka_unit_test(an_orderly_end_is_no_failure),
		cmocka_unit_test(a_walk_survives_ends_and_beginnings),
		cmocka_unit_test(a_report_has_what_was_asked_of_the_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
