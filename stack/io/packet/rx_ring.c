/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/rx_ring.h"

#include <linux/if_packet.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define SLOT  2048u /* a frame of MTU 1500 with the kernel's header */
#define BLOCK 65536u

static size_t size_of(const struct rx_ring *r)
{
	return (size_t)r->n * SLOT;
}

static bool set(int fd, int what, int value)
{
	return !setsockopt(fd, SOL_PACKET, what, &value, sizeof(value));
}

bool rx_ring_open(struct rx_ring *r, int fd, unsigned n)
{
	struct tpacket_req q = { .tp_block_size = BLOCK,
				 .tp_block_nr = n / (BLOCK / SLOT),
				 .tp_frame_size = SLOT,
				 .tp_frame_nr = n };
	void *p;

	*r = (struct rx_ring){ .n = n };
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
	return (struct tpacket2_hdr *)(void *)(r->slots + (size_t)((r->head + i) % r->n) * SLOT);
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
	r->head += n;
}
