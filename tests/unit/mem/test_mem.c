/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/mem.h"

#include "arena.h"
#include "uwtest.h"

static uint8_t memory[4096];

/* ---- the table --------------------------------------------------------------------------- */

static void what_is_entered_is_found(void **state)
{
	struct arena a;
	uint32_t x, y;

	(void)state;
	arena_init(&a);
	assert_null(mem_find(&a.t, 5));
	x = arena_add(&a, memory, 100, ARENA_ALL);
	y = arena_add(&a, memory, 200, ARENA_ALL);
	assert_ptr_equal(mem_find(&a.t, x), &a.r[0]);
	assert_ptr_equal(mem_find(&a.t, y), &a.r[1]);
	assert_null(mem_find(&a.t, x + 1));
	arena_drop(&a, x);
	assert_null(mem_find(&a.t, x));
	assert_ptr_equal(mem_find(&a.t, y), &a.r[1]);
}

/* RFC 5040 §8.1.1: an STag names one thing; 0 names nothing. */
static void an_stag_names_one_region(void **state)
{
	struct arena a;
	struct mem_region r = { 0 };

	(void)state;
	arena_init(&a);
	assert_status(mem_insert(&a.t, &r, 0), UW_E_BUSY);
	assert_null(mem_find(&a.t, 0));
	assert_status(mem_insert(&a.t, &r, 0x1234), UW_OK);
	assert_int_equal(r.stag, 0x1234);
	assert_status(mem_insert(&a.t, &r, 0x1234), UW_E_BUSY);
	/* nor with other lower 8 bits: these are a window's program's to choose */
	assert_status(mem_insert(&a.t, &r, 0x1235), UW_E_BUSY);
	assert_status(mem_insert(&a.t, &r, 0x35), UW_E_BUSY);
	mem_remove(&a.t, &r);
	assert_status(mem_insert(&a.t, &r, 0x1234), UW_OK);
}

/* STags that begin their search in the same slot, at the end of the table. */
static void colliding_stags_are_told_apart(void **state)
{
	struct arena a;
	struct mem_region r[5] = { 0 };
	const uint32_t last = (COUNT(a.slots) - 1) << 8;

	(void)state;
	arena_init(&a);
	for (unsigned i = 0; i < 5; i++)
		assert_status(mem_insert(&a.t, &r[i], last + i * 0x1000000), UW_OK);
	for (unsigned i = 0; i < 5; i++)
		assert_ptr_equal(mem_find(&a.t, last + i * 0x1000000), &r[i]);
	assert_null(mem_find(&a.t, last + 5 * 0x1000000));
	/* one in the middle leaves: those behind it are still found, and its slot is used again */
	mem_remove(&a.t, &r[2]);
	assert_null(mem_find(&a.t, last + 2 * 0x1000000));
	assert_ptr_equal(mem_find(&a.t, last + 4 * 0x1000000), &r[4]);
	assert_int_equal(a.t.dead, 1);
	assert_status(mem_insert(&a.t, &r[2], last + 7 * 0x1000000), UW_OK);
	assert_int_equal(a.t.dead, 0);
	assert_int_equal(a.t.used, 5);
	assert_ptr_equal(mem_find(&a.t, last + 7 * 0x1000000), &r[2]);
}

/* The table never gets so full that a search would not end. */
static void it_says_when_it_is_full(void **state)
{
	struct mem_region *slots[8], r[8] = { 0 };
	struct mem_table t;
	uint32_t n = 0;

	(void)state;
	mem_table_init(&t, slots, 8);
	while (!mem_table_full(&t)) {
		assert_status(mem_insert(&t, &r[n], (n + 1) << 8), UW_OK);
		n++;
	}
	assert_in_range(n, 2, 4);
	assert_null(mem_find(&t, 1000));
	/* slots of regions that left count, for a search passes them */
	mem_remove(&t, &r[0]);
	assert_true(mem_table_full(&t));
	assert_int_equal(t.dead, 1);
}

static void moving_keeps_the_living_only(void **state)
{
	struct mem_region *small[8], *big[64], r[3] = { 0 };
	struct mem_table t;

	(void)state;
	mem_table_init(&t, small, 8);
	for (unsigned i = 0; i < 3; i++)
		assert_status(mem_insert(&t, &r[i], 0x800 * (i + 1)), UW_OK);
	mem_remove(&t, &r[1]);
	mem_table_move(&t, big, 64);
	memset(small, 0xff, sizeof(small));
	assert_int_equal(t.used, 2);
	assert_int_equal(t.dead, 0);
	assert_ptr_equal(mem_find(&t, 0x800), &r[0]);
	assert_null(mem_find(&t, 0x1000));
	assert_ptr_equal(mem_find(&t, 0x1800), &r[2]);
	assert_false(mem_table_full(&t));
}

/* A long random life, beside a plain list. */
static void a_long_life(void **state)
{
	struct mem_region *slots[2][512], r[150] = { 0 };
	bool in[150] = { false };
	struct prng g = { 14 };
	struct mem_table t;
	unsigned which = 0;

	(void)state;
	mem_table_init(&t, slots[0], 512);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned k = prng_below(&g, 150);

		if (in[k]) {
			mem_remove(&t, &r[k]);
			assert_null(mem_find(&t, r[k].stag));
		} else {
			if (mem_table_full(&t))
				mem_table_move(&t, slots[which ^= 1], 512);
			while (mem_insert(&t, &r[k], prng_below(&g, 2000) << 8))
				;
		}
		in[k] = !in[k];
		k = prng_below(&g, 150);
		if (in[k])
			assert_ptr_equal(mem_find(&t, r[k].stag), &r[k]);
	}
	for (unsigned k = 0; k < 150; k++) {
		if (in[k])
			assert_ptr_equal(mem_find(&t, r[k].stag), &r[k]);
	}
}

/* ---- the judgement ----------------------------------------------------------------------- */

#define TO 0x10000ull

/* 100 octets of memory at TO 0x10000. */
static uint32_t at_to(struct arena *a, unsigned rights)
{
	arena_init(a);
	return arena_put(a, (struct mem_region){ .stag = 0x4711,
						 .pd = ARENA_PD,
						 .base = memory,
						 .to = TO,
						 .len = 100,
						 .rights = rights });
}

static struct mem_access access_of(uint32_t stag, uint64_t to, uint64_t len, unsigned need)
{
	return (struct mem_access){
		.stag = stag, .pd = ARENA_PD, .to = to, .len = len, .need = need
	};
}

static enum mem_verdict judge(struct arena *a, struct mem_access x)
{
	uint8_t *va = NULL;
	enum mem_verdict v = mem_check(&a->t, &x, &va);

	if (v == MEM_OK)
		assert_ptr_equal(va, memory + (x.to - TO));
	return v;
}

/* RFC 5041 §5.2, RFC 5042 §6.2.1: base and bounds to the octet. */
static void bounds_are_exact(void **state)
{
	struct arena a;
	uint32_t s = at_to(&a, ARENA_ALL);

	(void)state;
	assert_int_equal(judge(&a, access_of(s, TO, 100, 0)), MEM_OK);
	assert_int_equal(judge(&a, access_of(s, TO, 1, 0)), MEM_OK);
	assert_int_equal(judge(&a, access_of(s, TO + 99, 1, 0)), MEM_OK);
	assert_int_equal(judge(&a, access_of(s, TO, 101, 0)), MEM_NO_BOUNDS);
	assert_int_equal(judge(&a, access_of(s, TO - 1, 1, 0)), MEM_NO_BOUNDS);
	assert_int_equal(judge(&a, access_of(s, TO - 1, 101, 0)), MEM_NO_BOUNDS);
	assert_int_equal(judge(&a, access_of(s, TO + 1, 100, 0)), MEM_NO_BOUNDS);
	assert_int_equal(judge(&a, access_of(s, TO + 99, 2, 0)), MEM_NO_BOUNDS);
	assert_int_equal(judge(&a, access_of(s, TO + 100, 1, 0)), MEM_NO_BOUNDS);
	assert_int_equal(judge(&a, access_of(s, 0, 1, 0)), MEM_NO_BOUNDS);
	assert_int_equal(judge(&a, access_of(s, UINT64_MAX, 1, 0)), MEM_NO_WRAP);
}

static void every_octet_of_a_region_and_none_beside(void **state)
{
	struct arena a;
	uint32_t s = at_to(&a, ARENA_ALL);

	(void)state;
	for (uint64_t to = TO - 3; to < TO + 105; to++) {
		for (uint64_t len = 1; len < 110; len++) {
			bool inside = to >= TO && to + len <= TO + 100;

			assert_int_equal(judge(&a, access_of(s, to, len, 0)),
					 inside ? MEM_OK : MEM_NO_BOUNDS);
		}
	}
}

/* RFC 5041 §5.2: TO plus length must not wrap; and a wrap never lets the bounds check pass. */
static void a_sum_that_wraps_is_refused(void **state)
{
	struct arena a;
	uint32_t s = at_to(&a, ARENA_ALL), high;
	struct mem_access x;
	uint8_t *va;

	(void)state;
	assert_int_equal(judge(&a, access_of(s, TO, UINT64_MAX, 0)), MEM_NO_WRAP);
	assert_int_equal(judge(&a, access_of(s, TO + 1, UINT64_MAX - TO, 0)), MEM_NO_WRAP);
	assert_int_equal(judge(&a, access_of(s, UINT64_MAX - 5, 6, 0)), MEM_NO_WRAP);
	assert_int_equal(judge(&a, access_of(s, UINT64_MAX - 5, 5, 0)), MEM_NO_BOUNDS);
	/* a region that ends one octet below the end of the address space */
	high = arena_put(&a, (struct mem_region){ .stag = 0x4811,
						  .pd = ARENA_PD,
						  .base = memory,
						  .to = UINT64_MAX - 10,
						  .len = 10,
						  .rights = ARENA_ALL });
	x = access_of(high, UINT64_MAX - 10, 10, 0);
	assert_int_equal(mem_check(&a.t, &x, &va), MEM_OK);
	assert_ptr_equal(va, memory);
	x.len = 11;
	assert_int_equal(mem_check(&a.t, &x, &va), MEM_NO_WRAP);
}

/* RFC 5040 §5.2, RFC 5042 §6.1.1: unknown, and known but of another protection domain. */
static void stag_and_protection_domain_are_checked(void **state)
{
	struct arena a;
	uint32_t s = at_to(&a, ARENA_ALL);
	struct mem_access x = access_of(s, TO, 1, 0);

	(void)state;
	assert_int_equal(judge(&a, access_of(s + 1, TO, 1, 0)), MEM_NO_STAG);
	assert_int_equal(judge(&a, access_of(0, TO, 1, 0)), MEM_NO_STAG);
	x.pd = ARENA_PD + 1;
	assert_int_equal(judge(&a, x), MEM_NO_STREAM);
	/* RFC 5042 §6.2.2: gone at once */
	arena_drop(&a, s);
	assert_int_equal(judge(&a, access_of(s, TO, 1, 0)), MEM_NO_STAG);
}

/* RFC 5042 §6.2.1: each right is given by itself; all that are needed must be there. */
static void rights_are_separate(void **state)
{
	(void)state;
	for (unsigned have = 0; have < 16; have++) {
		struct arena a;
		uint32_t s = at_to(&a, have);

		for (unsigned need = 0; need < 16; need++)
			assert_int_equal(judge(&a, access_of(s, TO, 1, need)),
					 (need & ~have) ? MEM_NO_RIGHTS : MEM_OK);
	}
}

/* RFC 5041 §7.2 for what DDP finds, RFC 5040 §4.8 for what RDMAP finds; our own SGEs are local. */
static void each_layer_has_its_own_words(void **state)
{
	static const struct {
		enum mem_verdict v;
		uw_status ddp, rdmap;
	} rows[] = {
		{ MEM_NO_STAG, UW_E_DDP_STAG, UW_E_RDMAP_STAG },
		{ MEM_NO_STREAM, UW_E_DDP_STREAM, UW_E_RDMAP_STREAM },
		{ MEM_NO_BOUNDS, UW_E_DDP_BOUNDS, UW_E_RDMAP_BOUNDS },
		{ MEM_NO_WRAP, UW_E_DDP_WRAP, UW_E_RDMAP_WRAP },
		{ MEM_NO_RIGHTS, UW_E_RDMAP_ACCESS, UW_E_RDMAP_ACCESS },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_status(mem_verdict_status(rows[i].v, MEM_FOR_DDP), rows[i].ddp);
		assert_status(mem_verdict_status(rows[i].v, MEM_FOR_RDMAP), rows[i].rdmap);
		assert_status(mem_verdict_status(rows[i].v, MEM_FOR_LOCAL), UW_E_LKEY);
	}
	for (unsigned layer = 0; layer < 3; layer++)
		assert_status(mem_verdict_status(MEM_OK, (enum mem_layer)layer), UW_OK);
}

/* ---- windows ----------------------------------------------------------------------------- */

#define STREAM 20u
#define WIN    0x77770000u

struct windows {
	struct arena a;
	uint32_t region;
	struct mem_region *w;
};

static void with_window(struct windows *x, enum mem_kind kind)
{
	arena_init(&x->a);
	x->region = arena_add(&x->a, memory, 100,
			      ARENA_ALL | UW_ACCESS_REMOTE_ATOMIC | UW_ACCESS_MW_BIND);
	arena_put(&x->a,
		  (struct mem_region){ .stag = WIN, .pd = ARENA_PD, .kind = kind, .off = true });
	x->w = &x->a.r[1];
}

static struct mem_bind bind_of(const struct windows *x, size_t at, size_t len)
{
	return (struct mem_bind){ .stag = WIN + 1,
				  .parent = x->region,
				  .addr = to_of(memory) + at,
				  .len = len,
				  .rights = UW_ACCESS_REMOTE_READ | UW_ACCESS_REMOTE_WRITE,
				  .pd = ARENA_PD,
				  .stream = STREAM };
}

static enum mem_verdict peer_at(struct windows *x, uint32_t stag, uint64_t to, uint32_t stream)
{
	struct mem_access at = access_of(stag, to, 8, UW_ACCESS_REMOTE_WRITE);

	uint8_t *va;

	at.stream = stream;
	return mem_check(&x->a.t, &at, &va);
}

static void a_window_shows_its_part_and_no_more(void **state)
{
	const uint64_t at = to_of(memory) + 10;
	struct windows x;
	struct mem_bind b;

	(void)state;
	with_window(&x, MEM_STREAM_WINDOW);
	assert_int_equal(peer_at(&x, WIN, at, STREAM), MEM_NO_STAG);
	b = bind_of(&x, 10, 20);
	assert_status(mem_bind(&x.a.t, &b), UW_OK);
	assert_int_equal(peer_at(&x, WIN + 1, at, STREAM), MEM_OK);
	assert_int_equal(peer_at(&x, WIN + 1, at + 12, STREAM), MEM_OK);
	assert_int_equal(peer_at(&x, WIN + 1, at + 13, STREAM), MEM_NO_BOUNDS);
	assert_int_equal(peer_at(&x, WIN + 1, at - 1, STREAM), MEM_NO_BOUNDS);
	/* the old key, another stream, the program itself */
	assert_int_equal(peer_at(&x, WIN, at, STREAM), MEM_NO_STAG);
	assert_int_equal(peer_at(&x, WIN + 1, at, STREAM + 1), MEM_NO_STREAM);
	assert_int_equal(peer_at(&x, WIN + 1, at, 0), MEM_NO_STAG);
	assert_int_equal(x.a.r[0].windows, 1);
}

static void a_window_of_type_1_is_the_domains(void **state)
{
	const uint64_t at = to_of(memory) + 10;
	struct windows x;
	struct mem_bind b;

	(void)state;
	with_window(&x, MEM_WINDOW);
	b = bind_of(&x, 10, 20);
	assert_status(mem_bind(&x.a.t, &b), UW_OK);
	assert_int_equal(peer_at(&x, WIN + 1, at, STREAM + 1), MEM_OK);
	/* bound again, elsewhere; and with no length it shows nothing */
	b = bind_of(&x, 50, 20);
	b.stag = WIN + 2;
	assert_status(mem_bind(&x.a.t, &b), UW_OK);
	assert_int_equal(x.a.r[0].windows, 1);
	assert_int_equal(peer_at(&x, WIN + 1, at, STREAM), MEM_NO_STAG);
	assert_int_equal(peer_at(&x, WIN + 2, at + 40, STREAM), MEM_OK);
	b.len = 0;
	assert_status(mem_bind(&x.a.t, &b), UW_OK);
	assert_int_equal(peer_at(&x, WIN + 2, at + 40, STREAM), MEM_NO_STAG);
	assert_int_equal(x.a.r[0].windows, 0);
	/* it cannot be invalidated, from here or there */
	b.len = 8;
	assert_status(mem_bind(&x.a.t, &b), UW_OK);
	assert_status(mem_invalidate(&x.a.t, WIN + 2, ARENA_PD, STREAM), UW_E_BIND);
	assert_status(mem_invalidate_remote(&x.a.t, WIN + 2, ARENA_PD, STREAM), UW_E_RDMAP_NOT_INV);
}

static void a_zero_based_window_begins_with_0(void **state)
{
	struct windows x;
	struct mem_bind b;

	(void)state;
	with_window(&x, MEM_STREAM_WINDOW);
	b = bind_of(&x, 10, 20);
	b.rights |= UW_ACCESS_ZERO_BASED;
	assert_status(mem_bind(&x.a.t, &b), UW_OK);
	assert_int_equal(peer_at(&x, WIN + 1, 12, STREAM), MEM_OK);
	assert_int_equal(peer_at(&x, WIN + 1, 13, STREAM), MEM_NO_BOUNDS);
}

static void what_may_not_be_bound(void **state)
{
	struct windows x;
	struct mem_bind b, good;

	(void)state;
	with_window(&x, MEM_STREAM_WINDOW);
	good = bind_of(&x, 10, 20);
#define REFUSED(field, value)                                                                      \
	b = good;                                                                                  \
	b.field = value;                                                                           \
	assert_status(mem_bind(&x.a.t, &b), UW_E_BIND)
	REFUSED(stag, x.region + 1);
	REFUSED(stag, 0x12345678);
	REFUSED(parent, WIN);
	REFUSED(parent, x.region + 1);
	REFUSED(pd, ARENA_PD + 1);
	REFUSED(len, 91);
	REFUSED(len, 0);
	REFUSED(addr, to_of(memory) - 1);
	REFUSED(addr, to_of(memory) + 101);
#undef REFUSED
	x.a.r[0].rights = ARENA_ALL;
	assert_status(mem_bind(&x.a.t, &good), UW_E_BIND);
	x.a.r[0].rights = UW_ACCESS_REMOTE_READ | UW_ACCESS_MW_BIND;
	assert_status(mem_bind(&x.a.t, &good), UW_E_BIND);
	x.a.r[0].rights = ARENA_ALL | UW_ACCESS_MW_BIND;
	assert_status(mem_bind(&x.a.t, &good), UW_OK);
	assert_status(mem_bind(&x.a.t, &good), UW_E_BIND); /* bound already */
}

/* RFC 5040 §8.1.1: its own stream alone may invalidate it; and then it names nothing. */
static void a_stream_window_can_be_invalidated(void **state)
{
	const uint64_t at = to_of(memory) + 10;
	struct windows x;
	struct mem_bind b;

	(void)state;
	with_window(&x, MEM_STREAM_WINDOW);
	b = bind_of(&x, 10, 20);
	for (unsigned i = 0; i < 2; i++) {
		b.stag = WIN + 1 + i;
		assert_status(mem_bind(&x.a.t, &b), UW_OK);
		assert_status(mem_invalidate_remote(&x.a.t, b.stag, ARENA_PD, STREAM + 1),
			      UW_E_RDMAP_NOT_INV);
		assert_status(mem_invalidate_remote(&x.a.t, b.stag + 1, ARENA_PD, STREAM),
			      UW_E_RDMAP_NOT_INV);
		assert_status(mem_invalidate(&x.a.t, b.stag, ARENA_PD + 1, STREAM), UW_E_BIND);
		assert_status(mem_invalidate(&x.a.t, b.stag, ARENA_PD, STREAM + 1), UW_E_BIND);
		assert_int_equal(peer_at(&x, b.stag, at, STREAM), MEM_OK);
		if (i)
			assert_status(mem_invalidate(&x.a.t, b.stag, ARENA_PD, STREAM), UW_OK);
		else
			assert_status(mem_invalidate_remote(&x.a.t, b.stag, ARENA_PD, STREAM),
				      UW_OK);
		assert_int_equal(peer_at(&x, b.stag, at, STREAM), MEM_NO_STAG);
		assert_int_equal(x.a.r[0].windows, 0);
		assert_status(mem_invalidate(&x.a.t, b.stag, ARENA_PD, STREAM), UW_E_BIND);
	}
	assert_status(mem_invalidate(&x.a.t, x.region, ARENA_PD, STREAM), UW_E_BIND);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(what_is_entered_is_found),
	cmocka_unit_test(an_stag_names_one_region),
	cmocka_unit_test(colliding_stags_are_told_apart),
	cmocka_unit_test(it_says_when_it_is_full),
	cmocka_unit_test(moving_keeps_the_living_only),
	cmocka_unit_test(a_long_life),
	cmocka_unit_test(bounds_are_exact),
	cmocka_unit_test(every_octet_of_a_region_and_none_beside),
	cmocka_unit_test(a_sum_that_wraps_is_refused),
	cmocka_unit_test(stag_and_protection_domain_are_checked),
	cmocka_unit_test(rights_are_separate),
	cmocka_unit_test(each_layer_has_its_own_words),
	cmocka_unit_test(a_window_shows_its_part_and_no_more),
	cmocka_unit_test(a_window_of_type_1_is_the_domains),
	cmocka_unit_test(a_zero_based_window_begins_with_0),
	cmocka_unit_test(what_may_not_be_bound),
	cmocka_unit_test(a_stream_window_can_be_invalidated),
};

UWTEST_MAIN(tests)
