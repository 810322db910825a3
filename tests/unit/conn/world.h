/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks of one process over the transport that a test plays, on a clock that it sets; and QPs. */
#ifndef UWARP_TESTS_CONN_WORLD_H
#define UWARP_TESTS_CONN_WORLD_H

#include "conn/conn.h"
#include "conn/endpoint.h"
#include "fake_llp.h"

#define WORLD_STACKS 3u
#define WORLD_QUEUE  64u

struct world_stack {
	_Alignas(64) struct stack s;
	struct io_link link[STACK_LINKS];
	uint64_t random;
	struct world *w;
};

struct steered {
	bool ip6;
	uint16_t port;
	int to;
};

struct world {
	struct conn_domain d;
	struct uw_config cfg;
	struct world_stack stack[WORLD_STACKS];
	unsigned n;
	uint64_t now_us;
	struct mem_table mem;
	struct mem_region *regions[16];
	struct steered steered[16]; /* the calls of conn_hooks.steer */
	unsigned n_steered;
	struct conn_qp *qp[16]; /* what conn_hooks.find_qp finds, by number */
};

/* A QP as the verbs room makes it. */
struct world_qp {
	struct conn_qp c;
	struct cq scq, rcq;
	struct cqe swc[4 * WORLD_QUEUE], rwc[4 * WORLD_QUEUE];
	_Alignas(64) uint8_t sq_slots[WORLD_QUEUE * 128];
	_Alignas(64) uint8_t rq_slots[WORLD_QUEUE * 64];
	struct uw_sge taken[1];
	unsigned events[32]; /* by enum uw_event */
};

struct world *world_open(unsigned n_stacks);
/* Every connection and endpoint ends. */
void world_close(struct world *w);
static inline struct stack *world_stack(struct world *w, unsigned i)
{
	return &w->stack[i].s;
}

/* srq NULL: a receive queue of its own. */
struct world_qp *world_qp(struct world *w, unsigned num, struct rnr_srq *srq);
void world_qp_free(struct world_qp *q);
/* A shared receive queue over slots of WORLD_QUEUE * 64 octets. */
void world_srq(struct rnr_srq *srq, uint8_t *slots);
void world_post_recv(struct rq *rq, uint64_t wr_id);
/* A Write of n octets from inline data; it reaches no memory here. */
void world_post_write(struct world_qp *q, uint64_t wr_id, unsigned n);

/* A connection of that stack whose QP's stream is up. */
struct conn *world_streaming(struct world *w, unsigned stack, struct world_qp *q);

#endif
