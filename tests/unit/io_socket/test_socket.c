/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uwtest.h"
#include "world.h"

#define ACK_ROUNDS   5000u		 /* of a millisecond */
#define FAR_TOO_MUCH ((size_t)256 << 20) /* beyond any kernel's buffers */

static int open_world(void **state)
{
	static struct world w;

	world_open(&w, 0);
	*state = &w;
	return 0;
}

static int close_world(void **state)
{
	world_close(*state);
	return 0;
}

/* ---- octets --------------------------------------------------------------------------------- */

static void octets_arrive_whole_and_in_order(void **state)
{
	struct world *w = *state;
	size_t sent = 0, n = 3u << 20;

	world_connect(w);
	w->accepted.grain = 1000; /* the rest waits for more */
	while (sent < n) {
		sent += world_send(&w->client, sent, n - sent);
		world_rounds(w, 1);
	}
	world_until_got(w, &w->accepted, n - n % 1000);
	world_check(&w->accepted);
	assert_int_equal(w->stats.tcp_tx_bytes, n);
	assert_int_equal(world_send(&w->accepted, 0, 5000), 5000);
	world_until_got(w, &w->client, 5000);
	world_check(&w->client);
}

/* Until no more is taken, since the other side uses up nothing; returns how much. */
static size_t fill_up(struct world *w)
{
	size_t sent = 0, k;

	w->accepted.most = 1;
	do {
		k = world_send(&w->client, sent, 1u << 20);
		sent += k;
		world_rounds(w, 5);
	} while (k && sent < FAR_TOO_MUCH);
	assert_in_range(sent, 100000, FAR_TOO_MUCH - 1);
	return sent;
}

static size_t fill(struct world *w)
{
	world_connect(w);
	return fill_up(w);
}

static void who_sends_too_much_waits_until_there_is_room(void **state)
{
	struct world *w = *state;
	size_t sent = fill(w);

	w->client.writable = 0;
	w->accepted.most = 0;
	w->accepted.drop = true;
	llp_socket.resume(w->accepted.c);
	for (unsigned i = 0; i < 1000 && !w->client.writable; i++)
		world_rounds(w, 1);
	assert_true(w->client.writable);
	assert_int_equal(world_send(&w->client, sent, 1), 1);
}

static void what_comes_while_paused_waits(void **state)
{
	struct world *w = *state;
	unsigned calls;

	world_connect(w);
	w->accepted.most = 100;
	assert_int_equal(world_send(&w->client, 0, 1000), 1000);
	world_until_got(w, &w->accepted, 100);
	calls = w->accepted.calls;
	assert_int_equal(world_send(&w->client, 1000, 1000), 1000);
	world_rounds(w, 20);
	assert_int_equal(w->accepted.calls, calls);
	assert_int_equal(w->accepted.n_got, 100);
	w->accepted.most = 0;
	llp_socket.resume(w->accepted.c);
	world_until_got(w, &w->accepted, 2000);
	world_check(&w->accepted);
}

static void segments_are_no_larger_than_the_mtu_allows(void **state)
{
	struct world w;
	size_t room;

	(void)state;
	world_open(&w, 1500);
	assert_int_equal(w.link->mtu, 1500);
	world_connect(&w);
	assert_non_null(llp_socket.tx_begin(w.client.c, &room));
	assert_in_range(room, 1000, 1460);
	llp_socket.tx_commit(w.client.c, 0);
	assert_non_null(llp_socket.tx_begin(w.accepted.c, &room));
	assert_in_range(room, 1000, 1460);
	llp_socket.tx_commit(w.accepted.c, 0);
	world_close(&w);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void a_close_comes_behind_what_was_sent(void **state)
{
	struct world *w = *state;

	world_connect(w);
	assert_int_equal(world_send(&w->client, 0, 100000), 100000);
	llp_socket.close(w->client.c);
	world_until(w, &w->accepted.closed);
	assert_status(w->accepted.why, UW_OK);
	assert_int_equal(w->accepted.n_got, 100000);
	world_check(&w->accepted);
	llp_socket.close(w->accepted.c);
	world_rounds(w, 20);
	assert_null(sock.leaving);
	assert_null(sock.conns);
}

/* io/llp.h: "Send a FIN after the queued octets." */
static void a_close_waits_for_a_peer_that_is_slow(void **state)
{
	struct world *w = *state;
	size_t sent = fill(w);

	assert_non_null(w->client.c->out);
	llp_socket.close(w->client.c);
	w->later_us = 50000000;
	world_rounds(w, 2);
	w->accepted.most = 0;
	w->accepted.drop = true;
	llp_socket.resume(w->accepted.c);
	world_until(w, &w->accepted.closed);
	assert_status(w->accepted.why, UW_OK);
	assert_int_equal(w->accepted.n_got + w->accepted.n_dropped, sent);
	assert_non_null(sock.leaving); /* for the peer's FIN */
	w->later_us += 2000000;
	world_rounds(w, 1); /* it has acknowledged all by now */
	assert_non_null(sock.leaving);
	w->later_us += 6000000;
	world_rounds(w, 1);
	assert_null(sock.leaving);
}

static void set(const struct llp_conn *c, int name, int value)
{
	assert_int_equal(setsockopt(c->w.fd, SOL_SOCKET, name, &value, sizeof(value)), 0);
}

static int not_acknowledged(const struct llp_conn *c)
{
	int octets;

	assert_int_equal(ioctl(c->w.fd, SIOCOUTQ, &octets), 0);
	return octets;
}

/* The kernel's ACK comes in its own time, not in the world's. */
static void until_acknowledged(struct world *w, const struct llp_conn *c, int before)
{
	for (unsigned i = 0; i < ACK_ROUNDS && not_acknowledged(c) >= before; i++)
		world_rounds(w, 1);
	assert_true(not_acknowledged(c) < before);
}

/* Too little for the kernel to have room for more, and yet it is alive. */
static void or_takes_little(void **state)
{
	struct world w;
	size_t waits;
	int before;

	(void)state;
	world_open(&w, 1500); /* small segments, so that a small window opens again */
	world_connect(&w);
	set(w.client.c, SO_SNDBUF, 200000);
	set(w.accepted.c, SO_RCVBUF, 40000);
	fill_up(&w);
	llp_socket.close(w.client.c);
	world_rounds(&w, 2);
	waits = sock.leaving->out->len - sock.leaving->out->off;
	before = not_acknowledged(sock.leaving);
	/* what was read already, and one octet: the kernel is asked for more once */
	w.accepted.most += w.accepted.c->in->len - w.accepted.c->in->off + 1;
	llp_socket.resume(w.accepted.c);
	world_until_got(&w, &w.accepted, w.accepted.most);
	until_acknowledged(&w, sock.leaving, before);
	w.later_us = 55000000;
	world_rounds(&w, 2);
	w.later_us = 110000000;
	world_rounds(&w, 1);
	assert_non_null(sock.leaving);
	assert_int_equal(sock.leaving->out->len - sock.leaving->out->off, waits);
	w.later_us = 180000000;
	world_rounds(&w, 1);
	assert_null(sock.leaving);
	world_close(&w);
}

/* It must not take what came for all there was. */
static void but_not_for_ever_and_then_it_is_an_error(void **state)
{
	struct world *w = *state;

	fill(w);
	llp_socket.close(w->client.c);
	w->later_us = 61000000;
	world_rounds(w, 1);
	assert_null(sock.leaving);
	world_until(w, &w->accepted.closed);
	assert_status(w->accepted.why, UW_E_LLP_CLOSED);
}

static void after_a_shutdown_receiving_goes_on(void **state)
{
	struct world *w = *state;

	world_connect(w);
	llp_socket.shutdown(w->client.c);
	world_until(w, &w->accepted.closed);
	assert_status(w->accepted.why, UW_OK);
	assert_int_equal(world_send(&w->accepted, 0, 1000), 1000);
	world_until_got(w, &w->client, 1000);
	assert_false(w->client.closed);
	llp_socket.close(w->accepted.c);
	world_until(w, &w->client.closed);
	assert_status(w->client.why, UW_OK);
}

/* A peer that hears of the end while it still sends would be answered by an RST. */
static void who_closes_reads_on_until_the_peer_ends(void **state)
{
	struct world *w = *state;

	world_connect(w);
	assert_int_equal(world_send(&w->client, 0, 10), 10);
	llp_socket.close(w->client.c);
	world_until(w, &w->accepted.closed);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(world_send(&w->accepted, 0, 1000), 1000);
		world_rounds(w, 2);
	}
	assert_status(w->accepted.why, UW_OK);
	assert_int_equal(w->client.n_got, 0);
	assert_non_null(sock.leaving);
	llp_socket.close(w->accepted.c);
	world_rounds(w, 20);
	assert_null(sock.leaving);
}

static void an_abort_is_an_error_at_the_peer(void **state)
{
	struct world *w = *state;

	world_connect(w);
	llp_socket.abort(w->client.c);
	world_until(w, &w->accepted.closed);
	assert_status(w->accepted.why, UW_E_LLP_CLOSED);
	assert_false(w->client.closed);
}

static void a_connection_may_end_while_it_receives(void **state)
{
	struct world *w = *state;

	world_connect(w);
	w->accepted.close_in_rx = true;
	assert_int_equal(world_send(&w->client, 0, 100), 100);
	world_until(w, &w->client.closed);
	assert_status(w->client.why, UW_OK);
	assert_int_equal(w->accepted.calls, 1);
	llp_socket.close(w->client.c);
	world_rounds(w, 20);
	assert_null(sock.leaving);
	llp_socket.unlisten(w->server.ls);
	w->client.closed = w->client.connected = w->accepted.connected = false;
	w->accepted.close_in_rx = false;
	w->accepted.abort_in_rx = true;
	world_connect(w);
	assert_int_equal(world_send(&w->client, 0, 100), 100);
	world_until(w, &w->client.closed);
	assert_status(w->client.why, UW_E_LLP_CLOSED);
}

/* ---- addresses ------------------------------------------------------------------------------ */

static void a_refusal_comes_as_an_event(void **state)
{
	struct world *w = *state;
	struct uw_ip here = uw_ip_v4(htonl(INADDR_LOOPBACK));
	struct llp_addrs a = { .local = here, .remote = here, .rport = htons(1) };

	assert_status(llp_socket.connect(w->link, &a, &w->client, &w->client.c), UW_OK);
	world_until(w, &w->client.closed);
	assert_status(w->client.why, UW_E_REFUSED);
	assert_false(w->client.connected);
}

static void a_listener_may_refuse(void **state)
{
	struct world *w = *state;

	w->server.refuse = true;
	world_connect(w);
	world_until(w, &w->client.closed);
	assert_status(w->client.why, UW_E_LLP_CLOSED);
}

static void both_ends_know_both_addresses(void **state)
{
	struct world *w = *state;
	struct llp_addrs a, b;

	world_connect(w);
	a = llp_socket.addrs(w->client.c);
	b = llp_socket.addrs(w->accepted.c);
	assert_int_equal(a.lport, b.rport);
	assert_int_equal(a.rport, b.lport);
	assert_true(uw_ip_eq(&a.local, &b.remote));
	assert_true(uw_ip_eq(&a.remote, &b.local));
}

static void a_port_belongs_to_one_listener(void **state)
{
	struct world *w = *state;
	struct llp_place at = { .addr = uw_ip_v4(htonl(INADDR_LOOPBACK)) };
	struct llp_listener *second;

	world_connect(w);
	at.port = llp_socket.addrs(w->accepted.c).lport;
	assert_false(llp_socket.port_free(at.port));
	assert_status(llp_socket.listen(w->link, &at, 8, &w->server, &second), UW_E_ADDR_IN_USE);
	at.addr = uw_ip_v4(INADDR_ANY);
	assert_status(llp_socket.listen(w->link, &at, 8, &w->server, &second), UW_E_ADDR_IN_USE);
}

static void an_address_of_another_host_is_refused(void **state)
{
	const struct host_config other = { .addr = htonl(0xc0000201) }; /* 192.0.2.1 */
	struct io_link *l;

	(void)state;
	assert_status(host_link_open(&other, NULL, &l), UW_E_ADDR);
}

static void processes_that_share_a_chosen_address_get_one_each(void **state)
{
	const struct host_config cfg = { .addr = htonl(0x7f3e0001), .addr_auto = true };
	struct io_link *a, *b;

	(void)state;
	assert_status(host_link_open(&cfg, NULL, &a), UW_OK);
	assert_status(host_link_open(&cfg, NULL, &b), UW_OK);
	assert_int_equal(a->addr, cfg.addr);
	assert_int_not_equal(b->addr, a->addr);
	assert_int_equal(ntohl(b->addr) >> 24, 127);
	a->ops->close(a);
	b->ops->close(b);
}

static int field(const struct llp_conn *c, int level, int name)
{
	socklen_t n = sizeof(int);
	int value = -1;

	assert_int_equal(getsockopt(c->w.fd, level, name, &value, &n), 0);
	return value;
}

static void type_of_service(struct world *w, struct uw_ip ip, int level, int name)
{
	struct llp_place at = { .addr = ip, .tos = 0x20 };
	struct llp_addrs a = { .local = ip, .remote = ip, .tos = 0x68 };
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);

	assert_status(llp_socket.listen(w->link, &at, 8, &w->server, &w->server.ls), UW_OK);
	assert_int_equal(getsockname(w->server.ls->w.fd, (struct sockaddr *)&bound, &len), 0);
	sock_addr_read(&bound, &ip, &a.rport);
	assert_status(llp_socket.connect(w->link, &a, &w->client, &w->client.c), UW_OK);
	assert_int_equal(field(w->client.c, level, name), 0x68); /* the SYN has it */
	world_until(w, &w->client.connected);
	world_until(w, &w->accepted.connected);
	assert_int_equal(field(w->accepted.c, level, name), 0x20);
	llp_socket.set_tos(w->accepted.c, 0x48);
	assert_int_equal(field(w->accepted.c, level, name), 0x48);
}

static void the_kernel_hears_of_the_type_of_service(void **state)
{
	type_of_service(*state, uw_ip_v4(htonl(INADDR_LOOPBACK)), IPPROTO_IP, IP_TOS);
}

static void and_of_the_traffic_class(void **state)
{
	type_of_service(*state, (struct uw_ip){ .b = { [15] = 1 } }, IPPROTO_IPV6, IPV6_TCLASS);
}

/* ---- processes ------------------------------------------------------------------------------ */

/* Else the peer would not hear of our end before the child's. */
static void a_forked_child_holds_no_connection(void **state)
{
	struct world *w = *state;
	int status;
	pid_t child;

	world_connect(w);
	child = fork();
	if (!child) {
		bool closed = fcntl(w->client.c->w.fd, F_GETFD) < 0 && errno == EBADF;

		_exit(closed && fcntl(w->server.ls->w.fd, F_GETFD) < 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(world_send(&w->client, 0, 10), 10); /* ours is as it was */
	world_until_got(w, &w->accepted, 10);
}

static void who_sleeps_can_be_roused(void **state)
{
	(void)state;
	llp_socket.rouse();
	llp_socket.sleep(3600u * 1000000); /* returns */
	assert_int_equal(llp_socket.poll(), 1);
	assert_int_equal(llp_socket.poll(), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(octets_arrive_whole_and_in_order),
		TEST(who_sends_too_much_waits_until_there_is_room),
		TEST(what_comes_while_paused_waits),
		cmocka_unit_test(segments_are_no_larger_than_the_mtu_allows),
		TEST(a_close_comes_behind_what_was_sent),
		TEST(a_close_waits_for_a_peer_that_is_slow),
		cmocka_unit_test(or_takes_little),
		TEST(but_not_for_ever_and_then_it_is_an_error),
		TEST(after_a_shutdown_receiving_goes_on),
		TEST(who_closes_reads_on_until_the_peer_ends),
		TEST(an_abort_is_an_error_at_the_peer),
		TEST(a_connection_may_end_while_it_receives),
		TEST(a_refusal_comes_as_an_event),
		TEST(a_listener_may_refuse),
		TEST(both_ends_know_both_addresses),
		TEST(a_port_belongs_to_one_listener),
		cmocka_unit_test(an_address_of_another_host_is_refused),
		cmocka_unit_test(processes_that_share_a_chosen_address_get_one_each),
		TEST(the_kernel_hears_of_the_type_of_service),
		TEST(and_of_the_traffic_class),
		TEST(a_forked_child_holds_no_connection),
		TEST(who_sleeps_can_be_roused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
