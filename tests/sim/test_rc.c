/* SPDX-License-Identifier: BSD-3-Clause */
/* CM-less RC: two QPs that name each other find each other, whoever is first and whatever is lost
 * on the way; and the states are InfiniBand's. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cm/rc.h"
#include "net.h"

#define ALL (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)

static struct sim *open_sim(const struct sim_options *o)
{
	struct sim *s = calloc(1, sizeof(*s));

	sim_open(s, o);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_INIT), 0);
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_INIT), 0);
	return s;
}

static void close_sim(struct sim *s)
{
	sim_close(s);
	free(s);
}

static void a_names_b(struct sim *s)
{
	assert_int_equal(sim_name_peer(s->a.qp, SIM_A, SIM_B, uw_qp_num(s->b.qp)), 0);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_RTR);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RTS), 0);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_RTS);
}

static void b_names_a(struct sim *s)
{
	assert_int_equal(sim_name_peer(s->b.qp, SIM_B, SIM_A, uw_qp_num(s->a.qp)), 0);
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_RTS), 0);
}

static void post(struct sim_side *side, uint32_t op, uint64_t id)
{
	struct uw_send_wr wr = { .wr_id = id, .opcode = op, .flags = UW_SEND_SIGNALED };

	sim_post_send(side, &wr);
}

/* One Send of n octets each way, which need not be in turn. */
static void both_ways(struct sim *s)
{
	uint8_t ab[64] = "to b", ba[64] = "to a", at_a[64] = "", at_b[64] = "";
	struct uw_mr *m[4] = { sim_mr(&s->a, ab, 64, ALL), sim_mr(&s->b, ba, 64, ALL),
			       sim_mr(&s->a, at_a, 64, ALL), sim_mr(&s->b, at_b, 64, ALL) };
	struct uw_sge sa = { (uintptr_t)ab, 64, uw_mr_stag(m[0]) },
		      sb = { (uintptr_t)ba, 64, uw_mr_stag(m[1]) };
	struct uw_send_wr wr = { .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED };

	sim_post_recv(&s->a, 1, at_a, 64, m[2]);
	sim_post_recv(&s->b, 2, at_b, 64, m[3]);
	wr.sg_list = &sb; /* the side that is called may speak first */
	sim_post_send(&s->b, &wr);
	wr.sg_list = &sa;
	sim_post_send(&s->a, &wr);
	assert_int_equal(sim_wc(s, s->a.rcq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(s, s->b.rcq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(s, s->b.scq).status, UW_WC_SUCCESS);
	assert_string_equal(at_a, "to a");
	assert_string_equal(at_b, "to b");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(uw_mr_dereg(m[i]), 0);
}

/* They have met. */
static struct sim *open_met(void)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });

	a_names_b(s);
	b_names_a(s);
	both_ways(s);
	return s;
}

static void both_at_once(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 5; seed++) {
		struct sim *s = open_sim(&(struct sim_options){
			.drop_ppm = seed ? 50000 : 0, .dup_ppm = seed ? 20000 : 0, .seed = seed });

		a_names_b(s);
		b_names_a(s);
		both_ways(s);
		close_sim(s);
	}
}

/* The one that calls (a, whose address is lower) is first. And the reverse. */
static void one_long_after_the_other(void **state)
{
	(void)state;
	for (unsigned caller_first = 0; caller_first < 2; caller_first++) {
		struct sim *s = open_sim(&(struct sim_options){ 0 });

		if (caller_first)
			a_names_b(s);
		else
			b_names_a(s);
		sim_run_us(s, 90000000); /* nothing is posted: there is no hurry */
		if (caller_first)
			b_names_a(s);
		else
			a_names_b(s);
		both_ways(s);
		close_sim(s);
	}
}

/* Its call lies with b's process, which gives it back after a minute, and it calls again. */
static void a_call_that_waits_long_is_made_anew(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	struct sim_side other = { 0 };

	(void)state;
	s->e->cfg.rc_wait_ms = 200000;
	sim_open_side(s, &other, NULL); /* for whom b's process listens */
	assert_int_equal(uw_qp_modify(other.qp, UW_QPS_INIT), 0);
	assert_int_equal(sim_name_peer(other.qp, SIM_B, SIM_A, 4711), 0);
	a_names_b(s);
	sim_run_us(s, 90000000);
	b_names_a(s);
	both_ways(s);
	sim_close_side(&other);
	close_sim(s);
}

static bool b_heard(void *arg)
{
	return ((struct sim *)arg)->b.async[UW_EVENT_COMM_EST];
}

/* InfiniBand's COMM_EST: who is still in RTR hears that the peer has spoken, once. */
static void who_waits_in_rtr_is_told_of_the_peer(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	uint8_t octets[8];
	struct uw_mr *m = sim_mr(&s->b, octets, sizeof(octets), ALL);

	(void)state;
	assert_int_equal(sim_name_peer(s->b.qp, SIM_B, SIM_A, uw_qp_num(s->a.qp)), 0);
	a_names_b(s);
	assert_true(sim_until(s, b_heard, s, 60000000));
	for (unsigned i = 0; i < 2; i++) {
		sim_post_recv(&s->b, i, octets, sizeof(octets), m);
		post(&s->a, UW_WR_SEND, i);
		assert_int_equal(sim_wc(s, s->b.rcq).status, UW_WC_SUCCESS);
		assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	}
	assert_int_equal(uw_mr_dereg(m), 0);
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_RTS), 0);
	both_ways(s);
	assert_int_equal(s->b.async[UW_EVENT_COMM_EST], 1);
	assert_int_equal(s->a.async[UW_EVENT_COMM_EST], 0); /* it was in RTS */
	close_sim(s);
}

/* With revision 1 and without peer-to-peer configured, either side may still speak first. */
static void start_up_options_are_its_own(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ .rev1 = true, .no_p2p = true });

	(void)state;
	a_names_b(s);
	b_names_a(s);
	both_ways(s);
	close_sim(s);
}

static void what_is_posted_waits_for_the_peer_but_not_for_ever(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	uint64_t from = s->now_us;
	struct uw_wc wc;

	(void)state;
	s->e->cfg.rc_wait_ms = 2000;
	a_names_b(s);
	post(&s->a, UW_WR_SEND, 5);
	sim_run_us(s, 1500000);
	assert_int_equal(uw_cq_poll(s->a.scq, 1, &wc), 0);
	post(&s->a, UW_WR_SEND, 6); /* which does not keep the first waiting */
	wc = sim_wc(s, s->a.scq);
	assert_true(s->now_us - from < 2500000);
	assert_int_equal(wc.status, UW_WC_RETRY_EXC_ERR);
	assert_int_equal(wc.wr_id, 5);
	wc = sim_wc(s, s->a.scq);
	assert_int_equal(wc.status, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_ERR);
	close_sim(s);
}

static void wrong_numbers_are_refused(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });

	(void)state;
	/* b waits for another one */
	assert_int_equal(sim_name_peer(s->b.qp, SIM_B, SIM_A, 4711), 0);
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_RTS), 0);
	assert_int_equal(sim_name_peer(s->a.qp, SIM_A, SIM_B, 4711), 0); /* there is none */
	sim_run_us(s, 1000000);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_ERR);
	assert_int_equal(s->a.async[UW_EVENT_QP_FATAL], 1);

	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RESET), 0);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_INIT), 0);
	a_names_b(s);
	post(&s->a, UW_WR_SEND, 7);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_RETRY_EXC_ERR);
	assert_int_equal(uw_qp_state(s->b.qp), UW_QPS_RTS); /* nothing happened to it */
	close_sim(s);
}

static void is_refused(struct sim *s)
{
	assert_int_equal(sim_name_peer(s->a.qp, SIM_A, SIM_B, 4711), 0);
	sim_run_us(s, 1000000);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_ERR);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RESET), 0);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_INIT), 0);
}

static unsigned lines_in(int fd)
{
	char said[4096];
	ssize_t n = pread(fd, said, sizeof(said), 0);
	unsigned lines = 0;

	for (ssize_t i = 0; i < n; i++)
		lines += said[i] == '\n';
	return lines;
}

static void refusals_are_counted_and_said_once_a_minute(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	int was = dup(STDERR_FILENO), to = memfd_create("stderr", MFD_CLOEXEC);
	unsigned at_first, later;

	(void)state;
	assert_int_equal(sim_name_peer(s->b.qp, SIM_B, SIM_A, 4711), 0); /* so that b is called */
	dup2(to, STDERR_FILENO);
	for (unsigned i = 0; i < 5; i++)
		is_refused(s);
	at_first = lines_in(to);
	sim_run_us(s, 60000000);
	is_refused(s);
	later = lines_in(to);
	dup2(was, STDERR_FILENO);
	close(was);
	close(to);
	assert_int_equal(at_first, 1);
	assert_int_equal(later, 2);
	assert_int_equal(sim_stats(s).rc_failed, 6);
	close_sim(s);
}

static void names_that_cannot_be(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = { { { 0xfe, 0x80 } } } };
	struct uw_peer p = { .addr = (struct sockaddr *)&six, .qpn = 1 };

	(void)state;
	assert_int_equal(sim_name_peer(s->a.qp, 0x0a0000ff, SIM_B, 1), -EADDRNOTAVAIL);
	assert_int_equal(uw_qp_name_peer(s->a.qp, &p), -EAFNOSUPPORT);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RESET), 0);
	assert_int_equal(sim_name_peer(s->a.qp, SIM_A, SIM_B, 1), -EINVAL); /* not in INIT */
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_RESET);
	close_sim(s);
}

/* The peer's end is no event of ours until there is something to send; receives stay. */
static void a_peer_that_leaves_is_found_out_by_sending(void **state)
{
	struct sim *s = open_met();
	uint8_t b[8];
	struct uw_mr *m = sim_mr(&s->a, b, sizeof(b), ALL);
	struct uw_wc wc;

	(void)state;
	sim_post_recv(&s->a, 9, b, sizeof(b), m);
	assert_int_equal(uw_qp_destroy(s->b.qp), 0);
	s->b.qp = NULL;
	sim_run_us(s, 5000000);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_RTS);
	assert_int_equal(uw_cq_poll(s->a.rcq, 1, &wc), 0);
	post(&s->a, UW_WR_SEND, 5);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_RETRY_EXC_ERR);
	wc = sim_wc(s, s->a.rcq);
	assert_int_equal(wc.status, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(uw_qp_state(s->a.qp), UW_QPS_ERR);
	assert_int_equal(uw_mr_dereg(m), 0);
	close_sim(s);
}

/* What is under way at that moment fails as soon, without another request behind it. */
static void what_is_under_way_to_a_peer_that_leaves_fails(void **state)
{
	struct sim *s = open_met();

	(void)state;
	post(&s->a, UW_WR_SEND, 5);
	assert_int_equal(uw_qp_destroy(s->b.qp), 0);
	s->b.qp = NULL;
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_RETRY_EXC_ERR);
	close_sim(s);
}

static void again(struct uw_qp *qp)
{
	assert_int_equal(uw_qp_modify(qp, UW_QPS_RESET), 0);
	assert_int_equal(uw_qp_modify(qp, UW_QPS_INIT), 0);
}

/* Either side may be reset first, and the other much later: the new pair meets, never a new one and
 * an old one. */
static void qps_are_reset_and_meet_again(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct sim_side *first = i & 1 ? &s->a : &s->b, *second = i & 1 ? &s->b : &s->a;

		a_names_b(s);
		b_names_a(s);
		both_ways(s);
		again(first->qp);
		if (i & 2) {
			if (first == &s->a)
				a_names_b(s);
			else
				b_names_a(s);
			sim_run_us(s, 3000000);
			again(second->qp);
			if (first == &s->a)
				b_names_a(s);
			else
				a_names_b(s);
			both_ways(s);
			again(first->qp);
		}
		again(second->qp);
	}
	close_sim(s);
}

/* The caller is reset while its call lies with the other side, and calls anew. */
static void a_call_is_taken_back(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });

	(void)state;
	a_names_b(s);
	sim_run_us(s, 500000);
	again(s->a.qp);
	a_names_b(s);
	b_names_a(s);
	both_ways(s);
	close_sim(s);
}

/* With a traffic class, which the answer would have had. */
static void and_answered_too_late(void **state)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(SIM_A) };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(SIM_B) };

	(void)state;
	for (uint64_t us = 0; us < 400; us += 10) {
		struct sim *s = open_sim(&(struct sim_options){ 0 });
		struct uw_peer p = { .addr = (struct sockaddr *)&to,
				     .from = (struct sockaddr *)&from,
				     .qpn = uw_qp_num(s->a.qp),
				     .ird = 4,
				     .tos = 0x20 };

		b_names_a(s); /* since then it listens */
		again(s->b.qp);
		a_names_b(s);
		sim_run_us(s, 500000);
		again(s->a.qp);
		sim_run_us(s, us); /* b's stack hears of it sooner or later */
		assert_int_equal(uw_qp_name_peer(s->b.qp, &p), 0);
		assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_RTS), 0);
		a_names_b(s);
		both_ways(s);
		close_sim(s);
	}
}

static bool polled(void *arg)
{
	struct uw_wc wc;

	return uw_cq_poll(arg, 1, &wc) == 1;
}

/* InfiniBand's receiver-not-ready: Sends wait for receives, in their order, and so does the stream
 * behind them, however much that is. */
static void sends_wait_for_receives(void **state)
{
	enum { N = 60, SIZE = 200000 };
	struct sim *s = open_sim(&(struct sim_options){ .mtu = 9000 });
	uint8_t *from = malloc(SIZE), *to = malloc(SIZE);
	struct uw_mr *mf = sim_mr(&s->a, from, SIZE, ALL), *mt = sim_mr(&s->b, to, SIZE, ALL);
	struct uw_sge sge = { (uintptr_t)from, SIZE, uw_mr_stag(mf) };
	struct uw_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND };

	(void)state;
	a_names_b(s);
	b_names_a(s);
	for (unsigned i = 0; i < SIZE; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	for (unsigned i = 0; i < N; i++)
		sim_post_send(&s->a, &wr);
	sim_run_us(s, 20000000);
	assert_int_equal(uw_qp_state(s->b.qp), UW_QPS_RTS);
	assert_false(polled(s->b.rcq));
	for (unsigned i = 0; i < N; i++) {
		memset(to, 0, SIZE);
		sim_post_recv(&s->b, i, to, SIZE, mt);
		assert_true(sim_until(s, polled, s->b.rcq, 20000000));
		assert_memory_equal(from, to, SIZE);
	}
	assert_int_equal(uw_mr_dereg(mf), 0);
	assert_int_equal(uw_mr_dereg(mt), 0);
	free(from);
	free(to);
	close_sim(s);
}

static bool is_in_error(void *qp)
{
	return uw_qp_state(qp) == UW_QPS_ERR;
}

/* How long a Send that finds no receive waits until the sender hears of it; -1: for ever. */
static int64_t rnr_wait_ms(uint8_t a_retries, uint8_t b_retries, bool a_sends)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	struct sim_side *from = a_sends ? &s->a : &s->b, *to = a_sends ? &s->b : &s->a;
	uint64_t since;
	bool done;

	/* 491.52 ms each */
	uw_qp_set_path(s->a.qp, &(struct uw_path){ .rnr_retry = a_retries, .min_rnr_timer = 31 });
	uw_qp_set_path(s->b.qp, &(struct uw_path){ .rnr_retry = b_retries, .min_rnr_timer = 31 });
	a_names_b(s);
	b_names_a(s);
	both_ways(s);
	post(from, UW_WR_SEND, 7);
	since = s->now_us;
	done = sim_until(s, is_in_error, from->qp, 30000000);
	since = (s->now_us - since) / 1000;
	assert_int_equal(sim_stats(s).rnr_timeouts, done);
	/* InfiniBand's responder stays as it is: it is not at fault */
	assert_int_equal(uw_qp_state(to->qp), UW_QPS_RTS);
	assert_int_equal(to->async[UW_EVENT_QP_FATAL], 0);
	if (done) /* the Send is complete: the peer's TCP had it (doc/adr/0014) */
		assert_int_equal(from->async[UW_EVENT_QP_FATAL], 1);
	close_sim(s);
	return done ? (int64_t)since : -1;
}

/* min_rnr_timer is the receiver's, the number of retries the sender's; 7 are for ever. */
static void a_send_without_a_receive_fails_after_its_retries(void **state)
{
	(void)state;
	for (unsigned a_sends = 0; a_sends < 2; a_sends++) {
		assert_in_range(rnr_wait_ms(a_sends ? 6 : 0, a_sends ? 0 : 6, a_sends), 3440, 3470);
		assert_in_range(rnr_wait_ms(a_sends ? 1 : 6, a_sends ? 6 : 1, a_sends), 3000, 3030);
		assert_in_range(rnr_wait_ms(a_sends ? 0 : 7, a_sends ? 7 : 0, a_sends), 3000, 3030);
		assert_int_equal(rnr_wait_ms(a_sends ? 7 : 0, a_sends ? 0 : 7, a_sends), -1);
	}
}

/* A receive in time, and nothing has happened. */
static void a_late_receive_ends_the_retries(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	uint8_t at_b[64];
	struct uw_mr *m = sim_mr(&s->b, at_b, 64, ALL);

	(void)state;
	uw_qp_set_path(s->a.qp, &(struct uw_path){ .rnr_retry = 0, .min_rnr_timer = 1 });
	a_names_b(s);
	b_names_a(s);
	for (unsigned i = 0; i < 5; i++) {
		post(&s->a, UW_WR_SEND, i);
		sim_run_us(s, 2500000);
		sim_post_recv(&s->b, i, at_b, 64, m);
		assert_int_equal(sim_wc(s, s->b.rcq).status, UW_WC_SUCCESS);
		assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	}
	assert_int_equal(uw_mr_dereg(m), 0);
	close_sim(s);
}

/* What was sent before the sender left is received all the same. */
static void a_stream_that_waits_outlives_its_sender(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	uint8_t b[8];
	struct uw_mr *m = sim_mr(&s->b, b, sizeof(b), ALL);

	(void)state;
	a_names_b(s);
	b_names_a(s);
	post(&s->a, UW_WR_SEND, 1);
	post(&s->a, UW_WR_SEND, 2);
	sim_run_us(s, 1000000);
	assert_int_equal(uw_qp_destroy(s->a.qp), 0);
	s->a.qp = NULL;
	sim_run_us(s, 1000000);
	for (unsigned i = 0; i < 2; i++) {
		sim_post_recv(&s->b, i, b, sizeof(b), m);
		assert_int_equal(sim_wc(s, s->b.rcq).status, UW_WC_SUCCESS);
	}
	assert_int_equal(uw_qp_state(s->b.qp), UW_QPS_RTS);
	assert_int_equal(uw_mr_dereg(m), 0);
	close_sim(s);
}

static void sqd_holds_requests_back(void **state)
{
	struct sim *s = open_met();
	struct uw_wc wc;

	(void)state;
	for (unsigned i = 1; i <= 2; i++) {
		assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_SQD), 0);
		assert_int_equal(s->a.async[UW_EVENT_SQ_DRAINED], i);
		post(&s->a, UW_WR_RDMA_WRITE, 5);
		sim_run_us(s, 1000000);
		assert_int_equal(uw_cq_poll(s->a.scq, 1, &wc), 0);
		assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RTS), 0);
		assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
		both_ways(s);
		assert_int_equal(s->a.async[UW_EVENT_SQ_DRAINED], i);
	}
	close_sim(s);
}

static void reset_forgets_what_was_posted(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	uint8_t b[8];
	struct uw_mr *m = sim_mr(&s->a, b, sizeof(b), ALL);
	struct uw_wc wc;

	(void)state;
	a_names_b(s);
	sim_post_recv(&s->a, 1, b, sizeof(b), m);
	post(&s->a, UW_WR_SEND, 2);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RESET), 0);
	assert_int_equal(uw_cq_poll(s->a.scq, 1, &wc), 0);
	assert_int_equal(uw_cq_poll(s->a.rcq, 1, &wc), 0);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_INIT), 0);
	a_names_b(s);
	b_names_a(s);
	both_ways(s);
	assert_int_equal(uw_mr_dereg(m), 0);
	close_sim(s);
}

/* An MPA connection to the port that says nothing of a QP, or of none that is there. */
static void strangers_are_turned_away(void **state)
{
	struct sim *s = open_sim(&(struct sim_options){ 0 });
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(SIM_A) };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(RC_PORT),
				  .sin_addr.s_addr = htonl(SIM_B) };
	struct uw_cm_param p = { .private_data = "hello", .private_data_len = 5 };

	(void)state;
	b_names_a(s);
	assert_int_equal(uw_ep_create(s->e, sim_event, &s->a, &s->a.ep), 0);
	assert_int_equal(uw_ep_bind(s->a.ep, (struct sockaddr *)&from), 0);
	assert_int_equal(uw_ep_resolve(s->a.ep, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(uw_ep_connect(s->a.ep, uw_qp_num(s->a.qp), &p), 0);
	sim_run_us(s, 1000000);
	assert_true(sim_had(&s->a, UW_CM_REJECTED));
	/* nor may a program listen there */
	uw_ep_destroy(s->a.ep);
	assert_int_equal(uw_ep_create(s->e, sim_event, &s->a, &s->a.ep), 0);
	from.sin_port = htons(RC_PORT);
	assert_int_equal(uw_ep_bind(s->a.ep, (struct sockaddr *)&from), -EADDRINUSE);
	close_sim(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_at_once),
		cmocka_unit_test(one_long_after_the_other),
		cmocka_unit_test(a_call_that_waits_long_is_made_anew),
		cmocka_unit_test(who_waits_in_rtr_is_told_of_the_peer),
		cmocka_unit_test(start_up_options_are_its_own),
		cmocka_unit_test(what_is_posted_waits_for_the_peer_but_not_for_ever),
		cmocka_unit_test(wrong_numbers_are_refused),
		cmocka_unit_test(refusals_are_counted_and_said_once_a_minute),
		cmocka_unit_test(names_that_cannot_be),
		cmocka_unit_test(a_peer_that_leaves_is_found_out_by_sending),
		cmocka_unit_test(what_is_under_way_to_a_peer_that_leaves_fails),
		cmocka_unit_test(qps_are_reset_and_meet_again),
		cmocka_unit_test(a_call_is_taken_back),
		cmocka_unit_test(and_answered_too_late),
		cmocka_unit_test(sends_wait_for_receives),
		cmocka_unit_test(a_send_without_a_receive_fails_after_its_retries),
		cmocka_unit_test(a_late_receive_ends_the_retries),
		cmocka_unit_test(a_stream_that_waits_outlives_its_sender),
		cmocka_unit_test(sqd_holds_requests_back),
		cmocka_unit_test(reset_forgets_what_was_posted),
		cmocka_unit_test(strangers_are_turned_away),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
