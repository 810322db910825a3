/* SPDX-License-Identifier: BSD-3-Clause */
/* One of two ends that exchange every kind of operation and check every octet of it. */
#ifndef UWARP_TESTS_IMPAIR_TRAFFIC_H
#define UWARP_TESTS_IMPAIR_TRAFFIC_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "plan.h"

#define WINDOW	8u /* operations of an end that are not confirmed by the other */
#define SEND_WR 128u
#define SLOT	(SIZE_MAX_OCTETS + GUARD)

/* What an end tells the other in the private data of the connection. */
struct words {
	uint64_t base; /* address of its struct shared */
	uint32_t rkey, mw_rkey;
};

/* The memory of an end that the other may read and write. */
struct shared {
	_Alignas(64) uint8_t written[WINDOW][SLOT]; /* target of Writes, a slot each */
	uint8_t readable[SLOT];			    /* never changes */
	_Alignas(64) uint64_t added, swapped;	    /* of atomics */
	/* The other writes: 1 + how many of our operations it has checked; 1 + how many it starts
	 * in all, once it knows. 0: it is not there yet. */
	_Alignas(64) uint64_t checked, total;
	uint64_t bye;	      /* the server's last word: it waits for the end of the connection */
	uint8_t window[SLOT]; /* under the memory window */
};

struct traffic {
	/* what the command line says */
	uint64_t seed, octets_wanted;
	double seconds;
	unsigned end; /* 0: the client */
	/* objects */
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener, *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr_shared, *mr_own;
	struct ibv_mw *mw;
	struct words other;
	struct shared *shared;
	/* memory of our own: what is sent or read into, and what is received into */
	struct own {
		_Alignas(64) uint8_t slot[WINDOW][SLOT], received[WINDOW][SLOT];
		uint64_t old[WINDOW]; /* that atomics bring */
		uint64_t confirm[SEND_WR];
	} * own;
	/* as the one who starts */
	uint64_t started, done, total; /* operations; total: UINT64_MAX until known */
	uint64_t last_inv;	       /* the last SEND_WITH_INV, + 1 */
	uint64_t added, swapped;       /* what the other's words are */
	unsigned n_inv;
	bool finished[WINDOW]; /* its completion came */
	/* as the target */
	uint64_t expected, confirmed, guarded;
	unsigned n_bound;
	/* completions that must come, in order */
	uint64_t ledger[SEND_WR];
	uint64_t posted, completed;
	uint64_t recv_posted, recv_completed;
	/* what was done */
	uint64_t octets, operations;
	bool *covered;
	double start, progress, told;
	unsigned confirms; /* slot of own->confirm */
	bool told_total;
};

/* What a completion is of: the upper octet of its wr_id. */
#define OF_OPERATION (0ull << 56)
#define OF_TELL	     (1ull << 56)
#define OF_CONFIRM   (2ull << 56)
#define OF_BIND	     (3ull << 56)
#define OF_RECEIVE   (4ull << 56)
#define OF_WHAT(id)  ((id) & (255ull << 56))
#define NUMBER(id)   ((id) & ((1ull << 56) - 1))

/* Print why and end the process. */
void fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
double seconds(void);

/* connect.c: to or from the other end; then the QP is ready and `other` known. */
void traffic_connect(struct traffic *t, const char *address, const char *port);
/* The client ends the connection, the server waits for it; every receive that is still posted must
 * come back, once, and the server's last word complete in any way. */
void traffic_disconnect(struct traffic *t);

/* traffic.c */
void traffic_post_recvs(struct traffic *t);

#endif
