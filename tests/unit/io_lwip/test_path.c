/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths that take shorter packets than the link (RFC 1191, RFC 4821), and ICMP errors (RFC 1122
 * §4.2.3.9, RFC 5927). */
#include "bed.h"

#include <endian.h>

#include "base/be.h"
#include "io/lwip/conn.h"
#include "io/route/table.h"

#define PORT	 7000u
#define OUR_PORT 33000u
#define SECOND	 1000000u
#define LATER	 (601u * SECOND)

static int up(void **state)
{
	(void)state;
	bed_open_network();
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

/* ---- what is sent ---------------------------------------------------------------------------- */

/* Of what was sent since: is [seq, seq + n) all there, in segments of at most `most`? */
static bool covers(uint32_t seq, size_t n, unsigned since, size_t most)
{
	static uint8_t seen[65536];

	assert_true(n <= sizeof(seen));
	memset(seen, 0, n);
	for (unsigned i = since; i < bed.sent; i++) {
		const struct bed_seg *s = &bed.out[i % BED_OUT];

		if (s->n > most)
			return false;
		for (size_t k = 0; k < s->n; k++) {
			if (s->seq + k - seq < n)
				seen[s->seq + k - seq] = 1;
		}
	}
	return !memchr(seen, 0, n);
}

/* ---- what comes -------------------------------------------------------------------------------
 */

static uint16_t sum_of(const uint8_t *p, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i += 2)
		sum += uw_be16(p + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~((sum & 0xffff) + (sum >> 16));
}

struct message {
	uint8_t code;
	uint16_t mtu, sport, dport, length;
	uint32_t seq;
	bool damaged;
};

/* Destination unreachable, with the first octets of a segment of ours. */
static void icmp(const struct message *m)
{
	uint8_t b[36] = { 3, m->code };
	uint8_t *ip = b + 8, *tcp = ip + 20;

	uw_put16(b + 6, m->mtu);
	ip[0] = 0x45;
	uw_put16(ip + 2, m->length ? m->length : 1500);
	ip[9] = 6;
	uw_put32(ip + 12, BED_OURS);
	uw_put32(ip + 16, BED_THEIRS);
	uw_put16(tcp, m->sport);
	uw_put16(tcp + 2, m->dport);
	uw_put32(tcp + 4, m->seq);
	uw_put16(b + 2, sum_of(b, sizeof(b)) ^ m->damaged);
	bed_in_ip(1, b, sizeof(b));
}

static void too_big(uint32_t seq, uint16_t mtu)
{
	icmp(&(struct message){ 4, mtu, BED_PORT, PORT, 0, seq, false });
}

/* ---- the path ----------------------------------------------------------------------------------
 */

/* RFC 1191 §3 */
static void packets_have_df(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	assert_true(bed_last(PORT, 0)->df);
	assert_int_equal(bed_send_full(&p, 1), BED_MSS);
	assert_true(bed_last(PORT, 0)->df);
}

/* RFC 1191 §6.4: what is out goes again, cut; what is new fits. */
static void a_shorter_path(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	unsigned since;

	(void)state;
	bed_send_full(&p, 3);
	since = bed.sent;
	too_big(p.ack, 1000);
	assert_int_equal(bed.stats.tcp_path_shorter, 1);
	assert_true(covers(p.ack, 3 * BED_MSS, since, 960));
	assert_int_equal(bed.stats.tcp_tx_cut, 6);
	since = bed.sent;
	too_big(p.ack + BED_MSS, 1000);
	assert_int_equal(bed.sent, since); /* once is enough */
	p.ack += 3 * BED_MSS;
	bed_segment(&p, 0, 0, ACK);
	since = bed.sent;
	assert_int_equal(bed_send_full(&p, 2), 960);
	assert_true(covers(p.ack, 1920, since, 960));
}

/* The receiver may have some pieces and not others. */
static void pieces_are_acknowledged(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	unsigned since;

	(void)state;
	bed_send_full(&p, 2);
	too_big(p.ack, 1000);
	p.ack += 960;
	bed_segment(&p, 0, 0, ACK);
	since = bed.sent;
	bed_pass(2 * SECOND);
	assert_true(covers(p.ack, BED_MSS - 960, since, 960));
	p.ack += BED_MSS - 960;
	since = bed.sent;
	bed_segment(&p, 0, 0, ACK);
	bed_pass(2 * SECOND);
	assert_true(covers(p.ack, BED_MSS, since, 960));
	p.ack += BED_MSS;
	bed_segment(&p, 0, 0, ACK);
	since = bed.sent;
	bed_pass(SECOND);
	assert_int_equal(bed.sent, since);
}

/* RFC 1191 §5: an old router */
static void a_router_that_does_not_say(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	bed_send_full(&p, 1);
	too_big(p.ack, 0);
	p.ack += BED_MSS;
	bed_segment(&p, 0, 0, ACK);
	assert_int_equal(bed_send_full(&p, 1), 1492 - 40);
}

/* A path that takes less than any should: routers may cut. */
static void a_tiny_path(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	bed_send_full(&p, 1);
	too_big(p.ack, 68);
	p.ack += BED_MSS;
	bed_segment(&p, 0, 0, ACK);
	assert_int_equal(bed_send_full(&p, 1), 552 - 40);
	assert_false(bed_last(PORT, 0)->df);
}

/* RFC 1191 §6.3 */
static void it_may_become_longer_again(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	bed_send_full(&p, 1);
	too_big(p.ack, 1000);
	p.ack += BED_MSS;
	bed_segment(&p, 0, 0, ACK);
	bed_pass(LATER);
	assert_int_equal(bed_send_full(&p, 1), BED_MSS);
}

/* The next connection to the host knows it. */
static void it_is_remembered(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	bed_send_full(&p, 1);
	too_big(p.ack, 1000);
	p = bed_connect(PORT + 1);
	assert_int_equal(bed_send_full(&p, 1), 960);
}

/* RFC 5927 §4.1 and §7: who guesses does not know what is in flight. */
static void forged_messages(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	bed_send_full(&p, 1);
	too_big(p.ack - 1, 600);
	too_big(p.ack + BED_MSS, 600);
	icmp(&(struct message){ 4, 600, BED_PORT, PORT + 1, 0, p.ack, false });
	icmp(&(struct message){ 4, 600, BED_PORT, PORT, 0, p.ack, true });
	assert_int_equal(bed.stats.icmp_rx_refused, 4);
	assert_int_equal(bed.stats.tcp_path_shorter, 0);
	too_big(p.ack, 9000); /* longer than what we send */
	assert_int_equal(bed.stats.tcp_path_shorter, 0);
}

/* Of several stacks one counts what nobody is meant by; who is meant may have a copy. */
static void a_copy_counts_only_for_who_is_meant(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	bed_send_full(&p, 1);
	bed.copy = true;
	too_big(p.ack - 1, 600);
	assert_int_equal(bed.stats.icmp_rx_refused, 0);
	too_big(p.ack, 1000);
	assert_int_equal(bed.stats.tcp_path_shorter, 1);
}

/* RFC 4821 §7.7 */
static void a_black_hole(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	unsigned since;

	(void)state;
	bed_send_full(&p, 2);
	bed_pass(4 * SECOND);
	assert_true(bed.stats.tcp_black_holes > 0);
	since = bed.sent;
	bed_pass(6 * SECOND);
	assert_true(covers(p.ack, BED_MSS, since, 1492 - 40));
}

/* The user sends n octets, in segments of at most `room`. */
static void send_message(const struct bed_peer *p, size_t n)
{
	size_t room, k;

	for (; n; n -= k) {
		uint8_t *at = llp_raw.tx_begin(p->user->c, &room);

		assert_non_null(at);
		k = room < n ? room : n;
		memset(at, 7, k);
		llp_raw.tx_commit(p->user->c, k);
	}
	llp_raw.tx_flush(p->user->c);
	bed_flush();
}

/* Of what was sent since, segments of at most `most` arrive; those in order are acknowledged. */
static void hear(struct bed_peer *p, unsigned since, size_t most)
{
	uint32_t before = p->ack;

	for (; since < bed.sent; since++) {
		const struct bed_seg *s = &bed.out[since % BED_OUT];

		if (s->n <= most && p->ack - s->seq < s->n)
			p->ack = s->seq + (uint32_t)s->n;
	}
	if (p->ack != before)
		bed_segment(p, 0, 0, ACK);
}

/* The time until all n octets of a message have arrived, where packets above mtu vanish. */
static uint64_t takes_us(struct bed_peer *p, size_t n, size_t mtu)
{
	const uint64_t start = bed.now_us;
	uint32_t end = p->ack + (uint32_t)n;
	unsigned since = bed.sent;

	send_message(p, n);
	hear(p, since, mtu - 40);
	while (p->ack != end && bed.now_us - start < 30 * SECOND) {
		since = bed.sent;
		bed_pass(10000);
		hear(p, since, mtu - 40);
	}
	assert_int_equal(p->ack, end);
	return bed.now_us - start;
}

/* What vanishes need not be as long as the link takes, nor longer than the next size below that. */
static void a_black_hole_for_shorter_segments(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	assert_int_equal(takes_us(&p, 1000, 1300), 0);
	takes_us(&p, 1350, 1300);
	bed_pass(SECOND); /* the size from before is tried */
	takes_us(&p, 1350, 1300);
	assert_int_equal(bed.stats.tcp_black_holes, 2); /* a guess, and it was right */
	for (unsigned i = 0; i < 20; i++)
		assert_in_range(takes_us(&p, 1350, 1300), 0, SECOND / 10);
	assert_int_equal(bed.stats.tcp_black_holes, 2);
	assert_false(p.user->closed);
}

static void the_link_becomes_shorter(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	bed.link.mtu = 1200;
	llp_raw.link_changed(&bed.link);
	assert_int_equal(bed_send_full(&p, 1), 1160);
	bed.link.mtu = BED_MTU;
	llp_raw.link_changed(&bed.link);
	assert_int_equal(bed_send_full(&p, 1), BED_MSS);
}

/* A route's MTU below what any packet needs leaves room for an FPDU (RFC 5044 §4.5). */
static void a_route_shorter_than_the_headers(void **state)
{
	struct route_table t = { 0 };
	struct bed_peer p;

	(void)state;
	route_add(&t, &(struct route){ .net = { uw_ip_v4(htobe32(BED_THEIRS)), UW_IP_V4_BITS + 32 },
				       .mtu = 30 });
	route_sort(&t);
	bed.link.routes = &t;
	p = bed_connect(PORT);
	assert_int_equal(bed_send_full(&p, 1), LLP_ROOM_LEAST);
	bed.link.routes = NULL;
	route_clear(&t);
}

/* ---- MAC addresses that change -----------------------------------------------------------------
 */

static void ours_changes(void **state)
{
	static const uint8_t mac[6] = { 2, 1, 1, 1, 1, 1 };
	struct bed_peer p = bed_connect(PORT);
	unsigned asked = bed.arps;

	(void)state;
	memcpy(bed.link.mac, mac, sizeof(mac));
	llp_raw.link_changed(&bed.link);
	bed_send_full(&p, 1);
	assert_memory_equal(bed.from_mac, mac, sizeof(mac));
	/* who is asked from the new one has it then */
	assert_int_equal(bed.arps, asked + 1);
	llp_raw.link_changed(&bed.link); /* nothing is new */
	bed_send_full(&p, 1);
	assert_int_equal(bed.arps, asked + 1);
}

/* RFC 1122 §2.3.2.1 (4) */
static void a_silent_peer_is_asked_for_its_mac(void **state)
{
	struct bed_peer p = bed_connect(PORT);
	unsigned asked = bed.arps;

	(void)state;
	bed_send_full(&p, 2);
	bed_pass(10 * SECOND);
	assert_in_range(bed.arps - asked, 1, 10); /* not more often than once a second */
}

static int up_asking(void **state)
{
	(void)state;
	bed_open_asking(4000);
	return 0;
}

static void so_is_one_that_answers_no_keepalive(void **state)
{
	unsigned asked;

	(void)state;
	bed_connect(PORT);
	asked = bed.arps;
	bed_pass(4 * SECOND);
	assert_int_equal(bed.arps, asked);
	bed_pass(3 * SECOND);
	assert_in_range(bed.arps - asked, 1, 3);
}

/* A neighbour whose MAC address the administrator has fixed is not asked for, nor asked again. */
static void a_fixed_neighbour_is_not_asked(void **state)
{
	const struct uw_ip far = uw_ip_v4(htobe32(BED_OURS + 8));
	const struct llp_addrs a = { .local = uw_ip_v4(htobe32(BED_OURS)),
				     .remote = far,
				     .lport = htobe16(OUR_PORT),
				     .rport = htobe16(PORT) };
	struct bed_conn c = { 0 };
	struct route_table t = { 0 };
	unsigned asked = bed.asked, sent = bed.sent;

	(void)state;
	route_add_neighbour(&t, &(struct route_neighbour){ far, { 2, 0, 0, 0, 0, 8 } });
	route_sort(&t);
	bed.link.routes = &t;
	assert_true(llp_raw.neighbour(&bed.link, &far));
	assert_status(llp_raw.connect(&bed.link, &a, &c, &c.c), UW_OK);
	bed_flush();
	assert_int_equal(bed.sent, sent + 1);
	edge_ask_again(c.c);
	bed_flush();
	assert_int_equal(bed.asked, asked);
	llp_raw.abort(c.c);
	bed.link.routes = NULL;
	route_clear(&t);
}

/* How many of n hosts, 16 apart, are asked for their MAC now. */
static unsigned asked_of(const struct bed_peer *p, unsigned n)
{
	struct llp_conn *c = p->user->c;
	const struct uw_ip remote = c->flow.remote;
	unsigned before = bed.asked;

	for (unsigned i = 0; i < n; i++) {
		c->flow.remote = uw_ip_v4(htobe32(BED_THEIRS + 16 * (i % 15) + i / 15));
		edge_ask_again(c);
	}
	c->flow.remote = remote;
	bed_flush();
	return bed.asked - before;
}

/* RFC 1122 §2.3.2.1: once a second for each, and a flood of them is bounded. */
static void silent_peers_do_not_wait_for_each_other(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	assert_int_equal(asked_of(&p, 4), 4);
	assert_int_equal(asked_of(&p, 4), 0);
	bed_pass(SECOND);
	assert_int_equal(asked_of(&p, 4), 4);
	bed_pass(SECOND);
	assert_int_equal(asked_of(&p, 40), EDGE_ASKED);
	bed_pass(SECOND);
	assert_int_equal(asked_of(&p, 40), EDGE_ASKED);
}

/* ---- unreachable --------------------------------------------------------------------------------
 */

static struct bed_conn caller;

static uint32_t call(void)
{
	const struct llp_addrs a = { .local = uw_ip_v4(htobe32(BED_OURS)),
				     .remote = uw_ip_v4(htobe32(BED_THEIRS)),
				     .lport = htobe16(OUR_PORT),
				     .rport = htobe16(PORT) };

	caller = (struct bed_conn){ 0 };
	assert_status(llp_raw.connect(&bed.link, &a, &caller, &caller.c), UW_OK);
	bed_flush();
	return bed_last(PORT, 0)->seq;
}

static void unreachable(uint8_t code, uint32_t seq)
{
	icmp(&(struct message){ code, 0, OUR_PORT, PORT, 44, seq, false });
}

/* RFC 1122 §4.2.3.9: codes 2 to 4 are hard. */
static void nobody_listens(void **state)
{
	(void)state;
	unreachable(3, call());
	assert_true(caller.closed);
	assert_status(caller.why, UW_E_REFUSED);
}

static void it_is_forbidden(void **state)
{
	(void)state;
	unreachable(13, call());
	assert_true(caller.closed);
	assert_status(caller.why, UW_E_UNREACHABLE);
}

/* RFC 1122 §4.2.3.9: 0, 1 and 5 are soft. RFC 5461 §4.1: but not for ever while connecting. */
/* The link's network, our own address, what a route leads to and groups; nothing else. */
static void where_there_is_a_way(void **state)
{
	const struct uw_ip near = uw_ip_v4(htobe32(BED_THEIRS)), ours = uw_ip_v4(htobe32(BED_OURS)),
			   far = uw_ip_v4(htobe32(0x0b000001)),
			   group = uw_ip_v4(htobe32(0xef010203));
	struct route_table t = { 0 };

	(void)state;
	assert_true(llp_raw.has_way(&bed.link, &near) && llp_raw.has_way(&bed.link, &ours));
	assert_true(llp_raw.has_way(&bed.link, &group));
	assert_false(llp_raw.has_way(&bed.link, &far));
	route_add(&t, &(struct route){ .net = { far, UW_IP_V4_BITS + 8 }, .via = near });
	route_sort(&t);
	bed.link.routes = &t;
	assert_true(llp_raw.has_way(&bed.link, &far));
	bed.link.routes = NULL;
	route_clear(&t);
}

static void there_is_no_route(void **state)
{
	uint32_t seq = call();

	(void)state;
	unreachable(0, seq);
	assert_false(caller.closed);
	bed_pass(SECOND);
	unreachable(0, seq);
	assert_true(caller.closed);
	assert_status(caller.why, UW_E_UNREACHABLE);
}

static void a_guess_does_not_end_it(void **state)
{
	uint32_t seq = call();

	(void)state;
	unreachable(3, seq + 1);
	unreachable(3, seq - 1);
	assert_false(caller.closed);
	llp_raw.abort(caller.c);
}

/* RFC 5927 §5.2 */
static void one_that_is_up_bears_all(void **state)
{
	struct bed_peer p = bed_connect(PORT);

	(void)state;
	bed_send_full(&p, 1);
	for (uint8_t code = 0; code < 16; code++) {
		if (code != 4)
			icmp(&(struct message){ code, 0, BED_PORT, PORT, 0, p.ack, false });
	}
	assert_false(p.user->closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(packets_have_df, up, down),
		cmocka_unit_test_setup_teardown(a_shorter_path, up, down),
		cmocka_unit_test_setup_teardown(pieces_are_acknowledged, up, down),
		cmocka_unit_test_setup_teardown(a_router_that_does_not_say, up, down),
		cmocka_unit_test_setup_teardown(a_tiny_path, up, down),
		cmocka_unit_test_setup_teardown(it_may_become_longer_again, up, down),
		cmocka_unit_test_setup_teardown(it_is_remembered, up, down),
		cmocka_unit_test_setup_teardown(forged_messages, up, down),
		cmocka_unit_test_setup_teardown(a_copy_counts_only_for_who_is_meant, up, down),
		cmocka_unit_test_setup_teardown(a_black_hole, up, down),
		cmocka_unit_test_setup_teardown(a_black_hole_for_shorter_segments, up, down),
		cmocka_unit_test_setup_teardown(the_link_becomes_shorter, up, down),
		cmocka_unit_test_setup_teardown(ours_changes, up, down),
		cmocka_unit_test_setup_teardown(a_route_shorter_than_the_headers, up, down),
		cmocka_unit_test_setup_teardown(a_silent_peer_is_asked_for_its_mac, up, down),
		cmocka_unit_test_setup_teardown(a_fixed_neighbour_is_not_asked, up, down),
		cmocka_unit_test_setup_teardown(silent_peers_do_not_wait_for_each_other, up, down),
		cmocka_unit_test_setup_teardown(so_is_one_that_answers_no_keepalive, up_asking,
						down),
		cmocka_unit_test_setup_teardown(nobody_listens, up, down),
		cmocka_unit_test_setup_teardown(it_is_forbidden, up, down),
		cmocka_unit_test_setup_teardown(where_there_is_a_way, up, down),
		cmocka_unit_test_setup_teardown(there_is_no_route, up, down),
		cmocka_unit_test_setup_teardown(a_guess_does_not_end_it, up, down),
		cmocka_unit_test_setup_teardown(one_that_is_up_bears_all, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
