/* SPDX-License-Identifier: BSD-3-Clause */
/* uwarp-kv's store against an array that says what each key's value is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "clock.h"
#include "store.h"

#define BUCKETS	 64u
#define KEYS	 400u
#define VALUES	 5000u
#define KEY_SIZE 16u

struct bed {
	struct store store;
	uint8_t *memory;
	uint32_t length[KEYS]; /* 0: not there */
	uint8_t seed[KEYS];
};

static void bed_open(struct bed *b, size_t heap)
{
	size_t size = store_index_size(BUCKETS) + heap;

	memset(b, 0, sizeof(*b));
	b->memory = calloc(1, size);
	store_open(&b->store, b->memory, size, BUCKETS);
}

static void bed_close(struct bed *b)
{
	store_close(&b->store);
	free(b->memory);
}

static struct span key_of(uint8_t *room, unsigned n)
{
	memset(room, 'k', KEY_SIZE);
	memcpy(room, &n, sizeof(n));
	return (struct span){ room, KEY_SIZE };
}

static int put(struct bed *b, unsigned n, uint32_t length, uint8_t seed)
{
	static uint8_t value[1 << 20];
	uint8_t key[KEY_SIZE];
	int err;

	memset(value, seed, length);
	err = store_put(&b->store, key_of(key, n), (struct span){ value, length });
	if (!err) {
		b->length[n] = length;
		b->seed[n] = seed;
	}
	return err;
}

static void expect(struct bed *b, unsigned n)
{
	static uint8_t room[1 << 20];
	uint8_t key[KEY_SIZE];
	struct span out = { room, sizeof(room) };
	struct kv_entry e;
	const struct kv_record *r;
	int err = store_get(&b->store, key_of(key, n), &out, &e);

	assert_int_equal(err, b->length[n] ? 0 : -ENOENT);
	if (err)
		return;
	assert_int_equal(out.n, b->length[n]);
	for (uint32_t i = 0; i < out.n; i++)
		assert_int_equal(room[i], b->seed[n]);
	/* what a client would READ passes its checks */
	r = (const void *)(b->store.heap.base + e.at);
	assert_int_equal(e.check, kv_entry_check(&e));
	assert_int_equal(r->check, kv_record_check(r));
	assert_int_equal(e.version, r->version);
	assert_int_equal(e.length, kv_record_size(KEY_SIZE, out.n));
}

/* 400 keys in room for 448: most buckets spill over. */
static void test_random_operations(void **state)
{
	struct bed b;
	uint64_t random = 11;

	(void)state;
	bed_open(&b, 64 << 20);
	for (unsigned i = 0; i < 200000; i++) {
		unsigned n = (unsigned)(random64(&random) % KEYS),
			 dice = (unsigned)(random64(&random) % 4);
		uint8_t key[KEY_SIZE];
		int err;

		if (dice < 2) {
			err = put(&b, n, 1 + (uint32_t)(random64(&random) % VALUES), (uint8_t)i);
			assert_true(!err ||
				    (err == -ENOMEM && !b.length[n])); /* its shard is full */
		} else if (dice == 2) {
			err = store_delete(&b.store, key_of(key, n));
			assert_int_equal(err, b.length[n] ? 0 : -ENOENT);
			b.length[n] = 0;
		}
		expect(&b, n);
	}
	for (unsigned n = 0; n < KEYS; n++)
		expect(&b, n);
	bed_close(&b);
}

/* Without memory a write says so, and what was there stays; deleting makes room again. */
static void test_memory_runs_out(void **state)
{
	uint8_t key[KEY_SIZE];
	struct bed b;
	unsigned n = 0;

	(void)state;
	bed_open(&b, 4 << 20);
	while (!put(&b, n, 100000, (uint8_t)n))
		n++;
	assert_in_range(n, 20, 41);
	assert_int_equal(put(&b, 0, 100000, 99), -ENOMEM);
	for (unsigned i = 0; i < n; i++)
		expect(&b, i);
	assert_int_equal(store_delete(&b.store, key_of(key, 1)), 0);
	b.length[1] = 0;
	assert_int_equal(put(&b, 0, 100000, 99), 0);
	expect(&b, 0);
	expect(&b, 1);
	bed_close(&b);
}

static void test_bad_lengths(void **state)
{
	static uint8_t octets[KV_VALUE_MAX + 1];
	struct bed b;

	(void)state;
	bed_open(&b, 4 << 20);
	assert_int_equal(store_put(&b.store, (struct span){ octets, KV_KEY_MIN - 1 },
				   (struct span){ octets, 1 }),
			 -EINVAL);
	assert_int_equal(store_put(&b.store, (struct span){ octets, KV_KEY_MAX + 1 },
				   (struct span){ octets, 1 }),
			 -EINVAL);
	assert_int_equal(store_put(&b.store, (struct span){ octets, KV_KEY_MIN },
				   (struct span){ octets, KV_VALUE_MAX + 1 }),
			 -EINVAL);
	assert_int_equal(store_put(&b.store, (struct span){ octets, KV_KEY_MAX },
				   (struct span){ octets, KV_VALUE_MAX }),
			 0);
	bed_close(&b);
}

static int kind_of(struct bed *b, unsigned n)
{
	uint8_t key[KEY_SIZE], room[64];
	struct span out = { room, sizeof(room) };
	struct kv_entry e = { 0 };
	int err = store_peek(&b->store, key_of(key, n), &out, &e);

	return err ? err : (int)kv_kind(&e);
}

static int get(struct bed *b, unsigned n)
{
	uint8_t key[KEY_SIZE], room[64];
	struct span out = { room, sizeof(room) };
	struct kv_entry e;

	return store_get(&b->store, key_of(key, n), &out, &e);
}

/* A host's key on its way to the SoC: readable as long as it is here, writable as long as it is
 * ours. */
static void test_moving_out(void **state)
{
	uint8_t key[KEY_SIZE];
	struct bed b;

	(void)state;
	bed_open(&b, 4 << 20);
	assert_int_equal(put(&b, 1, 20, 1), 0);
	assert_int_equal(store_change(&b.store, key_of(key, 1), KV_HERE, KV_FROZEN), 0);
	assert_int_equal(store_change(&b.store, key_of(key, 1), KV_HERE, KV_FROZEN), -EXDEV);
	assert_int_equal(get(&b, 1), 0);
	assert_int_equal(put(&b, 1, 20, 2), -EBUSY);
	assert_int_equal(store_delete(&b.store, key_of(key, 1)), -EBUSY);
	assert_int_equal(store_keys(&b.store), 1);
	assert_int_equal(store_set(&b.store, key_of(key, 1), (struct span){ NULL, 0 }, KV_MOVED),
			 0);
	assert_int_equal(store_keys(&b.store), 0);
	assert_int_equal(get(&b, 1), -EXDEV);
	assert_int_equal(put(&b, 1, 20, 2), -EXDEV);
	assert_int_equal(store_delete(&b.store, key_of(key, 1)), -EXDEV);
	/* the SoC dies: lost, until it is written again */
	assert_int_equal(store_settle(&b.store), 1);
	assert_int_equal(get(&b, 1), -ENODATA);
	assert_int_equal(put(&b, 1, 20, 3), 0);
	assert_int_equal(get(&b, 1), 0);
	bed_close(&b);
}

/* A SoC owns what it was given, deleted or not, and nothing else. */
static void test_soc(void **state)
{
	uint8_t key[KEY_SIZE], value[20] = { 7 };
	struct bed b;

	(void)state;
	bed_open(&b, 4 << 20);
	b.store.owner = false;
	assert_int_equal(put(&b, 1, 20, 1), -EXDEV);
	assert_int_equal(get(&b, 1), -EXDEV);
	assert_int_equal(
		store_set(&b.store, key_of(key, 1), (struct span){ value, 20 }, KV_PENDING), 0);
	assert_int_equal(get(&b, 1), -EBUSY);
	assert_int_equal(put(&b, 1, 20, 1), -EBUSY);
	assert_int_equal(store_change(&b.store, key_of(key, 1), KV_PENDING, KV_HERE), 0);
	assert_int_equal(get(&b, 1), 0);
	assert_int_equal(store_delete(&b.store, key_of(key, 1)), 0);
	assert_int_equal(get(&b, 1), -ENOENT);
	assert_int_equal(store_delete(&b.store, key_of(key, 1)), -ENOENT);
	assert_int_equal(kind_of(&b, 1), KV_ABSENT);
	assert_int_equal(put(&b, 1, 20, 2), 0);
	assert_int_equal(get(&b, 1), 0);
	store_forget(&b.store, key_of(key, 1));
	assert_int_equal(get(&b, 1), -EXDEV);
	assert_int_equal(b.store.heap.used, 0);
	bed_close(&b);
}

/* The other node dies in the middle of a move: what was on its way is ours. */
static void test_settle(void **state)
{
	uint8_t key[KEY_SIZE], value[20] = { 7 };
	struct bed b;

	(void)state;
	bed_open(&b, 4 << 20);
	assert_int_equal(put(&b, 1, 20, 1), 0);
	assert_int_equal(store_change(&b.store, key_of(key, 1), KV_HERE, KV_FROZEN), 0);
	assert_int_equal(
		store_set(&b.store, key_of(key, 2), (struct span){ value, 20 }, KV_PENDING), 0);
	assert_int_equal(store_set(&b.store, key_of(key, 3), (struct span){ NULL, 0 }, KV_PENDING),
			 0);
	assert_int_equal(store_settle(&b.store), 0);
	assert_int_equal(kind_of(&b, 1), KV_HERE);
	assert_int_equal(kind_of(&b, 2), KV_HERE);
	assert_int_equal(kind_of(&b, 3), KV_ABSENT);
	assert_int_equal(store_keys(&b.store), 2);
	bed_close(&b);
}

/* All that was given back can be given out again, in other sizes only up to whole slabs. */
static void test_heap_gives_everything_back(void **state)
{
	enum { N = 1000 };
	static uint64_t at[N];
	uint8_t *memory = calloc(1, 64 << 20);
	struct heap h;

	(void)state;
	heap_open(&h, memory, 64 << 20);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < N; i++) {
			at[i] = heap_get(&h, 1 + (i * 37 + round) % 4000);
			assert_int_not_equal(at[i], HEAP_NONE);
			assert_int_equal(at[i] % 16, 0);
			memset(memory + at[i], 1, 1 + (i * 37 + round) % 4000);
		}
		for (unsigned i = 0; i < N; i++)
			heap_put(&h, at[i], 1 + (i * 37 + round) % 4000);
		assert_int_equal(h.used, 0);
	}
	heap_close(&h);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_operations),
		cmocka_unit_test(test_memory_runs_out),
		cmocka_unit_test(test_bad_lengths),
		cmocka_unit_test(test_moving_out),
		cmocka_unit_test(test_soc),
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_heap_gives_everything_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
