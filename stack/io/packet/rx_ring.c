/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/rx_ring.h"

#include <linux/if_packet.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* A message of 4 KiB whose segments came merged, with a tag and the kernel's header. Of a longer
 * frame as much is copied in vain. An odd number of cache lines: with a power of two the begins of
 * all slots would share a few sets of the cache. */
#define LINE	  64u
#define SLOT	  (73 * LINE)
#define BLOCK	  65536u
#define PER_BLOCK (BLOCK / SLOT)
#define SHORT	  (4 * LINE) /* what a short message takes of its slot */

_Static_assert(PER_BLOCK == RX_RING_PER_BLOCK, "the slots of a block");

static size_t size_of(const struct rx_ring *r)
{
	return (size_t)(r->n / PER_BLOCK) * BLOCK;
}

static bool set(int fd, int what, int value)
{
	return !setsockopt(fd, SOL_PACKET, what, &value, sizeof(value));
}

bool rx_ring_open(struct rx_ring *r, int fd, unsigned blocks)
{
	struct tpacket_req q = { .tp_block_size = BLOCK,
				 .tp_block_nr = blocks,
				 .tp_frame_size = SLOT,
				 .tp_frame_nr = blocks * PER_BLOCK };
	void *p;

	*r = (struct rx_ring){ .n = blocks * PER_BLOCK };
	if (!set(fd, PACKET_VERSION, TPACKET_V2) || !set(fd, PACKET_COPY_THRESH, 1) ||
	    setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &q, sizeof(q)))
		return false;
	p = mmap(NULL, size_of(r), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return false;
	r->slots = p;
	return true;
}

void rx_ring_close(struct rx_ring *r)
{
	if (r->slots)
		munmap(r->slots, size_of(r));
	r->slots = NULL;
}

static struct tpacket2_hdr *slot(const struct rx_ring *r, unsigned i)
{
	unsigned at = r->head + i < r->n ? r->head + i : r->head + i - r->n;
	size_t octet = (size_t)(at / PER_BLOCK) * BLOCK + (at % PER_BLOCK) * SLOT;

	return (struct tpacket2_hdr *)(void *)(r->slots + octet);
}

/* Acquire: the frame was written before its status (tpacket_rcv() of the kernel). */
static uint32_t status_of(const struct tpacket2_hdr *h)
{
	return __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
}

bool rx_ring_any(const struct rx_ring *r)
{
	return r->slots && status_of(slot(r, 0)) & TP_STATUS_USER;
}

/* Another CPU wrote it: its lines come together, not each when it is asked for. */
static void fetch_short(const struct tpacket2_hdr *h)
{
	for (unsigned at = LINE; at < SHORT; at += LINE)
		__builtin_prefetch((const uint8_t *)h + at);
}

bool rx_ring_look(const struct rx_ring *r, unsigned i, struct rx_slot *out)
{
	const struct tpacket2_hdr *h;
	uint32_t status;

	if (!r->slots || i >= r->n)
		return false;
	h = slot(r, i);
	status = status_of(h);
	if (!(status & TP_STATUS_USER))
		return false;
	fetch_short(h);
	out->frame = (const uint8_t *)h + h->tp_mac;
	out->len = h->tp_len;
	out->queued = status & TP_STATUS_COPY;
	out->lost = !out->queued && h->tp_snaplen < h->tp_len;
	out->gap = status & TP_STATUS_LOSING;
	return true;
}

/* Release: what was read from the slot was read before the kernel writes to it again. */
void rx_ring_give_back(struct rx_ring *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		__atomic_store_n(&slot(r, i)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	r->head = r->head + n < r->n ? r->head + n : r->head + n - r->n;
}
