/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "pair.h"

_Static_assert((int)DPDK_QUEUES_MAX <= (int)RING_QUEUES_MAX, "each queue has a line of its own");

/* A process of several stacks lends nothing: each has memory of its own. */
static bool lend_room(struct pair *p)
{
	p->sender[0].lent = calloc(ring_slots(&p->shape), sizeof(*p->sender[0].lent));
	return p->sender[0].lent;
}

struct pair *pair_new(unsigned mtu, unsigned queues, unsigned senders)
{
	struct pair *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->shape = (struct ring_shape){ .frame_max = mtu + FRAME_ETHER, .queues = queues };
	if (ring_region_make(&p->ours, &p->shape)) {
		int err = errno;

		free(p);
		errno = err;
		return NULL;
	}
	for (unsigned i = 0; i < DPDK_QUEUES_MAX; i++) {
		pthread_mutex_init(&p->sender[i].lock, NULL);
		p->sender[i].shared = senders > queues;
	}
	if (senders == 1 && !lend_room(p)) {
		pair_free(p);
		return NULL;
	}
	return p;
}

uw_status pair_attach(struct pair *p, int fd)
{
	uw_status st = ring_view_map(&p->theirs, &p->shape, fd);

	for (unsigned i = 0; !st && i < p->shape.queues; i++)
		p->sender[i].ring = ring_writer_of(&p->shape, &p->ours, &p->theirs, i);
	return st;
}

uw_status pair_borrow(struct pair *p, uint32_t size, int fd)
{
	return ring_lent_map(&p->lent, size, fd);
}

void pair_sent(struct pair *p)
{
	close(p->ours.fd);
	p->ours.fd = -1;
}

void pair_free(struct pair *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < DPDK_QUEUES_MAX; i++) {
		pthread_mutex_destroy(&p->sender[i].lock);
		free(p->sender[i].lent);
	}
	ring_region_free(&p->ours);
	ring_view_unmap(&p->theirs);
	ring_view_unmap(&p->lent);
	free(p);
}
