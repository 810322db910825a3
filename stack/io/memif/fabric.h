/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memif link connects all processes of a user on one machine through shared memory. Two
 * processes are joined when one of them first sends to the other. This header is internal.
 *
 *   fabric     the link of this process, with all its peers
 *   peer       another process on the link
 *   pair       the memory shared with one peer (pair.h)
 *   lane       how one of our stacks reaches one peer (lane.h)
 *   join       what two processes do to become a pair: messages of io/rendezvous/msg.h
 *   visitor    a process that has connected and has not said who it is
 *
 *   fabric.c    the io_link: open, close, resolve
 *   control.c   the control thread: it answers calls and notices that peers leave
 *   join.c      both sides of a join, and the end of a pair
 *   pair.c      memory of a pair
 *   lane.c      moves frames
 *   ring.c      the layout of the shared memory, and the checks of what a peer wrote
 *
 * A process with several stacks has one link for each. A peer with as many stacks has one queue
 * for each of them. If a peer has fewer, say c, our stack i sends to its queue i % c, and our
 * stacks from c on receive nothing from it.
 *
 * Locks, in the order in which they may be nested: `lock` (peers), `open_lock` (which links are
 * open), then the lock of one stack. A stack's lock is held only to add, change or remove a lane,
 * never while a socket is used.
 */
#ifndef UWARP_IO_MEMIF_FABRIC_H
#define UWARP_IO_MEMIF_FABRIC_H

#include <pthread.h>
#include <sys/types.h>

#include "base/said.h"
#include "io/dpdk/frame.h"
#include "lane.h"
#include "io/rendezvous/msg.h"
#include "io/rendezvous/registry.h"
#include "pair.h"

enum peer_state {
	PEER_NONE,
	/* a thread in resolve() is calling the peer, and owns all that belongs to the call */
	PEER_CALLING,
	/* the peer called us. In this and later states the control thread owns the entry */
	PEER_ANSWERING,
	PEER_UP,
	PEER_BYE,  /* we sent BYE and wait for the peer to close the connection */
	PEER_GONE, /* the peer left. peer_down is called once all its frames were received */
};

struct peer {
	enum peer_state state;
	uint32_t addr; /* network order */
	uint32_t instance;
	int fd;		      /* control connection, -1 while CALLING or GONE */
	unsigned call;	      /* CALLING: the number of the call */
	uint64_t deadline_ms; /* ANSWERING, BYE, GONE: when this state ends at the latest */
	struct pair *pair;
	_Atomic uint32_t *bell; /* the page with the peer's doorbells */
	int ring_fd;		/* the eventfd that wakes a program which waits there; -1: none */
};

enum { PEER_MAX = LANE_MAX, VISITOR_MAX = 32 };

/* Print at most one message about a peer in this many ms. */
enum { SAY_MS = 1000 };

enum { MTU_MIN = 64, MTU_MAX = 65280 };

struct visitor {
	int fd;
	uint64_t deadline_ms;
};

struct fabric_link {
	struct io_link io; /* first: an io_link * is a fabric_link * */
	struct fabric *f;
	bool closed; /* under open_lock */
	struct frame_pools pools;
	struct lane_set lanes; /* under the lock of this link's stack */
};

struct fabric {
	pid_t pid;
	uint32_t instance;
	struct registry registry;
	int bell_fd;
	_Atomic uint32_t *bell; /* the page of our doorbells */
	int wait_fd;		/* the eventfd that ends the wait of a thread of the program */
	pthread_mutex_t open_lock;
	unsigned open; /* number of open links, under open_lock */

	pthread_mutex_t lock; /* protects `peer` and `calls` */
	pthread_cond_t changed;
	struct peer peer[PEER_MAX];
	unsigned calls;
	_Atomic bool closing;
	struct said said;    /* of calls that failed (fabric_say) */
	_Atomic bool faulty; /* some lane has a fault (struct lane) */

	/* used by the control thread alone */
	pthread_t control;
	bool control_runs;
	int wake_fd;
	_Atomic bool deaf; /* wake_fd is not ours any more: the program has closed it */
	/* a reserve descriptor: closed when no other is left, to accept and refuse a connection */
	int spare_fd;
	uint64_t said_ms; /* print no message about a peer before this time */
	/* no descriptor was left: accept no connection before this time; 0: accept */
	uint64_t accept_again_ms;
	struct visitor visitor[VISITOR_MAX];
	uint64_t sweep_ms; /* when to remove the files of dead processes; 0: not needed */

	unsigned n; /* number of links, which have the same addresses and MTU */
	struct fabric_link link[];
};

/* join.c */

/* Find a peer; peer_new adds one. With f->lock held. NULL: no such peer, or no room. */
struct peer *peer_find(struct fabric *f, uint32_t addr);
struct peer *peer_new(struct fabric *f, uint32_t addr);

/* Print, once a minute, why a call of a peer cannot be; returns st. */
uw_status fabric_say(struct fabric *f, uint32_t addr, uw_status st, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Connect to p, which the caller has just put into CALLING. No lock held. BUSY: p is calling us at
 * this moment. */
UW_CHECK uw_status join_call(struct fabric *f, struct peer *p, uint64_t deadline_ms);

/* All functions below: the control thread alone. */
/* Answer a HELLO that came on fd. The function owns fd and *fds from now on. */
void join_answer(struct fabric *f, int fd, const struct msg *hello, struct msg_fds *fds);
/* Handle READY, *m, from the caller. The function owns *fds from now on. */
void join_ready(struct fabric *f, struct peer *p, const struct msg *m, struct msg_fds *fds);
/* Send REFUSE on fd and close it. */
void join_refuse(struct fabric *f, int fd, enum msg_why why);
/* End the connection to a peer in any state. Its frames can be received for at most drain_ms more;
 * until then the entry stays in state GONE. */
void join_hang_up(struct fabric *f, struct peer *p, unsigned drain_ms);
/* End the connection to a peer and free the entry at once. */
void join_end(struct fabric *f, struct peer *p);
/* Free an entry in state GONE if all frames were received or the time is over. */
void join_settle(struct fabric *f, struct peer *p);

struct msg join_msg(const struct fabric *f, enum msg_type type);

/* control.c */
UW_CHECK uw_status control_start(struct fabric *f);
/* Send BYE to all peers, wait a bounded time until they have closed, end the thread. */
void control_stop(struct fabric *f);
void control_wake(struct fabric *f);

/* fabric.c */
/* envs and out have cfg->queues entries each. */
UW_CHECK uw_status fabric_open(const struct dpdk_config *cfg, const struct io_env *envs,
			       struct io_link **out);
/* Take the stack lock of link i; the link stays open until fabric_leave. False: the link is closed,
 * and no lock is held. */
bool fabric_enter(struct fabric *f, unsigned i);
void fabric_leave(struct fabric *f, unsigned i);
/* Any thread: wake all sleeping threads of this process, so that they check for work again. The
 * caller has issued a memory fence. */
void fabric_rouse(struct fabric *f);

#endif
