/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A walk over the connections of a stack that lets the stack lock go between its pieces. The walk
 * sees each connection that exists from its beginning to its end once; of those that begin or end
 * meanwhile it may see some. Every function is called under the stack lock.
 */
#ifndef UWARP_CONN_WALK_H
#define UWARP_CONN_WALK_H

#include "conn/conn.h"

struct conn_walk {
	struct stack *stack;
	struct conn *at;	/* seen next; NULL: no more */
	struct conn_walk *next; /* stack.walks */
};

/* conn_walk_end() must follow. */
void conn_walk_begin(struct conn_walk *w, struct stack *s);
/* The next connection; NULL: no more. */
struct conn *conn_walk_next(struct conn_walk *w);
void conn_walk_end(struct conn_walk *w);

/* A connection as others see it. Numbers are those of this moment. */
struct conn_report {
	const char *state; /* "streaming", ... */
	bool initiator, cm_less;
	struct uw_ip local, remote;
	uint16_t lport, rport; /* network order */
	uint32_t qpn;	       /* 0: no QP */
	uint32_t sends, recvs; /* requests posted and not done; receives posted and not taken */
	uint32_t ird, ord;
	bool rnr;	   /* a Send waits for a receive */
	uint64_t since_us; /* when the connection was made, on the stack's clock */
	struct llp_info llp;
};

void conn_report(const struct conn *c, struct conn_report *out);

#endif
