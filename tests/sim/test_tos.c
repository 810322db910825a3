/* SPDX-License-Identifier: BSD-3-Clause */
/* The DS field (RFC 2474 §3), with IPv6 the traffic class, of what each end puts on the cable. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/be.h"
#include "net.h"

#define PORT	  7471
#define MESSAGES  20
#define LENGTH	  5000
#define HEAD	  128 /* octets of a frame that are looked at */
#define ETHERNET  14
#define IPV4_TYPE 0x0800
#define IPV6_TYPE 0x86dd
#define ACCESS	  (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE)

enum kind { SYN, DATA, ACK, KINDS };

/* What one end has sent: so many of each kind, and what the last one's field was. */
struct sent {
	struct io_ops ops;
	const struct io_ops *real;
	unsigned n[KINDS], other[KINDS]; /* other: not what is wanted */
	uint8_t want;
};
static struct sent ends[2];

static void note(struct sent *e, uint8_t tos, const uint8_t *tcp, size_t n)
{
	size_t header = (size_t)(tcp[12] >> 4) * 4;
	enum kind k = tcp[13] & 2 ? SYN : n > header ? DATA : ACK;

	e->n[k]++;
	e->other[k] += tos != e->want;
}

static void look(struct sent *e, const struct io_frame *f)
{
	uint8_t head[HEAD] = { 0 };
	const uint8_t *ip = head + ETHERNET;
	size_t n = 0;

	for (; f && n < HEAD; f = f->next) {
		size_t part = f->len < HEAD - n ? f->len : HEAD - n;

		memcpy(head + n, f->data, part);
		n += part;
	}
	if (uw_be16(head + 12) == IPV4_TYPE && ip[9] == IPPROTO_TCP)
		note(e, ip[1], ip + 20, (size_t)uw_be16(ip + 2) - 20);
	else if (uw_be16(head + 12) == IPV6_TYPE && ip[6] == IPPROTO_TCP)
		note(e, (uint8_t)(uw_be16(ip) >> 4), ip + 40, uw_be16(ip + 4));
}

static unsigned spy(struct sent *e, struct io_link *l, struct io_frame **v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		look(e, v[i]);
	return e->real->tx(l, v, n);
}

static unsigned spy_a(struct io_link *l, struct io_frame **v, unsigned n)
{
	return spy(&ends[0], l, v, n);
}

static unsigned spy_b(struct io_link *l, struct io_frame **v, unsigned n)
{
	return spy(&ends[1], l, v, n);
}

static struct sim *open_sim(bool ip6, bool direct, uint8_t a, uint8_t b)
{
	struct sim *s = calloc(1, sizeof(*s));

	sim_open(s, &(struct sim_options){ .ip6 = ip6, .direct = direct });
	for (unsigned i = 0; i < 2; i++) {
		struct sent *e = &ends[i];

		*e = (struct sent){ .ops = *s->link[i]->ops, .real = s->link[i]->ops };
		e->ops.tx = i ? spy_b : spy_a;
		s->link[i]->ops = &e->ops;
	}
	ends[0].want = a;
	ends[1].want = b;
	return s;
}

static void close_sim(struct sim *s)
{
	sim_close(s); /* the links are gone, but for what they counted here */
	free(s);
}

/* Messages from one end to the other. */
static void speak(struct sim *s, struct sim_side *from, struct sim_side *to)
{
	static uint8_t out[LENGTH], in[LENGTH];
	struct uw_mr *m[2] = { sim_mr(from, out, LENGTH, ACCESS), sim_mr(to, in, LENGTH, ACCESS) };
	struct uw_sge sge = { (uintptr_t)out, LENGTH, uw_mr_stag(m[0]) };
	struct uw_send_wr wr = {
		.num_sge = 1, .sg_list = &sge, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};

	for (unsigned i = 0; i < MESSAGES; i++) {
		sim_post_recv(to, i, in, LENGTH, m[1]);
		sim_post_send(from, &wr);
		assert_int_equal(sim_wc(s, to->rcq).status, UW_WC_SUCCESS);
		assert_int_equal(sim_wc(s, from->scq).status, UW_WC_SUCCESS);
	}
	sim_run_us(s, 10000); /* the last ACK */
	assert_int_equal(uw_mr_dereg(m[0]), 0);
	assert_int_equal(uw_mr_dereg(m[1]), 0);
}

static void all_had_it(void)
{
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < KINDS; k++) {
			assert_true(ends[i].n[k] || (k == SYN && i == 1));
			assert_int_equal(ends[i].other[k], 0);
		}
	}
}

static bool requested(void *arg)
{
	return ((struct sim *)arg)->listener.request != NULL;
}

static bool established(void *arg)
{
	return sim_had(arg, UW_CM_ESTABLISHED);
}

static void listen_with(struct sim *s, uint8_t tos)
{
	struct sockaddr_storage any = sim_addr(s, SIM_B, PORT);

	assert_int_equal(uw_ep_create(s->e, sim_event, &s->listener, &s->listener.ep), 0);
	uw_ep_set_tos(s->listener.ep, tos);
	assert_int_equal(uw_ep_bind(s->listener.ep, (struct sockaddr *)&any), 0);
	assert_int_equal(uw_ep_listen(s->listener.ep, 16), 0);
	uw_ep_set_tos(s->listener.ep, 0xfc); /* too late */
}

static void connect_with(struct sim *s, uint8_t tos)
{
	struct sockaddr_storage from = sim_addr(s, SIM_A, 0), to = sim_addr(s, SIM_B, PORT);
	struct uw_cm_param p = { .ird = 4, .ord = 4 };

	assert_int_equal(uw_ep_create(s->e, sim_event, &s->a, &s->a.ep), 0);
	assert_int_equal(uw_ep_bind(s->a.ep, (struct sockaddr *)&from), 0);
	assert_int_equal(uw_ep_resolve(s->a.ep, NULL, (struct sockaddr *)&to, 1000), 0);
	uw_ep_set_tos(s->a.ep, tos);
	assert_int_equal(uw_ep_connect(s->a.ep, uw_qp_num(s->a.qp), &p), 0);
	uw_ep_set_tos(s->a.ep, 0xfc); /* too late */
	assert_true(sim_until(s, requested, s, 60000000));
	s->b.ep = s->listener.request;
	uw_ep_set_ctx(s->b.ep, &s->b);
}

static void accept_it(struct sim *s)
{
	struct uw_cm_param p = { .ird = 4, .ord = 4 };

	assert_int_equal(uw_ep_accept(s->b.ep, uw_qp_num(s->b.qp), &p), 0);
	assert_true(sim_until(s, established, &s->a, 60000000));
}

/* Each end has one of its own, the listener's with ECN's bits, from SYN and SYN-ACK to the last
 * FIN. */
static void each_end_has_its_own(bool ip6, bool direct)
{
	struct sim *s = open_sim(ip6, direct, 0x68, 0x20);

	listen_with(s, 0x23);
	connect_with(s, 0x68);
	accept_it(s);
	speak(s, &s->a, &s->b);
	speak(s, &s->b, &s->a);
	close_sim(s);
	assert_int_equal(ends[1].n[SYN], 1);
	all_had_it();
}

static void over_ip4(void **state)
{
	(void)state;
	each_end_has_its_own(false, false);
}

static void over_ip6(void **state)
{
	(void)state;
	each_end_has_its_own(true, false);
}

static void over_a_link_of_memifs_kind(void **state)
{
	(void)state;
	each_end_has_its_own(false, true);
	each_end_has_its_own(true, true);
}

/* The program may give the request another one than the listener's. */
static void a_request_may_have_another(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct sim *s = open_sim(i & 1, i & 2, 0, 0x20);

		listen_with(s, 0x20);
		connect_with(s, 0);
		uw_ep_set_tos(s->b.ep, 0x48);
		ends[1].want = 0x48;
		accept_it(s);
		speak(s, &s->a, &s->b);
		speak(s, &s->b, &s->a);
		close_sim(s);
		all_had_it();
	}
}

static int name(struct sim *s, struct sim_side *side, struct sim_side *peer, uint8_t tos)
{
	struct sockaddr_storage from = sim_addr(s, side == &s->a ? SIM_A : SIM_B, 0);
	struct sockaddr_storage to = sim_addr(s, side == &s->a ? SIM_B : SIM_A, 0);
	struct uw_peer p = { .addr = (struct sockaddr *)&to,
			     .from = (struct sockaddr *)&from,
			     .qpn = uw_qp_num(peer->qp),
			     .ird = 4,
			     .tos = tos };

	assert_int_equal(uw_qp_modify(side->qp, UW_QPS_INIT), 0);
	assert_int_equal(uw_qp_name_peer(side->qp, &p), 0);
	return uw_qp_modify(side->qp, UW_QPS_RTS);
}

/* CM-less RC: both calling and called, whichever of the two is which. Before it is judged a call is
 * nobody's. */
static void so_have_peers_that_are_named(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct sim *s = open_sim(i & 1, i & 2, 0x6b & 0xfc, 0x6b & 0xfc);
		unsigned called;

		assert_int_equal(name(s, &s->b, &s->a, 0x6b), 0);
		assert_int_equal(name(s, &s->a, &s->b, 0x6b), 0);
		speak(s, &s->a, &s->b);
		speak(s, &s->b, &s->a);
		close_sim(s);
		called = ends[0].other[SYN] ? 0 : 1;
		for (unsigned k = 0; k < 2; k++) {
			assert_int_equal(ends[k].other[DATA], 0);
			assert_int_equal(ends[k].other[SYN], k == called);
			assert_true(ends[k].other[ACK] <= (k == called)); /* of the Request */
			assert_true(ends[k].n[ACK] > 1);
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_ip4),
		cmocka_unit_test(over_ip6),
		cmocka_unit_test(over_a_link_of_memifs_kind),
		cmocka_unit_test(a_request_may_have_another),
		cmocka_unit_test(so_have_peers_that_are_named),
	};

	return sim_run_tests(tests, argc, argv);
}
