/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The STag table against a list that is searched from end to end; lists of SGEs, gathered from and
 * scattered to, against the same done octet by octet. RFC 5041 §5.2, RFC 5042 §6.
 */
#include "fuzz.h"
#include "mem/sgl.h"

#define REGIONS 24u
#define SLOTS	32u
#define PDS	2u
#define SGES	6u

struct bed {
	struct mem_table t;
	struct mem_region **slots;
	struct {
		struct mem_region r;
		uint8_t *mem; /* exactly r.len octets */
		bool in;
	} v[REGIONS];
};

/* ---- the table --------------------------------------------------------------------------- */

/* Few different STags, so that they meet and wrap around in the table. */
static uint32_t some_stag(struct feed *f)
{
	uint32_t index = (uint32_t)feed_below(f, 8) * (SLOTS / 4) + SLOTS - 3 + feed_below(f, 4);

	return index << 8 | feed_below(f, 2);
}

static struct mem_region *list_find(struct bed *b, uint32_t stag)
{
	for (unsigned i = 0; i < REGIONS; i++)
		if (b->v[i].in && b->v[i].r.stag == stag)
			return &b->v[i].r;
	return NULL;
}

static uint64_t some_to(struct feed *f, const uint8_t *mem, uint64_t len)
{
	switch (feed_below(f, 4)) {
	case 0:
		return UINT64_MAX - len; /* the last that does not wrap */
	case 1:
		return 0;
	case 2:
		return feed_u64(f) % (UINT64_MAX - len);
	default:
		return (uintptr_t)mem;
	}
}

static void add(struct bed *b, unsigned i, struct feed *f)
{
	uint32_t stag = feed_rarely(f, 32) ? 0 : some_stag(f);
	uint64_t len = feed_length(f, 300);
	bool taken = !(stag >> 8) || mem_find_index(&b->t, stag);
	uw_status st;

	b->v[i].mem = fuzz_alloc(len);
	memset(b->v[i].mem, (int)i, len);
	b->v[i].r = (struct mem_region){ .pd = feed_below(f, PDS),
					 .base = b->v[i].mem,
					 .to = some_to(f, b->v[i].mem, len),
					 .len = len,
					 .rights = feed_below(f, 16) };
	st = mem_insert(&b->t, &b->v[i].r, stag);
	CHECK(st == (taken ? UW_E_BUSY : UW_OK));
	b->v[i].in = !st;
	if (st)
		free(b->v[i].mem);
	if (!mem_table_full(&b->t))
		return;
	struct mem_region **more = fuzz_alloc(SLOTS * 2 * sizeof(*more));

	mem_table_move(&b->t, more, SLOTS * 2);
	free(b->slots);
	b->slots = more;
}

static void drop(struct bed *b, unsigned i)
{
	mem_remove(&b->t, &b->v[i].r);
	b->v[i].in = false;
	free(b->v[i].mem);
}

/* ---- judging ----------------------------------------------------------------------------- */

/* The verdict from the RFC's words, with 128 bits so that nothing wraps by itself. */
static bool may(const struct mem_region *r, const struct mem_access *a)
{
	unsigned __int128 first = a->to, end = first + a->len, from = r ? r->to : 0;

	return r && r->pd == a->pd && first >= from && end <= from + r->len && end <= UINT64_MAX &&
	       (r->rights & a->need) == a->need;
}

/* AddressSanitizer sees it if one of them is not ours. */
static void first_and_last(const volatile uint8_t *va, uint64_t len)
{
	(void)va[0];
	(void)va[len - 1];
}

static void judge(struct bed *b, struct feed *f)
{
	struct mem_access a = { .stag = some_stag(f), .pd = feed_below(f, PDS) };
	const struct mem_region *r = list_find(b, a.stag);
	enum mem_verdict v;
	uint8_t *va = NULL;

	a.to = feed_bool(f) && r ? r->to + feed_length(f, 310) - feed_below(f, 4) : feed_u64(f);
	a.len = feed_rarely(f, 8) ? feed_u64(f) : 1 + feed_length(f, 310);
	a.need = feed_below(f, 16);
	if (!a.len)
		return;
	CHECK(mem_find(&b->t, a.stag) == r);
	v = mem_check(&b->t, &a, &va);
	CHECK((v == MEM_OK) == may(r, &a));
	if (v == MEM_OK) {
		CHECK(va == r->base + (a.to - r->to));
		first_and_last(va, a.len);
	}
	CHECK((mem_verdict_status(v, MEM_FOR_DDP) == UW_OK) == (v == MEM_OK));
	CHECK((mem_verdict_status(v, MEM_FOR_RDMAP) == UW_OK) == (v == MEM_OK));
}

/* ---- lists ------------------------------------------------------------------------------- */

static struct uw_sge some_sge(struct bed *b, struct feed *f)
{
	const struct mem_region *r = list_find(b, some_stag(f));
	struct uw_sge e = { .lkey = some_stag(f), .length = feed_length(f, 300) };

	if (!r)
		return e;
	e.lkey = r->stag;
	e.addr = r->to + feed_length(f, (uint32_t)r->len);
	/* Mostly within the region. */
	if (!feed_rarely(f, 8) && e.addr - r->to + e.length > r->len)
		e.length = (uint32_t)(r->len - (e.addr - r->to));
	return e;
}

/* The octet at off of the list; NULL: it may not be touched with these rights. */
static uint8_t *octet(struct bed *b, const struct mem_sgl *s, uint64_t off, unsigned need)
{
	const struct uw_sge *e = s->v;
	struct mem_region *r;

	for (; off >= e->length; e++)
		off -= e->length;
	r = list_find(b, e->lkey);
	if (!r || r->pd != s->pd || (r->rights & need) != need)
		return NULL;
	if (e->addr + off < r->to || e->addr + off - r->to >= r->len)
		return NULL;
	return r->base + (e->addr + off - r->to);
}

static void scatter(struct bed *b, const struct mem_sgl *s, uint64_t off, size_t n, struct feed *f)
{
	uint8_t *src = fuzz_alloc(n);
	bool allowed = true;
	struct cut c;
	uw_status st;

	feed_fill(f, src, n);
	for (size_t i = 0; i < n; i++)
		allowed = allowed && octet(b, s, off + i, UW_ACCESS_LOCAL_WRITE);
	cut_make(&c, (struct uw_span){ src, n }, f);
	st = mem_scatter(&b->t, s, off, c.rope);
	CHECK(st == (allowed ? UW_OK : UW_E_LKEY));
	/* SGEs that overlap: the later one wins, so only the last octet is certain. */
	if (!st && n)
		CHECK(*octet(b, s, off + n - 1, UW_ACCESS_LOCAL_WRITE) == src[n - 1]);
	cut_free(&c);
	free(src);
}

static void gather(struct bed *b, const struct mem_sgl *s, uint64_t off, size_t n)
{
	uint8_t *dst = fuzz_alloc(n);
	bool allowed = true;
	uw_status st;

	for (size_t i = 0; i < n; i++)
		allowed = allowed && octet(b, s, off + i, 0);
	st = mem_gather(&b->t, s, off, dst, n);
	CHECK(st == (allowed ? UW_OK : UW_E_LKEY));
	for (size_t i = 0; !st && i < n; i++)
		CHECK(dst[i] == *octet(b, s, off + i, 0));
	free(dst);
}

static void list(struct bed *b, struct feed *f)
{
	struct uw_sge v[SGES];
	uint32_t n = 1 + feed_below(f, SGES);
	struct mem_sgl s = { .n = n, .pd = feed_below(f, PDS) };
	uint64_t off;
	size_t len;

	for (uint32_t i = 0; i < n; i++) {
		v[i] = some_sge(b, f);
		s.len += v[i].length;
	}
	s.v = fuzz_copy(v, n * sizeof(v[0]));
	off = s.len ? feed_length(f, (uint32_t)s.len) : 0;
	len = feed_length(f, (uint32_t)(s.len - off));
	if (feed_bool(f))
		gather(b, &s, off, len);
	else
		scatter(b, &s, off, len, f);
	free((void *)(uintptr_t)s.v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	static struct bed b;

	memset(&b, 0, sizeof(b));
	b.slots = fuzz_alloc(SLOTS * sizeof(*b.slots));
	mem_table_init(&b.t, b.slots, SLOTS);
	while (f.n) {
		unsigned i = feed_below(&f, REGIONS);

		switch (feed_below(&f, 4)) {
		case 0:
			if (b.v[i].in)
				drop(&b, i);
			else
				add(&b, i, &f);
			break;
		case 1:
			judge(&b, &f);
			break;
		default:
			list(&b, &f);
			break;
		}
	}
	for (unsigned i = 0; i < REGIONS; i++)
		if (b.v[i].in)
			drop(&b, i);
	free(b.slots);
	return 0;
}
