/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memif link: all processes of a user on a machine, joined pair by pair as they are first
 * spoken to. This header is the inside of it:
 *
 *   fabric.c    the io_link: open, close, resolve
 *   control.c   the control thread: who calls us, who leaves
 *   join.c      both sides of a join, and the end of one
 *   lane.c      the data path
 *
 * Each stack of the process has a link of its own, with its queue to and from every peer that has
 * as many stacks; of a peer that has fewer, those that are too many send over the others' queues,
 * and receive nothing.
 *
 * Locks, in the order they may be nested: `lock` (control plane), `open_lock` (which links are
 * there), then one stack's lock. A stack lock is held only to publish or unpublish a lane; never
 * while a port is made or a socket used.
 */
#ifndef UWARP_IO_MEMIF_FABRIC_H
#define UWARP_IO_MEMIF_FABRIC_H

#include <pthread.h>
#include <sys/types.h>

#include "io/dpdk/frame.h"
#include "lane.h"
#include "io/rendezvous/msg.h"
#include "io/rendezvous/registry.h"
#include "slot.h"

enum peer_state {
	PEER_NONE,
	PEER_CALLING,	/* a thread in resolve() calls it, and keeps all it has to itself */
	PEER_ANSWERING, /* it called us; from here on the control thread's */
	PEER_UP,
	PEER_BYE,  /* we said it, and wait for the peer to hang up */
	PEER_GONE, /* it left; peer_down is due when the last it sent was taken */
};

struct peer {
	enum peer_state state;
	uint32_t addr; /* network order */
	uint32_t instance;
	uint32_t mtu;
	int fd;				/* control connection, -1 while CALLING or GONE */
	unsigned call;			/* which call it is that CALLING is about */
	uint64_t deadline_ms;		/* ANSWERING, BYE, GONE */
	uint64_t mark[DPDK_QUEUES_MAX]; /* GONE: for lane_passed, of each link */
	struct slot *slot;
	_Atomic uint32_t *bell; /* the page */
};

enum { PEER_MAX = LANE_MAX, VISITOR_MAX = 32 };

/* Somebody who connected and has not said who it is. */
struct visitor {
	int fd;
	uint64_t deadline_ms;
};

struct fabric_link {
	struct io_link io; /* first: an io_link * is a fabric_link * */
	struct fabric *f;
	bool closed; /* under open_lock */
	struct frame_pools pools;
	struct lane_set lanes; /* under its stack's lock */
};

struct fabric {
	pid_t pid;
	uint32_t instance;
	struct registry registry;
	struct slot_set slots;
	int bell_fd;
	_Atomic uint32_t *bell; /* the page of our doorbells */
	struct wrap_barrier barrier;
	pthread_mutex_t open_lock;
	unsigned open; /* links, under open_lock */

	pthread_mutex_t lock; /* peers, calls */
	pthread_cond_t changed;
	struct peer peer[PEER_MAX];
	unsigned calls;
	_Atomic bool closing;

	/* the control thread's own */
	pthread_t control;
	bool control_runs;
	int wake_fd;
	struct visitor visitor[VISITOR_MAX];
	uint64_t sweep_ms; /* when to remove a dead peer's files, 0: no need */

	unsigned n; /* links; addresses and MTU are the same for all */
	struct fabric_link link[];
};

/* join.c */

/* With f->lock held; NULL: no such peer. */
struct peer *peer_find(struct fabric *f, uint32_t addr);
struct peer *peer_new(struct fabric *f, uint32_t addr);

/* Call p, which the caller has just put into CALLING, and bring it up. No lock held. BUSY: it is
 * calling us at this moment. */
UW_CHECK uw_status join_call(struct fabric *f, struct peer *p, uint64_t deadline_ms);

/* Control thread: answer a HELLO that came in on fd (which is taken, as is bell_fd). */
void join_answer(struct fabric *f, int fd, const struct msg *hello, int bell_fd);
/* Control thread: the caller's port is up. */
void join_ready(struct fabric *f, struct peer *p);
/* Control thread: hang up on a peer, whatever its state, and give its port back. What it sent is
 * kept for the engine; until that was taken, for at most drain_ms, the entry stays, GONE. */
void join_hang_up(struct fabric *f, struct peer *p, unsigned drain_ms);
/* Control thread: the same at once, and the end of the entry. */
void join_end(struct fabric *f, struct peer *p);
/* Control thread: an entry that is GONE ends here once it is time. */
void join_settle(struct fabric *f, struct peer *p);

struct msg join_msg(const struct fabric *f, enum msg_type type);

/* control.c */
UW_CHECK uw_status control_start(struct fabric *f);
/* Says good-bye to all peers, waits a bounded time until they have hung up, ends the thread. */
void control_stop(struct fabric *f);
void control_wake(struct fabric *f);

/* fabric.c */
/* envs and out have an entry for each of cfg->queues. */
UW_CHECK uw_status fabric_open(const struct dpdk_config *cfg, const struct io_env *envs,
			       struct io_link **out);
/* Take the stack lock of link i until fabric_leave, before which it stays open. False: it is
 * closed, and nothing is locked. */
bool fabric_enter(struct fabric *f, unsigned i);
void fabric_leave(struct fabric *f, unsigned i);
/* Any thread: whoever sleeps looks once more. The caller has fenced. */
void fabric_rouse(struct fabric *f);

#endif
