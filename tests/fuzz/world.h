/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program on an engine, and its peers as bare TCP segments: what fuzz_frames plays with. One
 * conversation (flow 0) carries a QP's stream; the others only try to.
 */
#ifndef UWARP_FUZZ_WORLD_H
#define UWARP_FUZZ_WORLD_H

#include "raw.h"
#include "speak.h"

#define WORLD_PORT   7471u /* our listener */
#define WORLD_THEIRS 9000u /* where our program connects to */
#define WORLD_FLOWS  4u
#define WORLD_EPS    64u
#define WORLD_HEARD  70000u

struct flow {
	bool used;
	uint16_t theirs, ours; /* ports */
	uint32_t seq, ack;     /* the next octet either way */
	uint16_t window;
	bool owes_ack;
};

struct world;

struct slot {
	struct world *w;
	struct uw_ep *ep;
	bool request; /* neither accepted nor rejected */
	bool gone;    /* destroyed: no event any more */
};

struct world {
	struct raw raw;
	struct bed b; /* its memory and its ledgers; the queues are the engine's */
	struct uw_pd *pd, *foreign;
	struct uw_cq *scq, *rcq;
	struct uw_srq *srq; /* or NULL */
	struct uw_qp *qp;
	struct uw_qp *other; /* a second one, on the other flows; nobody keeps its books */
	struct uw_cq *other_cq;
	uint16_t other_port; /* of the peer that it was accepted for last */
	struct uw_mr *mr[BED_REGIONS];
	struct slot slots[WORLD_EPS];
	struct slot *listener, *main; /* main: flow 0's connection */
	struct flow flows[WORLD_FLOWS];
	uint16_t next_port;
	bool quiet;	/* the peer does not acknowledge by itself */
	bool stamps;	/* flows send timestamps */
	uint32_t stamp; /* the last one's value */
	struct speaker speaker, other_speaker;
	/* flow 0: what the engine sent and has not been looked at */
	enum { HEARD_START, HEARD_REST, HEARD_FPDUS } heard_what; /* REST: behind the frame */
	uint8_t *heard;
	size_t heard_n;
};

void world_open(struct world *w, struct feed *f);
/* The same; *cfg: what world_open leaves as it is; flags: of the link, beside IO_P2P. */
void world_open_as(struct world *w, struct feed *f, const struct uw_config *cfg, unsigned flags);
void world_close(struct world *w, bool qp_first);

/* ---- the program (world.c) ---- */

struct slot *world_free_slot(struct world *w);
/* An endpoint that the world drops at its end; NULL: no slot is free. */
struct slot *world_endpoint(struct world *w);
/* An address of the version that the peers speak. */
struct sockaddr_storage world_place(const struct world *w, uint32_t addr, uint16_t port);
void world_listen(struct world *w);
void world_connect(struct world *w, struct feed *f);
/* Are there slots for what a few more SYNs, or a connection to ourselves, may bring? */
bool world_has_room(const struct world *w);
/* Accept for one of the QPs, or reject. */
void world_answer(struct slot *s, struct feed *f, struct uw_qp *qp);
/* Something to do for the other QP. */
void world_post_other(struct world *w, struct feed *f);
void world_drop(struct slot *s);
/* A request that nobody has answered. */
struct slot *world_requested(struct world *w);
/* An endpoint that is used in any way with any address. */
void world_any_endpoint(struct world *w, struct feed *f);
/* CQs armed and resized, the SRQ's limit. */
void world_queues(struct world *w, struct feed *f);
void world_toggle(struct world *w, enum bed_region which);
/* The QP in error: everything comes back. */
void world_flush(struct world *w);
void world_reset(struct world *w);

/* ---- the peers (flows.c) ---- */

/* Hears what the engine sends; raw.on_tcp. */
void world_hear(void *world, const struct raw_tcp *t);
/* Let everything happen that happens by itself. */
void world_run(struct world *w);
/* The timestamps option (RFC 7323 §3.2) with the next value and whatever echo; returns its 12
 * octets, or 0 where the flows send none. */
unsigned flow_stamp(struct world *w, uint8_t *out);
/* A segment of the flow with the right numbers. */
void flow_send(struct world *w, struct flow *fl, uint8_t flags, const uint8_t *p, size_t n);
void flow_syn(struct world *w, struct flow *fl, struct feed *f);
/* FIN, RST, or just an ACK. */
void flow_end(struct world *w, struct flow *fl, struct feed *f);
/* An FPDU for the other QP. */
void flow_other(struct world *w, struct flow *fl, struct feed *f);
/* What waits in the bed (flow 0), in the feed's way. */
void flow_stream(struct world *w, struct feed *f);
/* A start-up frame whose words are the feed's; returns its length. */
size_t flow_start_frame(struct feed *f, bool reply, uint8_t *out);
/* The shortest way to a stream: SYN to Reply. */
void flow_establish(struct world *w, struct feed *f);

#endif
