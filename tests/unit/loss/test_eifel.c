/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 3522 §3.2: which sending the first ACK answers. */
#include "loss/eifel.h"

#include "loss/loss.h"
#include "record_sound.h"
#include "uwtest.h"

#define MSS 1000u
#define MS  UINT64_C(1000)

static struct loss_config cfg;
static struct sent slot[64];
static struct stamp stamp;
static struct loss l;

static int up(void **state)
{
	(void)state;
	loss_config_default(&cfg);
	cfg.frto = false;
	stamp = (struct stamp){ .on = true };
	loss_init(&l, &cfg, slot, 64, 0, MSS);
	l.stamp = &stamp;
	return 0;
}

static void the_first_answer_decides(void **state)
{
	struct eifel e = { 0 };

	(void)state;
	assert_false(eifel_acked(&e, 1000, 1));
	eifel_sent_again(&e, 1000, 50);
	assert_false(eifel_acked(&e, 500, 40)); /* of something before it */
	assert_true(eifel_acked(&e, 1000, 49));
	assert_false(eifel_acked(&e, 2000, 49)); /* the first only */
	eifel_sent_again(&e, 3000, 60);
	assert_false(eifel_acked(&e, 3000, 60));
}

/* Ten segments, the ACKs are late, the RTO fires, the first goes again. */
static void time_out(uint64_t *t)
{
	for (unsigned i = 0; i < 10; i++)
		loss_sent(&l, MSS, NULL, *t);
	l.tlp.pending = true; /* no probe */
	loss_probed(&l, false, *t);
	*t = l.deadline_us;
	assert_int_equal(loss_timer(&l, *t), LOSS_DUE_SEND);
	loss_resent(&l, loss_next(&l, *t), *t);
	assert_int_equal(l.cc.cwnd, MSS);
}

static void hear(uint32_t ack, uint64_t echo_us, uint64_t now_us)
{
	loss_acked(&l,
		   &(struct loss_ack){ .ack = ack,
				       .plain = true,
				       .echoed = true,
				       .echo = stamp_now(&stamp, echo_us) },
		   now_us);
}

/* RFC 4015 §3.2: the window of before. */
static void a_needless_timeout_is_taken_back(void **state)
{
	uint64_t t = 100 * MS;
	uint32_t before = l.cc.cwnd;

	(void)state;
	time_out(&t);
	hear(MSS, 100 * MS, t + MS);
	assert_int_equal(l.phase, LOSS_OPEN);
	assert_true(l.cc.cwnd >= before);
	assert_int_equal(l.stats.spurious_timeouts, 1);
	assert_int_equal(l.stats.undone, 1);
	assert_int_equal(l.rec.octets[SENT_LOST], 0);
	assert_true(record_sound(&l.rec));
}

static void a_loss_is_not(void **state)
{
	uint64_t t = 100 * MS, again;

	(void)state;
	time_out(&t);
	again = t;
	hear(MSS, again, t + MS);
	assert_int_equal(l.phase, LOSS_TIMEOUT);
	assert_int_equal(l.stats.undone, 0);
}

/* RFC 7323 §4.1: of what was sent again the echo is the only measure. */
static void what_was_sent_again_is_measured(void **state)
{
	uint64_t t = 100 * MS;

	(void)state;
	time_out(&t);
	assert_false(l.rtt.any);
	hear(MSS, t, t + 40 * MS);
	assert_true(l.rtt.any);
	assert_int_equal(l.rtt.smoothed_us, 40 * MS);
}

#define TEST(fn) cmocka_unit_test_setup(fn, up)

static const struct CMUnitTest tests[] = {
	TEST(the_first_answer_decides),
	TEST(a_needless_timeout_is_taken_back),
	TEST(a_loss_is_not),
	TEST(what_was_sent_again_is_measured),
};

UWTEST_MAIN(tests)
