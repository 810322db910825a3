/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/frames.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_FRAMES 16384u /* more than two send windows in segments of MTU 1500 */
#define LARGE_FRAMES 1024u
#define TX_FRAMES    256u /* four send windows; who finds none sends small frames */

static struct packet_frame *frame_of(const struct io_frame *f)
{
	return (struct packet_frame *)((uintptr_t)f - offsetof(struct packet_frame, f));
}

static bool class_open(struct frame_class *c, uint32_t octets, unsigned max)
{
	int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	c->room = FRAMES_HEADROOM + octets;
	c->stride = (sizeof(struct packet_frame) + c->room + 63) & ~(size_t)63;
	c->max = max;
	c->made = 0;
	c->spare = NULL;
	c->memory = mmap(NULL, c->stride * max, PROT_READ | PROT_WRITE, kind, -1, 0);
	if (c->memory == MAP_FAILED)
		c->memory = NULL;
	return c->memory;
}

static void class_close(struct frame_class *c)
{
	if (c->memory)
		munmap(c->memory, c->stride * c->max);
	c->memory = NULL;
}

bool frames_open(struct frames *fs, uint32_t small)
{
	bool ok = class_open(&fs->small, small, SMALL_FRAMES);

	ok &= class_open(&fs->large, FRAMES_LARGE, LARGE_FRAMES);
	return class_open(&fs->tx, FRAMES_LARGE, TX_FRAMES) && ok;
}

void frames_close(struct frames *fs)
{
	class_close(&fs->small);
	class_close(&fs->large);
	class_close(&fs->tx);
}

static struct packet_frame *untouched(struct frame_class *c)
{
	if (c->made == c->max)
		return NULL;
	return (struct packet_frame *)(void *)(c->memory + c->stride * c->made++);
}

struct io_frame *frames_take(struct frame_class *c, struct io_link *l)
{
	struct packet_frame *f = c->spare;

	if (f)
		c->spare = f->next;
	else
		f = untouched(c);
	if (!f) {
		l->stats.no_frame++;
		return NULL;
	}
	f->class = c;
	f->refs = 1;
	f->f.next = NULL;
	f->f.link = l;
	f->f.buf = f->octets;
	f->f.room = c->room;
	f->f.marks = 0;
	f->f.data = f->octets + FRAMES_HEADROOM;
	f->f.len = 0;
	f->f.cut = 0;
	return &f->f;
}

struct io_frame *frames_take_long(struct frames *fs, struct io_link *l)
{
	struct frame_class *tx = &fs->tx;

	return tx->spare || tx->made < tx->max ? frames_take(tx, l) : NULL;
}

void frames_free(struct io_frame *iof)
{
	struct packet_frame *f = frame_of(iof);

	if (--f->refs)
		return;
	f->next = f->class->spare;
	f->class->spare = f;
}

void frames_ref(struct io_frame *f)
{
	frame_of(f)->refs++;
}

unsigned frames_refs(const struct io_frame *f)
{
	return frame_of(f)->refs;
}
