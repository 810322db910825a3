/* SPDX-License-Identifier: BSD-3-Clause */
#include "bed.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/doorbell.h"

static struct octets to_ourselves(uint16_t sport, uint16_t dport)
{
	struct octets f = segment(true, sport, dport, 100);

	uw_put32(f.h + 30, OURS);
	return f;
}

static void a_segment_goes_out(void **state)
{
	struct bed *b = *state;
	struct octets f = segment(true, ALICES, OUTSIDE, 100);

	bed_put(b, ALICE, &f);
	assert_true(forward_pending(&b->s));
	assert_int_equal(forward_round(&b->s), 1);
	assert_int_equal(b->port.n_sent, 1);
	assert_int_equal(b->port.sent[0].len, f.len);
	assert_memory_equal(b->port.sent[0].h, f.h, f.len);
	assert_int_equal(b->c[ALICE].tx_frames, 1);
	assert_false(forward_pending(&b->s));
}

static void a_full_port_loses_nothing(void **state)
{
	struct bed *b = *state;
	struct octets f = segment(true, ALICES, OUTSIDE, 100);

	b->port.full = true;
	bed_put(b, ALICE, &f);
	assert_int_equal(forward_round(&b->s), 0);
	b->port.full = false;
	assert_int_equal(forward_round(&b->s), 1);
	assert_int_equal(b->port.n_sent, 1);
}

static void a_forged_segment_is_counted(void **state)
{
	struct bed *b = *state;
	struct octets f = segment(true, BOBS, OUTSIDE, 100);

	bed_put(b, ALICE, &f);
	forward_round(&b->s);
	assert_int_equal(b->port.n_sent, 0);
	assert_int_equal(b->c[ALICE].drops.by[SWITCH_WHY_source_port], 1);
}

/* What the next call finds there is not zero by chance. */
__attribute__((noinline)) static void fill_the_stack(void)
{
	volatile uint8_t octets[4096];

	for (unsigned i = 0; i < sizeof(octets); i++)
		octets[i] = 0xff;
}

static void a_segment_goes_from_client_to_client(void **state)
{
	struct bed *b = *state;
	struct octets f = to_ourselves(ALICES, BOBS), got;

	atomic_store(&b->bell[BOB][0], IO_ASLEEP);
	bed_put(b, ALICE, &f);
	fill_the_stack();
	forward_round(&b->s);
	assert_true(bed_take(b, BOB, &got));
	assert_int_equal(got.len, f.len);
	assert_memory_equal(got.h, f.h, f.len);
	assert_true(atomic_load(&b->bell[BOB][0]) >= IO_RUNG);
	assert_int_equal(b->port.n_sent, 0);
	assert_int_equal(b->port.fetched, 0);
	assert_false(bed_take(b, ALICE, &got));
}

/* No round comes after them that forwards anything. */
static void the_last_frames_of_a_client_wake_too(void **state)
{
	struct bed *b = *state;
	struct octets f = to_ourselves(ALICES, BOBS), got;

	atomic_store(&b->bell[BOB][0], IO_ASLEEP);
	bed_put(b, ALICE, &f);
	forward_rest(&b->s, &b->c[ALICE]);
	assert_true(bed_take(b, BOB, &got));
	assert_true(atomic_load(&b->bell[BOB][0]) >= IO_RUNG);
}

/* A hostile client has filled its socket, or shares none: nothing waits for it. */
static void who_polls_is_rung_by_its_socket(void **state)
{
	struct bed *b = *state;
	struct octets f = to_ourselves(ALICES, BOBS), got;
	_Atomic uint32_t *bell = b->bell[BOB];
	char octets[8];
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	b->c[BOB].wake_fd = p[1];
	atomic_store(&bell[0], IO_ASLEEP_FD);
	for (unsigned i = 0; i < 2; i++) { /* one ring for each sleep */
		bed_put(b, ALICE, &f);
		forward_round(&b->s);
		assert_true(bed_take(b, BOB, &got));
	}
	assert_true(atomic_load(&bell[0]) >= IO_RUNG);
	assert_int_equal(atomic_load(&bell[SWITCH_BELL_RINGS]), 1);
	assert_int_equal(recv(p[0], octets, sizeof(octets), MSG_DONTWAIT), 1);
	while (send(p[1], octets, 1, MSG_DONTWAIT) == 1)
		;
	atomic_store(&bell[0], IO_ASLEEP_FD);
	bed_put(b, ALICE, &f);
	forward_round(&b->s);
	assert_int_equal(atomic_load(&bell[SWITCH_BELL_RINGS]), 1);
	b->c[BOB].wake_fd = -1;
	atomic_store(&bell[0], IO_ASLEEP_FD);
	bed_put(b, ALICE, &f);
	forward_round(&b->s);
	assert_int_equal(atomic_load(&bell[SWITCH_BELL_RINGS]), 1);
	close(p[0]);
	close(p[1]);
}

/* A client that has thousands watch its end of the socket. */
static void who_costs_much_is_rung_seldom(void **state)
{
	struct bed *b = *state;
	struct octets f = to_ourselves(ALICES, BOBS), got;
	_Atomic uint32_t *bell = b->bell[BOB];
	struct wake_cost *wake_cost = &b->c[BOB].wake_cost;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	b->c[BOB].wake_fd = p[1];
	b->s.now_us = uw_clock_us();
	wake_cost->until_us = b->s.now_us + 1000;
	atomic_store(&bell[0], IO_ASLEEP_FD);
	bed_put(b, ALICE, &f);
	forward_round(&b->s);
	assert_true(bed_take(b, BOB, &got)); /* it may look by itself */
	forward_wake_late(&b->s);
	assert_int_equal(atomic_load(&bell[0]), IO_ASLEEP_FD);
	assert_int_equal(atomic_load(&bell[SWITCH_BELL_RINGS]), 0);
	b->s.now_us = wake_cost->until_us;
	forward_wake_late(&b->s);
	assert_true(atomic_load(&bell[0]) >= IO_RUNG);
	assert_int_equal(atomic_load(&bell[SWITCH_BELL_RINGS]), 1);
	assert_false(b->s.late);
	close(p[0]);
	close(p[1]);
}

/* Another program that had the CPU is not the client's fault. */
static void what_it_costs_is_measured(void **state)
{
	const uint64_t us = 2 * WAKE_COST_LONG_US;
	struct wake_cost t = { 0 };
	struct wake_cost_time since;

	(void)state;
	assert_int_equal(wake_cost_end(&t, wake_cost_begin(&t)), 0);
	since = wake_cost_begin(&t);
	since.us -= us;
	assert_int_equal(wake_cost_end(&t, since), 0);
	assert_true(t.suspect);
	since = wake_cost_begin(&t);
	since.us -= us; /* our thread has not run for so long */
	assert_int_equal(wake_cost_end(&t, since), 0);
	assert_true(t.suspect);
	since = wake_cost_begin(&t);
	since.us -= us;
	since.cpu_us -= us;
	assert_true(wake_cost_end(&t, since) >= WAKE_COST_SHARE * us);
	assert_true(t.suspect);
	t = (struct wake_cost){ .suspect = true };
	assert_int_equal(wake_cost_end(&t, wake_cost_begin(&t)), 0);
}

/* How long it is left alone after it has cost a second of our time. */
static uint64_t alone_us(struct bed *b, unsigned client)
{
	struct client *c = &b->c[client];
	struct wake_cost_time since;
	uint64_t now = uw_clock_us();

	c->wake_cost = (struct wake_cost){ .suspect = true };
	since = wake_cost_begin(&c->wake_cost);
	since.us -= 1000000;
	since.cpu_us -= 1000000;
	client_woken(&b->s, c, since);
	return c->wake_cost.until_us - now;
}

/* A user gains nothing by several of them. */
static void what_clients_of_a_user_cost_is_summed(void **state)
{
	const uint64_t one = WAKE_COST_SHARE * 1000000ull;
	struct bed *b = *state;

	assert_in_range(alone_us(b, ALICE), one, 2 * one - 1);
	assert_in_range(alone_us(b, BOB), 2 * one, 3 * one);
	b->c[BOB].uid = 1001;
	assert_in_range(alone_us(b, BOB), one, 2 * one - 1);
}

/* Nor by one that leaves and joins again: it is suspect from its first wake-up on, and left alone
 * for the rest of the time. */
static void what_a_client_cost_stays_its_users(void **state)
{
	struct bed *b = *state;
	struct client next = { .uid = b->c[ALICE].uid }, other = { .uid = next.uid + 1 };
	uint64_t until;

	client_leaves_cost(&b->s, &b->c[ALICE]); /* none */
	client_takes_cost(&b->s, &next);
	assert_false(next.wake_cost.suspect);
	until = uw_clock_us() + HEARD_US / 2;
	b->c[ALICE].wake_cost.until_us = until;
	client_leaves_cost(&b->s, &b->c[ALICE]);
	client_takes_cost(&b->s, &next);
	client_takes_cost(&b->s, &other);
	assert_true(next.wake_cost.suspect);
	assert_int_equal(next.wake_cost.until_us, until);
	assert_false(other.wake_cost.suspect);
	assert_int_equal(other.wake_cost.until_us, 0);
	next.wake_cost.until_us = 0; /* one that cost long once, and left at once */
	client_leaves_cost(&b->s, &next);
	client_takes_cost(&b->s, &next);
	assert_int_equal(next.wake_cost.until_us, until);
}

/* Others of its user can join all the same. */
static void who_comes_is_heard_in_time(void **state)
{
	struct bed *b = *state;
	struct client next = { .uid = b->c[ALICE].uid };
	uint64_t now = uw_clock_us();

	alone_us(b, ALICE);
	client_leaves_cost(&b->s, &b->c[ALICE]);
	client_takes_cost(&b->s, &next);
	assert_true(next.wake_cost.suspect);
	assert_in_range(next.wake_cost.until_us, now + HEARD_US, uw_clock_us() + HEARD_US);
}

static void *sleep_on(void *word)
{
	syscall(SYS_futex, word, FUTEX_WAIT, IO_ASLEEP, NULL, NULL, 0);
	return NULL;
}

/* Returns how many moved. */
static unsigned move_sleepers(_Atomic uint32_t *from, _Atomic uint32_t *to)
{
	long n = syscall(SYS_futex, from, FUTEX_CMP_REQUEUE, 0, (long)INT_MAX, to,
			 atomic_load(from));

	return n > 0 ? (unsigned)n : 0;
}

/* A hostile client has any number of threads wait on its word, and each costs time to wake. A good
 * one has a few. */
static void few_sleepers_are_woken(void **state)
{
	struct bed *b = *state;
	struct octets f = to_ourselves(ALICES, BOBS);
	_Atomic uint32_t *bell = b->bell[BOB], elsewhere = 0;
	pthread_t sleeper[20];
	unsigned asleep = 0;

	atomic_store(bell, IO_ASLEEP);
	for (unsigned i = 0; i < COUNT(sleeper); i++)
		assert_int_equal(pthread_create(&sleeper[i], NULL, sleep_on, (void *)bell), 0);
	while (asleep < COUNT(sleeper)) { /* until the last one sleeps */
		asleep += move_sleepers(bell, &elsewhere);
		sched_yield();
	}
	assert_int_equal(move_sleepers(&elsewhere, bell), COUNT(sleeper));
	bed_put(b, ALICE, &f);
	forward_round(&b->s);
	assert_int_equal(syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0),
			 COUNT(sleeper) - 8);
	for (unsigned i = 0; i < COUNT(sleeper); i++)
		pthread_join(sleeper[i], NULL);
}

/* RFC 9293 §3.10.7.1 */
static void a_port_that_nobody_holds_is_refused(void **state)
{
	struct bed *b = *state;
	struct octets f = to_ourselves(ALICES, NOBODYS), got;

	bed_put(b, ALICE, &f);
	forward_round(&b->s);
	assert_true(bed_take(b, ALICE, &got));
	assert_int_equal(uw_be16(got.h + 34), NOBODYS);
	assert_int_equal(uw_be16(got.h + 36), ALICES);
	assert_true(got.h[47] & 4); /* RST */
	assert_int_equal(b->s.answered, 1);
}

static void ip6_up(struct bed *b)
{
	table6_up(NULL);
	table.qps = b->s.table.qps;
	b->s.table = table;
}

static void forged_ip6_is_counted(void **state)
{
	struct bed *b = *state;
	struct octets good = segment6(true, ALICES, OUTSIDE, 100),
		      port = segment6(true, BOBS, OUTSIDE, 100), addr = good, fragment = good,
		      ask = solicit(true);

	ip6_up(b);
	memcpy(addr.h + FROM_AT, their6, 16);
	fragment.h[NEXT_AT] = NEXT_FRAGMENT;
	ask.h[TARGET_AT + 18]++;
	bed_put(b, ALICE, &port);
	bed_put(b, ALICE, &addr);
	bed_put(b, ALICE, &fragment);
	bed_put(b, ALICE, &ask);
	bed_put(b, ALICE, &good);
	assert_int_equal(forward_round(&b->s), 5);
	assert_int_equal(b->port.n_sent, 1);
	assert_memory_equal(b->port.sent[0].h, good.h, good.len);
	assert_int_equal(b->c[ALICE].drops.by[SWITCH_WHY_source_port], 1);
	assert_int_equal(b->c[ALICE].drops.by[SWITCH_WHY_source_addr], 1);
	assert_int_equal(b->c[ALICE].drops.by[SWITCH_WHY_fragment], 1);
	assert_int_equal(b->c[ALICE].drops.by[SWITCH_WHY_source_mac], 1);
}

/* RFC 9293 §3.10.7.1 */
/* A port that sends in bursts has them at once, whether clients send anything or not. */
static void answers_to_the_network_go_out(void **state)
{
	struct bed *b = *state;

	b->s.table.own = true;
	b->port.coming[0] = arp(false, 1);
	b->port.coming[1] = segment(false, OUTSIDE, NOBODYS, 10);
	b->port.n_coming = 2;
	for (unsigned i = 1; i <= 2; i++) {
		forward_round(&b->s);
		assert_int_equal(b->s.answered, i);
		assert_int_equal(b->port.flushed, i);
	}
}

static void a_port_of_ip6_that_nobody_holds_is_refused(void **state)
{
	struct bed *b = *state;
	struct octets f = segment6(true, ALICES, NOBODYS, 100), got;

	ip6_up(b);
	memcpy(f.h + TO_AT, our6, 16);
	bed_put(b, ALICE, &f);
	forward_round(&b->s);
	assert_true(bed_take(b, ALICE, &got));
	assert_int_equal(uw_be16(got.h + L4_AT), NOBODYS);
	assert_true(got.h[L4_AT + 13] & 4); /* RST */
}

static void what_comes_over_ip6_is_its_holders_alone(void **state)
{
	struct bed *b = *state;
	struct octets got, advert = packet6(false, NEXT_ICMP6, 32);

	ip6_up(b);
	advert.h[L4_AT] = 136;
	advert.h[HOPS_AT] = 255;
	b->port.coming[0] = segment6(false, OUTSIDE, BOBS, 10);
	b->port.coming[1] = error6(2, BOBS);
	b->port.coming[2] = advert;
	b->port.n_coming = 3;
	for (unsigned i = 0; i < 4; i++)
		forward_round(&b->s);
	assert_true(bed_take(b, ALICE, &got)); /* answers of neighbours are everybody's */
	assert_memory_equal(got.h, advert.h, advert.len);
	assert_false(bed_take(b, ALICE, &got));
	assert_int_equal(b->c[BOB].rx_frames, 3);
}

static void come(struct bed *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		b->port.coming[b->port.n_coming++] = segment(false, OUTSIDE, BOBS, 10);
}

static void a_frame_that_comes_alone_is_one_look(void **state)
{
	struct bed *b = *state;
	struct octets got;

	come(b, 1);
	assert_int_equal(forward_round(&b->s), 1);
	assert_int_equal(b->port.looks, 1);
	assert_true(bed_take(b, BOB, &got));
	assert_int_equal(forward_round(&b->s), 0);
	assert_int_equal(b->port.looks, 2);
}

static void many_frames_are_taken_at_once(void **state)
{
	struct bed *b = *state;

	come(b, 15);
	for (unsigned n = 1; n <= 8; n *= 2)
		assert_int_equal(forward_round(&b->s), n);
	assert_int_equal(b->c[BOB].rx_frames, 15);
	assert_int_equal(forward_round(&b->s), 0);
	come(b, 2);
	assert_int_equal(forward_round(&b->s), 1); /* begins anew */
}

/* What nobody gets is left in the port, which throws it away. */
static void a_frame_that_waits_is_fetched_once(void **state)
{
	struct bed *b = *state;
	struct octets *f = b->port.coming, got;

	b->port.waits = true;
	f[0] = segment(false, OUTSIDE, ALICES, 1000);
	memset(f[0].h + 54, 0x5a, 1000);
	f[1] = segment(false, OUTSIDE, NOBODYS, 1000);
	f[2] = arp(false, 2);
	f[2].len = 1000;
	f[2].h[999] = 7;
	b->port.n_coming = 3;
	for (unsigned i = 0; i < 3; i++)
		forward_round(&b->s);
	assert_int_equal(b->port.fetched, 2);
	assert_int_equal(b->s.drops.by[SWITCH_WHY_no_holder], 1);
	assert_true(bed_take(b, ALICE, &got));
	assert_int_equal(got.len, f[0].len);
	assert_memory_equal(got.h, f[0].h, f[0].len);
	for (unsigned id = ALICE; id <= BOB; id++) {
		assert_true(bed_take(b, id, &got));
		assert_memory_equal(got.h, f[2].h, f[2].len);
		assert_false(bed_take(b, id, &got));
	}
}

static void a_frame_that_is_lost_in_the_port_is_nobodys(void **state)
{
	struct bed *b = *state;
	struct octets got;

	b->port.waits = b->port.loses = true;
	b->port.coming[0] = segment(false, OUTSIDE, ALICES, 1000);
	b->port.coming[1] = arp(false, 2);
	b->port.n_coming = 2;
	for (unsigned i = 0; i < 3; i++)
		forward_round(&b->s);
	assert_int_equal(b->port.fetched, 2);
	assert_false(bed_take(b, ALICE, &got));
	assert_int_equal(b->c[ALICE].rx_frames, 0);
	b->port.loses = false;
	b->port.taken = 0;
	forward_round(&b->s);
	assert_true(bed_take(b, ALICE, &got));
	assert_int_equal(got.len, 1054);
}

static void a_full_conduit_loses_its_owners_frames(void **state)
{
	struct bed *b = *state;
	struct octets f = to_ourselves(ALICES, BOBS), got;
	unsigned n = 0;

	f.len = 1514;
	uw_put16(f.h + 16, 1500);
	for (; !b->c[BOB].drops.by[SWITCH_WHY_room] && n < 4000; n++) {
		bed_put(b, ALICE, &f);
		forward_round(&b->s);
	}
	assert_true(n > 1000 && n < 4000);
	assert_true(bed_take(b, BOB, &got));
	assert_int_equal(b->c[ALICE].state, CLIENT_UP);
}

static void nonsense_ends_its_client_alone(void **state)
{
	struct bed *b = *state;

	atomic_store(b->theirs[ALICE].out.head, 77);
	forward_round(&b->s);
	assert_int_equal(b->c[ALICE].state, CLIENT_ENDED);
	assert_int_equal(b->c[BOB].state, CLIENT_UP);
	assert_int_equal(b->s.faults, 1);
}

static void a_rate_is_kept(void **state)
{
	struct bed *b = *state;
	struct octets f = segment(true, ALICES, OUTSIDE, 1000);

	b->s.o.rate = 8e6; /* a million octets in a second */
	forward_refill(&b->s, 1);
	for (unsigned i = 0; i < 40; i++)
		bed_put(b, ALICE, &f);
	for (unsigned i = 0; i < 4; i++)
		forward_round(&b->s);
	assert_int_equal(b->port.n_sent, 19); /* 20 ms may be saved up: 20,000 octets */
	assert_true(forward_throttled(&b->s));
	forward_refill(&b->s, 0.01);
	forward_round(&b->s);
	assert_true(b->port.n_sent > 19 && b->port.n_sent < 40);
}

static void who_sleeps_needs_no_cpu(void **state)
{
	struct bed *b = *state;

	assert_false(forward_all_asleep(&b->s));
	atomic_store(&b->bell[ALICE][0], IO_ASLEEP);
	assert_false(forward_all_asleep(&b->s));
	atomic_store(&b->bell[BOB][0], IO_ASLEEP);
	assert_true(forward_all_asleep(&b->s));
	atomic_store(&b->bell[BOB][0], IO_ASLEEP_FD);
	assert_true(forward_all_asleep(&b->s));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(a_segment_goes_out, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_full_port_loses_nothing, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_forged_segment_is_counted, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_segment_goes_from_client_to_client, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(the_last_frames_of_a_client_wake_too, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(who_polls_is_rung_by_its_socket, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(who_costs_much_is_rung_seldom, bed_up, bed_down),
	cmocka_unit_test(what_it_costs_is_measured),
	cmocka_unit_test_setup_teardown(what_clients_of_a_user_cost_is_summed, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(what_a_client_cost_stays_its_users, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(who_comes_is_heard_in_time, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(few_sleepers_are_woken, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_port_that_nobody_holds_is_refused, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(answers_to_the_network_go_out, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(forged_ip6_is_counted, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_port_of_ip6_that_nobody_holds_is_refused, bed_up,
					bed_down),
	cmocka_unit_test_setup_teardown(what_comes_over_ip6_is_its_holders_alone, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_frame_that_comes_alone_is_one_look, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(many_frames_are_taken_at_once, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_frame_that_waits_is_fetched_once, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_frame_that_is_lost_in_the_port_is_nobodys, bed_up,
					bed_down),
	cmocka_unit_test_setup_teardown(a_full_conduit_loses_its_owners_frames, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(nonsense_ends_its_client_alone, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(a_rate_is_kept, bed_up, bed_down),
	cmocka_unit_test_setup_teardown(who_sleeps_needs_no_cpu, bed_up, bed_down),
};

UWTEST_MAIN(tests)
