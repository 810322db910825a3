/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rdma_cm node, /dev/infiniband/rdma_cm: the kernel's ABI for librdmacm
 * (rdma/rdma_user_cm.h, version 4), as an iWARP device answers it, over the engine's endpoints.
 * In a process that has this library, rdma_cm manages no connections of the kernel's devices.
 *
 *   cmds.c       the command table, the dispatcher, options, the node itself
 *   conn.c       bind, listen, connect, accept, reject, disconnect
 *   resolve.c    address and route resolution
 *   mcast.c      multicast groups
 *   spare.c      the QP of an id that has none
 *   query.c      addresses, paths, QP attributes
 *   ids.c        ids: creation, look-up, destruction, fork
 *   events.c     the callback of the stack, and the event queues
 *   get_event.c  how the program fetches an event
 *
 * Locks. `cm.lock` guards ids, files and event queues. Callbacks of the stack take it while they
 * hold the stack's lock, so no function of the stack is called with cm.lock held. cm_id.cmd lets
 * one command at a time work on an id; callbacks never take it. The order is cmd, the stack's lock,
 * cm.lock, fdtab_lock().
 */
#ifndef UWARP_RDMA_CM_H
#define UWARP_RDMA_CM_H

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rdma/rdma_user_cm.h>

#include "libc/fdtab.h"
#include "uwarp/uwarp.h"

/* = librdmacm's enum rdma_cm_event_type, which the kernel's headers do not name. */
enum cm_event_type {
	CM_EV_ADDR_RESOLVED = 0,
	CM_EV_ADDR_ERROR = 1,
	CM_EV_ROUTE_RESOLVED = 2,
	CM_EV_CONNECT_REQUEST = 4,
	CM_EV_CONNECT_RESPONSE = 5,
	CM_EV_CONNECT_ERROR = 6,
	CM_EV_UNREACHABLE = 7,
	CM_EV_REJECTED = 8,
	CM_EV_ESTABLISHED = 9,
	CM_EV_DISCONNECTED = 10,
	CM_EV_MULTICAST_JOIN = 12,
	CM_EV_USER = 18,     /* of the program's own making (rdma_write_cm_event) */
	CM_EV_INTERNAL = 19, /* of librdmacm's: what it asked itself to tell the program */
};

/* RDMA_USER_CM_CMD_WRITE_CM_EVENT of Linux 6.17; other headers do not have it. */
#define CM_CMD_WRITE_EVENT 24
struct cm_write_event {
	uint32_t id, reserved, event, status;
	uint32_t arg[2];
};
static_assert(sizeof(struct cm_write_event) == 24, "the part that is used");

enum { CM_QPT_RC = 2, CM_QPT_UD = 4 }; /* = IBV_QPT_* */

enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_ADDR_QUERY,
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_CONNECT, /* from CONNECT or CONNECT_REQUEST on, to the end of the id */
	CM_LISTEN,
};

struct cm_id;

/* An id has joined a multicast group. Under cm.lock. */
struct cm_mc {
	LIST_ENTRY(cm_mc) link; /* cm.mcs */
	struct cm_id *id;
	uint64_t uid; /* the membership in librdmacm */
	uint32_t handle;
	uint32_t events_reported; /* as that of the id */
};

struct cm_event {
	TAILQ_ENTRY(cm_event) link;  /* of its file's events, or of those that were taken off it */
	TAILQ_ENTRY(cm_event) of_id; /* of its id's events */
	struct cm_id *id;	     /* the id whose events_reported counts this event */
	struct uw_ep *ep;	     /* CONNECT_REQUEST: the new endpoint, which the event owns */
	const struct uw_api *api;    /* the table to use with ep */
	struct cm_mc *mc;	     /* MULTICAST_JOIN; NULL: none */
	bool has_ah; /* datagrams: resp needs an address handle from own_gid to peer_gid */
	uint8_t own_gid[16], peer_gid[16], tos;
	struct rdma_ucm_event_resp resp;
};
TAILQ_HEAD(cm_events, cm_event);

/* One open rdma_cm node, which librdmacm calls an event channel. All fields are under cm.lock. */
struct cm_file {
	struct fd_obj obj;
	struct cm_events events;
	LIST_HEAD(, cm_id) ids;
	bool signalled;	  /* an octet is in the pipe, because the queue is not empty */
	bool signalling;  /* a call back from the stack is due, which writes the octet */
	bool closed;	  /* no new ids */
	unsigned looking; /* threads that look once more before they wait: no octet */
	/* for cm_file_linger() */
	/* the thread that last fetched an event for the end of a connection, or 0 */
	pid_t ended_tid;
	uint64_t ended_ms; /* time of that fetch, CLOCK_MONOTONIC */
	unsigned waiting;  /* threads that wait for an event */
};

struct cm_id {
	LIST_ENTRY(cm_id) link; /* list: file->ids */
	struct cm_file *file;
	struct cm_events events; /* those of file->events that are of this id */
	/* not in use yet: what CONNECT or ACCEPT comes to, and the connection's end, can be told
	 * when there is no memory */
	struct cm_events reserve;
	uint32_t handle;
	uint64_t uid; /* the id in librdmacm; 0 until a connection request is accepted */
	uint16_t ps;
	uint8_t qp_type;
	enum cm_state state;
	unsigned refs;	 /* number of commands that use the id now */
	bool resolving;	 /* resolve.c uses the id, for up to the timeout of the resolution */
	bool dying;	 /* DESTROY_ID waits for refs to become 0 */
	bool orphaned;	 /* destroyed by the program; resolve.c frees the id after the resolution */
	bool lost;	 /* after fork(): its endpoint stayed with the parent */
	bool passive;	 /* the id was made by a connection request */
	bool unanswered; /* the request is neither accepted nor rejected yet */
	bool connecting; /* CONNECT or ACCEPT has no outcome yet */
	bool under_way;	 /* counted in waits_under_way: CONNECT or DISCONNECT has no outcome yet */
	bool established;     /* from ESTABLISHED until either side disconnects */
	bool unconfirmed;     /* CONNECT_RESPONSE was queued, and establish() has not been */
	bool as_roce;	      /* CONNECT: report success as InfiniBand does */
	bool shares_port;     /* RDMA_OPTION_ID_REUSEADDR */
	bool only6;	      /* RDMA_OPTION_ID_AFONLY */
	uint8_t tos;	      /* RDMA_OPTION_ID_TOS */
	bool has_ack_timeout; /* RDMA_OPTION_ID_ACK_TIMEOUT was set, to ack_timeout */
	uint8_t ack_timeout;
	bool has_dev;		  /* bound to an address of the device */
	uint32_t events_reported; /* how many events the program has fetched */
	uint32_t backlog;	  /* a listener: how many more requests may be queued */
	struct uw_ep *ep;
	struct cm_spare *spare; /* spare.c; under cmd */
	const struct uw_api *api;
	struct sockaddr_storage src, dst;
	pthread_mutex_t cmd;
};

struct cm {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* refs or connecting of some id has changed */
	struct cm_id **ids;	/* index: the handle */
	uint32_t room, first_free;
	LIST_HEAD(, cm_mc) mcs;
	/* resolutions that wait for a helper thread */
	TAILQ_HEAD(cm_resolves, cm_resolve) resolves;
};
extern struct cm cm;

/* This thread has cm.lock, or is about to take it (loader/fork.c). */
extern _Thread_local volatile bool cm_locked_here;

static inline void cm_lock(void)
{
	cm_locked_here = true;
	pthread_mutex_lock(&cm.lock);
}

static inline void cm_unlock(void)
{
	pthread_mutex_unlock(&cm.lock);
	cm_locked_here = false;
}

/* ---- files (cmds.c) ---- */

/* open() of the node. A descriptor or a negative errno. */
int cm_open(int flags);
/* The file behind fd, with a reference to its obj. NULL: fd is no rdma_cm node. */
struct cm_file *cm_file_get(int fd);

/* At-fork handlers. lost: the engine of the parent cannot be used in the child. */
void cm_fork_prepare(void);
void cm_fork_parent(void);
void cm_fork_child(bool lost);
/* ... of a handler on top of a thread that has the lock. */
void cm_fork_free_lock(void);

/* ---- ids ---- */

/* A new id on file. The caller holds cm.lock. NULL: no memory. */
struct cm_id *cm_id_new(struct cm_file *file, uint64_t uid, uint16_t ps, uint8_t qp_type);
/* Find an id by its handle and add a reference. -ENOENT: no such id; -EINVAL: the id belongs to
 * another file. */
int cm_id_get(struct cm_file *file, uint32_t handle, struct cm_id **out);
void cm_id_put(struct cm_id *id);
/* Does handle name an id of this file at this moment? */
bool cm_id_is_of(const struct cm_file *file, uint32_t handle);
/* The number of the id's own QP, which is made at the first call; the caller holds cmd. -ENOMEM. */
int cm_spare_qp(struct cm_id *id, uint32_t *qpn);
/* Ends it, if there is one, after the endpoint. */
void cm_spare_drop(struct cm_id *id);
/* Destroy an id and the events queued for it. Waits for commands that use it, but not for a
 * resolution that is under way. Errors as cm_id_get(). */
int cm_id_destroy(struct cm_file *file, uint32_t handle, uint32_t *events_reported);
/* Forget the groups of an id, whose events are gone. The caller holds cm.lock. */
void cm_mcs_free(const struct cm_id *id);
/* CONNECT or DISCONNECT begins, or has its outcome. The caller holds cm.lock. */
void cm_id_under_way(struct cm_id *id, bool on);
/* Free an orphaned id. No lock may be held. */
void cm_id_free(struct cm_id *id);
/* Create the endpoint of id if there is none. This starts the link. */
int cm_id_endpoint(struct cm_id *id);
/* Bind an id that is idle to an IPv4 or IPv6 socket address (conn.c). The caller holds cmd. */
int cm_id_bind(struct cm_id *id, const void *addr);
/* The local address of the endpoint of id. For an AF_INET6 program, IPv4 becomes ::ffff:a.b.c.d. */
void cm_id_local_addr(struct cm_id *id, sa_family_t family, struct sockaddr_storage *a);

/* ---- events ---- */

struct cm_event *cm_event_new(struct cm_id *id, enum cm_event_type type, int status);
/* Fill in the address handle in resp if has_ah. No lock may be held. */
void cm_event_fill_ah(struct cm_event *e);
/* Have in reserve the events that the stack will report of id, which is about to connect or to
 * accept. -ENOMEM. */
int cm_events_reserve(struct cm_id *id);
/* Queue e on the file of its id. The caller holds cm.lock. */
void cm_event_queue(struct cm_event *e);
/* Take e off its queue. The caller holds cm.lock. */
void cm_event_unlink(struct cm_event *e);
/* Move the queued events of id to the end of `to`. The caller holds cm.lock. */
void cm_events_take(struct cm_id *id, struct cm_events *to);
/* Queue events that cm_events_take() has moved again. The caller holds cm.lock. */
void cm_events_put_back(struct cm_events *from);
/* Make the descriptor readable if the queue holds events, else not. The caller holds cm.lock. */
void cm_file_signal(struct cm_file *file);
/* Before file is closed: wait shortly for the thread that fetches events (get_event.c). */
void cm_file_linger(struct cm_file *file);
/* Refuse the connection requests in `list` and free its events. No lock may be held. */
void cm_events_discard(struct cm_events *list);
uw_cm_event_fn cm_on_event;

/* ---- small things (cmds.c) ---- */

enum cm_state cm_id_state(const struct cm_id *id);
void cm_id_set_state(struct cm_id *id, enum cm_state state);
/* RDMA_PS_UDP: datagrams, and no connection. */
static inline bool cm_id_is_ud(const struct cm_id *id)
{
	return id->qp_type == CM_QPT_UD;
}
/* IPoIB is InfiniBand's alone. */
static inline bool cm_id_has_endpoint(const struct cm_id *id)
{
	return id->ps != RDMA_PS_IPOIB;
}

/* ---- commands ---- */

struct cm_call {
	struct cm_file *file;
	int fd;		/* the descriptor that the command was written to */
	const void *in; /* the command, filled up with zeros to its full size */
	uint32_t out;	/* room for the response in octets */
	/* the id of the command, with a reference and with cm_id.cmd held; NULL: the command names
	 * no id */
	struct cm_id *id;
};
typedef int cm_cmd_fn(const struct cm_call *c);

cm_cmd_fn cm_cmd_get_event, cm_cmd_query_route, cm_cmd_query, cm_cmd_init_qp_attr, cm_cmd_bind_ip,
	cm_cmd_bind, cm_cmd_listen, cm_cmd_resolve_ip, cm_cmd_resolve_addr, cm_cmd_resolve_route,
	cm_cmd_connect, cm_cmd_join, cm_cmd_join_ip, cm_cmd_leave, cm_cmd_accept, cm_cmd_reject,
	cm_cmd_disconnect, cm_cmd_write_event;

/* Write the response to the program's address `to`, truncated to the room there, but at least
 * `least` octets. -ENOSPC, -EFAULT. */
int cm_answer(const struct cm_call *c, uint64_t to, const void *resp, size_t len, size_t least);

/* As RoCEv2 makes a GID of an address. */
void cm_address_to_gid(const struct sockaddr_storage *a, uint8_t gid[16]);
/* The length of an IPv4 or IPv6 socket address. 0: another family. */
socklen_t cm_addr_len(const void *addr);
bool cm_addr_is_any(const void *addr);
bool cm_addr_is_loopback(const void *addr); /* 127.0.0.1, ::1 */

#endif
