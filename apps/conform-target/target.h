/* SPDX-License-Identifier: BSD-3-Clause */
/* uwarp-conform-target: the program that uwarp-conform talks to behind the RNIC under test. */
#ifndef CONFORM_TARGET_H
#define CONFORM_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "wire.h"

#define SENDS_MAX     64u
#define RECVS_MAX     256u
#define RECV_SIZE_MAX 65536u
#define WORK_SIZE     (1024u * 1024u)

/* ---- regions.c: the memory that the tester may try to reach ------------------------------- */

struct region {
	struct ibv_mr *mr;
	uint8_t *base; /* the registered octets; a guard of the same size on both sides */
	uint32_t rights;
};

struct memory {
	struct ibv_context *verbs; /* of the first connection; one RNIC is tested at a time */
	struct ibv_pd *pd, *other_pd;
	bool atomics;
	uint8_t *arena;
	struct region region[WIRE_REGIONS];
	uint8_t *work; /* what commands send from and read into */
	struct ibv_mr *work_mr;
};

int memory_open(struct memory *m, struct ibv_context *verbs);
void memory_close(struct memory *m);
void memory_fill(struct memory *m);
void memory_advertise(const struct memory *m, struct advert_wire *a);
uint32_t sum_of(const uint8_t *p, size_t n);

/* ---- conn.c: one connection -------------------------------------------------------------- */

/* How a connection went, told in the next one's advertisement. */
struct outcome {
	uint8_t prior; /* enum prior */
	uint8_t status;
	uint8_t event;
	uint16_t flushed, done;
};

/* A command whose work requests are under way. */
struct job {
	uint8_t op, flags, status;
	uint16_t left, count;
	uint32_t length;
};

struct conn {
	struct rdma_cm_id *id;
	struct memory *mem;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *recv_mr, *send_mr;
	uint8_t *recv_buf, *send_buf; /* recvs and SENDS_MAX slots */
	uint32_t recv_size;
	uint16_t recvs, ird, ord;
	uint8_t flags; /* enum wish_flag */
	unsigned next_send;
	unsigned posted; /* receives that have not come back */
	bool initiator, hello_sent, ending;
	struct job job;
	struct outcome out;
};

int conn_open(struct conn *c, struct rdma_cm_id *id, struct memory *mem, const struct wish_wire *w);
int conn_accept(struct conn *c, const struct rdma_conn_param *asked, const struct outcome *prior);
int conn_connect(struct conn *c, const struct outcome *prior);
void conn_established(struct conn *c);
void conn_completions(struct conn *c); /* all that the CQ holds */
void conn_drain(struct conn *c);       /* it is over: take back what is posted */
void conn_event(struct conn *c, const struct ibv_async_event *ev);
void conn_close(struct conn *c);

int conn_send(struct conn *c, const void *data, size_t n);
int conn_post_recvs(struct conn *c, unsigned n);
void conn_fail(struct conn *c, const char *what);
void conn_advertise(const struct conn *c, const struct outcome *prior, struct advert_wire *a);

/* ---- command.c --------------------------------------------------------------------------- */

void command_run(struct conn *c, const struct command_wire *w);
void command_completion(struct conn *c, const struct ibv_wc *wc);

/* Which completion it is: wr_id's upper half. */
enum { WR_RECV = 1, WR_SEND, WR_COMMAND };
#define WR_ID(kind, n) ((uint64_t)(kind) << 32 | (uint32_t)(n))

#endif
