/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/sgl.h"

#include "arena.h"
#include "pieces.h"
#include "uwtest.h"

#define MEMORY 8192

/* A list of SGEs of odd lengths, some empty, in an order of its own; `flat` numbers its octets. */
struct list {
	struct arena a;
	uint8_t mem[MEMORY];
	struct uw_sge v[12];
	struct mem_sgl sgl;
	uint8_t *octet[MEMORY]; /* where each octet of the list lies */
};

static void list_init(struct list *l, struct prng *r)
{
	uint32_t stag[3];
	unsigned k = 0;

	arena_init(&l->a);
	for (unsigned i = 0; i < 3; i++)
		stag[i] = arena_add(&l->a, l->mem + 2500 * i, 2500, UW_ACCESS_LOCAL_WRITE);
	for (unsigned i = 0; i < COUNT(l->v); i++) {
		unsigned region = i % 3, len = i % 4 == 3 ? 0 : prng_below(r, 500);
		uint8_t *p = l->mem + 2500 * region + 600 * (i / 3);

		l->v[i] = sge_of(p, len, stag[region]);
		for (unsigned j = 0; j < len; j++)
			l->octet[k++] = p + j;
	}
	l->sgl = sgl_of(l->v, COUNT(l->v));
	assert_int_equal(l->sgl.len, k);
}

static void gather_takes_any_part(void **state)
{
	struct prng r = { 15 };
	static struct list l;
	uint8_t got[MEMORY];

	(void)state;
	list_init(&l, &r);
	prng_fill(&r, l.mem, sizeof(l.mem));
	for (unsigned i = 0; i < 500; i++) {
		uint64_t off = prng_below(&r, (uint32_t)l.sgl.len);
		size_t n = prng_below(&r, (uint32_t)(l.sgl.len - off)) + 1;

		assert_status(mem_gather(&l.a.t, &l.sgl, off, got, n), UW_OK);
		for (size_t j = 0; j < n; j++)
			assert_int_equal(got[j], *l.octet[off + j]);
	}
}

static void scatter_fills_any_part_and_no_more(void **state)
{
	struct prng r = { 16 };
	static struct list l;
	uint8_t src[MEMORY];

	(void)state;
	list_init(&l, &r);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t off = prng_below(&r, (uint32_t)l.sgl.len);
		size_t n = prng_below(&r, (uint32_t)(l.sgl.len - off)) + 1, filled = 0;
		struct pieces x;

		prng_fill(&r, src, n);
		for (size_t j = 0; j < n; j++)
			src[j] |= 1;
		memset(l.mem, 0, sizeof(l.mem));
		x = pieces_random(src, n, 400, &r);
		assert_status(mem_scatter(&l.a.t, &l.sgl, off, x.rope), UW_OK);
		for (size_t j = 0; j < n; j++)
			assert_int_equal(*l.octet[off + j], src[j]);
		for (size_t j = 0; j < sizeof(l.mem); j++)
			filled += l.mem[j] != 0;
		assert_int_equal(filled, n);
		pieces_free(&x);
	}
}

static void nothing_needs_no_memory(void **state)
{
	const struct uw_span none = { NULL, 0 };
	struct mem_sgl sgl = { 0 };
	struct arena a;
	uint8_t got;

	(void)state;
	arena_init(&a);
	assert_status(mem_gather(&a.t, &sgl, 0, &got, 0), UW_OK);
	assert_status(mem_scatter(&a.t, &sgl, 0, uw_rope_of(&none)), UW_OK);
}

static void inline_octets_are_taken_as_they_are(void **state)
{
	static const uint8_t inl[] = "octets in the request";
	struct mem_sgl sgl = { .inl = inl, .len = sizeof(inl) };
	struct arena a;
	uint8_t got[8];

	(void)state;
	arena_init(&a);
	assert_status(mem_gather(&a.t, &sgl, 7, got, 6), UW_OK);
	assert_memory_equal(got, "in the", 6);
}

/* Each SGE's lkey is checked: unknown, other protection domain, beyond its region, deregistered. */
static void a_bad_sge_fails_when_it_is_touched(void **state)
{
	uint8_t around[64] = { 0 }, got[64], *mem = around + 8;
	struct arena a;
	uint32_t s, foreign;
	struct uw_sge v[2];
	struct mem_sgl sgl;

	(void)state;
	arena_init(&a);
	s = arena_add(&a, mem, 32, UW_ACCESS_LOCAL_WRITE);
	foreign = arena_put(&a, (struct mem_region){ .stag = 0x9900,
						     .pd = ARENA_PD + 1,
						     .base = mem,
						     .to = to_of(mem),
						     .len = 32 });
	const struct uw_sge bad[] = {
		sge_of(mem, 8, 12345),
		sge_of(mem, 8, foreign),
		sge_of(mem + 25, 8, s),
		sge_of(mem - 1, 8, s),
		sge_of((void *)(uintptr_t)-4, 8, s),
	};

	v[0] = sge_of(mem, 8, s);
	for (size_t i = 0; i < COUNT(bad); i++) {
		v[1] = bad[i];
		sgl = sgl_of(v, 2);
		assert_status(mem_gather(&a.t, &sgl, 0, got, 8), UW_OK);
		assert_status(mem_gather(&a.t, &sgl, 4, got, 12), UW_E_LKEY);
		const struct uw_span src = { got, 12 };

		assert_status(mem_scatter(&a.t, &sgl, 4, uw_rope_of(&src)), UW_E_LKEY);
	}
	v[1] = sge_of(mem + 24, 8, s);
	sgl = sgl_of(v, 2);
	assert_status(mem_gather(&a.t, &sgl, 0, got, 16), UW_OK);
	arena_drop(&a, s);
	assert_status(mem_gather(&a.t, &sgl, 0, got, 16), UW_E_LKEY);
}

/* Reading needs no right, writing needs local write. */
static void scatter_needs_local_write(void **state)
{
	uint8_t mem[16] = { 0 }, got[16];
	struct arena a;
	uint32_t s;
	struct uw_sge v;
	struct mem_sgl sgl;
	const struct uw_span src = { (const uint8_t *)"0123456789abcdef", 16 };

	(void)state;
	arena_init(&a);
	s = arena_add(&a, mem, 16, UW_ACCESS_REMOTE_READ);
	v = sge_of(mem, 16, s);
	sgl = sgl_of(&v, 1);
	assert_status(mem_gather(&a.t, &sgl, 0, got, 16), UW_OK);
	assert_status(mem_scatter(&a.t, &sgl, 0, uw_rope_of(&src)), UW_E_LKEY);
	assert_memory_equal(mem, got, 16);
}

/* An SGE names memory by TO, which need not be its address. */
static void sges_are_in_the_regions_own_addresses(void **state)
{
	uint8_t mem[16] = "0123456789abcde", got[4];
	struct arena a;
	struct uw_sge v;
	struct mem_sgl sgl;

	(void)state;
	arena_init(&a);
	arena_put(&a,
		  (struct mem_region){
			  .stag = 0x7700, .pd = ARENA_PD, .base = mem, .to = 0x5000, .len = 16 });
	v = (struct uw_sge){ .addr = 0x5004, .length = 8, .lkey = 0x7700 };
	sgl = sgl_of(&v, 1);
	assert_status(mem_gather(&a.t, &sgl, 2, got, 4), UW_OK);
	assert_memory_equal(got, "6789", 4);
}

/* ibv_alloc_null_mr: whatever the address. */
static void the_null_region_gives_zeros_and_takes_everything(void **state)
{
	uint8_t got[8] = "abcdefg";
	const struct uw_span some = { got, sizeof(got) };
	struct arena a;
	struct uw_sge v;
	struct mem_sgl sgl;

	(void)state;
	arena_init(&a);
	arena_put(&a, (struct mem_region){ .stag = 0x7700,
					   .pd = ARENA_PD,
					   .len = UINT64_MAX,
					   .rights = UW_ACCESS_LOCAL_WRITE,
					   .kind = MEM_NULL });
	v = (struct uw_sge){ .addr = 0xdead0000, .length = 8, .lkey = 0x7700 };
	sgl = sgl_of(&v, 1);
	assert_status(mem_scatter(&a.t, &sgl, 0, uw_rope_of(&some)), UW_OK);
	assert_status(mem_gather(&a.t, &sgl, 0, got, 8), UW_OK);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(got[i], 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(gather_takes_any_part),
	cmocka_unit_test(scatter_fills_any_part_and_no_more),
	cmocka_unit_test(nothing_needs_no_memory),
	cmocka_unit_test(inline_octets_are_taken_as_they_are),
	cmocka_unit_test(a_bad_sge_fails_when_it_is_touched),
	cmocka_unit_test(scatter_needs_local_write),
	cmocka_unit_test(sges_are_in_the_regions_own_addresses),
	cmocka_unit_test(the_null_region_gives_zeros_and_takes_everything),
};

UWTEST_MAIN(tests)
