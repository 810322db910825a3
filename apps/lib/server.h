/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server of many connections. The thread that calls server_run() takes connections in; workers
 * take messages, each from its own CQ and with its own SRQ that its connections share. A worker
 * has `slots` pairs of buffers: a message comes into the one, the reply leaves from the other, and
 * the pair is posted again when the reply is gone. So the replies under way, each with one WRITE
 * before it, never outgrow the send queues, whatever clients do; who WRITEs more asks for room
 * (session_room()). A client that takes no replies keeps its pairs from the others:
 * when few are left, who has taken none for 2 s is disconnected.
 */
#ifndef APPS_SERVER_H
#define APPS_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "conn.h"

#define SESSION_HASH	 1024u
#define SESSIONS_TOUCHED 32u

#define SERVER_LATER UINT32_MAX

struct server;
struct worker;

/* One client's connection. */
struct session {
	struct conn conn;
	struct server *server;
	struct worker *worker;
	void *user;	   /* the application's */
	uint32_t sending;  /* replies whose completion has not come */
	uint32_t writing;  /* WRITEs that are not known to be complete; the worker's thread alone */
	uint32_t unsaid;   /* the last ones of them, with no completion behind them yet */
	uint64_t taken_at; /* when one last came, or when the first was sent: a worker's `now` */
	uint32_t waiting;  /* messages whose reply comes later */
	uint64_t left_at;  /* clock_ns() when it ended; 0: it lives */
	bool touched;	   /* it is among worker.touched */
	bool dropped;	   /* the worker has disconnected it */
	struct session *next;
};

struct message {
	struct session *session;
	const uint8_t *in;
	uint32_t length;
	bool has_imm; /* it came by WRITE with immediate: `in` holds nothing */
	uint32_t imm;
	uint8_t *out; /* room for a reply of config.message octets */
	uint32_t slot;
};

struct server_ops {
	/* hello: the client's in, which is of our service; ours out. Not 0: the connection is
	 * refused, and the client hears why. */
	int (*join)(struct session *s, struct hello *hello);
	/* Returns the octets of the reply, 0 for none; SERVER_LATER: m->in and m->out stay, until
	 * session_reply(). Worker's thread. */
	uint32_t (*handle)(struct session *s, struct message *m);
	void (*leave)(struct session *s); /* after the last handle() */
	/* Each NULL, or: */
	/* Connections of the worker's own, with its CQ: made here, in server_run()'s thread. */
	int (*start)(struct worker *w);
	void (*stop)(struct worker *w);
	/* A completion of such a connection. False: it is none. Under w->lock, as is look(). */
	bool (*take)(struct worker *w, const struct ibv_wc *wc);
	/* Called after each round; and again and again if config.spin. */
	void (*look)(struct worker *w);
};

struct server_config {
	struct service service;
	const char *host, *port; /* host NULL: any address of the first device */
	unsigned workers;
	bool events;
	bool spin;	  /* workers never sleep: look() is for what comes without a completion */
	uint32_t message; /* octets, either way */
	uint32_t slots;	  /* of each worker */
	uint32_t entries; /* of each worker's CQ, for connections of its own */
};

struct worker {
	struct server *server;
	unsigned index;
	pthread_t thread;
	struct comp comp;
	struct ibv_srq *srq;
	struct region ring;
	pthread_mutex_t lock; /* guards what follows */
	struct session *by_qp[SESSION_HASH];
	/* those whose replies wait for conn_flush(), until there is no more room */
	struct session *touched[SESSIONS_TOUCHED];
	unsigned n_touched;
	uint64_t served;
	uint64_t now; /* clock_ns() when the round began */
};

struct server {
	struct server_config config;
	const struct server_ops *ops;
	struct device device; /* open from server_open() on, for the application's regions */
	void *user;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct worker *worker;
	unsigned started, next_worker;
};

int server_open(struct server *s, const struct server_config *config, const struct server_ops *ops);
/* Serves until SIGTERM or SIGINT; then the workers have ended and the sessions left. */
int server_run(struct server *s);
void server_close(struct server *s);
/* Has a signal, or its own end, told it to stop? */
bool server_stopped(void);

/* A WRITE of the application's own on this connection, before its reply if there is one; in the
 * worker's thread, as all that follows. flags: IBV_SEND_INLINE or 0. Without room (unless it is the
 * one WRITE of a reply) it may be lost. */
int session_write(struct session *s, struct ibv_sge *sge, uint64_t to, uint32_t rkey,
		  unsigned flags);
/* How many requests the send queue still takes. */
uint32_t session_room(const struct session *s);

/* The reply to a message of which handle() said SERVER_LATER; from look(). */
void session_reply(struct session *s, uint32_t slot, uint32_t length);

#endif
