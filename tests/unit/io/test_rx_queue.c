/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/rx_queue.h"

#include "io/loop/loop.h"
#include "uwtest.h"

#define FRAME 100u

struct place {
	struct io_link *l;
	struct rx_queue h;
	struct uw_span v[RX_QUEUE_SPANS + 2];
	size_t came, used; /* octets; each is its number's low eight bits */
};

static uint64_t no_time(void *arg)
{
	(void)arg;
	return 0;
}

static int up(void **state)
{
	const struct loop_config cfg = { .mtu = 1500, .now_us = no_time };
	struct place *p = calloc(1, sizeof(*p));

	assert_status(loop_open_single(&cfg, NULL, &p->l), UW_OK);
	rx_queue_init(&p->h);
	*state = p;
	return 0;
}

static int down(void **state)
{
	struct place *p = *state;

	rx_queue_drop(&p->h);
	assert_int_equal(loop_frames_out(p->l), 0);
	p->l->ops->close(p->l);
	free(p);
	return 0;
}

static void add(struct place *p, unsigned frames, uint32_t len)
{
	while (frames--) {
		struct io_frame *f = p->l->ops->alloc(p->l);

		assert_non_null(f);
		for (f->len = 0; f->len < len; f->len++)
			f->data[f->len] = (uint8_t)p->came++;
		rx_queue_add(&p->h, f);
	}
}

/* What is offered is what is next; all of it unless there are more frames than a rope shows. */
static size_t offered(struct place *p)
{
	struct uw_rope r = rx_queue_rope(&p->h, p->v);
	uint8_t *got = malloc(r.len + 1);

	uw_rope_copy(r, got, r.len);
	for (size_t i = 0; i < r.len; i++)
		assert_int_equal(got[i], (uint8_t)(p->used + i));
	free(got);
	return r.len;
}

static void use(struct place *p, size_t n)
{
	rx_queue_consume(&p->h, n);
	p->used += n;
	assert_int_equal(rx_queue_octets(&p->h), p->came - p->used);
}

static void frames_go_back_as_they_are_used_up(void **state)
{
	struct place *p = *state;

	add(p, 3, FRAME);
	assert_int_equal(offered(p), 3 * FRAME);
	use(p, FRAME - 1);
	assert_int_equal(loop_frames_out(p->l), 3);
	use(p, 1);
	assert_int_equal(loop_frames_out(p->l), 2);
	assert_int_equal(offered(p), 2 * FRAME);
	use(p, 2 * FRAME);
	assert_int_equal(loop_frames_out(p->l), 0);
	add(p, 1, FRAME);
	assert_int_equal(offered(p), FRAME);
}

static void a_frame_without_octets_is_not_held(void **state)
{
	struct place *p = *state;

	add(p, 1, 0);
	assert_int_equal(loop_frames_out(p->l), 0);
	assert_int_equal(offered(p), 0);
}

static void crumbs_are_copied_together_and_their_frames_given_back(void **state)
{
	struct place *p = *state;

	add(p, RX_QUEUE_SPANS / 2, 1);
	assert_false(rx_queue_too_long(&p->h, false));
	assert_true(rx_queue_too_long(&p->h, true)); /* a user that pauses keeps few */
	add(p, 1, 1);
	assert_true(rx_queue_too_long(&p->h, false));
	use(p, 5);
	assert_true(rx_queue_copy_out(&p->h, 0));
	assert_int_equal(loop_frames_out(p->l), 0);
	add(p, 2, FRAME);
	assert_int_equal(offered(p), p->came - p->used);
	use(p, RX_QUEUE_SPANS / 2 - 4 + 7); /* the copy and into the first frame */
	assert_int_equal(offered(p), p->came - p->used);
	assert_false(rx_queue_too_long(&p->h, false));
}

/* The copy is made longer, and moved to its front, without losing its place. */
static void a_copy_goes_on_as_long_as_it_must(void **state)
{
	struct place *p = *state;

	for (unsigned i = 0; i < 3000; i++) {
		add(p, 1, 1 + i % 1400);
		assert_true(rx_queue_copy_out(&p->h, 4u << 20));
		if (i % 3 == 0)
			use(p, rx_queue_octets(&p->h) / 5);
	}
	assert_int_equal(offered(p), p->came - p->used);
	assert_int_equal(loop_frames_out(p->l), 0);
	use(p, rx_queue_octets(&p->h));
}

static void more_than_the_limit_is_refused(void **state)
{
	struct place *p = *state;
	unsigned n = 0;

	do
		add(p, 1, 1500);
	while (++n < 1000 && rx_queue_copy_out(&p->h, 0));
	assert_in_range(rx_queue_octets(&p->h), 65536 + 1500, 3 * 65536);
	assert_true(rx_queue_copy_out(&p->h, 1u << 20));
}

static void a_rope_shows_a_part_of_many_frames(void **state)
{
	struct place *p = *state;

	add(p, 2 * RX_QUEUE_SPANS, 1);
	assert_in_range(offered(p), RX_QUEUE_SPANS, RX_QUEUE_SPANS + 2);
	use(p, RX_QUEUE_SPANS);
	assert_int_equal(offered(p), RX_QUEUE_SPANS);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(frames_go_back_as_they_are_used_up),
	TEST(a_frame_without_octets_is_not_held),
	TEST(crumbs_are_copied_together_and_their_frames_given_back),
	TEST(a_copy_goes_on_as_long_as_it_must),
	TEST(more_than_the_limit_is_refused),
	TEST(a_rope_shows_a_part_of_many_frames),
};

UWTEST_MAIN(tests)
