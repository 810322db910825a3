/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "ring.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

enum { SIZE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

/* A ring of large frames is short, so that it stays in the cache: about 2 MB at the most. */
uint32_t ring_slots(const struct ring_shape *s)
{
	return s->frame_max <= 9232 ? 256 : s->frame_max <= 18448 ? 128 : 64;
}

/* An odd number of cache lines: the heads of neighbouring slots fall into different sets. */
uint32_t ring_stride(const struct ring_shape *s)
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

static int make_file(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, SIZE_SEALS))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void *map_file(int fd, size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Can we touch size octets of it, whatever its maker does? Of huge pages none may be left when we
 * do: so it has to be of ordinary ones. */
static bool long_enough(int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat s;

	return seals >= 0 && seals & F_SEAL_SHRINK && fstatfs(fd, &fs) == 0 &&
	       fs.f_type == TMPFS_MAGIC && fstat(fd, &s) == 0 && s.st_size >= 0 &&
	       (size_t)s.st_size >= size;
}

uw_status ring_region_make(struct ring_region *r, const struct ring_shape *s)
{
	*r = (struct ring_region){ .size = region_size(s) };
	r->fd = make_file("uwarp-frames", r->size);
	if (r->fd < 0)
		return UW_E_NO_LINK;
	r->base = map_file(r->fd, r->size, PROT_READ | PROT_WRITE);
	if (!r->base) {
		ring_region_free(r);
		return UW_E_NO_LINK;
	}
	/* From here on nobody can map it for writing. Older kernels do not know this seal: then
	 * only the peer's good manners keep it from writing to what we do not read. */
	if (fcntl(r->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) && errno != EINVAL) {
		ring_region_free(r);
		return UW_E_NO_LINK;
	}
	return UW_OK;
}

void ring_region_free(struct ring_region *r)
{
	if (r->base)
		munmap(r->base, r->size);
	if (r->fd >= 0)
		close(r->fd);
	*r = (struct ring_region){ .fd = -1 };
}

uw_status ring_view_map(struct ring_view *v, const struct ring_shape *s, int fd)
{
	*v = (struct ring_view){ .size = region_size(s) };
	if (fd < 0)
		return UW_E_INVAL;
	uw_status st = long_enough(fd, v->size) ? UW_OK : UW_E_INVAL;
	if (!st) {
		v->base = map_file(fd, v->size, PROT_READ);
		st = v->base ? UW_OK : UW_E_NO_LINK;
	}
	close(fd);
	return st;
}

void ring_view_unmap(struct ring_view *v)
{
	if (v->base)
		munmap((void *)(uintptr_t)v->base, v->size);
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
	_Atomic uint32_t *bell = NULL;

	*fd = make_file("uwarp-doorbell", RING_PAGE);
	if (*fd < 0)
		return NULL;
	bell = map_file(*fd, RING_PAGE, PROT_READ | PROT_WRITE);
	if (!bell) {
		close(*fd);
		*fd = -1;
	}
	return bell;
}

_Atomic uint32_t *bell_map(int fd)
{
	_Atomic uint32_t *bell = NULL;

	if (fd < 0)
		return NULL;
	if (long_enough(fd, RING_PAGE))
		bell = map_file(fd, RING_PAGE, PROT_READ | PROT_WRITE);
	close(fd);
	return bell;
}

void bell_unmap(_Atomic uint32_t *bell)
{
	if (bell)
		munmap((void *)(uintptr_t)bell, RING_PAGE);
}
