/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received octets that nobody uses up pin few of a link's buffers and little memory, whoever holds
 * them: out of order, in crumbs, or for a user that waits. Others go on (RFC 5042 §6.4.1, §6.4.4,
 * doc/adr/0025).
 */
#include "bed.h"

#include "io/rx_budget.h"

#define POOL  1024u /* of a link between processes: io/memif/fabric.c */
#define CRUMB 31u   /* octets, each a segment */

static int up(void **state)
{
	(void)state;
	bed_open();
	bed.pool = POOL;
	return 0;
}

static int down(void **state)
{
	(void)state;
	bed_close();
	assert_int_equal(atomic_load(&rx_budget.pinned), 0);
	assert_int_equal(atomic_load(&rx_budget.copied), 0);
	return 0;
}

/* A new connection comes up, and its octets arrive. */
static void somebody_else_is_served(void)
{
	bool pause = bed.pause;
	size_t grain = bed.grain;
	struct bed_peer p;

	bed.pause = false;
	bed.grain = 0;
	p = bed_connect(60000);
	bed_data(&p, 0, BED_MSS);
	assert_int_equal(p.user->got, BED_MSS);
	bed.pause = pause;
	bed.grain = grain;
}

static void few_buffers_are_pinned(void)
{
	assert_in_range(bed.frames, 1, RX_PINNED_MAX + 64);
	assert_true(bed.stats.tcp_rx_copied_out > 0);
}

static void out_of_order(void **state)
{
	struct bed_peer p[8];

	(void)state;
	for (unsigned c = 0; c < COUNT(p); c++) {
		p[c] = bed_connect((uint16_t)(20000 + c));
		for (unsigned i = 0; i < 500; i++) /* never the first octet */
			bed_data(&p[c], 1 + 2 * i, 1);
	}
	few_buffers_are_pinned();
	somebody_else_is_served();
	/* The copies are what came. */
	for (unsigned c = 0; c < COUNT(p); c++) {
		for (unsigned i = 0; i <= 500; i++)
			bed_data(&p[c], 2 * i, 1);
		assert_int_equal(p[c].user->got, 1001);
	}
}

/* The octets of a copy are the segment's own. */
static void a_copy_has_the_right_octets(void **state)
{
	uint8_t octets[BED_MSS], sum = 0;
	struct bed_peer p = bed_connect(20000), others[2];

	(void)state;
	for (unsigned i = 0; i < BED_MSS; i++)
		sum = (uint8_t)(sum + (octets[i] = (uint8_t)(i * 7)));
	bed_in(&(struct bed_seg){ .sport = p.port,
				  .seq = p.seq + 1,
				  .ack = p.ack,
				  .flags = ACK,
				  .window = 65535,
				  .data = octets,
				  .n = sizeof(octets) });
	for (unsigned c = 0; c < COUNT(others); c++) {
		others[c] = bed_connect((uint16_t)(30000 + c));
		for (unsigned i = 0; i < 400; i++)
			bed_data(&others[c], 1 + 2 * i, 1);
	}
	few_buffers_are_pinned();
	bed_data(&p, 0, 1); /* a zero */
	assert_int_equal(p.user->got, 1 + BED_MSS);
	assert_int_equal(p.user->sum, sum);
}

/* RFC 5681 §4.2: the ACK that tells of a hole goes at once, though all frames wait behind it. */
static void an_ack_has_a_frame(void **state)
{
	const unsigned few = 40;
	struct bed_peer p = bed_connect(20000);
	unsigned since;

	(void)state;
	bed.pool = bed.frames + few;
	since = bed.sent;
	for (unsigned i = 0; i < few; i++)
		bed_data(&p, 1 + 2 * i, 1); /* never the first octet */
	assert_int_equal(bed.sent, since + few);
	for (unsigned i = 0; i <= few; i++)
		bed_data(&p, 2 * i, 1);
	assert_int_equal(p.user->got, 2 * few + 1);
}

static void for_users_that_wait(void **state)
{
	struct bed_peer p[125];

	(void)state;
	bed.pause = true;
	for (unsigned c = 0; c < COUNT(p); c++) {
		p[c] = bed_connect((uint16_t)(20000 + c));
		for (unsigned i = 0; i < 8; i++)
			bed_data(&p[c], i * 100, 100);
	}
	few_buffers_are_pinned();
	somebody_else_is_served();
	for (unsigned c = 0; c < COUNT(p); c++) {
		p[c].user->pause = false;
		llp_raw.resume(p[c].user->c);
		assert_int_equal(p[c].user->got, 800);
	}
}

/* An FPDU in crumbs: the user takes it when it is whole. */
static void in_crumbs(void **state)
{
	struct bed_peer p[128];

	(void)state;
	bed.grain = CRUMB + 1;
	for (unsigned c = 0; c < COUNT(p); c++) {
		p[c] = bed_connect((uint16_t)(20000 + c));
		for (unsigned i = 0; i < CRUMB; i++)
			bed_data(&p[c], i, 1);
	}
	few_buffers_are_pinned();
	somebody_else_is_served();
	for (unsigned c = 0; c < COUNT(p); c++) {
		bed_data(&p[c], CRUMB, 1);
		assert_int_equal(p[c].user->got, CRUMB + 1);
	}
}

/* ---- memory ------------------------------------------------------------------------------ */

#define WAITING	 60u
#define PER_PEER (4u << 20) /* the whole window of each: 240 MiB */
/* Nobody takes more than an eighth of what is free, so the first so many have so much. */
#define SHARED 25u
#define SHARE  (96u << 10)

/* What the peer has not been told to have arrived it sends again; the window it was told last. */
static void send_until_refused(struct bed_peer *p)
{
	const struct bed_seg *last;
	uint32_t at = 0;
	uint64_t refused = bed.stats.tcp_rx_no_memory;

	while (at + BED_MSS <= PER_PEER && bed.stats.tcp_rx_no_memory == refused) {
		bed_data(p, at, BED_MSS);
		at += BED_MSS;
	}
	last = bed_last(p->port, 0);
	if (bed.stats.tcp_rx_no_memory != refused) {
		assert_int_equal(last->window, 0);
		assert_int_equal(last->ack, p->seq + at - BED_MSS);
		at -= BED_MSS;
	}
	p->seq += at;
}

static void memory_is_bounded_and_shared(void **state)
{
	struct bed_peer p[WAITING];

	(void)state;
	bed.pause = bed.scaled = true;
	for (unsigned c = 0; c < WAITING; c++) {
		p[c] = bed_connect((uint16_t)(20000 + c));
		send_until_refused(&p[c]);
		/* Who comes last gets something too. */
		assert_in_range(p[c].seq - 1001, c < SHARED ? SHARE : 4 * BED_MSS, PER_PEER);
		assert_in_range(atomic_load(&rx_budget.copied), 0,
				RX_COPIED_MAX + WAITING * 2 * RX_COPIED_FLOOR);
	}
	assert_true(bed.stats.tcp_rx_no_memory > 0);
	somebody_else_is_served();
	/* As users take what waits the windows open, and all of it arrives. */
	for (unsigned c = 0; c < WAITING; c++) {
		unsigned since = bed.sent;

		p[c].user->pause = false;
		llp_raw.resume(p[c].user->c);
		bed_flush();
		assert_int_equal(p[c].user->got, p[c].seq - 1001);
		assert_non_null(bed_last(p[c].port, since));
		assert_true(bed_last(p[c].port, since)->window > 0);
		bed_data(&p[c], 0, BED_MSS);
		assert_int_equal(p[c].user->got, p[c].seq - 1001 + BED_MSS);
	}
}

/* Others hold all there is. What a user waits for gets in all the same, or it would wait for ever
 * (RFC 5042 §6.4.4). Octets out of order do not, and its window stays open meanwhile. */
static void what_a_user_waits_for_gets_in(void **state)
{
	struct bed_peer p;
	uint64_t refused;

	(void)state;
	bed_be_network(); /* no fast path */
	p = bed_connect(20000);
	p.user->grain = 40 * BED_MSS; /* more than a connection may always hold */
	rx_budget_pin(RX_PINNED_MAX); /* so that all of it is copied */
	for (unsigned i = 0; i < 20; i++)
		bed_data(&p, i * BED_MSS, BED_MSS);
	rx_budget_copy(RX_COPIED_MAX);
	refused = bed.stats.tcp_rx_no_memory;
	bed_data(&p, 30 * BED_MSS, BED_MSS);
	assert_int_equal(bed.stats.tcp_rx_no_memory, refused + 1);
	assert_int_equal(bed_last(p.port, 0)->ack, p.seq + 20 * BED_MSS);
	assert_true(bed_last(p.port, 0)->window > 0);
	for (unsigned i = 20; i < 40; i++)
		bed_data(&p, i * BED_MSS, BED_MSS);
	rx_budget_pin(-RX_PINNED_MAX);
	rx_budget_copy(-RX_COPIED_MAX);
	assert_int_equal(bed.stats.tcp_rx_no_memory, refused + 1);
	assert_int_equal(p.user->got, 40 * BED_MSS);
}

/* What is out of order is bounded for each connection, too, though each octet comes alone. */
static void copies_out_of_order_count(void **state)
{
	struct bed_peer p = bed_connect(20000);

	(void)state;
	rx_budget_pin(RX_PINNED_MAX); /* so that all of it is copied */
	rx_budget_copy(RX_COPIED_MAX);
	for (unsigned i = 0; i < 500; i++)
		bed_data(&p, 1 + 2 * i, 1);
	assert_true(bed.stats.tcp_rx_no_memory > 0);
	assert_in_range(atomic_load(&rx_budget.copied) - RX_COPIED_MAX, 1, 2 * RX_COPIED_FLOOR);
	rx_budget_pin(-RX_PINNED_MAX);
	rx_budget_copy(-RX_COPIED_MAX);
	for (unsigned i = 0; i <= 500; i++)
		bed_data(&p, 2 * i, 2);
	assert_true(p.user->got > 1000);
}

/* Where there is no room to copy it to, what is out of order is forgotten, and comes again (RFC
 * 2018 §8): the link's frames go back. */
static void without_room_it_is_forgotten(void **state)
{
	struct bed_peer p = bed_connect(20000), q = bed_connect(20001);
	unsigned frames;

	(void)state;
	rx_budget_pin(RX_PINNED_MAX);
	for (unsigned i = 0; i < 200; i++) /* copied, more than a connection may always hold */
		bed_data(&p, 1 + 2 * i, 1);
	rx_budget_pin(-RX_PINNED_MAX);
	for (unsigned i = 200; i < 300; i++)
		bed_data(&p, 1 + 2 * i, 1);
	frames = bed.frames;
	assert_true(atomic_load(&rx_budget.copied) > RX_COPIED_FLOOR);
	rx_budget_pin(RX_PINNED_MAX);
	rx_budget_copy(RX_COPIED_MAX);
	bed_data(&q, 1, 1);
	rx_budget_pin(-RX_PINNED_MAX);
	rx_budget_copy(-RX_COPIED_MAX);
	assert_in_range(bed.frames, 0, frames - 90);
	assert_in_range(atomic_load(&rx_budget.copied), 0, 1000); /* q's */
	for (unsigned i = 0; i < 600; i++)
		bed_data(&p, i, 1);
	assert_int_equal(p.user->got, 600);
}

/* A peer whose octets are refused is heard when it acknowledges ours. */
static void acks_are_taken_from_who_is_refused(void **state)
{
	struct bed_peer p;
	uint8_t *at;
	size_t room;

	(void)state;
	bed.pause = bed.scaled = true;
	p = bed_connect(20000);
	at = llp_raw.tx_begin(p.user->c, &room);
	assert_non_null(at);
	memset(at, 1, 100);
	llp_raw.tx_commit(p.user->c, 100);
	llp_raw.tx_flush(p.user->c);
	bed_flush();
	rx_budget_copy(RX_COPIED_MAX);
	send_until_refused(&p);
	p.ack += 100;
	bed_segment(&p, 0, 0, ACK);
	rx_budget_copy(-RX_COPIED_MAX);
	assert_int_equal(llp_raw.in_flight(p.user->c), 0);
}

/* RFC 9293 §3.8.6.1: a peer whose window was closed asks, and hears when there is room again. */
static void a_probe_finds_the_window_open_again(void **state)
{
	struct bed_peer p[WAITING];
	unsigned since;

	(void)state;
	bed.pause = bed.scaled = true;
	for (unsigned c = 0; c < WAITING; c++) {
		p[c] = bed_connect((uint16_t)(20000 + c));
		send_until_refused(&p[c]);
	}
	bed_data(&p[WAITING - 1], 0, 1);
	assert_int_equal(bed_last(p[WAITING - 1].port, 0)->window, 0);
	for (unsigned c = 0; c < WAITING - 1; c++) {
		p[c].user->pause = false;
		llp_raw.resume(p[c].user->c);
	}
	since = bed.sent;
	bed_segment(&p[WAITING - 1], (uint32_t)-1, 0, ACK); /* as a keepalive */
	assert_non_null(bed_last(p[WAITING - 1].port, since));
	assert_true(bed_last(p[WAITING - 1].port, since)->window > 0);
}

/* ---- lwIP's records of segments ------------------------------------------------------------ */

/* Each octet alone and behind a hole, of so many connections, is a record of one pool for all. */
static void others_send_though_many_keep_segments(void **state)
{
	const unsigned hostile = 40, each = 2048;
	struct bed_peer good, p;
	uint64_t refused;
	unsigned since;

	(void)state;
	bed_be_network();
	bed.pool = 8192;
	good = bed_connect(50000);
	for (unsigned c = 0; c < hostile; c++) {
		p = bed_connect((uint16_t)(20000 + c));
		for (unsigned i = 0; i < each; i++)
			bed_data(&p, 1 + 2 * i, 1);
	}
	assert_true(bed.stats.tcp_rx_no_memory > 0);
	since = bed.sent;
	assert_int_equal(bed_send_full(&good, 1), BED_MSS);
	assert_int_equal(bed.sent, since + 1);
	somebody_else_is_served();
	/* What is refused is the peer's to repeat, and hears at once what is expected (RFC 5681
	 * §4.2). A FIN behind a hole is a segment, too. */
	refused = bed.stats.tcp_rx_no_memory;
	since = bed.sent;
	bed_segment(&p, 3 * each, 0, FIN | ACK);
	assert_int_equal(bed.stats.tcp_rx_no_memory, refused + 1);
	assert_non_null(bed_last(p.port, since));
	assert_int_equal(bed_last(p.port, since)->ack, p.seq);
	for (unsigned i = 0; i < 100; i++)
		bed_data(&p, i, 1);
	assert_true(p.user->got >= 100);
	/* A few segments out of order are anybody's. */
	refused = bed.stats.tcp_rx_no_memory;
	for (unsigned i = 0; i < 15; i++)
		bed_data(&good, 1 + 2 * i, 1);
	assert_int_equal(bed.stats.tcp_rx_no_memory, refused);
}

/* As long as nobody else keeps any, a connection keeps as many as lwIP lets it. */
static void one_alone_keeps_a_windowful(void **state)
{
	const unsigned n = 2048, each = 250; /* the first window is 512 KiB */
	struct bed_peer p;

	(void)state;
	bed_be_network();
	bed.pool = 8192;
	bed.scaled = true;
	p = bed_connect(20000);
	for (unsigned i = 1; i <= n; i++)
		bed_data(&p, i * each, each);
	assert_int_equal(bed.stats.tcp_rx_no_memory, 0);
	bed_data(&p, 0, each);
	assert_int_equal(p.user->got, (n + 1) * each);
}

/* ---- within a callback ------------------------------------------------------------------- */

static struct bed_peer other;

/* Too many are pinned, and one that takes what waited for it makes the budget look for more. */
static void resume_other(void)
{
	rx_budget_pin(RX_PINNED_MAX);
	other.user->pause = false;
	llp_raw.resume(other.user->c);
	assert_int_equal(other.user->got, 10);
	rx_budget_pin(-RX_PINNED_MAX);
}

/* Its RST needs a frame, and there is none. */
static void abort_other(void)
{
	bed.pool = bed.frames;
	llp_raw.abort(other.user->c);
	other.user->c = NULL;
	bed.pool = POOL;
}

/* The user looks at octets of ours, in three frames, when its callback makes buffers short: they
 * are not copied out meanwhile, or the user would read frames that are the link's again. */
static void frames_stay_while_the_user_reads(void (*call)(void))
{
	struct bed_peer p = bed_connect(20000);

	p.user->grain = 3;
	other = bed_connect(20001);
	other.user->pause = true;
	bed_data(&other, 0, 10);
	for (uint8_t i = 0; i < 3; i++) {
		uint8_t octet = (uint8_t)(50 + i);

		bed.in_rx = i == 2 ? call : NULL;
		bed_in(&(struct bed_seg){ .sport = p.port,
					  .seq = p.seq + i,
					  .ack = p.ack,
					  .flags = ACK,
					  .window = p.window,
					  .data = &octet,
					  .n = 1 });
	}
	assert_null(bed.in_rx);
	assert_int_equal(p.user->got, 3);
	assert_int_equal(p.user->sum, 50 + 51 + 52);
	assert_int_equal(bed.stats.tcp_rx_copied_out, 0);
}

static void a_callback_makes_pinned_too_many(void **state)
{
	(void)state;
	frames_stay_while_the_user_reads(resume_other);
}

static void a_callback_needs_the_last_frame(void **state)
{
	(void)state;
	frames_stay_while_the_user_reads(abort_other);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(out_of_order),
	TEST(a_copy_has_the_right_octets),
	TEST(an_ack_has_a_frame),
	TEST(for_users_that_wait),
	TEST(in_crumbs),
	TEST(memory_is_bounded_and_shared),
	TEST(what_a_user_waits_for_gets_in),
	TEST(copies_out_of_order_count),
	TEST(without_room_it_is_forgotten),
	TEST(acks_are_taken_from_who_is_refused),
	TEST(a_probe_finds_the_window_open_again),
	TEST(others_send_though_many_keep_segments),
	TEST(one_alone_keeps_a_windowful),
	TEST(a_callback_makes_pinned_too_many),
	TEST(a_callback_needs_the_last_frame),
};

UWTEST_MAIN(tests)
