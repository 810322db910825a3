/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection's start-up, from "TCP is up" to "the stream is a QP's": RFC 5044 §7.1, RFC 6581.
 * No sockets, no clock: octets, decisions and the time come in, frames and verdicts come out.
 */
#ifndef UWARP_CM_CM_H
#define UWARP_CM_CM_H

#include "mpa/handshake.h"

enum cm_state {
	CM_IDLE,
	CM_WAIT_REPLY,	 /* initiator: Request sent */
	CM_WAIT_REQUEST, /* responder: nothing but a Request may come */
	CM_WAIT_ANSWER,	 /* responder: the program has to accept or reject; the peer must wait */
	CM_STREAM,	 /* agreed; what comes now are FPDUs */
	CM_ENDED,
};

enum cm_verdict {
	CM_NOTHING,   /* go on waiting */
	CM_REQUESTED, /* responder: cm->peer is the Request */
	CM_ACCEPTED,  /* initiator: cm->peer is the Reply, cm->agreed what it means */
	CM_REJECTED,  /* initiator: by the program; cm->peer has its private data */
	CM_FAILED,    /* cm->why; end the connection */
	CM_TERMINATE, /* initiator: enter the stream, send a Terminate with cm->why, end */
};

struct cm_conn {
	enum cm_state state;
	const struct mpa_policy *policy;
	uint64_t deadline_us;  /* 0: none */
	struct mpa_start ours; /* initiator: the Request */
	struct mpa_start peer; /* the peer's frame; pd points into frame */
	struct mpa_agreed agreed;
	uw_status why;
	uint8_t frame[MPA_START_MAX];
	size_t have;
};

/* What the program gives along (rdma_conn_param). */
struct cm_param {
	struct uw_span pd;
	uint16_t ird, ord;
};

/* Initiator: TCP is up; the Request goes to out (MPA_START_MAX octets), *n = its length.
 * UW_E_LEN: more private data than the frame takes (512, or 508 with revision 2). */
uw_status cm_open(struct cm_conn *cm, const struct mpa_policy *policy, const struct cm_param *p,
		  uint8_t *out, size_t *n) UW_CHECK;

/* Responder: TCP is up; wait for the Request until the deadline (RFC 5044 §7.1.2, §7.1.4). */
void cm_wait(struct cm_conn *cm, const struct mpa_policy *policy);

void cm_set_deadline(struct cm_conn *cm, uint64_t at_us);

/* Octets from TCP. *used = how many were the frame's; in CM_STREAM the rest are FPDUs. */
enum cm_verdict cm_rx(struct cm_conn *cm, struct uw_rope in, size_t *used);

/* Responder: answer; the Reply goes to out. UW_E_STATE: nothing to answer. UW_E_LEN. */
uw_status cm_accept(struct cm_conn *cm, const struct cm_param *p, uint8_t *out, size_t *n) UW_CHECK;
uw_status cm_reject(struct cm_conn *cm, const struct cm_param *p, uint8_t *out, size_t *n) UW_CHECK;

/* Time has come to now_us: CM_FAILED with UW_E_MPA_TIMEOUT once the deadline is past. */
enum cm_verdict cm_timer(struct cm_conn *cm, uint64_t now_us);

/* TCP ended (UW_OK: FIN). What that means in this state. */
enum cm_verdict cm_lost(struct cm_conn *cm, uw_status why);

#endif
