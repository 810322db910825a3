/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/conduit.h"

#include "io/shm.h"

enum { CONDUIT_SKIP = 0xffffff, AT_HEAD = 0, AT_TAIL = CONDUIT_LINE, MASK = CONDUIT_OCTETS - 1 };

struct record {
	uint32_t len; /* octets of the frame, or CONDUIT_SKIP */
	uint16_t gso_size;
	uint16_t sum;
	uint32_t unused[2];
};
_Static_assert(sizeof(struct record) == CONDUIT_HEAD, "as conduit.h says");

static uint32_t octets_of(uint32_t len)
{
	return (CONDUIT_HEAD + len + CONDUIT_LINE - 1) & ~(uint32_t)(CONDUIT_LINE - 1);
}

/* ---- life ---------------------------------------------------------------------------------- */

static _Atomic uint32_t *word(const uint8_t *region, unsigned at)
{
	return (_Atomic uint32_t *)(uintptr_t)(region + at);
}

uw_status conduit_make(struct conduit *l, int *fd)
{
	*l = (struct conduit){ .ours = shm_make("uwarp-conduit", CONDUIT_REGION, SHM_READ_ONLY,
						fd) };
	return l->ours ? UW_OK : UW_E_NO_LINK;
}

uw_status conduit_attach(struct conduit *l, int fd)
{
	l->theirs = shm_map(fd, CONDUIT_REGION, SHM_READ_ONLY);
	if (!l->theirs)
		return UW_E_INVAL;
	l->out = (struct conduit_writer){ .records = l->ours + CONDUIT_PAGE,
					  .head = word(l->ours, AT_HEAD),
					  .tail = word(l->theirs, AT_TAIL) };
	l->in = (struct conduit_reader){ .records = l->theirs + CONDUIT_PAGE,
					 .head = word(l->theirs, AT_HEAD),
					 .tail = word(l->ours, AT_TAIL) };
	return UW_OK;
}

void conduit_free(struct conduit *l)
{
	shm_unmap(l->ours, CONDUIT_REGION);
	shm_unmap(l->theirs, CONDUIT_REGION);
	*l = (struct conduit){ 0 };
}

/* ---- writing ------------------------------------------------------------------------------- */

static enum conduit_result has_room(struct conduit_writer *w, uint32_t need)
{
	if (CONDUIT_OCTETS - (w->next - w->seen) >= need)
		return CONDUIT_OK;
	w->seen = atomic_load_explicit(w->tail, memory_order_acquire);
	if (w->next - w->seen > CONDUIT_OCTETS)
		return CONDUIT_FAULT;
	return CONDUIT_OCTETS - (w->next - w->seen) >= need ? CONDUIT_OK : CONDUIT_NONE;
}

static struct record *record_at(const struct conduit_writer *w)
{
	return (struct record *)(void *)(w->records + (w->next & MASK));
}

enum conduit_result conduit_room(struct conduit_writer *w, uint32_t len, uint8_t **at)
{
	uint32_t need = octets_of(len), to_end = CONDUIT_OCTETS - (w->next & MASK);
	enum conduit_result r = has_room(w, need <= to_end ? need : to_end + need);

	if (r != CONDUIT_OK)
		return r;
	if (need > to_end) {
		record_at(w)->len = CONDUIT_SKIP;
		w->next += to_end;
	}
	*at = (uint8_t *)record_at(w) + CONDUIT_HEAD;
	return CONDUIT_OK;
}

void conduit_put(struct conduit_writer *w, uint32_t len, const struct conduit_meta *meta)
{
	*record_at(w) = (struct record){ len, meta->gso_size, meta->sum, { 0 } };
	w->next += octets_of(len);
	atomic_store_explicit(w->head, w->next, memory_order_release);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* One record, as it is now. */
static struct record read_record(const struct conduit_reader *r)
{
	const volatile struct record *from = (const volatile void *)(r->records + (r->next & MASK));

	return (struct record){ from->len, from->gso_size, from->sum, { 0 } };
}

/* The record that comes next, which may be a skip, and its octets in r->here. */
static enum conduit_result next_record(struct conduit_reader *r, struct record *it)
{
	uint32_t to_end = CONDUIT_OCTETS - (r->next & MASK), there;

	if (r->known == r->next)
		r->known = atomic_load_explicit(r->head, memory_order_acquire);
	there = r->known - r->next;
	if (!there)
		return CONDUIT_NONE;
	if (there > CONDUIT_OCTETS || there % CONDUIT_LINE)
		return CONDUIT_FAULT;
	*it = read_record(r);
	if (it->len > CONDUIT_SKIP)
		return CONDUIT_FAULT;
	r->here = it->len == CONDUIT_SKIP ? to_end : octets_of(it->len);
	return r->here > there || r->here > to_end ? CONDUIT_FAULT : CONDUIT_OK;
}

enum conduit_result conduit_look(struct conduit_reader *r, const uint8_t **at, uint32_t *len,
				 struct conduit_meta *meta)
{
	struct record it;
	enum conduit_result got = next_record(r, &it);

	/* A skip at the beginning of the circle would lead there again, for ever. */
	if (got == CONDUIT_OK && it.len == CONDUIT_SKIP) {
		if (!(r->next & MASK))
			return CONDUIT_FAULT;
		r->next += r->here;
		got = next_record(r, &it);
	}
	if (got != CONDUIT_OK)
		return got;
	if (it.len < CONDUIT_FRAME_MIN || it.len > CONDUIT_FRAME_MAX)
		return CONDUIT_FAULT;
	*at = r->records + (r->next & MASK) + CONDUIT_HEAD;
	*len = it.len;
	*meta = (struct conduit_meta){ it.gso_size, it.sum };
	return CONDUIT_OK;
}

void conduit_step(struct conduit_reader *r)
{
	r->next += r->here;
}

void conduit_tell(const struct conduit_reader *r)
{
	atomic_store_explicit(r->tail, r->next, memory_order_release);
}
