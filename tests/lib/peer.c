/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

static uw_status recv_take(void *ulp, struct mem_sgl *sgl)
{
	struct peer *p = ulp;

	if (p->taken == p->posted)
		return UW_E_DDP_NO_BUFFER;
	*sgl = p->recv[p->taken++];
	return UW_OK;
}

static void recv_done(void *ulp, const struct rdmap_delivery *d)
{
	struct peer *p = ulp;

	assert_in_range(p->delivered, 0, PEER_RECVS - 1);
	p->got[p->delivered++] = *d;
}

static void read_done(void *ulp)
{
	((struct peer *)ulp)->reads_done++;
}

static void terminated(void *ulp, const struct rdmap_term *t)
{
	struct peer *p = ulp;

	p->terminated++;
	p->term = *t;
}

static uw_status persist(void *ulp, void *va, uint64_t len)
{
	const struct peer *p = ulp;

	return p->mem.t.persist(va, len) ? UW_OK : UW_E_RDMAP_STREAM_CATASTROPHIC;
}

void peer_init(struct peer *p, uint16_t ird, uint16_t ord)
{
	static const struct rdmap_ulp ulp = { recv_take, recv_done, read_done, terminated,
					      persist };
	const struct rdmap_queues q = { .irq = ird ? p->irq : NULL,
					.ird = ird,
					.orq = ord ? p->orq : NULL,
					.ord = ord,
					.first_sink = PEER_SINK };

	assert_in_range(ird, 0, PEER_READS);
	assert_in_range(ord, 0, PEER_READS);
	memset(p, 0, sizeof(*p));
	arena_init(&p->mem);
	rdmap_stream_init(&p->s, &q, &p->stats);
	p->s.ulp = &ulp;
	p->s.ulp_arg = p;
	p->s.mem = &p->mem.t;
	p->s.pd = ARENA_PD;
	p->s.remote_rights = UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ;
}

void peer_post(struct peer *p, const struct mem_sgl *sgl)
{
	assert_in_range(p->posted, 0, PEER_RECVS - 1);
	p->recv[p->posted++] = *sgl;
}

uw_status peer_rx(struct peer *p, const struct ulpdu *u)
{
	const struct uw_span one = { u->p, u->n };

	return rdmap_rx(&p->s, uw_rope_of(&one));
}

struct ulpdu peer_segment(struct peer *p, size_t max)
{
	struct ulpdu u = { .n = 0 };

	assert_in_range(max, DDP_HDR_MAX + 1, sizeof(u.p));
	assert_false(rdmap_tx_idle(&p->s));
	assert_status(rdmap_tx_segment(&p->s, u.p, max, &u.n), UW_OK);
	assert_in_range(u.n, DDP_TAGGED_SIZE, max);
	return u;
}

uw_status peer_carry(struct peer *from, struct peer *to, size_t max)
{
	while (!rdmap_tx_idle(&from->s)) {
		struct ulpdu u = peer_segment(from, max);
		uw_status st = peer_rx(to, &u);

		if (st)
			return st;
	}
	return UW_OK;
}

struct ulpdu peer_terminate(struct peer *p, uw_status why)
{
	struct ulpdu u;

	assert_true(rdmap_terminate(&p->s, why));
	u = peer_segment(p, 128);
	assert_true(rdmap_tx_idle(&p->s));
	return u;
}
