/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/lane.h"

#include "io/shm.h"

enum { LANE_SKIP = 0xffffff, AT_HEAD = 0, AT_TAIL = LANE_LINE, MASK = LANE_OCTETS - 1 };

struct record {
	uint32_t len; /* octets of the frame, or LANE_SKIP */
	uint16_t gso_size;
	uint16_t sum;
	uint32_t unused[2];
};
_Static_assert(sizeof(struct record) == LANE_HEAD, "as lane.h says");

static uint32_t octets_of(uint32_t len)
{
	return (LANE_HEAD + len + LANE_LINE - 1) & ~(uint32_t)(LANE_LINE - 1);
}

/* ---- life ---------------------------------------------------------------------------------- */

static _Atomic uint32_t *word(const uint8_t *region, unsigned at)
{
	return (_Atomic uint32_t *)(uintptr_t)(region + at);
}

uw_status lane_make(struct lane *l, int *fd)
{
	*l = (struct lane){ .ours = shm_make("uwarp-lane", LANE_REGION, true, fd) };
	return l->ours ? UW_OK : UW_E_NO_LINK;
}

uw_status lane_attach(struct lane *l, int fd)
{
	l->theirs = shm_map(fd, LANE_REGION, false);
	if (!l->theirs)
		return UW_E_INVAL;
	l->out = (struct lane_writer){ .records = l->ours + LANE_PAGE,
				       .head = word(l->ours, AT_HEAD),
				       .tail = word(l->theirs, AT_TAIL) };
	l->in = (struct lane_reader){ .records = l->theirs + LANE_PAGE,
				      .head = word(l->theirs, AT_HEAD),
				      .tail = word(l->ours, AT_TAIL) };
	return UW_OK;
}

void lane_free(struct lane *l)
{
	shm_unmap(l->ours, LANE_REGION);
	shm_unmap(l->theirs, LANE_REGION);
	*l = (struct lane){ 0 };
}

/* ---- writing ------------------------------------------------------------------------------- */

static enum lane_result has_room(struct lane_writer *w, uint32_t need)
{
	if (LANE_OCTETS - (w->next - w->seen) >= need)
		return LANE_OK;
	w->seen = atomic_load_explicit(w->tail, memory_order_acquire);
	if (w->next - w->seen > LANE_OCTETS)
		return LANE_FAULT;
	return LANE_OCTETS - (w->next - w->seen) >= need ? LANE_OK : LANE_NONE;
}

static struct record *record_at(const struct lane_writer *w)
{
	return (struct record *)(void *)(w->records + (w->next & MASK));
}

enum lane_result lane_room(struct lane_writer *w, uint32_t len, uint8_t **at)
{
	uint32_t need = octets_of(len), to_end = LANE_OCTETS - (w->next & MASK);
	enum lane_result r = has_room(w, need <= to_end ? need : to_end + need);

	if (r != LANE_OK)
		return r;
	if (need > to_end) {
		record_at(w)->len = LANE_SKIP;
		w->next += to_end;
	}
	*at = (uint8_t *)record_at(w) + LANE_HEAD;
	return LANE_OK;
}

void lane_put(struct lane_writer *w, uint32_t len, const struct lane_meta *meta)
{
	*record_at(w) = (struct record){ len, meta->gso_size, meta->sum, { 0 } };
	w->next += octets_of(len);
	atomic_store_explicit(w->head, w->next, memory_order_release);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* One record, as it is now. */
static struct record read_record(const struct lane_reader *r)
{
	const volatile struct record *from = (const volatile void *)(r->records + (r->next & MASK));

	return (struct record){ from->len, from->gso_size, from->sum, { 0 } };
}

/* The record that comes next, which may be a skip, and its octets in r->here. */
static enum lane_result next_record(struct lane_reader *r, struct record *it)
{
	uint32_t to_end = LANE_OCTETS - (r->next & MASK), there;

	if (r->known == r->next)
		r->known = atomic_load_explicit(r->head, memory_order_acquire);
	there = r->known - r->next;
	if (!there)
		return LANE_NONE;
	if (there > LANE_OCTETS || there % LANE_LINE)
		return LANE_FAULT;
	*it = read_record(r);
	if (it->len > LANE_SKIP)
		return LANE_FAULT;
	r->here = it->len == LANE_SKIP ? to_end : octets_of(it->len);
	return r->here > there || r->here > to_end ? LANE_FAULT : LANE_OK;
}

enum lane_result lane_look(struct lane_reader *r, const uint8_t **at, uint32_t *len,
			   struct lane_meta *meta)
{
	struct record it;
	enum lane_result got = next_record(r, &it);

	/* A skip at the beginning of the circle would lead there again, for ever. */
	if (got == LANE_OK && it.len == LANE_SKIP) {
		if (!(r->next & MASK))
			return LANE_FAULT;
		r->next += r->here;
		got = next_record(r, &it);
	}
	if (got != LANE_OK)
		return got;
	if (it.len < LANE_FRAME_MIN || it.len > LANE_FRAME_MAX)
		return LANE_FAULT;
	*at = r->records + (r->next & MASK) + LANE_HEAD;
	*len = it.len;
	*meta = (struct lane_meta){ it.gso_size, it.sum };
	return LANE_OK;
}

void lane_step(struct lane_reader *r)
{
	r->next += r->here;
}

void lane_tell(const struct lane_reader *r)
{
	atomic_store_explicit(r->tail, r->next, memory_order_release);
}
