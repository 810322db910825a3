/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of rdma_cm over the whole stack: one end asks which QP serves a port, the other answers
 * (IBA volume 1, §12.11), whatever the link loses. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "conn/dgram/dgram.h"
#include "conn/endpoint.h"
#include "net.h"
#include "roce/mad.h"

#define PORT 7174
#define QPN  0x123456u

#define FLOOD	   3000u
#define UNANSWERED 1024u /* as conn/dgram/sidr.c: of all hosts; half of them of one */

struct heard {
	unsigned requests, n;
	enum uw_cm_event_type type;
	int error;
	struct uw_cm_param param;
	uint8_t data[256];
	struct uw_ep *request;
	bool declines;			   /* requests */
	struct uw_ep *all[UNANSWERED + 1]; /* the first requests */
};

static bool note(void *ctx, const struct uw_cm_event *ev)
{
	struct heard *h = ctx;

	if (ev->type == UW_CM_CONNECT_REQUEST && h->declines)
		return false;
	if (ev->type == UW_CM_CONNECT_REQUEST) {
		h->request = ev->ep;
		if (h->requests <= UNANSWERED)
			h->all[h->requests] = ev->ep;
		h->requests++;
	} else {
		h->n++;
	}
	h->type = ev->type;
	h->error = ev->error;
	h->param = ev->param;
	if (ev->param.private_data_len)
		memcpy(h->data, ev->param.private_data, ev->param.private_data_len);
	return true;
}

static bool was_asked(void *arg)
{
	return ((struct heard *)arg)->requests;
}

static bool has_outcome(void *arg)
{
	return ((struct heard *)arg)->n;
}

static struct uw_ep *make(struct sim *s, struct heard *h)
{
	struct uw_ep *ep;

	memset(h, 0, sizeof(*h));
	assert_int_equal(uw_ep_create(s->e, note, h, &ep), 0);
	assert_int_equal(uw_ep_set_datagrams(ep), 0);
	return ep;
}

static struct uw_ep *listener(struct sim *s, struct heard *h)
{
	struct sockaddr_storage at = sim_addr(s, SIM_B, PORT);
	struct uw_ep *ep = make(s, h);

	assert_int_equal(uw_ep_bind(ep, (struct sockaddr *)&at), 0);
	assert_int_equal(uw_ep_listen(ep, 5), 0);
	return ep;
}

static struct uw_ep *asking(struct sim *s, struct heard *h)
{
	struct sockaddr_storage from = sim_addr(s, SIM_A, 0), to = sim_addr(s, SIM_B, PORT);
	const struct uw_cm_param p = { .private_data = "hello", .private_data_len = 6 };
	struct uw_ep *ep = make(s, h);

	assert_int_equal(uw_ep_resolve(ep, (struct sockaddr *)&from, (struct sockaddr *)&to, 1000),
			 0);
	assert_int_equal(uw_ep_connect(ep, 0, &p), 0);
	return ep;
}

static void ask_and_answer(const struct sim_options *o)
{
	const struct uw_cm_param p = { .private_data = "yes", .private_data_len = 4 };
	struct heard server, client;
	struct uw_ep *ls, *ep;
	struct sim s;

	sim_open(&s, o);
	ls = listener(&s, &server);
	ep = asking(&s, &client);
	assert_true(sim_until(&s, was_asked, &server, 30000000));
	assert_string_equal((char *)server.data, "hello");
	assert_int_equal(uw_ep_accept(server.request, QPN, &p), 0);
	assert_int_equal(uw_ep_accept(server.request, QPN, &p), -EINVAL); /* once */
	assert_true(sim_until(&s, has_outcome, &client, 30000000));
	assert_int_equal(client.type, UW_CM_ESTABLISHED);
	assert_int_equal(client.param.qpn, QPN);
	assert_int_equal(client.param.qkey, UW_UD_QKEY);
	assert_string_equal((char *)client.data, "yes");
	assert_int_equal(server.requests, 1);
	assert_int_equal(server.n, 0); /* who accepts hears no more of it */
	uw_ep_destroy(server.request);
	uw_ep_destroy(ep);
	uw_ep_destroy(ls);
	sim_close(&s);
}

static void test_ask_and_answer(void **state)
{
	(void)state;
	ask_and_answer(&(struct sim_options){ .mtu = 1500, .seed = 1 });
	ask_and_answer(&(struct sim_options){ .mtu = 1500, .seed = 2, .ip6 = true });
	ask_and_answer(&(struct sim_options){ .mtu = 9000, .seed = 3, .direct = true });
}

/* A request or a reply that is lost is asked for again, and one that comes twice asks the program
 * once. */
static void test_under_loss(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 20; seed++)
		ask_and_answer(&(struct sim_options){
			.mtu = 1500, .seed = seed, .direct = true, .drop_ppm = 300000 });
	ask_and_answer(&(struct sim_options){
		.mtu = 1500, .seed = 5, .direct = true, .dup_ppm = 900000, .reorder_ppm = 200000 });
}

/* IBA §12.11.2.1: status 1 where nothing serves the port, 2 where the program says no. */
static void test_refusals(void **state)
{
	struct sim s;
	struct heard server, client;
	struct uw_ep *ls, *ep;
	const struct uw_cm_param p = { 0 };

	(void)state;
	sim_open(&s, &(struct sim_options){ .mtu = 1500, .seed = 4 });
	ep = asking(&s, &client);
	assert_true(sim_until(&s, has_outcome, &client, 30000000));
	assert_int_equal(client.type, UW_CM_UNREACHABLE);
	assert_int_equal(client.error, 1);
	uw_ep_destroy(ep);
	ls = listener(&s, &server);
	ep = asking(&s, &client);
	assert_true(sim_until(&s, was_asked, &server, 30000000));
	assert_int_equal(uw_ep_reject(server.request, &p), 0);
	assert_true(sim_until(&s, has_outcome, &client, 30000000));
	assert_int_equal(client.type, UW_CM_UNREACHABLE);
	assert_int_equal(client.error, 2);
	uw_ep_destroy(server.request);
	uw_ep_destroy(ep);
	server.declines = true; /* it has no memory, or enough of them */
	ep = asking(&s, &client);
	assert_true(sim_until(&s, has_outcome, &client, 1000000));
	assert_int_equal(client.error, 2);
	assert_int_equal(sim_stats(&s).cm_not_taken, 1);
	assert_int_equal(ep->stack->domain->n_eps, 2); /* this and the listener */
	uw_ep_destroy(ep);
	uw_ep_destroy(ls);
	sim_close(&s);
}

/* Nobody answers at all. */
static void test_it_gives_up(void **state)
{
	struct sim s;
	struct heard client;
	struct uw_ep *ep;

	(void)state;
	sim_open(&s, &(struct sim_options){
			     .mtu = 1500, .seed = 6, .direct = true, .drop_ppm = 1000000 });
	ep = asking(&s, &client);
	assert_true(sim_until(&s, has_outcome, &client, 31000000));
	assert_int_equal(client.type, UW_CM_UNREACHABLE);
	assert_int_equal(client.error, -ETIMEDOUT);
	uw_ep_destroy(ep);
	sim_close(&s);
}

static struct uw_ep **flood(struct sim *s, struct heard *client)
{
	struct uw_ep **ep = calloc(FLOOD, sizeof(struct uw_ep *));

	for (unsigned i = 0; i < FLOOD; i++) {
		ep[i] = asking(s, client);
		if (i % 64 == 63)
			sim_run_us(s, 1000);
	}
	sim_run_us(s, 100000);
	return ep;
}

/* RFC 5042 §6.4.1: a host that asks and asks gets its share of the endpoints that may wait for the
 * program's answer. What finds no place is asked again, and answers make room. */
static void test_a_flood_is_bounded(void **state)
{
	static struct heard server;
	struct heard client;
	struct uw_ep *ls, **ep;
	struct sim s;

	(void)state;
	sim_open(&s, &(struct sim_options){ .mtu = 1500, .seed = 9 });
	ls = listener(&s, &server);
	ep = flood(&s, &client);
	assert_int_equal(server.requests, UNANSWERED / 2);
	assert_true(sim_stats(&s).sidr_rx_dropped > 0);
	for (unsigned i = 0; i < UNANSWERED / 2; i++)
		assert_int_equal(uw_ep_accept(server.all[i], QPN, &(struct uw_cm_param){ 0 }), 0);
	sim_run_us(&s, 1000000);
	assert_true(server.requests > UNANSWERED / 2); /* answers make room */
	for (unsigned i = 0; i < server.requests; i++)
		uw_ep_destroy(server.all[i]);
	for (unsigned i = 0; i < FLOOD; i++)
		uw_ep_destroy(ep[i]);
	free(ep);
	uw_ep_destroy(ls);
	sim_settle(&s);
	sim_close(&s);
}

/* A packet that asks, from anywhere. */
static void ask_from(struct uw_ep *ls, const struct uw_ip *from, uint32_t n)
{
	const struct roce_path path = {
		.src = *from, .dst = ls->local, .hops = ROCE_HOPS, .src_port = roce_ud_port(MAD_QPN)
	};
	struct roce_head h = { .path = &path,
			       .op = { .transport = ROCE_UD, .first = true, .last = true },
			       .bth = { .pkey = ROCE_PKEY, .dest_qp = MAD_QPN },
			       .deth = { .qkey = MAD_QKEY, .src_qp = MAD_QPN } };
	struct mad m = { .kind = MAD_SIDR_REQ, .tid = n + 1, .request_id = n };
	uint8_t packet[ROCE_HEAD_MAX + MAD_SIZE + ROCE_TAIL_MAX];
	struct uw_span whole = { .p = packet };

	m.req = (struct sidr_req){
		.space = SIDR_UDP, .port = PORT, .src_port = 1, .src = *from, .dst = ls->local
	};
	mad_encode(&m, packet + roce_head_size(&h));
	whole.n = roce_packet_write(&h, packet, MAD_SIZE);
	sched_lock(&ls->stack->sched);
	dgram_packet(ls->stack, ls->l, uw_rope_of(&whole));
	sched_unlock(&ls->stack->sched);
}

/* Of thousands of endpoints anybody may ask for a port: only those that listen for datagrams are
 * looked at. Whoever looks at another one faults. */
static void test_a_request_searches_nothing_else(void **state)
{
	struct uw_ip from = uw_ip_v4(htonl(0x0a010203));
	struct uw_ep *ls, *all, *trap;
	static struct heard server;
	struct sim s;

	(void)state;
	trap = mmap(NULL, sizeof(*trap), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(trap, MAP_FAILED);
	sim_open(&s, &(struct sim_options){ .mtu = 1500, .seed = 9 });
	ls = listener(&s, &server);
	all = ls->stack->domain->eps;
	ls->stack->domain->eps = trap;
	ls->lport = htons(PORT + 1); /* not what is asked for */
	ask_from(ls, &from, 1);
	ls->stack->domain->eps = all;
	ls->lport = htons(PORT);
	assert_int_equal(server.requests, 0);
	ask_from(ls, &from, 2);
	assert_int_equal(server.requests, 1);
	uw_ep_destroy(server.request);
	uw_ep_destroy(ls);
	sim_settle(&s);
	sim_close(&s);
	munmap(trap, sizeof(*trap));
}

/* A host has as many addresses of IPv6 as it likes, all in one network: there is room for others.
 */
static void test_a_flood_of_one_network_is_bounded(void **state)
{
	static struct heard server;
	struct uw_ip from = { .b = { 0x20, 0x01, 0x0d, 0xb8 } };
	struct uw_ep *ls;
	struct sim s;

	(void)state;
	sim_open(&s, &(struct sim_options){ .mtu = 1500, .seed = 9, .ip6 = true });
	ls = listener(&s, &server);
	for (uint32_t i = 0; i < UNANSWERED; i++) {
		memcpy(from.b + 12, &i, sizeof(i));
		ask_from(ls, &from, i);
	}
	assert_int_equal(server.requests, UNANSWERED / 2);
	from.b[7] = 1; /* another network */
	ask_from(ls, &from, UNANSWERED);
	assert_int_equal(server.requests, UNANSWERED / 2 + 1);
	for (unsigned i = 0; i < server.requests; i++)
		uw_ep_destroy(server.all[i]);
	uw_ep_destroy(ls);
	sim_settle(&s);
	sim_close(&s);
}

/* The program goes while it is asked, and while it asks. */
static void test_the_end_meanwhile(void **state)
{
	struct sim s;
	struct heard server, client;
	struct uw_ep *ls, *ep;

	(void)state;
	sim_open(&s, &(struct sim_options){ .mtu = 1500, .seed = 7 });
	ls = listener(&s, &server);
	ep = asking(&s, &client);
	assert_true(sim_until(&s, was_asked, &server, 30000000));
	uw_ep_destroy(ep);
	assert_int_equal(uw_ep_accept(server.request, QPN, &(struct uw_cm_param){ 0 }), 0);
	sim_settle(&s);
	assert_int_equal(sim_stats(&s).sidr_rx_stale, 1);
	uw_ep_destroy(server.request);
	uw_ep_destroy(ls);
	sim_settle(&s);
	sim_close(&s);
}

/* Ports of datagrams are apart from TCP's. */
static void test_ports(void **state)
{
	struct sim s;
	struct heard h[4];
	struct uw_ep *ls, *other, *tcp;
	struct sockaddr_storage at, got;

	(void)state;
	sim_open(&s, &(struct sim_options){ .mtu = 1500, .seed = 8 });
	at = sim_addr(&s, SIM_B, PORT);
	ls = listener(&s, &h[0]);
	other = make(&s, &h[1]);
	assert_int_equal(uw_ep_bind(other, (struct sockaddr *)&at), -EADDRINUSE);
	at = sim_addr(&s, SIM_B, 0);
	assert_int_equal(uw_ep_bind(other, (struct sockaddr *)&at), 0);
	assert_int_equal(uw_ep_set_datagrams(other), -EINVAL); /* too late */
	uw_ep_local_addr(other, &got);
	assert_int_not_equal(((struct sockaddr_in *)&got)->sin_port, 0);
	at = sim_addr(&s, SIM_B, PORT);
	assert_int_equal(uw_ep_create(s.e, note, &h[2], &tcp), 0);
	assert_int_equal(uw_ep_bind(tcp, (struct sockaddr *)&at), 0);
	uw_ep_destroy(tcp);
	uw_ep_destroy(other);
	uw_ep_destroy(ls);
	sim_close(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_ask_and_answer),
	cmocka_unit_test(test_under_loss),
	cmocka_unit_test(test_refusals),
	cmocka_unit_test(test_it_gives_up),
	cmocka_unit_test(test_the_end_meanwhile),
	cmocka_unit_test(test_ports),
	cmocka_unit_test(test_a_flood_is_bounded),
	cmocka_unit_test(test_a_request_searches_nothing_else),
	cmocka_unit_test(test_a_flood_of_one_network_is_bounded),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
