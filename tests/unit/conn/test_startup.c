/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's start-up without a TCP: both sides' frames are carried by hand. */
#include <arpa/inet.h>

#include "base/log.h"
#include "conn/listener.h"
#include "world.h"

#define SECOND 1000000u
#define A_QP   2u
#define B_QP   3u

static unsigned lines; /* on stderr */

/* In place of base/log.c's. */
void uw_vlog(const char *fmt, va_list ap)
{
	lines++;
	vprint_message(fmt, ap);
	print_message("\n");
}

void uw_log(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	uw_vlog(fmt, ap);
	va_end(ap);
}

/* An initiator and, once its SYN was carried, a responder. */
struct bench {
	struct world *w;
	struct world_qp *qa, *qb;
	struct conn *a, *b;
	struct listener ls;
	unsigned a_events[16], b_events[16]; /* by enum uw_cm_event_type */
	uint16_t peer_ird, peer_ord;	     /* as the last event had them */
	bool requested;
	size_t a_carried, b_carried; /* octets of what each has sent */
};

static struct bench *bench;

static void on_a(struct conn *c, enum uw_cm_event_type type, const struct uw_cm_event *ev)
{
	(void)c;
	bench->a_events[type]++;
	bench->peer_ird = ev->param.ird;
	bench->peer_ord = ev->param.ord;
}

static void on_b(struct conn *c, enum uw_cm_event_type type, const struct uw_cm_event *ev)
{
	(void)c;
	(void)ev;
	bench->b_events[type]++;
}

static const struct conn_user user_a = { .event = on_a }, user_b = { .event = on_b };

static void on_request(struct listener *ls, struct conn *c, struct uw_cm_event *ev)
{
	(void)ls;
	c->user = &user_b;
	bench->requested = true;
	bench->peer_ird = ev->param.ird;
	bench->peer_ord = ev->param.ord;
}

static struct conn *initiator(struct world *w, uint16_t ird, uint16_t ord)
{
	struct conn *c = conn_create(world_stack(w, 0), CONN_INITIATOR);

	assert_non_null(c);
	c->request = calloc(1, sizeof(*c->request));
	assert_non_null(c->request);
	c->request->want = (struct cm_param){ .pd = { c->request->pd, 0 }, .ird = ird, .ord = ord };
	c->l = &w->stack[0].link[0];
	c->local = uw_ip_v4(htonl(0x0a000001));
	c->remote = uw_ip_v4(htonl(0x0a000002));
	c->lport = htons(40000);
	c->rport = htons(7471);
	c->user = &user_a;
	return c;
}

static struct bench *open_bench(uint16_t ird, uint16_t ord)
{
	const struct llp_place at = { .port = htons(7471) };
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	bench = b;
	b->w = world_open(1);
	b->qa = world_qp(b->w, A_QP, NULL);
	b->qb = world_qp(b->w, B_QP, NULL);
	b->ls.requested = on_request;
	assert_status(listener_start(&b->ls, world_stack(b->w, 0), &b->w->stack[0].link[0], &at, 5,
				     LISTENER_AT_HOME),
		      UW_OK);
	b->a = initiator(b->w, ird, ord);
	return b;
}

static void close_bench(struct bench *b)
{
	assert_int_equal(b->w->stack[0].s.sched.stats.conn_bad_state, 0);
	listener_stop(&b->ls);
	world_qp_free(b->qa);
	world_qp_free(b->qb);
	world_close(b->w);
	free(b);
}

static uw_status connect_a(struct bench *b)
{
	return conn_connect(b->a, &b->qa->c, CONN_PATIENCE_US);
}

/* What one has sent since the last time goes to the other. */
static void carry(struct llp_conn *from, size_t *done, struct conn *to)
{
	const struct uw_span s = { from->sent + *done, from->n_sent - *done };

	if (!s.n)
		return;
	*done = from->n_sent;
	assert_int_equal(conn_llp_user.rx(to, uw_rope_of(&s)), s.n);
}

/* TCP comes up on both sides, and the Request arrives. */
static void request_comes(struct bench *b)
{
	struct llp_conn *in = fake_llp_conn(NULL);

	b->b = conn_llp_user.accepted(&b->ls.part[0], in);
	assert_non_null(b->b);
	in->ctx = b->b;
	conn_llp_user.connected(b->a);
	assert_int_equal(b->a->state, CONN_STARTING);
	carry(b->a->llp, &b->a_carried, b->b);
	assert_true(b->requested);
	assert_int_equal(b->b->state, CONN_REQUESTED);
}

static void reply_comes(struct bench *b, uint16_t ird, uint16_t ord)
{
	const struct cm_param p = { .ird = ird, .ord = ord };

	assert_status(conn_accept(b->b, &b->qb->c, &p), UW_OK);
	assert_int_equal(b->b->state, CONN_STREAMING);
	assert_int_equal(b->b_events[UW_CM_ESTABLISHED], 1);
	carry(b->b->llp, &b->b_carried, b->a);
}

static void pass(struct bench *b, uint64_t us)
{
	b->w->now_us += us;
	conn_timers(world_stack(b->w, 0), b->w->now_us);
}

/* ---- coming up --------------------------------------------------------------------------------
 */

static void both_sides_come_up(void **state)
{
	struct bench *b = open_bench(4, 4);

	(void)state;
	assert_status(connect_a(b), UW_OK);
	assert_int_equal(b->a->state, CONN_CONNECTING);
	assert_ptr_equal(b->qa->c.claimed_by, b->a);
	request_comes(b);
	assert_null(b->a->request);
	reply_comes(b, 4, 4);
	assert_int_equal(b->a->state, CONN_STREAMING);
	assert_int_equal(b->a_events[UW_CM_ESTABLISHED], 1);
	assert_ptr_equal(b->qa->c.conn, b->a);
	assert_null(b->qa->c.claimed_by);
	assert_null(b->a->claimed);
	assert_null(b->a->cm);
	assert_int_equal(b->qa->c.qp.state, UW_QPS_RTS);
	close_bench(b);
}

/* RFC 6581 §9.1: no Read goes to a peer that takes none. */
static void an_ord_of_0_stays_0(void **state)
{
	struct bench *b = open_bench(4, 0);

	(void)state;
	assert_status(connect_a(b), UW_OK);
	request_comes(b);
	assert_int_equal(b->peer_ord, 0);
	reply_comes(b, 0, 0);
	assert_int_equal(b->qa->c.qp.rd.orq.cap, 0);
	assert_int_equal(b->qb->c.qp.rd.orq.cap, 0);
	assert_int_equal(b->qb->c.qp.rd.irq.cap, 0);
	close_bench(b);
}

static void a_reply_without_reads_stops_ours(void **state)
{
	struct bench *b = open_bench(4, 4);

	(void)state;
	assert_status(connect_a(b), UW_OK);
	request_comes(b);
	reply_comes(b, 0, 0); /* its program takes no Reads */
	assert_int_equal(b->qa->c.qp.rd.orq.cap, 0);
	close_bench(b);
}

/* ---- CRC ---------------------------------------------------------------------------------- */

/* Is the CRC on at both ends? asked: UWARP_CRC. */
static bool agree_on_crc(const char *asked, unsigned flags, bool peer_asks)
{
	struct bench *b;
	bool on;

	setenv("UWARP_CRC", asked, 1);
	b = open_bench(4, 4);
	unsetenv("UWARP_CRC");
	b->w->stack[0].link[0].flags = flags;
	assert_status(connect_a(b), UW_OK);
	request_comes(b);
	b->b->cm->peer.crc |= peer_asks;
	reply_comes(b, 4, 4);
	on = b->qa->c.qp.mrx.crc;
	assert_int_equal(b->qb->c.qp.mrx.crc, on);
	assert_int_equal(b->qb->c.qp.mtx.crc, on);
	assert_int_equal(b->qa->c.qp.mtx.crc, on);
	close_bench(b);
	return on;
}

/* RFC 5044 §4.4: on, unless the administrator says otherwise; doc/adr/0043: or frames stay in the
 * memory of one machine. */
static void crc_is_on_where_frames_can_be_damaged(void **state)
{
	(void)state;
	assert_true(agree_on_crc("", 0, false));
	assert_true(agree_on_crc("", IO_P2P, false));
	assert_true(agree_on_crc("auto", 0, false));
	assert_false(agree_on_crc("", IO_P2P | IO_INTACT, false));
	assert_true(agree_on_crc("1", IO_P2P | IO_INTACT, false));
	assert_false(agree_on_crc("0", 0, false));
}

/* RFC 5044 §7.1.1: it is used when either frame asks; the Reply then says so. */
static void crc_is_on_where_the_peer_asks(void **state)
{
	(void)state;
	assert_true(agree_on_crc("", IO_P2P | IO_INTACT, true));
}

/* ---- a QP has one connection --------------------------------------------------------------------
 */

static void a_qp_that_is_promised_is_not_given_again(void **state)
{
	struct bench *b = open_bench(4, 4);
	const struct cm_param p = { 0 };

	(void)state;
	assert_status(conn_check_qp(&b->qa->c), UW_OK);
	assert_status(connect_a(b), UW_OK);
	assert_status(conn_check_qp(&b->qa->c), UW_E_STATE);
	request_comes(b);
	assert_status(conn_accept(b->b, &b->qa->c, &p), UW_E_STATE);
	assert_int_equal(b->b->state, CONN_REQUESTED);
	reply_comes(b, 4, 4);
	assert_status(conn_check_qp(&b->qa->c), UW_E_STATE);
	assert_status(conn_check_qp(&b->qb->c), UW_E_STATE);
	close_bench(b);
}

static void a_qp_that_is_destroyed_leaves_no_connection_behind(void **state)
{
	struct bench *b = open_bench(4, 4);
	const struct cm_param p = { 0 };

	(void)state;
	assert_status(connect_a(b), UW_OK);
	request_comes(b);
	conn_qp_forget(&b->qa->c);
	assert_null(b->a->claimed);
	assert_status(conn_accept(b->b, &b->qb->c, &p), UW_OK);
	carry(b->b->llp, &b->b_carried, b->a);
	assert_int_equal(b->a->state, CONN_ENDED);
	assert_int_equal(b->a_events[UW_CM_CONNECT_ERROR], 1);
	assert_int_equal(b->a_events[UW_CM_ESTABLISHED], 0);
	assert_null(b->qa->c.conn);
	close_bench(b);
}

static void a_connection_that_goes_gives_its_qp_back(void **state)
{
	struct bench *b = open_bench(4, 4);

	(void)state;
	assert_status(connect_a(b), UW_OK);
	conn_free(b->a);
	assert_null(b->qa->c.claimed_by);
	assert_status(conn_check_qp(&b->qa->c), UW_OK);
	assert_int_equal(b->a_events[UW_CM_CONNECT_ERROR], 0);
	close_bench(b);
}

static void if_it_cannot_even_begin_the_qp_is_free(void **state)
{
	struct bench *b = open_bench(4, 4);

	(void)state;
	fake_llp.connect = UW_E_NOMEM;
	assert_status(connect_a(b), UW_E_NOMEM);
	assert_null(b->qa->c.claimed_by);
	assert_int_equal(b->a->state, CONN_NEW);
	close_bench(b);
}

/* ---- what goes wrong ---------------------------------------------------------------------- */

static void a_refusal_is_tried_again_for_a_while(void **state)
{
	struct bench *b = open_bench(4, 4);

	(void)state;
	assert_status(connect_a(b), UW_OK);
	for (unsigned i = 0; i < 4; i++) {
		conn_llp_user.closed(b->a, UW_E_REFUSED);
		assert_int_equal(b->a->state, CONN_RETRY);
		assert_null(b->a->llp);
		pass(b, CONN_PATIENCE_US / 5);
		assert_int_equal(b->a->state, CONN_CONNECTING);
		assert_int_equal(fake_llp.connects, 2 + i);
	}
	pass(b, CONN_PATIENCE_US / 5);
	conn_llp_user.closed(b->a, UW_E_REFUSED);
	assert_int_equal(b->a->state, CONN_ENDED);
	assert_int_equal(b->a_events[UW_CM_REFUSED], 1);
	assert_null(b->qa->c.claimed_by);
	close_bench(b);
}

static void a_peer_that_does_not_answer_is_unreachable(void **state)
{
	struct bench *b = open_bench(4, 4);
	struct llp_conn *llp;

	(void)state;
	assert_status(connect_a(b), UW_OK);
	llp = b->a->llp;
	pass(b, b->w->cfg.connect_ms * 1000ull - 1);
	assert_int_equal(b->a->state, CONN_CONNECTING);
	pass(b, 1);
	assert_int_equal(b->a->state, CONN_ENDED);
	assert_int_equal(b->a_events[UW_CM_UNREACHABLE], 1);
	assert_true(llp->aborted);
	close_bench(b);
}

/* RFC 5044 §7.1.4: a Reply that does not come. The peer's program has as long as it needs for other
 * connects before this one; TCP's own limit for connecting does not count any more. */
static void a_reply_that_does_not_come_ends_it(void **state)
{
	struct bench *b = open_bench(4, 4);

	(void)state;
	assert_status(connect_a(b), UW_OK);
	request_comes(b);
	pass(b, 3 * b->w->cfg.connect_ms * 1000ull - 1);
	assert_int_equal(b->a->state, CONN_STARTING);
	pass(b, 1);
	assert_int_equal(b->a->state, CONN_ENDED);
	assert_int_equal(b->a_events[UW_CM_CONNECT_ERROR] + b->a_events[UW_CM_UNREACHABLE], 1);
	assert_null(b->qa->c.claimed_by);
	close_bench(b);
}

/* RFC 5044 §7.1.2: a responder whose Request never comes is forgotten. */
static void a_request_that_does_not_come_is_not_waited_for(void **state)
{
	struct bench *b = open_bench(4, 4);
	struct llp_conn *in = fake_llp_conn(NULL);

	(void)state;
	in->ctx = conn_llp_user.accepted(&b->ls.part[0], in);
	assert_non_null(in->ctx);
	pass(b, b->w->cfg.connect_ms * 1000ull);
	assert_true(in->aborted);
	assert_ptr_equal(b->w->stack[0].s.conns, b->a); /* alone */
	assert_null(b->a->next);
	close_bench(b);
}

static void a_peer_that_goes_during_start_up_ends_it(void **state)
{
	struct bench *b = open_bench(4, 4);
	const struct cm_param p = { 0 };

	(void)state;
	assert_status(connect_a(b), UW_OK);
	request_comes(b);
	conn_llp_user.closed(b->b, UW_OK);
	conn_llp_user.closed(b->a, UW_E_LLP_CLOSED);
	assert_int_equal(b->a->state, CONN_ENDED);
	assert_int_equal(b->a_events[UW_CM_CONNECT_ERROR], 1);
	/* the responder's program finds out when it answers */
	assert_int_equal(b->b->state, CONN_ENDED);
	assert_status(conn_accept(b->b, &b->qb->c, &p), UW_E_LLP_CLOSED);
	assert_status(conn_reject(b->b, &p), UW_E_LLP_CLOSED);
	assert_null(b->qb->c.conn);
	close_bench(b);
}

static void a_rejection_is_told(void **state)
{
	struct bench *b = open_bench(4, 4);
	const struct cm_param p = { 0 };

	(void)state;
	assert_status(connect_a(b), UW_OK);
	request_comes(b);
	assert_status(conn_reject(b->b, &p), UW_OK);
	assert_int_equal(b->b->state, CONN_ENDED);
	assert_status(conn_accept(b->b, &b->qb->c, &p), UW_E_LLP_CLOSED);
	for (unsigned i = 0; i < fake_llp.n_conns; i++) {
		if (fake_llp.conn[i]->ctx == b->b)
			carry(fake_llp.conn[i], &b->b_carried, b->a);
	}
	assert_int_equal(b->a_events[UW_CM_REJECTED], 1);
	assert_int_equal(b->a->state, CONN_ENDED);
	close_bench(b);
}

/* ---- who connects and says nothing ------------------------------------------------------------
 */

#define LIMIT 8u

static void *comes_from(struct bench *b, unsigned host)
{
	struct llp_conn *in = fake_llp_conn(NULL);
	void *c;

	in->addrs.remote = uw_ip_v4(htonl(0x0a000100 + host));
	c = conn_llp_user.accepted(&b->ls.part[0], in);
	in->ctx = c;
	return c;
}

/* RFC 5042 §6.4.1: of one host's silent connections the oldest gives way, and none that is young;
 * another host's get in. */
static void one_host_gets_its_share_of_silence(void **state)
{
	struct bench *b = open_bench(4, 4);
	const struct uw_stats *stats = &b->w->stack[0].s.sched.stats;
	struct llp_conn *first;

	(void)state;
	b->w->cfg.silent_per_host = LIMIT;
	first = ((struct conn *)comes_from(b, 1))->llp;
	for (unsigned i = 1; i < LIMIT; i++)
		assert_non_null(comes_from(b, 1));
	assert_null(comes_from(b, 1));
	assert_int_equal(stats->conn_silent_refused, 1);
	assert_non_null(comes_from(b, 2));
	b->w->now_us += SECOND / 2;
	assert_null(comes_from(b, 1));
	b->w->now_us += SECOND / 2;
	b->w->cfg.connect_ms = 5000;
	assert_false(first->aborted);
	assert_non_null(comes_from(b, 1));
	assert_true(first->aborted);
	assert_int_equal(stats->conn_silent_dropped, 1);
	close_bench(b);
}

/* Whoever has spoken does not count, nor who left, nor other processes of this machine. */
static void who_speaks_does_not_count(void **state)
{
	struct bench *b = open_bench(4, 4);

	(void)state;
	b->w->cfg.silent_per_host = 1;
	assert_status(connect_a(b), UW_OK);
	request_comes(b);
	reply_comes(b, 4, 4);
	assert_non_null(comes_from(b, 1));
	assert_null(comes_from(b, 1));
	conn_llp_user.closed(b->w->stack[0].s.conns, UW_E_LLP_CLOSED);
	assert_non_null(comes_from(b, 1));
	b->w->stack[0].link[0].flags = IO_P2P;
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(comes_from(b, 1));
	b->w->stack[0].link[0].flags = 0;
	b->w->cfg.silent_per_host = 0; /* no limit */
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(comes_from(b, 1));
	close_bench(b);
}

/* RFC 5042 §6.4.1: one host leaves room for others, whatever it says. Those that ended do not
 * count, nor other processes of this machine. */
static void one_host_gets_its_share_of_connections(void **state)
{
	struct bench *b = open_bench(4, 4);
	const struct uw_stats *stats = &b->w->stack[0].s.sched.stats;
	struct conn *c;

	(void)state;
	b->w->cfg.conns_per_host = 2;
	c = comes_from(b, 1);
	assert_non_null(comes_from(b, 1));
	silent_remove(c); /* it has spoken */
	assert_null(comes_from(b, 1));
	assert_int_equal(stats->conn_host_refused, 1);
	assert_int_equal(stats->conn_silent_refused, 0);
	assert_non_null(comes_from(b, 2));
	conn_llp_user.closed(c, UW_E_LLP_CLOSED);
	assert_non_null(comes_from(b, 1));
	assert_null(comes_from(b, 1));
	b->w->stack[0].link[0].flags = IO_P2P;
	assert_non_null(comes_from(b, 1));
	b->w->stack[0].link[0].flags = 0;
	b->w->cfg.conns_per_host = 0; /* no limit */
	assert_non_null(comes_from(b, 1));
	close_bench(b);
}

/* ---- what is said ------------------------------------------------------------------------- */

/* How many lines come of as many vain tries of three peers in turn? */
static unsigned lines_of(const struct bench *b, unsigned tries)
{
	unsigned before = lines;

	for (unsigned i = 0; i < tries; i++) {
		struct uw_ip to = uw_ip_v4(htonl(0x0a000002 + i % 3));

		conn_log_failed(world_stack(b->w, 0), &to, htons(7471), UW_E_REFUSED);
	}
	return lines - before;
}

static void dead_peers_are_named_once_a_minute(void **state)
{
	struct bench *b = open_bench(4, 4);

	(void)state;
	assert_int_equal(lines_of(b, 30), 3);
	b->w->now_us += 59 * SECOND;
	assert_int_equal(lines_of(b, 30), 0);
	b->w->now_us += SECOND;
	assert_int_equal(lines_of(b, 30), 3);
	close_bench(b);
}

static void a_peer_that_worked_since_is_named_again(void **state)
{
	struct bench *b = open_bench(4, 4);

	(void)state;
	assert_int_equal(lines_of(b, 30), 3);
	assert_status(connect_a(b), UW_OK);
	request_comes(b);
	reply_comes(b, 4, 4);
	assert_int_equal(lines_of(b, 30), 1); /* initiator() has its address */
	close_bench(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_come_up),
		cmocka_unit_test(an_ord_of_0_stays_0),
		cmocka_unit_test(a_reply_without_reads_stops_ours),
		cmocka_unit_test(crc_is_on_where_frames_can_be_damaged),
		cmocka_unit_test(crc_is_on_where_the_peer_asks),
		cmocka_unit_test(a_qp_that_is_promised_is_not_given_again),
		cmocka_unit_test(a_qp_that_is_destroyed_leaves_no_connection_behind),
		cmocka_unit_test(a_connection_that_goes_gives_its_qp_back),
		cmocka_unit_test(if_it_cannot_even_begin_the_qp_is_free),
		cmocka_unit_test(a_refusal_is_tried_again_for_a_while),
		cmocka_unit_test(a_peer_that_does_not_answer_is_unreachable),
		cmocka_unit_test(a_reply_that_does_not_come_ends_it),
		cmocka_unit_test(a_request_that_does_not_come_is_not_waited_for),
		cmocka_unit_test(a_peer_that_goes_during_start_up_ends_it),
		cmocka_unit_test(a_rejection_is_told),
		cmocka_unit_test(one_host_gets_its_share_of_silence),
		cmocka_unit_test(who_speaks_does_not_count),
		cmocka_unit_test(one_host_gets_its_share_of_connections),
		cmocka_unit_test(dead_peers_are_named_once_a_minute),
		cmocka_unit_test(a_peer_that_worked_since_is_named_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
