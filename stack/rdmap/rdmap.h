/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One RDMAP stream: RFC 5040, and the RTR messages of RFC 6581. The stream places received ULPDUs
 * in memory and reports deliveries, and makes ULPDUs from messages. The work queues (qp) are
 * reached through `struct rdmap_ulp`. The caller owns the memory of the two read queues.
 */
#ifndef UWARP_RDMAP_RDMAP_H
#define UWARP_RDMAP_RDMAP_H

#include "ddp/ddp.h"
#include "mem/sgl.h"
#include "wire/rdmap_wire.h"

/* A completely delivered Send, RFC 5040 §5.3. */
struct rdmap_delivery {
	uint32_t length;
	bool solicited;
	bool invalidated;
	uint32_t inv_stag;
	bool has_imm;	 /* RFC 7306 §6, or RDMAP_SEND_IMM */
	bool write_imm;	 /* the immediate data came in a message of its own, after an RDMA Write */
	uint32_t imm_be; /* as received */
};

struct rdmap_ulp {
	/* Take the next receive: one for each Send, RFC 5041 §5.1.2. *sgl stays valid until
	 * recv_done. UW_E_DDP_NO_BUFFER: no receive is posted. UW_MORE: no receive is posted yet;
	 * pass the ULPDU to rdmap_rx again later. */
	uw_status (*recv_take)(void *ulp, struct mem_sgl *sgl);
	void (*recv_done)(void *ulp, const struct rdmap_delivery *d);
	/* The Response to the oldest Read or atomic has been placed (RFC 5040 §5.2, RFC 7306 §5).
	 */
	void (*read_done)(void *ulp);
	/* The peer's Terminate has come. */
	void (*terminated)(void *ulp, const struct rdmap_term *t);
	/* A FLUSH: make the octets survive a loss of power. UW_MORE: that has begun; pass the ULPDU
	 * to rdmap_rx again when it is done. */
	uw_status (*persist)(void *ulp, void *va, uint64_t len);
};

/* A Read or atomic of the peer that waits for its response. Responses are sent in order (RFC 5040
 * §5.2, RFC 7306 §5). */
struct rdmap_irq_entry {
	bool atomic;
	bool executed; /* an atomic, whose response has nothing to wait for but its turn */
	union {
		struct rdmap_read r;
		struct rdmap_atomic a;
	};
	uint64_t original; /* executed: what the word was */
};

/* A Read or atomic of ours that waits for its response. */
struct rdmap_orq_entry {
	struct mem_sgl sink;
	uint32_t stag; /* STag that names only the sink of this Read (or this atomic) */
	bool atomic;
	uint64_t placed; /* octets placed so far, contiguous from the start */
	bool hidden;	 /* an RTR message, which the program does not see */
};

struct rdmap_irq {
	struct rdmap_irq_entry *v;
	uint16_t cap; /* = IRD; 0: v is not used, no Read is taken */
	uint16_t head, count;
	uint16_t waiting; /* Reads, and atomics behind a Read: not executed yet */
};
struct rdmap_orq {
	struct rdmap_orq_entry *v;
	uint16_t cap; /* = ORD; 0: v is not used, no Read is sent */
	uint16_t head, count;
};

/* The place `i` entries behind the first of a queue of `cap`, of which there are no more than that.
 * No division: that was a quarter of the time in which a request enters the ORQ. */
static inline uint16_t rdmap_queue_at(uint16_t head, unsigned i, uint16_t cap)
{
	unsigned at = head + i;

	return (uint16_t)(at < cap ? at : at - cap);
}

/* Where the payload of the message being sent comes from. */
enum rdmap_source { RDMAP_FROM_NONE, RDMAP_FROM_SGL, RDMAP_FROM_STAG, RDMAP_FROM_BYTES };

struct rdmap_tx {
	struct ddp_msg msg;
	enum rdmap_source source;
	uint8_t opcode;
	bool answers;	    /* the message answers the oldest entry of the IRQ */
	struct mem_sgl sgl; /* RDMAP_FROM_SGL: the request's own buffers */
	uint64_t off;	    /* payload octets already in segments */
	uint32_t src_stag;  /* RDMAP_FROM_STAG: a Read Response's memory */
	uint64_t src_to;
	uint8_t bytes[RDMAP_TERM_MAX]; /* RDMAP_FROM_BYTES: headers without payload */
};

/* The fields are in the order in which a message uses them; fields for rare events come last. */
struct rdmap_stream {
	struct ddp_stream ddp;
	const struct rdmap_ulp *ulp;
	void *ulp_arg;
	const struct mem_table *mem;
	uint32_t pd, num;	/* num: identifies the stream for memory windows; not 0 */
	unsigned remote_rights; /* UW_ACCESS_REMOTE_* that the QP allows */
	struct uw_stats *stats;

	struct rdmap_irq irq;
	struct rdmap_orq orq;
	uint32_t next_sink; /* STag for the sink of the next Read; never 0 */

	/* the Send being placed: recv_open is set between recv_take and recv_done */
	bool recv_open;
	bool rtr_send;	 /* RFC 6581 §9.2: the first Send is the RTR and has no receive */
	bool write_open; /* the last segment of an RDMA Write has not come yet */
	bool bad_read;	 /* bad_hdr is a Read Request's header */
	bool term_sent, term_rcvd;
	struct mem_sgl recv;
	uint32_t recv_len;  /* octets placed so far, contiguous from the start */
	uint32_t write_len; /* octets of the last RDMA Write, for Immediate Data after the Write */

	/* the last received segment; a Terminate quotes the header of a segment in error (RFC 5040
	 * §4.8) */
	struct ddp_seg bad;

	struct rdmap_tx tx;

	uint8_t bad_hdr[sizeof(struct rdmap_read_wire)];
};

struct rdmap_queues {
	struct rdmap_irq_entry *irq;
	uint16_t ird;
	struct rdmap_orq_entry *orq;
	uint16_t ord;
	uint32_t first_sink; /* random */
};

void rdmap_stream_init(struct rdmap_stream *s, const struct rdmap_queues *q, struct uw_stats *st);

/* ---- receive (rx.c) ---------------------------------------------------------------------- */

/* Process one ULPDU. UW_MORE: not processed; call again with the same ULPDU once there is a
 * receive, or the FLUSH is done. Any other error ends the stream: pass the error to
 * rdmap_terminate, except UW_E_TERMINATED (the peer sent a Terminate). */
uw_status rdmap_rx(struct rdmap_stream *s, struct uw_rope ulpdu) UW_CHECK;

/* ---- transmit (tx.c) --------------------------------------------------------------------- */

static inline bool rdmap_tx_idle(const struct rdmap_stream *s)
{
	return s->tx.source == RDMAP_FROM_NONE;
}

/* Begin a message; rdmap_tx_idle must be true. The memory of sgl stays valid until the message is
 * sent. */
void rdmap_send(struct rdmap_stream *s, unsigned opcode, const struct mem_sgl *sgl,
		uint32_t inv_stag);
/* RDMAP_SEND_IMM: imm as the program gave it (network order). */
void rdmap_send_imm(struct rdmap_stream *s, const struct mem_sgl *sgl, uint32_t imm_be,
		    bool solicited);
/* RFC 7306 §6: the Immediate Data message that follows a Write. */
void rdmap_imm(struct rdmap_stream *s, uint32_t imm_be, bool solicited);
void rdmap_write(struct rdmap_stream *s, const struct mem_sgl *sgl, uint32_t stag, uint64_t to);
/* Begin a Read. UW_MORE: ORD Reads are outstanding, the limit of RFC 5040 §5.2. UW_E_ORD: ORD is 0.
 */
uw_status rdmap_read(struct rdmap_stream *s, const struct mem_sgl *sink, uint32_t stag,
		     uint64_t to) UW_CHECK;
/* RFC 7306 §5: a->req_id is set here; the original value goes to sink (8 octets) in host order; a
 * FLUSH or ATOMIC WRITE has an empty sink.
 * UW_MORE, UW_E_ORD as above. */
uw_status rdmap_atomic(struct rdmap_stream *s, const struct mem_sgl *sink,
		       struct rdmap_atomic *a) UW_CHECK;
/* RFC 6581 §9.2: the zero-length message that opens a peer-to-peer stream; invisible to the ULP. */
enum rdmap_rtr { RDMAP_RTR_SEND = 1, RDMAP_RTR_WRITE = 2, RDMAP_RTR_READ = 4 };
void rdmap_rtr(struct rdmap_stream *s, enum rdmap_rtr kind);
/* Is a Read or Atomic Response due? rdmap_respond starts the Response, and executes an atomic that
 * waited for a Read before it. */
static inline bool rdmap_response_due(const struct rdmap_stream *s)
{
	return s->irq.count != 0;
}
void rdmap_respond(struct rdmap_stream *s);

/* Write the next segment of the current message to out, at most max octets of ULPDU; *n = its size.
 * rdmap_tx_idle tells whether the segment was the last one. UW_E_LKEY, UW_E_RDMAP_*: the memory is
 * no longer registered; the stream cannot go on. */
uw_status rdmap_tx_segment(struct rdmap_stream *s, uint8_t *out, size_t max, size_t *n) UW_CHECK;

/* ---- errors (terminate.c) ---------------------------------------------------------------- */

/* For a Terminate about one of our Reads and atomics: the index of the failed one among those of
 * the program, 0 being the oldest. Also 0 if the Terminate has no headers (RFC 5040 §4.8: "if
 * possible"). */
unsigned rdmap_blamed(const struct rdmap_stream *s, const struct rdmap_term *t);

/* Does the Terminate report a local error of the peer, e.g. in a receive of its program? Such a
 * Terminate has no headers. */
static inline bool rdmap_is_local(const struct rdmap_term *t)
{
	return !t->layer && !t->etype;
}

/* Drop the message being sent and begin the Terminate that reports `why` about the last failed
 * segment. False: no Terminate is sent, since one was sent or received already, or `why` is not for
 * the peer. */
bool rdmap_terminate(struct rdmap_stream *s, uw_status why);

#endif
