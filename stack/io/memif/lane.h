/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data path of the fabric: one lane per joined peer, for each of our stacks. Everything here
 * runs under that stack's lock and knows nothing of how peers come and go.
 */
#ifndef UWARP_IO_MEMIF_LANE_H
#define UWARP_IO_MEMIF_LANE_H

#include <pthread.h>

#include "io/dpdk/frame.h"

enum {
	LANE_MAX = RTE_MAX_ETHPORTS < 64 ? RTE_MAX_ETHPORTS : 64,
	LANE_QUEUE = 64,
	LANE_STASH = 1024, /* no fewer than there are buffers to receive into */
};

/* A queue that several stacks send on. */
struct lane_shared {
	pthread_mutex_t lock; /* while sending */
	uint64_t moved;	      /* how often anything went; under the lock */
};

struct lane {
	uint32_t addr;		    /* the peer, network order */
	uint16_t port, queue;	    /* to send to */
	bool receives;		    /* from that queue; else another stack does */
	struct lane_shared *shared; /* other stacks send to it, too; NULL: none does */
	uint64_t moved;		    /* shared->moved when we looked */
	uint32_t frame_max;	    /* octets the peer takes in one frame */
	_Atomic uint32_t *bell;	    /* of the peer's stack that receives */
	uint64_t stuck_since;	    /* ms, 0: the ring has room as far as we know */
	unsigned nheld;		    /* frames taken that the ring had no room for yet */
	struct rte_mbuf *held[LANE_QUEUE];
};

struct lane_set {
	struct io_link *link;
	struct lane lane[LANE_MAX];
	unsigned count;
	unsigned turn; /* where rx begins, so that no peer starves another */
	/* Frames taken from a ring that nobody has asked for yet: by pending(), or because their
	 * sender left. */
	struct io_frame *stash[LANE_STASH];
	unsigned stash_at, stash_end;
	uint64_t stashed, unstashed; /* ever */
};

unsigned lane_rx(struct lane_set *s, struct io_frame **v, unsigned n);
unsigned lane_tx(struct lane_set *s, struct io_frame **v, unsigned n);
bool lane_pending(struct lane_set *s);

void lane_add(struct lane_set *s, const struct lane *l);
/* Drop what is queued for a peer and keep what it sent. *mark is for lane_passed. False: there is
 * no such lane. */
bool lane_remove(struct lane_set *s, uint32_t addr, uint64_t *mark);
/* Has all that was received by the time of mark been taken? */
bool lane_passed(const struct lane_set *s, uint64_t mark);
/* Offer buffers to the peer of a port that is not published yet: memif does so only in rx, and
 * until then a server has nowhere to send to. */
void lane_prime(uint16_t port, uint16_t queue);
struct lane *lane_find(struct lane_set *s, uint32_t addr);
/* Drop all that is held. */
void lane_clear(struct lane_set *s);

/* Wake the sleeper behind a doorbell if it sleeps; true if it did. The caller has fenced. */
bool lane_ring(_Atomic uint32_t *bell);

#endif
