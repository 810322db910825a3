/* SPDX-License-Identifier: BSD-3-Clause */
/* A link that impairs in front of one end of a cable in memory. */
#include "io/impair/link.h"

#include <arpa/inet.h>
#include <string.h>

#include "io/loop/loop.h"
#include "uwtest.h"

#define LEN 100u
#define MS  1000000ull

struct net {
	uint64_t now_ns;
	struct io_link *a, *b, *bad; /* in front of a */
};

static char said[2][256];
static unsigned lines;

static void hear(const char *line)
{
	snprintf(said[lines++ % 2], sizeof(said[0]), "%s", line);
}

static uint64_t now_ns(void *arg)
{
	return ((struct net *)arg)->now_ns;
}

static uint64_t now_us(void *arg)
{
	return now_ns(arg) / 1000;
}

static void open_net(struct net *n, const char *options)
{
	const struct loop_config cfg = { .mtu = 1500,
					 .addr = { htonl(0x0a000001), htonl(0x0a000002) },
					 .mask = htonl(0xff000000),
					 .flags = IO_P2P,
					 .now_us = now_us,
					 .arg = n };
	struct impair_link_config c = { .now_ns = now_ns, .arg = n, .say = hear };
	struct io_link *pair[2];
	char why[256];

	lines = 0;
	n->now_ns = 1000 * MS;
	assert_status(loop_open_pair(&cfg, NULL, pair), UW_OK);
	n->a = pair[0];
	n->b = pair[1];
	assert_null(impair_parse(options, &c.options, why, sizeof(why)));
	assert_status(impair_open(n->a, &c, &n->bad), UW_OK);
}

/* No frame may be left anywhere. */
static void close_net(struct net *n)
{
	assert_int_equal(loop_frames_out(n->a), 0);
	n->bad->ops->close(n->bad);
	n->b->ops->close(n->b);
}

static struct io_frame *frame(struct io_link *l, uint8_t mark)
{
	struct io_frame *f = l->ops->alloc(l);

	assert_non_null(f);
	f->len = LEN;
	memset(f->data, mark, LEN);
	return f;
}

static void offer(struct io_link *l, uint8_t mark)
{
	struct io_frame *f = frame(l, mark);

	assert_int_equal(l->ops->tx(l, &f, 1), 1);
}

/* The marks of what arrives, in order; returns how many. */
static unsigned arrives(struct io_link *l, uint8_t *marks, unsigned room)
{
	struct io_frame *v[64];
	unsigned n = l->ops->rx(l, v, room);

	for (unsigned i = 0; i < n; i++) {
		marks[i] = v[i]->data[0];
		assert_int_equal(v[i]->len, LEN);
		io_free_chain(v[i]);
	}
	return n;
}

/* What the other end has of it at this time; the impairing link does its work when asked to
 * receive. */
static unsigned there_at(struct net *n, uint64_t ms, uint8_t *marks)
{
	n->now_ns = 1000 * MS + ms * MS;
	assert_int_equal(arrives(n->bad, marks, 64), 0);
	return arrives(n->b, marks, 64);
}

static void untouched_frames_are_handed_on_as_they_are(void **state)
{
	struct io_frame *f[3];
	uint8_t marks[64];
	struct net n;

	(void)state;
	open_net(&n, "seed=1");
	for (unsigned i = 0; i < 3; i++)
		f[i] = frame(n.bad, (uint8_t)(i + 1));
	n.bad->ops->ref(f[0]); /* a segment that TCP keeps to repeat it */
	assert_int_equal(n.bad->ops->tx(n.bad, f, 3), 3);
	assert_int_equal(n.bad->ops->refs(f[0]), 1);
	assert_int_equal(there_at(&n, 0, marks), 3);
	assert_memory_equal(marks, "\1\2\3", 3);
	assert_false(n.bad->ops->pending(n.bad));
	n.bad->ops->free(f[0]);
	close_net(&n);
	assert_string_equal(said[0], "impair (out, seed 1): frames 3");
	assert_int_equal(lines, 1);
}

static void lost_frames_go_back_to_their_pool(void **state)
{
	uint8_t marks[64];
	struct net n;

	(void)state;
	open_net(&n, "nth=2");
	for (unsigned i = 1; i <= 10; i++)
		offer(n.bad, (uint8_t)i);
	assert_int_equal(there_at(&n, 0, marks), 5);
	assert_memory_equal(marks, "\1\3\5\7\11", 5);
	assert_int_equal(impair_model(n.bad, IMPAIR_OUT)->count[IMPAIR_DROPPED_NTH], 5);
	assert_null(impair_model(n.bad, IMPAIR_IN));
	close_net(&n);
}

static void late_frames_come_when_they_are_due(void **state)
{
	uint8_t marks[64];
	struct net n;

	(void)state;
	open_net(&n, "delay=5ms");
	offer(n.bad, 1);
	assert_int_equal(loop_frames_out(n.a), 0); /* a copy waits, not the frame */
	n.now_ns += 2 * MS;
	offer(n.bad, 2);
	assert_false(n.bad->ops->pending(n.bad)); /* the stack may sleep until it is near */
	assert_int_equal(n.bad->ops->due_ns(n.bad), 1005 * MS);
	assert_int_equal(impair_next_ns(n.bad), 1005 * MS);
	n.now_ns = 1005 * MS - 60000;
	assert_true(n.bad->ops->pending(n.bad));
	assert_int_equal(there_at(&n, 4, marks), 0);
	assert_int_equal(there_at(&n, 5, marks), 1);
	assert_int_equal(marks[0], 1);
	assert_int_equal(there_at(&n, 7, marks), 1);
	assert_int_equal(marks[0], 2);
	assert_false(n.bad->ops->pending(n.bad));
	assert_true(impair_next_ns(n.bad) == UINT64_MAX);
	close_net(&n);
}

static void on_wake(void *arg, const struct io_ring *ring, uint32_t was)
{
	assert_int_equal(was, IO_ASLEEP);
	assert_non_null(ring->word);
	++*(unsigned *)arg;
}

/* Nobody else rings for a frame that begins to wait, out or in. */
static void a_sleeping_stack_is_woken_for_a_frame_that_waits(void **state)
{
	_Atomic uint32_t bell = IO_ASLEEP;
	uint8_t marks[64];
	unsigned wakes = 0;
	struct net n;

	(void)state;
	open_net(&n, "dir=both,delay=5ms");
	n.a->doorbell = &bell;
	n.bad->env.wake = on_wake;
	n.bad->env.arg = &wakes;
	offer(n.bad, 1);
	assert_int_equal(wakes, 1);
	/* one waits already: its time is known */
	atomic_store(&bell, IO_ASLEEP);
	offer(n.bad, 2);
	assert_int_equal(wakes, 1);
	assert_int_equal(there_at(&n, 5, marks), 2);
	offer(n.b, 3);
	assert_int_equal(arrives(n.bad, marks, 64), 0);
	assert_int_equal(wakes, 2);
	n.now_ns += 5 * MS;
	assert_int_equal(arrives(n.bad, marks, 64), 1);
	n.bad->env.wake = NULL;
	n.a->doorbell = NULL;
	close_net(&n);
}

static void reordered_frames_are_passed(void **state)
{
	unsigned n_got = 0, out_of_order = 0;
	uint8_t marks[64], last = 0;
	struct net n;

	(void)state;
	open_net(&n, "seed=4,reorder=20%:3ms");
	for (unsigned i = 0; i < 60; i++) {
		unsigned got;

		offer(n.bad, (uint8_t)(i + 1));
		got = there_at(&n, i, marks);
		for (unsigned k = 0; k < got; k++) {
			out_of_order += marks[k] < last;
			last = marks[k];
		}
		n_got += got;
	}
	n_got += there_at(&n, 100, marks);
	assert_int_equal(n_got, 60);
	assert_in_range(out_of_order, 4, 25);
	close_net(&n);
}

static void a_repeated_frame_follows_itself(void **state)
{
	uint8_t marks[64];
	struct net n;

	(void)state;
	open_net(&n, "duplicate=100%");
	offer(n.bad, 1);
	offer(n.bad, 2);
	assert_int_equal(there_at(&n, 0, marks), 4);
	assert_memory_equal(marks, "\1\1\2\2", 4);
	close_net(&n);
}

/* TCP keeps the segment: what is damaged is a copy. */
static void the_senders_frame_stays_whole(void **state)
{
	struct io_frame *f, *v[8];
	unsigned differ = 0;
	struct net n;

	(void)state;
	open_net(&n, "corrupt=100%");
	assert_true(n.bad->flags & IO_SUMS);
	f = frame(n.bad, 7);
	n.bad->ops->ref(f);
	assert_int_equal(n.bad->ops->tx(n.bad, &f, 1), 1);
	assert_int_equal(n.bad->ops->rx(n.bad, v, 8), 0);
	assert_int_equal(n.b->ops->rx(n.b, v, 8), 1);
	for (unsigned i = 0; i < LEN; i++) {
		assert_int_equal(f->data[i], 7);
		differ += v[0]->data[i] != 7;
	}
	assert_int_equal(differ, 1);
	n.b->ops->free(v[0]);
	n.bad->ops->free(f);
	close_net(&n);
}

static void a_frame_of_several_buffers_is_copied_whole(void **state)
{
	struct io_frame *head, *v[8];
	struct net n;

	(void)state;
	open_net(&n, "delay=1ms");
	head = frame(n.bad, 1);
	head->next = frame(n.bad, 2);
	assert_int_equal(n.bad->ops->tx(n.bad, &head, 1), 1);
	n.now_ns += MS;
	assert_int_equal(n.bad->ops->rx(n.bad, v, 8), 0);
	assert_int_equal(n.b->ops->rx(n.b, v, 8), 1);
	assert_int_equal(v[0]->len, 2 * LEN);
	assert_int_equal(v[0]->data[0], 1);
	assert_int_equal(v[0]->data[2 * LEN - 1], 2);
	n.b->ops->free(v[0]);
	close_net(&n);
}

static void frames_that_come_in_are_impaired_on_request(void **state)
{
	uint8_t marks[64];
	struct net n;

	(void)state;
	open_net(&n, "dir=in,nth=3,delay=2ms");
	for (unsigned i = 1; i <= 6; i++)
		offer(n.b, (uint8_t)i);
	assert_int_equal(arrives(n.bad, marks, 64), 0);
	n.now_ns += 2 * MS;
	assert_true(n.bad->ops->pending(n.bad));
	assert_int_equal(arrives(n.bad, marks, 3), 3);
	assert_memory_equal(marks, "\1\2\4", 3);
	assert_int_equal(arrives(n.bad, marks, 64), 1);
	assert_int_equal(marks[0], 5);
	assert_false(n.bad->ops->pending(n.bad));
	offer(n.bad, 9); /* the other direction is left alone */
	assert_int_equal(arrives(n.b, marks, 64), 1);
	close_net(&n);
	assert_string_equal(said[0], "impair (in, seed 0): frames 6 dropped_nth 2 delayed 4");
}

static void what_still_waits_at_the_end_is_freed(void **state)
{
	struct net n;

	(void)state;
	open_net(&n, "dir=both,delay=1s");
	for (unsigned i = 0; i < 10; i++)
		offer(n.bad, 1);
	close_net(&n); /* the leak check of the sanitizers looks on */
	assert_int_equal(lines, 2);
}

static void more_than_can_wait_is_lost_and_counted(void **state)
{
	uint8_t marks[64];
	unsigned got = 0, one;
	struct net n;

	(void)state;
	open_net(&n, "delay=1s");
	for (unsigned i = 0; i < 5000; i++)
		offer(n.bad, 1);
	n.now_ns += 1000 * MS;
	while ((one = there_at(&n, 1000, marks)))
		got += one;
	assert_int_equal(got + impair_model(n.bad, IMPAIR_OUT)->count[IMPAIR_DROPPED_ROOM], 5000);
	assert_in_range(got, 1000, 4999);
	close_net(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(untouched_frames_are_handed_on_as_they_are),
		cmocka_unit_test(lost_frames_go_back_to_their_pool),
		cmocka_unit_test(late_frames_come_when_they_are_due),
		cmocka_unit_test(a_sleeping_stack_is_woken_for_a_frame_that_waits),
		cmocka_unit_test(reordered_frames_are_passed),
		cmocka_unit_test(a_repeated_frame_follows_itself),
		cmocka_unit_test(the_senders_frame_stays_whole),
		cmocka_unit_test(a_frame_of_several_buffers_is_copied_whole),
		cmocka_unit_test(frames_that_come_in_are_impaired_on_request),
		cmocka_unit_test(what_still_waits_at_the_end_is_freed),
		cmocka_unit_test(more_than_can_wait_is_lost_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
