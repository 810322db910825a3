/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP in the middle of its work, for targets that play its peer and its program: registered memory
 * of every kind with guards around it, a send and a receive queue, completion queues, a stream.
 * Whatever comes in may only touch what it may: regions that the peer or the program has no right
 * to are forbidden to everybody, those that may only be read are compared at the end.
 */
#ifndef UWARP_FUZZ_BED_H
#define UWARP_FUZZ_BED_H

#include "fuzz.h"
#include "ledger.h"
#include "outbound.h"
#include "qp/qp.h"

#define BED_PD	   7u
#define BED_WR	   16u
#define BED_SGE	   4u
#define BED_INLINE 64u
#define BED_WC	   256u
#define BED_IN	   (1u << 15) /* octets that wait to be received */
#define BED_ROOM   9000u

enum bed_region {
	BED_ALL,     /* every right */
	BED_READ,    /* remote read: never changes */
	BED_LOCAL,   /* receives and read sinks */
	BED_SOURCE,  /* no right at all, so only a source of requests: never changes */
	BED_FOREIGN, /* of another protection domain: forbidden */
	BED_SECRET,  /* local write only, and no request names it: forbidden */
	BED_REGIONS,
};

struct bed_mem {
	struct mem_region r;
	uint8_t *mem, *before; /* before: NULL unless it never changes */
	bool in;	       /* the table has it */
};

struct bed {
	struct mem_table t;
	struct mem_region *slots[32];
	struct bed_mem m[BED_REGIONS];
	struct uw_stats stats;
	struct qp *qp; /* a block of its own, and so are the queues */
	struct rq *srq;
	struct cq scq, rcq;
	struct ledger sends, recvs;
	struct mpa_agreed agreed;
	struct rdmap_irq_entry *irq;
	struct rdmap_orq_entry *orq;
	struct outbound out;
	uint8_t *in; /* BED_IN octets */
	size_t in_n;
	unsigned events;
	/* How its program posts and polls: the queues' own functions, or an engine's. */
	bool (*post_send)(struct bed *b, const struct uw_send_wr *wr); /* true: taken */
	bool (*post_recv)(struct bed *b, const struct uw_recv_wr *wr);
	unsigned (*take)(struct bed *b, bool recv, unsigned n, struct uw_wc *wc);
	/* Each completion, before the ledger has it; may be NULL. */
	void (*on_wc)(struct bed *b, const struct uw_wc *wc, bool recv);
};

/* All but the stream. */
void bed_make(struct bed *b, struct feed *f);
/* With a stream of any kind. */
void bed_open(struct bed *b, struct feed *f);
/* The QP goes to error if it is not, everything comes back, memory is as it may be. */
void bed_close(struct bed *b);

/* A new stream; the state must allow it. */
void bed_start(struct bed *b, bool initiator);

/* ---- memory ---- */

/* Parts of bed_make and bed_close. */
void bed_make_memory(struct bed *b);
void bed_free_memory(struct bed *b);

/* A region that a peer may name, or an STag that names nothing. */
struct bed_target {
	uint32_t stag;
	uint64_t to;
};
struct bed_target bed_target(struct bed *b, struct feed *f, uint32_t len);
/* Whether a region may be touched at all, when it is registered. */
bool bed_is_forbidden(unsigned which);
/* Take a region out of the table, or put it back. */
void bed_toggle(struct bed *b, enum bed_region which);

/* ---- the program ---- */

/* What bed_make gives it: the queues' own functions. */
void bed_use_queues(struct bed *b);

void bed_post_send(struct bed *b, struct feed *f);
void bed_post_recv(struct bed *b, struct feed *f);
void bed_poll(struct bed *b);

/* ---- the wire ---- */

/* The peer sends n octets more; they wait until bed_deliver. */
void bed_arrive(struct bed *b, const void *p, size_t n);
/* Offer what waits, cut as the feed says. */
void bed_deliver(struct bed *b, struct feed *f);
/* One segment of at most `room` octets, checked; returns its length, `p` (BED_ROOM) has it. */
size_t bed_pull(struct bed *b, uint8_t *p, size_t room);
/* All there is to send. */
void bed_pull_all(struct bed *b, size_t room);

#endif
