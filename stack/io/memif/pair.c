/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "pair.h"

_Static_assert((int)DPDK_QUEUES_MAX <= (int)RING_QUEUES_MAX, "each queue has a line of its own");

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
	return p;
}

uw_status pair_attach(struct pair *p, int fd)
{
	uw_status st = ring_view_map(&p->theirs, &p->shape, fd);

	for (unsigned i = 0; !st && i < p->shape.queues; i++)
		p->sender[i].ring = ring_writer_of(&p->shape, &p->ours, &p->theirs, i);
	return st;
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
	for (unsigned i = 0; i < DPDK_QUEUES_MAX; i++)
		pthread_mutex_destroy(&p->sender[i].lock);
	ring_region_free(&p->ours);
	ring_view_unmap(&p->theirs);
	free(p);
}
