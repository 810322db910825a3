/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rdma_cm kernel ABI (rdma/rdma_user_cm.h), version 4, as an iWARP device answers it, over the
 * engine's endpoints. All of it is ours: in a process that has the shim, connections of the
 * kernel's own devices are not managed.
 *
 *   ucma_cmds.c    the command table, the dispatcher, commands without a protocol side
 *   ucma_conn.c    bind, listen, resolve, connect, accept, reject, disconnect
 *   ucma_query.c   addresses, paths, QP attributes
 *   ucma_ids.c     ids and their life
 *   ucma_events.c  what the stack reports, the event queues, GET_EVENT
 *
 * Locks. `cm.lock` guards ids, files and queues. Callbacks of the stack take it while they hold
 * the stack lock, so no uw_ function is ever called with it held. Commands on one id exclude each
 * other by cm_id.cmd, which callbacks never take.
 */
#ifndef UWARP_UCMA_H
#define UWARP_UCMA_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rdma/rdma_user_cm.h>

#include "fdtab.h"
#include "uwarp/uwarp.h"

/* The values of librdmacm's enum rdma_cm_event_type; the kernel's uapi headers do not name them. */
enum cm_event_type {
	CM_EV_ADDR_RESOLVED = 0,
	CM_EV_ADDR_ERROR = 1,
	CM_EV_ROUTE_RESOLVED = 2,
	CM_EV_CONNECT_REQUEST = 4,
	CM_EV_CONNECT_ERROR = 6,
	CM_EV_UNREACHABLE = 7,
	CM_EV_REJECTED = 8,
	CM_EV_ESTABLISHED = 9,
	CM_EV_DISCONNECTED = 10,
};

enum { CM_QPT_RC = 2, CM_QPT_UD = 4 }; /* = IBV_QPT_* */

enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_ADDR_QUERY,
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_CONNECT, /* from CONNECT or CONNECT_REQUEST on, whatever becomes of it */
	CM_LISTEN,
};

struct cm_id;

struct cm_event {
	TAILQ_ENTRY(cm_event) link;
	struct cm_id *id;	  /* whose events_reported counts it */
	struct uw_ep *ep;	  /* CONNECT_REQUEST: ours to give away or to destroy */
	const struct uw_api *api; /* of ep */
	struct rdma_ucm_event_resp resp;
};
TAILQ_HEAD(cm_events, cm_event);

/* One open rdma_cm node (an event channel). */
struct cm_file {
	struct fd_obj obj;
	struct cm_events events;
	LIST_HEAD(, cm_id) ids;
	bool lit;      /* there is an octet in the socket: events is not empty */
	bool lighting; /* there will be one, if it is not */
	bool closed;   /* takes no more ids */
	/* cm_file_linger() */
	pid_t ender;	   /* the thread that was told last that a connection ended, or 0 */
	uint64_t ended_ms; /* when */
	unsigned waiting;  /* threads that wait for an event */
};

struct cm_id {
	LIST_ENTRY(cm_id) link; /* of file->ids */
	struct cm_file *file;
	uint32_t handle;
	uint64_t uid; /* 0: a connection request that nobody has accepted yet */
	uint16_t ps;
	uint8_t qp_type;
	enum cm_state state;
	unsigned refs;		  /* commands and helpers that use it */
	bool dying;		  /* no more of those */
	bool lost;		  /* its endpoint stayed with the parent of this process */
	bool passive;		  /* came with a request */
	bool unanswered;	  /* which is neither accepted nor rejected */
	bool connecting;	  /* CONNECT or ACCEPT has no outcome yet */
	bool stands;		  /* the connection, until either side ends it */
	bool shares_port;	  /* RDMA_OPTION_ID_REUSEADDR */
	bool only6;		  /* RDMA_OPTION_ID_AFONLY */
	uint8_t tos;		  /* RDMA_OPTION_ID_TOS */
	bool has_dev;		  /* bound to an address of its own */
	uint32_t events_reported; /* fetched by the program */
	uint32_t backlog;	  /* requests that may still be queued */
	struct uw_ep *ep;
	const struct uw_api *api;
	struct sockaddr_storage src, dst;
	pthread_mutex_t cmd;
};

struct cm {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a reference was dropped, a connection has an outcome */
	struct cm_id **ids;	/* by handle */
	uint32_t room, first_free;
	struct cm_events drops;			      /* endpoints to be refused and destroyed */
	bool dropping;				      /* a helper is at it */
	TAILQ_HEAD(cm_resolves, cm_resolve) resolves; /* each with a helper that waits */
};
extern struct cm cm;

/* ---- files (ucma_cmds.c) ---- */

int ucma_open(int flags);
/* The file behind a descriptor, with a reference to its obj; NULL: not a rdma_cm node. */
struct cm_file *cm_file_get(int fd);

void ucma_fork_prepare(void);
void ucma_fork_parent(void);
void ucma_fork_child(bool lost);

/* ---- ids ---- */

/* A new id on file; cm.lock held. NULL: no memory. */
struct cm_id *cm_id_new(struct cm_file *file, uint64_t uid, uint16_t ps, uint8_t qp_type);
/* Find and hold it. -ENOENT, -EINVAL: on another file. */
int cm_id_get(struct cm_file *file, uint32_t handle, struct cm_id **out);
void cm_id_put(struct cm_id *id);
/* Destroy it and what is queued for it; waits for its other users. As cm_id_get. */
int cm_id_destroy(struct cm_file *file, uint32_t handle, uint32_t *events_reported);
/* Give it an endpoint if it has none; this starts the link. */
int cm_id_endpoint(struct cm_id *id);
/* The endpoint's own address as a program that uses `family` expects it. */
void cm_id_local_addr(struct cm_id *id, sa_family_t family, struct sockaddr_storage *a);

/* ---- events ---- */

struct cm_event *cm_event_new(struct cm_id *id, enum cm_event_type type, int status);
/* Queue e on its id's file; cm.lock held. */
void cm_event_queue(struct cm_event *e);
/* Move id's queued events into `to` in their order; cm.lock held. */
void cm_events_take(struct cm_id *id, struct cm_events *to);
/* Make the descriptor readable or not, as the queue is; cm.lock held. */
void cm_file_light(struct cm_file *file);
/* Before file is closed: let the thread that fetches events come back for the next one. */
void cm_file_linger(struct cm_file *file);
/* Refuse and destroy the endpoints in `list`, and free it. No lock held. */
void cm_events_discard(struct cm_events *list);
uw_cm_event_fn cm_on_event;

/* ---- commands ---- */

struct cm_call {
	struct cm_file *file;
	int fd;		  /* that the command was written to */
	const void *in;	  /* the command, padded with zeros to its full size */
	uint32_t out;	  /* room for the response */
	struct cm_id *id; /* held, and its cmd lock too; NULL: the command names none */
};
typedef int cm_cmd_fn(const struct cm_call *c);

cm_cmd_fn cm_cmd_get_event, cm_cmd_query_route, cm_cmd_query, cm_cmd_init_qp_attr, cm_cmd_bind_ip,
	cm_cmd_bind, cm_cmd_listen, cm_cmd_resolve_ip, cm_cmd_resolve_addr, cm_cmd_resolve_route,
	cm_cmd_connect, cm_cmd_accept, cm_cmd_reject, cm_cmd_disconnect;

/* Answer with as much of resp as there is room for, at least `least` octets. -ENOSPC, -EFAULT. */
int cm_answer(const struct cm_call *c, uint64_t to, const void *resp, size_t len, size_t least);

/* Length of an IP socket address; 0: another family. */
socklen_t cm_addr_len(const void *addr);
bool cm_addr_is_any(const void *addr);
bool cm_addr_is_loopback(const void *addr); /* 127.0.0.1, ::1 */

#endif
