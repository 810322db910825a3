/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that uses the same port again while our end of the old connection waits (RFC 9293
 * §3.10.7.4, RFC 1122 §4.2.2.13). */
#include "bed.h"

#include "io/lwip/edge.h"

#define PORT 7000u

static int up(void **state)
{
	(void)state;
	bed_open_network();
	return 0;
}

static int up_between(void **state)
{
	(void)state;
	bed_open();
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	return 0;
}

/* Our side closes first, so it is ours that waits. Returns the peer's next sequence number. */
static uint32_t one_that_waits(void)
{
	struct bed_peer p = bed_connect(PORT);
	const struct bed_seg *fin;

	llp_raw.close(p.user->c);
	p.user->c = NULL;
	bed_flush();
	fin = bed_last(PORT, 0);
	assert_true(fin->flags & FIN);
	p.ack = fin->seq + 1;
	bed_segment(&p, 0, 0, FIN | ACK);
	return p.seq + 1;
}

static const struct bed_seg *syn(uint32_t seq, uint8_t flags)
{
	unsigned since = bed.sent;

	bed_in(&(struct bed_seg){ .sport = PORT, .seq = seq, .flags = flags, .window = 65535 });
	return bed_last(PORT, since);
}

static void a_newer_syn_begins_anew(void **state)
{
	uint32_t old = one_that_waits();
	const struct bed_seg *answer = syn(old + 1, SYN);

	(void)state;
	assert_non_null(answer);
	assert_int_equal(answer->flags, SYN | ACK);
	assert_int_equal(answer->ack, old + 2);
}

static void an_older_one_does_not(void **state)
{
	uint32_t old = one_that_waits();
	const struct bed_seg *answer = syn(old - 1, SYN);

	(void)state;
	assert_true(!answer || !(answer->flags & SYN));
}

static void nor_does_an_answer(void **state)
{
	uint32_t old = one_that_waits();
	const struct bed_seg *answer = syn(old + 1, SYN | ACK);

	(void)state;
	assert_true(!answer || !(answer->flags & SYN));
}

/* RFC 9293 §3.10.7.4: an RST ends it, as the peer hears an ACK of the old connection and answers
 * so (§3.10.7.3). Its next SYN begins anew. */
static void a_reset_ends_it(void **state)
{
	uint32_t old = one_that_waits();
	const struct bed_seg *answer = syn(old - 70000, SYN);

	(void)state;
	assert_non_null(answer);
	assert_int_equal(answer->flags, ACK);
	assert_int_equal(answer->ack, old);
	syn(answer->ack, RST);
	answer = syn(old - 70000, SYN);
	assert_non_null(answer);
	assert_int_equal(answer->flags, SYN | ACK);
}

/* RFC 5961 §3.2: not one that was guessed. */
static void a_reset_beside_it_does_not(void **state)
{
	uint32_t old = one_that_waits();
	const struct bed_seg *answer;

	(void)state;
	syn(old + 1, RST);
	syn(old - 1, RST);
	answer = syn(old - 70000, SYN);
	assert_non_null(answer);
	assert_int_equal(answer->flags, ACK);
}

/* Nothing of the old connection can come any more from another process, which may be a new one
 * that draws its sequence numbers anew. */
static void between_processes_any_syn_does(void **state)
{
	const uint32_t far[] = { 1, 0, -1u, -70000u, 1u << 31 };

	(void)state;
	for (unsigned i = 0; i < COUNT(far); i++) {
		uint32_t old = one_that_waits();
		const struct bed_seg *answer = syn(old + far[i], SYN);

		assert_non_null(answer);
		assert_int_equal(answer->flags, SYN | ACK);
		assert_int_equal(answer->ack, old + far[i] + 1);
		bed_in(&(struct bed_seg){
			.sport = PORT, .seq = answer->ack, .ack = answer->seq + 1, .flags = RST });
	}
}

/* Whoever has the address next is another process. */
static void it_goes_with_its_process(void **state)
{
	(void)state;
	one_that_waits();
	assert_int_equal(edge.flows, 1);
	llp_raw.peer_down(&bed.link, htonl(BED_THEIRS + 1));
	assert_int_equal(edge.flows, 1);
	llp_raw.peer_down(&bed.link, htonl(BED_THEIRS));
	assert_int_equal(edge.flows, 0);
}

/* As a process sleeps that nobody wakes. Returns for how long something waited. */
static uint64_t sleep_until_nobody_waits(unsigned *wakes)
{
	uint64_t begin = bed.now_us;

	for (*wakes = 0; edge.flows && *wakes < 10000; ++*wakes) {
		bed.now_us += llp_raw.next_timer_us();
		llp_raw.timers();
		llp_raw.poll();
		bed_flush();
	}
	return bed.now_us - begin;
}

/* lwipopts.h has 2 MSL = 4 s, whether the process has something to do or sleeps. */
static void it_ends_in_time_while_nothing_happens(void **state)
{
	uint64_t us;
	unsigned wakes;

	(void)state;
	one_that_waits();
	us = sleep_until_nobody_waits(&wakes);
	assert_in_range(us, 3900000, 5000000);
	assert_true(wakes <= us / 250000 + 1);
}

/* Between two sleeps there is always something. */
static void or_something_happens_now_and_then(void **state)
{
	uint64_t begin = bed.now_us;
	struct bed_peer busy;

	(void)state;
	one_that_waits();
	busy = bed_connect(PORT + 1);
	for (unsigned i = 0; edge.flows > 1 && i < 1000; i++) {
		bed_data(&busy, 0, 100);
		busy.seq += 100;
		bed_pass(50000);
		bed.now_us += 150000;
	}
	assert_in_range(bed.now_us - begin, 3900000, 5000000);
}

/* It does not make those older that have only begun to wait. */
static void a_process_that_was_stopped_keeps_it(void **state)
{
	uint64_t begin;
	unsigned wakes;

	(void)state;
	one_that_waits();
	bed_pass(1000000);
	bed.now_us += 100000000;
	begin = bed.now_us;
	bed_pass(1500000);
	assert_int_equal(edge.flows, 1);
	sleep_until_nobody_waits(&wakes);
	assert_in_range(bed.now_us - begin, 1500000, 3500000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_newer_syn_begins_anew, up, down),
		cmocka_unit_test_setup_teardown(an_older_one_does_not, up, down),
		cmocka_unit_test_setup_teardown(nor_does_an_answer, up, down),
		cmocka_unit_test_setup_teardown(a_reset_ends_it, up, down),
		cmocka_unit_test_setup_teardown(a_reset_beside_it_does_not, up, down),
		cmocka_unit_test_setup_teardown(between_processes_any_syn_does, up_between, down),
		cmocka_unit_test_setup_teardown(it_goes_with_its_process, up_between, down),
		cmocka_unit_test_setup_teardown(it_ends_in_time_while_nothing_happens, up, down),
		cmocka_unit_test_setup_teardown(or_something_happens_now_and_then, up, down),
		cmocka_unit_test_setup_teardown(a_process_that_was_stopped_keeps_it, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
