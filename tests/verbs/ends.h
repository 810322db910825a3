/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of connections in one process, on public verbs and librdmacm alone: what the tests of
 * this folder share. Every function asserts that it succeeds.
 */
#ifndef UWARP_TESTS_VERBS_ENDS_H
#define UWARP_TESTS_VERBS_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define ALL                                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)
#define ROOM (1u << 20)

/* What a test's QPs are made with. */
struct qp_wish {
	struct ibv_cq *cq; /* NULL: one of its own */
	struct ibv_srq *srq;
	uint32_t send_wr, recv_wr, sge, inl, cqe; /* 0: 16, 16, 2, 64, twice both queues */
	bool sig_all;
	uint8_t rnr_retry;
};

struct end {
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	bool own_cq;
	struct ibv_mr *mr; /* over m */
	uint8_t *m;
};

/* A listener with its event channel, a channel for those who connect, and one PD. */
struct place {
	struct rdma_event_channel *server, *client;
	struct rdma_cm_id *listener;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint16_t port; /* network order */
};

void place_open(struct place *p);
void place_close(struct place *p);
/* The place of a whole program: its set-up and tear-down. */
extern struct place here;
int open_here(void **state);
int close_here(void **state);

/* a connects to b. Without `memory` there is no m and no mr. */
void ends_connect(struct place *p, const struct qp_wish *w, bool memory, struct end *a,
		  struct end *b);
/* a disconnects, both hear of it, everything is destroyed. */
void ends_close(struct place *p, struct end *a, struct end *b);

/* The next event is of this kind; acknowledged. */
void expect_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type);

/* Requests over an end's own memory at `at`; signalled. */
struct ibv_sge sge_at(struct end *e, size_t at, uint32_t n);
int post_send(struct end *e, enum ibv_wr_opcode op, struct ibv_sge *v, int n, struct end *to,
	      size_t to_at);
int post_recv(struct end *e, struct ibv_sge *v, int n);
/* The next completion, within 10 s. */
struct ibv_wc next_wc(struct ibv_cq *cq);
void expect_wc(struct ibv_cq *cq, enum ibv_wc_status status);

/* Octets of memory that this process has in use; open descriptors. */
size_t resident(void);
unsigned descriptors(void);
double seconds(void);

#endif
