/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/mman.h>

#include "loss/sack.h"
#include "record_sound.h"
#include "uwtest.h"

#define LEN 100u

static struct sent slot[256];
static struct record r;
static struct sack k;

/* n segments of LEN octets from 0 on. */
static void sent_of(uint32_t n)
{
	record_init(&r, slot, 256);
	k = (struct sack){ 0 };
	for (uint32_t i = 0; i < n; i++)
		record_append(&r, LEN * i, LEN, i);
}

static uint32_t take(const struct loss_block *b, unsigned n)
{
	struct delivery d = { .now_us = 1000, .min_rtt_us = UINT64_MAX };

	sack_take(&k, &r, b, n, &d);
	assert_true(record_sound(&r));
	return d.octets;
}

static bool is_sacked(uint32_t i)
{
	return record_at(&r, i)->state == SENT_SACKED;
}

/* RFC 6675 §4, Update() */
static void blocks_mark_segments(void **state)
{
	const struct loss_block b[] = { { 300, 500 }, { 700, 800 } };

	(void)state;
	sent_of(10);
	assert_int_equal(take(b, 2), 300);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(is_sacked(i), i == 3 || i == 4 || i == 7);
	assert_int_equal(take(b, 2), 0); /* nothing new */
}

static void only_what_is_new_counts(void **state)
{
	const struct loss_block first = { 300, 500 }, more = { 200, 900 };

	(void)state;
	sent_of(10);
	take(&first, 1);
	assert_int_equal(take(&more, 1), 500);
	assert_int_equal(r.sacked, 7);
}

/* Segments are never cut: one that is covered in part is not there. */
static void parts_of_segments_do_not_count(void **state)
{
	const struct loss_block b = { 250, 550 }, rest = { 250, 600 };

	(void)state;
	sent_of(10);
	assert_int_equal(take(&b, 1), 200);
	assert_false(is_sacked(2));
	assert_false(is_sacked(5));
	assert_int_equal(take(&rest, 1), 100); /* the border within a segment was not kept */
	assert_true(is_sacked(5));
}

/* RFC 2018 §4, RFC 9293 §3.10.7.4: what cannot be is not believed. */
static void impossible_blocks_say_nothing(void **state)
{
	const struct loss_block b[] = {
		{ 500, 300 }, { 900, 1001 }, { 400, 400 }, { 0x80000000u, 500 }
	};

	(void)state;
	sent_of(10);
	for (unsigned i = 0; i < COUNT(b); i++)
		assert_int_equal(take(&b[i], 1), 0);
	record_pop(&r);
	record_pop(&r);
	assert_int_equal(take(&(struct loss_block){ 0, 200 }, 1), 0);
	while (record_count(&r))
		record_pop(&r);
	assert_int_equal(take(&(struct loss_block){ 0, 200 }, 1), 0);
}

/* RFC 2883 §4: below the cumulative ACK, or within the second block. */
static void duplicates_are_told(void **state)
{
	const struct loss_block below[] = { { 100, 200 } },
				within[] = { { 600, 700 }, { 500, 800 } },
				none[] = { { 600, 700 }, { 900, 1000 } };

	(void)state;
	assert_true(sack_is_duplicate(300, below, 1));
	assert_true(sack_is_duplicate(300, within, 2));
	assert_false(sack_is_duplicate(300, none, 2));
	assert_false(sack_is_duplicate(300, none, 0));
}

/* RFC 2018 §8: a peer may throw away what it reported. */
static void what_was_sacked_may_be_lost_after_all(void **state)
{
	const struct loss_block b = { 0, 500 };

	(void)state;
	sent_of(10);
	/* It says that it has the very first, and yet does not acknowledge it. */
	take(&(struct loss_block){ 100, 500 }, 1);
	sack_forget(&k, &r);
	assert_int_equal(r.sacked, 0);
	assert_int_equal(r.octets[SENT_LOST], 400);
	assert_int_equal(take(&b, 1), 500);
}

/* The next lap of the sequence numbers has other segments at the same place. */
static void a_block_of_the_last_lap_is_forgotten(void **state)
{
	const struct loss_block b = { 300, 500 };

	(void)state;
	sent_of(10);
	assert_int_equal(take(&b, 1), 200);
	while (record_count(&r))
		record_pop(&r);
	take(NULL, 0); /* the ACK of all */
	for (uint32_t i = 0; i < 10; i++)
		record_append(&r, LEN * i, LEN, 100 + i);
	assert_int_equal(take(&b, 1), 200);
	assert_int_equal(r.sacked, 2);
}

/* Random blocks, some of them impossible: a segment is marked if one valid block covers it whole,
 * and nothing else is. */
static void any_blocks_mark_what_they_cover(void **state)
{
	struct prng rng = { 99 };

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		bool want[200] = { false };

		sent_of(200);
		for (unsigned i = 0; i < 8; i++) {
			struct loss_block b[LOSS_BLOCKS];
			unsigned n = prng_below(&rng, LOSS_BLOCKS + 1);

			for (unsigned j = 0; j < n; j++) {
				b[j].left = prng_below(&rng, 21000);
				b[j].right = b[j].left + prng_below(&rng, 5000);
				for (uint32_t s = 0; s < 200 && b[j].right <= 20000; s++)
					want[s] |=
						b[j].left <= s * LEN && (s + 1) * LEN <= b[j].right;
			}
			take(b, n);
		}
		for (uint32_t s = 0; s < 200; s++)
			assert_int_equal(is_sacked(s), want[s]);
	}
}

/* As long as the memory of those in the middle cannot be touched: the ends of the blocks are found
 * by bisection. */
static void what_is_said_again_is_not_walked(void **state)
{
	enum { N = 32768, FROM = 18000, TO = 24000 }; /* not 16384, 24576 nor their like */
	const struct loss_block most = { 10 * LEN, (N - 10) * LEN },
				last = { (N - 5) * LEN, (N - 4) * LEN };
	size_t size = N * sizeof(struct sent), page = 4096;
	uint8_t *m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t from = FROM * sizeof(struct sent) / page * page;
	size_t to = TO * sizeof(struct sent) / page * page;
	struct delivery d = { .now_us = 1000, .min_rtt_us = UINT64_MAX };

	(void)state;
	assert_ptr_not_equal(m, MAP_FAILED);
	record_init(&r, (struct sent *)(void *)m, N);
	k = (struct sack){ 0 };
	for (uint32_t i = 0; i < N - 1; i++)
		record_append(&r, LEN * i, LEN, i);
	sack_take(&k, &r, &most, 1, &d);
	assert_int_equal(d.octets, most.right - most.left);
	assert_int_equal(mprotect(m + from, to - from, PROT_NONE), 0);
	for (unsigned i = 0; i < 4; i++)
		sack_take(&k, &r, i % 2 ? &most : &last, 1, &d);
	assert_int_equal(mprotect(m + from, to - from, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(d.octets, most.right - most.left + LEN);
	munmap(m, size);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(blocks_mark_segments),
	cmocka_unit_test(only_what_is_new_counts),
	cmocka_unit_test(parts_of_segments_do_not_count),
	cmocka_unit_test(impossible_blocks_say_nothing),
	cmocka_unit_test(duplicates_are_told),
	cmocka_unit_test(what_was_sacked_may_be_lost_after_all),
	cmocka_unit_test(a_block_of_the_last_lap_is_forgotten),
	cmocka_unit_test(any_blocks_mark_what_they_cover),
	cmocka_unit_test(what_is_said_again_is_not_walked),
};

UWTEST_MAIN(tests)
