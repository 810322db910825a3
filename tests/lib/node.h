/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair with its queues, its memory and its completion queues, and a wire to another one. */
#ifndef UWARP_TESTS_NODE_H
#define UWARP_TESTS_NODE_H

#include "arena.h"
#include "qp/qp.h"

#define NODE_WR	    16u
#define NODE_SGE    4u
#define NODE_INLINE 64u
#define NODE_WC	    64u
#define NODE_READS  4u
#define NODE_MEMORY 32768u
#define NODE_ROOM   1448u /* octets in a TCP segment */

struct node_opts {
	uint32_t sq_depth, rq_depth; /* 0: NODE_WR */
	bool sig_all;
	bool confirmed; /* see struct qp_stream */
	struct rq *srq;
};

struct node {
	struct qp qp;
	struct cq scq, rcq;
	struct arena mem;
	struct uw_stats stats;
	struct cqe swc[NODE_WC], rwc[NODE_WC];
	struct uw_sge taken[NODE_SGE];
	struct rdmap_irq_entry irq[NODE_READS];
	struct rdmap_orq_entry orq[NODE_READS];
	_Alignas(64) uint8_t sq_slots[NODE_WR * 128];
	_Alignas(64) uint8_t rq_slots[NODE_WR * 128];
	uint8_t m[NODE_MEMORY]; /* registered for everything under: */
	uint32_t stag;
	uint8_t scratch[MPA_FPDU_MAX]; /* for markers */
	bool confirmed;
	enum uw_event event[8];
	unsigned events, notified;
};

/* QP number num; opts NULL: sq and rq of NODE_WR, signalled as asked. */
void node_init(struct node *n, uint32_t num, const struct node_opts *opts);
/* A receive queue over slots of NODE_WR * 128 octets, with NODE_SGE. */
void node_rq(struct rq *rq, uint8_t *slots, uint32_t depth);

/* CRC on, no markers, no RTR, IRD and ORD NODE_READS. */
struct mpa_agreed node_agreed(void);
void node_start(struct node *n, bool initiator, const struct mpa_agreed *a);
/* a is the initiator. */
void nodes_start(struct node *a, struct node *b, const struct mpa_agreed *agreed);

/* Everything that `from` has to send now, in segments of at most `room`; stops when `to` fails. */
uw_status node_carry(struct node *from, struct node *to, size_t room);
/* Both ways until nothing more comes. */
void nodes_run(struct node *a, struct node *b);

/* n octets of the node's memory at `at`. */
static inline struct uw_sge node_sge(struct node *n, size_t at, size_t len)
{
	return sge_of(n->m + at, len, n->stag);
}

/* A request over its memory; add what else it needs. One SGE, valid until the 16th call after. */
struct uw_send_wr node_wr(struct node *n, unsigned opcode, size_t at, size_t len);
/* The same to memory of `to` at `to_at`. */
struct uw_send_wr node_wr_to(struct node *n, unsigned opcode, size_t at, size_t len,
			     const struct node *to, size_t to_at);
void node_post(struct node *n, uint64_t wr_id, struct uw_send_wr wr);
void node_post_recv(struct node *n, uint64_t wr_id, size_t at, size_t len);

/* The next completion: there is one, and it is of this request with this status. */
struct uw_wc node_wc(struct cq *cq, uint64_t wr_id, uint32_t status);
/* For cq.notify: counts in `notified` of the node. */
void node_notify(void *node);
/* No completion is there. */
#define assert_no_wc(cq) assert_int_equal(cq_count(cq), 0)

#endif
