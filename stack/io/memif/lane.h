/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves frames between one of our stacks and its peers.
 *
 *   lane       the two rings between one of our stacks and one peer (ring.h)
 *   lane set   all lanes of one stack
 *
 * Everything here runs under that stack's lock. join.c adds and removes lanes, and control.c looks
 * for lanes with a fault.
 */
#ifndef UWARP_IO_MEMIF_LANE_H
#define UWARP_IO_MEMIF_LANE_H

#include <pthread.h>

#include "io/dpdk/frame.h"
#include "ring.h"

enum {
	LANE_MAX = 256,	 /* most peers of a process */
	LANE_QUEUE = 64, /* most frames of a lane that wait for room in its ring */
	LANE_HINTS = 256,
};

/* The writing end of a queue. Each of our stacks that sends to the queue has a lane with this
 * sender. */
struct lane_sender {
	struct ring_writer ring;
	pthread_mutex_t lock; /* if shared: held while writing */
	uint64_t moved;	      /* if shared: number of frames written; under the lock */
	bool shared;	      /* several stacks send to this queue */
	/* For each slot the frame of which the peer has yet to copy the rest, or NULL. NULL instead
	 * of the array: the queue's frames are copied whole. */
	struct io_frame **lent;
	unsigned nlent;
	uint32_t settled; /* with nlent: no frame before this number is lent */
};

struct lane {
	uint32_t addr; /* IPv4 address of the peer, network order */
	struct lane_sender
		*sender; /* NULL: the peer has left, and only its frames are still here */
	/* the same, also when the peer has left: frames may be lent still; NULL: never */
	struct lane_sender *lends;
	bool receives; /* this stack receives from the ring; else another of our stacks does */
	struct ring_reader reader;
	uint32_t frame_max;    /* most octets of a frame */
	struct io_ring ring;   /* doorbell of the stack of the peer that receives */
	const char *fault;     /* invalid action of the peer, as text; NULL: none */
	uint64_t moved;	       /* sender->moved at the last attempt to write */
	uint64_t stuck_ms;     /* how long the ring has been full */
	uint64_t stuck_looked; /* when it was last found full, ms; 0: it was not full */
	unsigned nheld;	       /* frames that wait for room, oldest first */
	struct io_frame *held[LANE_QUEUE];
	uint64_t went;	 /* number of frames that were held and are not any more */
	uint64_t turn;	 /* datagrams that wait behind those held are gone when `went` is this */
	unsigned behind; /* their number, at most */
	bool touched;	 /* a frame was written and the peer was not woken yet */
};

struct lane_set {
	struct io_link *link;
	const struct frame_pools *pools;
	_Atomic bool *faulty; /* set when a lane of any set has a fault */
	void (*on_fault)(void *arg);
	void *arg;
	struct lane *lane; /* array of LANE_MAX lanes, the first `count` in use */
	unsigned count;
	unsigned nheld; /* frames that wait for room, of all lanes */
	unsigned nlent; /* frames that peers have yet to copy, of all lanes */
	bool unread;	/* a lane was removed before its peer had copied all that was lent */
	unsigned turn;	/* lane at which rx begins, so that no peer starves another */
	/* by a hash of the address: number of the lane to look at first */
	uint8_t hint[LANE_HINTS];
};

/* rx, tx and pending of struct io_ops. */
unsigned lane_rx(struct lane_set *s, struct io_frame **v, unsigned n);
unsigned lane_tx(struct lane_set *s, struct io_frame **v, unsigned n);
bool lane_pending(struct lane_set *s);

/* has_room of struct io_ops. A peer that takes nothing for long has room, since what it is sent is
 * dropped then. */
bool lane_has_room(struct lane_set *s, const struct uw_ip *to, unsigned n);

/* Write the frames that wait for room, as far as there is room. */
void lane_flush_all(struct lane_set *s);

/* False: no memory. */
bool lane_set_open(struct lane_set *s);
void lane_set_close(struct lane_set *s);

void lane_add(struct lane_set *s, const struct lane *l);
/* The peer has left: drop the frames that wait to be sent to the peer. Its own frames can still be
 * received. False: no such lane. */
bool lane_close_sender(struct lane_set *s, uint32_t addr);
/* Were all frames of the peer received? True also if there is no such lane. */
bool lane_drained(struct lane_set *s, uint32_t addr);
void lane_remove(struct lane_set *s, uint32_t addr);
/* Any lane with a fault; NULL: none. */
const struct lane *lane_faulty(const struct lane_set *s);

/* Wake the thread that sleeps on this doorbell; true if one slept. The caller has issued a memory
 * fence. */
bool lane_ring(const struct io_ring *ring);

#endif
