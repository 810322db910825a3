/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How frames move between one of our stacks and its peers.
 *
 *   lane       the two rings that one of our stacks and one peer have in common (ring.h)
 *   lane set   all lanes of one stack
 *
 * Everything here runs under that stack's lock. It does not know how peers come and go: join.c adds
 * and removes lanes, control.c asks which of them have failed.
 */
#ifndef UWARP_IO_MEMIF_LANE_H
#define UWARP_IO_MEMIF_LANE_H

#include <pthread.h>

#include "io/dpdk/frame.h"
#include "ring.h"

enum {
	LANE_MAX = 256,	 /* peers of a process */
	LANE_QUEUE = 64, /* frames that wait for room in a ring */
	LANE_HINTS = 256,
};

/* The writing end of a queue. Of several stacks that send on it each has a lane to it. */
struct lane_sender {
	struct ring_writer ring;
	pthread_mutex_t lock; /* shared: while writing */
	uint64_t moved;	      /* shared: frames ever written; under the lock */
	bool shared;	      /* several stacks send on it */
};

struct lane {
	uint32_t addr; /* the peer's, network order */
	struct lane_sender
		*sender; /* NULL: the peer has left, and only its frames are still here */
	bool receives;	 /* from that queue; else another of our stacks does */
	struct ring_reader reader;
	uint32_t frame_max;	/* octets of a frame */
	_Atomic uint32_t *bell; /* doorbell of the peer's stack that receives */
	const char *fault;	/* what the peer did that cannot be; NULL: nothing */
	uint64_t moved;		/* sender->moved when we looked */
	uint64_t stuck_since;	/* ms; 0: the ring has room as far as we know */
	unsigned nheld;		/* frames that wait for room, oldest first */
	struct io_frame *held[LANE_QUEUE];
	bool touched; /* a frame went into the ring, and its reader was not woken yet */
};

struct lane_set {
	struct io_link *link;
	struct rte_mempool *rx; /* buffers to receive into */
	_Atomic bool *faulty;	/* set when a lane of any set has a fault */
	void (*on_fault)(void *arg);
	void *arg;
	struct lane *lane; /* LANE_MAX */
	unsigned count;
	unsigned nheld;		  /* frames that wait for room, of all lanes */
	unsigned turn;		  /* where rx begins, so that no peer starves another */
	uint8_t hint[LANE_HINTS]; /* of an address's last octets: which lane it may be */
};

/* The ops of struct io_link. */
unsigned lane_rx(struct lane_set *s, struct io_frame **v, unsigned n);
unsigned lane_tx(struct lane_set *s, struct io_frame **v, unsigned n);
bool lane_pending(struct lane_set *s);

/* Write what waits for room, as far as there is room. */
void lane_flush_all(struct lane_set *s);

/* False: no memory. */
bool lane_set_open(struct lane_set *s);
void lane_set_close(struct lane_set *s);

void lane_add(struct lane_set *s, const struct lane *l);
struct lane *lane_find(struct lane_set *s, uint32_t addr);
/* The peer has left: drop what waits to be sent to it. What it sent can still be received. False:
 * there is no such lane. */
bool lane_close_sender(struct lane_set *s, uint32_t addr);
/* Was everything received that it sent? Also true if there is no such lane. */
bool lane_drained(struct lane_set *s, uint32_t addr);
void lane_remove(struct lane_set *s, uint32_t addr);
/* A lane with a fault, NULL: none. */
const struct lane *lane_faulty(const struct lane_set *s);

/* Wake the sleeper behind a doorbell if it sleeps; true if it did. The caller has fenced. */
bool lane_ring(_Atomic uint32_t *bell);

#endif
