/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include "io/shm.h"
#include "ring.h"

/* A ring of large frames is short, so that it stays in the cache: about 2 MB at the most. */
uint32_t ring_slots(const struct ring_shape *s)
{
	return s->frame_max <= 9232 ? 256 : s->frame_max <= 18448 ? 128 : 64;
}

/* An odd number of cache lines: the heads of neighbouring slots fall into different sets. */
static uint32_t ring_stride(const struct ring_shape *s)
{
	uint32_t octets = (uint32_t)sizeof(struct ring_slot) + s->frame_max;
	uint32_t lines = (octets + RING_LINE - 1) / RING_LINE;

	return (lines | 1) * RING_LINE;
}

static size_t ring_octets(const struct ring_shape *s)
{
	return (size_t)ring_slots(s) * ring_stride(s);
}

static size_t region_size(const struct ring_shape *s)
{
	return (RING_PAGE + s->queues * ring_octets(s) + RING_PAGE - 1) & ~(size_t)(RING_PAGE - 1);
}

/* --- shared memory --- */

uw_status ring_region_make(struct ring_region *r, const struct ring_shape *s)
{
	*r = (struct ring_region){ .size = region_size(s) };
	r->base = shm_make("uwarp-frames", r->size, SHM_READ_ONLY, &r->fd);
	return r->base ? UW_OK : UW_E_NO_LINK;
}

void ring_region_free(struct ring_region *r)
{
	shm_unmap(r->base, r->size);
	if (r->fd >= 0)
		close(r->fd);
	*r = (struct ring_region){ .fd = -1 };
}

uw_status ring_view_map(struct ring_view *v, const struct ring_shape *s, int fd)
{
	bool fits;

	*v = (struct ring_view){ .size = region_size(s) };
	fits = fd >= 0 && shm_fits(fd, v->size);
	v->base = shm_map(fd, v->size, SHM_READ_ONLY);
	if (v->base)
		return UW_OK;
	return fits ? UW_E_NO_LINK : UW_E_INVAL;
}

uw_status ring_lent_map(struct ring_view *v, uint32_t size, int fd)
{
	*v = (struct ring_view){ .size = size };
	if (!size && fd < 0)
		return UW_OK;
	if (!size || size > RING_LENT_MAX) {
		if (fd >= 0)
			close(fd);
		*v = (struct ring_view){ 0 };
		return UW_E_INVAL;
	}
	v->base = shm_map(fd, size, SHM_READ_ONLY);
	v->size = v->base ? size : 0;
	return v->base ? UW_OK : UW_E_NO_LINK;
}

void ring_view_unmap(struct ring_view *v)
{
	shm_unmap(v->base, v->size);
	v->base = NULL;
}

/* --- the ends --- */

static size_t ring_at(const struct ring_shape *s, unsigned queue)
{
	return RING_PAGE + queue * ring_octets(s);
}

struct ring_writer ring_writer_of(const struct ring_shape *s, const struct ring_region *ours,
				  const struct ring_view *theirs, unsigned queue)
{
	const void *taken = theirs->base + (size_t)queue * RING_LINE;

	return (struct ring_writer){ .slots = ours->base + ring_at(s, queue),
				     .mask = ring_slots(s) - 1,
				     .stride = ring_stride(s),
				     .taken_by_peer = taken };
}

struct ring_reader ring_reader_of(const struct ring_shape *s, const struct ring_region *ours,
				  const struct ring_view *theirs, unsigned queue)
{
	void *taken = ours->base + (size_t)queue * RING_LINE;

	return (struct ring_reader){ .slots = theirs->base + ring_at(s, queue),
				     .mask = ring_slots(s) - 1,
				     .stride = ring_stride(s),
				     .frame_max = s->frame_max,
				     .taken = taken };
}

/* --- doorbells --- */

_Atomic uint32_t *bell_make(int *fd)
{
	return shm_make("uwarp-doorbell", RING_PAGE, SHM_WRITABLE, fd);
}

_Atomic uint32_t *bell_map(int fd)
{
	return shm_map(fd, RING_PAGE, SHM_WRITABLE);
}

void bell_unmap(_Atomic uint32_t *bell)
{
	shm_unmap(bell, RING_PAGE);
}
