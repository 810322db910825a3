/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of IPv6: which place a name means, what it reaches, and what never gets as far as TCP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/addr.h"
#include "net.h"

#define PORT 7471

static struct sim *open_sim(void)
{
	struct sim *s = calloc(1, sizeof(*s));

	sim_open(s, &(struct sim_options){ .ip6 = true });
	return s;
}

static void close_sim(struct sim *s)
{
	sim_close(s);
	free(s);
}

static struct sockaddr_storage addr(const char *text, uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *four = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&a;

	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		return a;
	}
	memset(&a, 0, sizeof(a));
	assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	return a;
}

static struct uw_ep *bound(struct sim *s, const char *text, uint16_t port, bool only6)
{
	struct sockaddr_storage a = addr(text, port);
	struct uw_ep *ep;

	assert_int_equal(uw_ep_create(s->e, sim_event, &s->listener, &ep), 0);
	assert_int_equal(uw_ep_only6(ep, only6), 0);
	assert_int_equal(uw_ep_bind(ep, (struct sockaddr *)&a), 0);
	return ep;
}

/* By the first link: it has 10.0.0.1 and fd00::1. */
static struct uw_ep *listening(struct sim *s, const char *text, bool only6)
{
	struct uw_ep *ep = bound(s, text, PORT, only6);

	assert_int_equal(uw_ep_listen(ep, 4), 0);
	return ep;
}

static bool settled(void *arg)
{
	struct sim *s = arg;

	return s->listener.request || s->b.n_events;
}

/* From the second link to `to`; true: a request came in. */
static bool reaches(struct sim *s, const char *from, const char *to)
{
	struct sockaddr_storage src = addr(from, 0), dst = addr(to, PORT), name;
	struct uw_cm_param p = { .ird = 1, .ord = 1 };
	struct uw_ep *ep;
	bool came;

	s->listener.request = NULL;
	s->b.n_events = 0;
	assert_int_equal(uw_ep_create(s->e, sim_event, &s->b, &ep), 0);
	assert_int_equal(uw_ep_resolve(ep, (struct sockaddr *)&src, (struct sockaddr *)&dst, 1000),
			 0);
	uw_ep_local_addr(ep, &name);
	assert_int_equal(name.ss_family, dst.ss_family);
	uw_ep_peer_addr(ep, &name);
	assert_memory_equal(&name, &dst, sizeof(dst));
	assert_int_equal(uw_ep_connect(ep, uw_qp_num(s->b.qp), &p), 0);
	assert_true(sim_until(s, settled, s, 60000000));
	came = s->listener.request;
	if (came) {
		uw_ep_peer_addr(s->listener.request, &name);
		assert_int_equal(name.ss_family, dst.ss_family);
		uw_ep_destroy(s->listener.request);
	}
	uw_ep_destroy(ep);
	sim_settle(s);
	return came;
}

static void the_wildcard_is_for_both_versions(void **state)
{
	struct sim *s = open_sim();
	struct uw_ep *ls = listening(s, "::", false);

	(void)state;
	assert_true(reaches(s, "10.0.0.2", "10.0.0.1"));
	assert_true(reaches(s, "fd00::2", "fd00::1"));
	assert_true(reaches(s, "fe80::7577:a00:2", "fe80::7577:a00:1"));
	uw_ep_destroy(ls);
	close_sim(s);
}

/* RDMA_OPTION_ID_AFONLY */
static void unless_it_is_for_one_alone(void **state)
{
	struct sim *s = open_sim();
	struct uw_ep *six = listening(s, "::", true), *four;

	(void)state;
	assert_false(reaches(s, "10.0.0.2", "10.0.0.1"));
	assert_true(reaches(s, "fd00::2", "fd00::1"));
	four = listening(s, "0.0.0.0", false);
	assert_true(reaches(s, "10.0.0.2", "10.0.0.1"));
	uw_ep_destroy(six);
	assert_false(reaches(s, "fd00::2", "fd00::1"));
	assert_true(reaches(s, "10.0.0.2", "10.0.0.1"));
	uw_ep_destroy(four);
	close_sim(s);
}

static void an_address_is_for_itself(void **state)
{
	struct sim *s = open_sim();
	struct uw_ep *ls = listening(s, "fd00::1", false);

	(void)state;
	assert_true(reaches(s, "fd00::2", "fd00::1"));
	assert_false(reaches(s, "10.0.0.2", "10.0.0.1"));
	uw_ep_destroy(ls);
	close_sim(s);
}

static void versions_do_not_share_a_port_with_a_wildcard_for_both(void **state)
{
	struct sim *s = open_sim();
	struct uw_ep *both = bound(s, "::", PORT, false), *ep;
	static const char *const others[] = { "0.0.0.0", "::", "10.0.0.1", "fd00::1" };

	(void)state;
	assert_int_equal(uw_ep_create(s->e, sim_event, &s->a, &ep), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct sockaddr_storage a = addr(others[i], PORT);

		assert_int_equal(uw_ep_bind(ep, (struct sockaddr *)&a), -EADDRINUSE);
	}
	uw_ep_destroy(ep);
	uw_ep_destroy(both);
	/* all gone, all free */
	ep = bound(s, "fd00::1", PORT, false);
	both = bound(s, "10.0.0.1", PORT, false);
	uw_ep_destroy(ep);
	ep = bound(s, "fd00::1", PORT, false);
	uw_ep_destroy(both);
	uw_ep_destroy(ep);
	close_sim(s);
}

static void loopback_is_oneself(void **state)
{
	struct sim *s = open_sim();
	struct uw_ep *ls = listening(s, "::1", false);

	(void)state;
	assert_true(reaches(s, "::", "::1"));
	assert_true(reaches(s, "fd00::1", "fd00::1"));
	uw_ep_destroy(ls);
	close_sim(s);
}

static void strange_addresses_are_refused(void **state)
{
	struct sim *s = open_sim();
	struct sockaddr_storage other = addr("fd00::9", 0), six = addr("fd00::1", PORT),
				four = addr("10.0.0.2", 0);
	struct uw_ep *ep;

	(void)state;
	assert_int_equal(uw_ep_create(s->e, sim_event, &s->a, &ep), 0);
	assert_int_equal(uw_ep_bind(ep, (struct sockaddr *)&other), -EADDRNOTAVAIL);
	assert_int_equal(uw_ep_resolve(ep, (struct sockaddr *)&four, (struct sockaddr *)&six, 100),
			 -EAFNOSUPPORT);
	uw_ep_destroy(ep);
	close_sim(s);
}

/* CM-less RC by a GID that is an IPv6 address. */
static void a_peer_is_named_by_ip6(void **state)
{
	struct sim *s = open_sim();
	struct sockaddr_storage a = addr("fd00::1", 0), b = addr("fd00::2", 0);
	struct uw_peer peer = { .addr = (struct sockaddr *)&b,
				.from = (struct sockaddr *)&a,
				.qpn = uw_qp_num(s->b.qp),
				.ird = 4 };
	struct uw_send_wr wr = { .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED };
	struct uw_recv_wr recv = { .wr_id = 1 };
	unsigned done;

	(void)state;
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_INIT), 0);
	assert_int_equal(uw_qp_modify(s->b.qp, UW_QPS_INIT), 0);
	assert_int_equal(uw_qp_name_peer(s->a.qp, &peer), 0);
	peer = (struct uw_peer){ .addr = (struct sockaddr *)&a,
				 .from = (struct sockaddr *)&b,
				 .qpn = uw_qp_num(s->a.qp),
				 .ird = 4 };
	assert_int_equal(uw_qp_name_peer(s->b.qp, &peer), 0);
	assert_int_equal(uw_qp_modify(s->a.qp, UW_QPS_RTS), 0);
	assert_int_equal(uw_post_recv(s->b.qp, &recv, 1, &done), 0);
	sim_post_send(&s->a, &wr);
	assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(s, s->b.rcq).status, UW_WC_SUCCESS);
	close_sim(s);
}

/* ---- what is not heard --------------------------------------------------------------------- */

#define PAYLOAD (14 + 40)

/* On the cable from the first link to the second: IPv6 from fd00::1 to fd00::2. */
static struct io_frame *packet(struct sim *s, uint8_t next, unsigned n)
{
	struct io_link *l = s->link[0];
	struct io_frame *f = l->ops->alloc(l);
	uint8_t *p = f->data;

	memset(p, 0, PAYLOAD + n);
	memcpy(p, s->link[1]->mac, 6);
	memcpy(p + 6, l->mac, 6);
	p[12] = 0x86;
	p[13] = 0xdd;
	p[14] = 0x60;
	p[14 + 5] = (uint8_t)n;
	p[14 + 6] = next;
	p[14 + 7] = 255;
	memcpy(p + 14 + 8, &l->ip6[1].ip, 16);
	memcpy(p + 14 + 24, &s->link[1]->ip6[1].ip, 16);
	f->len = PAYLOAD + n;
	return f;
}

static void put(struct sim *s, struct io_frame *f)
{
	assert_int_equal(s->link[0]->ops->tx(s->link[0], &f, 1), 1);
}

/* With the checksum of the payload (RFC 8200 §8.1), which lies `at` octets behind its begin. */
static void put_summed(struct sim *s, struct io_frame *f, uint32_t at)
{
	uint32_t n = f->len - PAYLOAD, sum = n + f->data[14 + 6];
	uint8_t *p = f->data;

	for (uint32_t i = 14 + 8; i < f->len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	p[PAYLOAD + at] = (uint8_t)(~sum >> 8);
	p[PAYLOAD + at + 1] = (uint8_t)~sum;
	put(s, f);
}

/* RFC 4443 §2.3 */
static void put_icmp6(struct sim *s, struct io_frame *f)
{
	put_summed(s, f, 2);
}

static void only_tcp_and_neighbours_are_heard(void **state)
{
	static const struct {
		uint8_t next, type;
		unsigned n;
	} unheard[] = {
		{ 58, 134, 64 }, /* router advertisement */
		{ 58, 133, 64 }, /* router solicitation */
		{ 58, 137, 64 }, /* redirect */
		{ 58, 2, 64 },	 /* packet too big */
		{ 58, 1, 64 },	 /* destination unreachable */
		{ 58, 130, 64 }, /* multicast listener query */
		{ 58, 128, 1 },	 /* an echo request cut short */
		{ 58, 135,
		  32 }, /* a solicitation with an option without length (RFC 4861 §7.1.1) */
		{ 58, 136, 20 }, /* an advertisement cut short */
		{ 0, 6, 64 },	 /* hop-by-hop options */
		{ 43, 6, 64 },	 /* routing */
		{ 44, 6, 64 },	 /* fragment */
		{ 60, 6, 64 },	 /* destination options */
		{ 59, 0, 64 },	 /* nothing */
		{ 17, 0, 64 },	 /* UDP */
		{ 6, 0, 7 },	 /* TCP cut short */
	};
	const unsigned n = sizeof(unheard) / sizeof(unheard[0]);
	struct sim *s = open_sim();
	struct uw_ep *ls = listening(s, "::", false);
	uint64_t sent, refused;

	(void)state;
	sim_run_us(s, 1000); /* each says that it is there */
	sent = s->link[1]->stats.tx_frames;
	for (unsigned i = 0; i < n; i++) {
		struct io_frame *f = packet(s, unheard[i].next, unheard[i].n);

		f->data[PAYLOAD] = unheard[i].type;
		put(s, f);
	}
	sim_settle(s);
	/* the two errors are about no connection of ours (RFC 5927 §4.1) */
	refused = sim_stats(s).ip_rx_unwanted + sim_stats(s).ip_rx_fragments +
		  sim_stats(s).icmp_rx_refused;
	if (s->e->n_stacks == 1)
		assert_int_equal(refused, n);
	else /* what is about neighbours comes to each stack */
		assert_in_range(refused, n, n * s->e->n_stacks);
	assert_int_equal(s->link[1]->stats.tx_frames, sent); /* no answer either */
	assert_true(reaches(s, "fd00::2", "fd00::1"));
	uw_ep_destroy(ls);
	close_sim(s);
}

/* A solicitation (RFC 4861 §4.3) by neighbour i, with the option of `units` of 8 octets. */
static void solicit(struct sim *s, unsigned i, uint8_t units)
{
	struct io_frame *f = packet(s, 58, 32);
	uint8_t *p = f->data + PAYLOAD;

	uw_put32(f->data + 14 + 8 + 12, 0x1000 + i);
	p[0] = 135;
	memcpy(p + 8, &s->link[1]->ip6[1].ip, 16);
	p[24] = 1;
	p[25] = units;
	uw_put32(p + 28, i);
	put_icmp6(s, f);
}

/* Those that speak still find each other. */
static void a_flood_of_neighbours_is_lived_through(void **state)
{
	struct sim *s = open_sim();
	struct uw_ep *ls = listening(s, "::", false);
	uint64_t sent;

	(void)state;
	sim_run_us(s, 1000); /* each says that it is there */
	sent = s->link[1]->stats.tx_frames;
	for (unsigned i = 0; i < 1000; i++) {
		solicit(s, i, 1);
		sim_run_us(s, 100);
	}
	assert_true(s->link[1]->stats.tx_frames > sent); /* they were heard */
	for (unsigned i = 0; i < 256; i++) {
		solicit(s, i, (uint8_t)i);
		sim_run_us(s, 100);
	}
	assert_true(reaches(s, "fd00::2", "fd00::1"));
	uw_ep_destroy(ls);
	close_sim(s);
}

/* ---- many neighbours ------------------------------------------------------------------------- */

#define NEIGHBOURS 300u

/* Neighbour i is fd00::1:i and speaks to the second link. */
static struct io_frame *from_neighbour(struct sim *s, unsigned i, uint8_t next, unsigned n)
{
	struct io_frame *f = packet(s, next, n);

	uw_put32(f->data + 14 + 8 + 12, 0x10000 + i);
	return f;
}

/* A SYN to a port where nobody listens: a RST answers it (RFC 9293 §3.10.7.1). */
static void knock(struct sim *s, unsigned i)
{
	struct io_frame *f = from_neighbour(s, i, 6, 20);
	uint8_t *tcp = f->data + PAYLOAD;

	uw_put16(tcp, 4000);
	uw_put16(tcp + 2, PORT + 1);
	tcp[12] = 5 << 4;
	tcp[13] = 2;
	put_summed(s, f, 16);
	sim_run_us(s, 200);
}

/* RFC 4861 §4.4: solicited, with its MAC */
static void advertise(struct sim *s, unsigned i)
{
	struct io_frame *f = from_neighbour(s, i, 58, 32);
	uint8_t *p = f->data + PAYLOAD;

	p[0] = 136;
	p[4] = 0x60;
	memcpy(p + 8, f->data + 14 + 8, 16);
	p[24] = 2;
	p[25] = 1;
	uw_put32(p + 28, i);
	put_icmp6(s, f);
	sim_run_us(s, 200);
}

/* RFC 4861 §5.1: an entry for each neighbour that traffic was sent to recently. Each one that was
 * found is answered without another search. */
static void hundreds_of_neighbours_are_remembered(void **state)
{
	struct sim *s = open_sim();
	uint64_t sent;
	/* On the real clock a solicitation is repeated where the answer is late. */
	unsigned repeated = s->wall ? NEIGHBOURS / 2 : 0;

	(void)state;
	sim_run_us(s, 1000); /* each says that it is there */
	sent = s->link[1]->stats.tx_frames;
	for (unsigned i = 0; i < 2 * NEIGHBOURS; i++) {
		knock(s, i % NEIGHBOURS);
		advertise(s, i % NEIGHBOURS);
	}
	/* a solicitation and a RST, then a RST */
	assert_in_range(s->link[1]->stats.tx_frames - sent, 3 * NEIGHBOURS,
			3 * NEIGHBOURS + repeated);
	close_sim(s);
}

/* Whether the next hop's MAC is known, as who sends datagrams asks. */
static bool knows(struct sim *s, unsigned i)
{
	struct stack *stack = s->e->stack[0];
	struct uw_ip to = s->link[1]->ip6[1].ip;
	bool known;

	uw_put32(to.b + 12, 0x10000 + i);
	sched_lock(&stack->sched);
	known = stack->llp->neighbour(stack->links[1], &to);
	sched_unlock(&stack->sched);
	return known;
}

/* RFC 4861 §7.2.2: until it has answered it is not known, however often one asks. */
static void a_neighbour_is_known_when_it_has_answered(void **state)
{
	struct sim *s = open_sim();

	(void)state;
	/* the transport seq sends no packets of its own */
	for (unsigned i = 0; i < 3 && s->e->stack[0]->llp->neighbour; i++) {
		assert_false(knows(s, 7));
		sim_run_us(s, 1000);
	}
	advertise(s, 7);
	assert_true(!s->e->stack[0]->llp->neighbour || knows(s, 7));
	close_sim(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wildcard_is_for_both_versions),
		cmocka_unit_test(unless_it_is_for_one_alone),
		cmocka_unit_test(an_address_is_for_itself),
		cmocka_unit_test(versions_do_not_share_a_port_with_a_wildcard_for_both),
		cmocka_unit_test(loopback_is_oneself),
		cmocka_unit_test(strange_addresses_are_refused),
		cmocka_unit_test(a_peer_is_named_by_ip6),
		cmocka_unit_test(only_tcp_and_neighbours_are_heard),
		cmocka_unit_test(a_flood_of_neighbours_is_lived_through),
		cmocka_unit_test(hundreds_of_neighbours_are_remembered),
		cmocka_unit_test(a_neighbour_is_known_when_it_has_answered),
	};

	return sim_run_tests(tests, argc, argv);
}
