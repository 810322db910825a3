/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport that a test plays: it keeps what it is given, and the test calls what it would tell.
 */
#ifndef UWARP_TESTS_CONN_FAKE_LLP_H
#define UWARP_TESTS_CONN_FAKE_LLP_H

#include "io/llp.h"
#include "uwtest.h"

#define FAKE_CONNS     64u
#define FAKE_OCTETS    65536u
#define FAKE_LISTENERS 16u
#define FAKE_SEGMENT   512u

struct llp_conn {
	void *ctx;
	struct llp_addrs addrs;
	unsigned room;	    /* segments that it still takes */
	size_t room_octets; /* octets in one */
	uint8_t sent[FAKE_OCTETS];
	size_t n_sent;
	unsigned segments;
	bool closed, shut, aborted, paused;
	unsigned resumes;
	/* What a resume does beyond being counted. NULL: nothing. */
	void (*on_resume)(struct llp_conn *c);
};

struct llp_listener {
	struct io_link *l;
	struct llp_place at;
	void *ctx;
	bool on;
};

struct fake_llp {
	struct llp_conn *conn[FAKE_CONNS];
	unsigned n_conns;
	struct llp_listener listener[FAKE_LISTENERS];
	unsigned n_listeners;
	unsigned listen_fails_at; /* that call of listen(), counted from 1; 0: none */
	uw_status connect;	  /* what connect() returns */
	unsigned connects;
	unsigned begins;		     /* calls of tx_begin() */
	void (*on_flush)(void);		     /* when the links are flushed; NULL: nothing */
	bool no_way;			     /* has_way() says no to each address */
	uint16_t taken_port;		     /* port_free() says no to it; network order */
	struct llp_conn *order[FAKE_OCTETS]; /* whose segments they were, in their order */
	unsigned n_order;
};

extern const struct llp_ops fake_llp_ops;
extern struct fake_llp fake_llp;

/* As it was at first; what was made is freed. */
void fake_llp_reset(void);
/* A connection that somebody opened to us. */
struct llp_conn *fake_llp_conn(void *ctx);

#endif
