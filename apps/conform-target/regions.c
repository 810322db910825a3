/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "target.h"

#define REGION_SIZE 4096u
#define SLOT_SIZE   (3 * REGION_SIZE)

/* In the order in which they are advertised. */
static const uint32_t rights_of[WIRE_REGIONS] = {
	RIGHT_READ | RIGHT_WRITE,
	RIGHT_READ,
	RIGHT_WRITE,
	0,
	RIGHT_READ | RIGHT_WRITE | RIGHT_OTHER_PD,
	RIGHT_READ | RIGHT_WRITE | RIGHT_ATOMIC,
};

uint32_t sum_of(const uint8_t *p, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 7 + (i >> 8));
}

void memory_fill(struct memory *m)
{
	for (size_t i = 0; i < WIRE_REGIONS * SLOT_SIZE; i++)
		m->arena[i] = pattern(i);
	for (size_t i = 0; i < WORK_SIZE; i++)
		m->work[i] = pattern(i);
}

static int access_of(uint32_t rights)
{
	return IBV_ACCESS_LOCAL_WRITE | (rights & RIGHT_READ ? IBV_ACCESS_REMOTE_READ : 0) |
	       (rights & RIGHT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
	       (rights & RIGHT_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static int open_region(struct memory *m, unsigned i)
{
	struct region *r = &m->region[i];

	r->rights = rights_of[i];
	if (!m->atomics)
		r->rights &= ~(uint32_t)RIGHT_ATOMIC;
	r->base = m->arena + i * SLOT_SIZE + REGION_SIZE;
	r->mr = ibv_reg_mr(r->rights & RIGHT_OTHER_PD ? m->other_pd : m->pd, r->base, REGION_SIZE,
			   access_of(r->rights));
	return r->mr ? 0 : -1;
}

int memory_open(struct memory *m, struct ibv_context *verbs)
{
	struct ibv_device_attr attr;
	int bad = ibv_query_device(verbs, &attr);

	m->verbs = verbs;
	m->atomics = !bad && attr.atomic_cap != IBV_ATOMIC_NONE;
	m->pd = ibv_alloc_pd(verbs);
	m->other_pd = ibv_alloc_pd(verbs);
	if (bad || !m->pd || !m->other_pd ||
	    posix_memalign((void **)&m->arena, REGION_SIZE, WIRE_REGIONS * SLOT_SIZE) ||
	    posix_memalign((void **)&m->work, REGION_SIZE, WORK_SIZE)) {
		perror("uwarp-conform-target: memory");
		return -1;
	}
	for (unsigned i = 0; !bad && i < WIRE_REGIONS; i++)
		bad = open_region(m, i);
	/* iWARP: what a read brings is written by the peer, so that right is needed too. */
	m->work_mr = ibv_reg_mr(m->pd, m->work, WORK_SIZE,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (bad || !m->work_mr) {
		perror("uwarp-conform-target: ibv_reg_mr");
		return -1;
	}
	memory_fill(m);
	return 0;
}

void memory_close(struct memory *m)
{
	for (unsigned i = 0; i < WIRE_REGIONS; i++) {
		if (m->region[i].mr)
			ibv_dereg_mr(m->region[i].mr);
	}
	if (m->work_mr)
		ibv_dereg_mr(m->work_mr);
	if (m->pd)
		ibv_dealloc_pd(m->pd);
	if (m->other_pd)
		ibv_dealloc_pd(m->other_pd);
	free(m->arena);
	free(m->work);
}

void memory_advertise(const struct memory *m, struct advert_wire *a)
{
	a->n_regions = WIRE_REGIONS;
	a->flags = m->atomics ? ADVERT_ATOMICS : 0;
	for (unsigned i = 0; i < WIRE_REGIONS; i++) {
		const struct region *r = &m->region[i];
		struct region_wire *w = &a->region[i];

		put32(w->stag, r->mr->rkey);
		put64(w->to, (uintptr_t)r->base);
		put32(w->length, REGION_SIZE);
		put32(w->rights, r->rights);
		put32(w->sum, sum_of(r->base - REGION_SIZE, SLOT_SIZE));
	}
}
