/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPA start-up of one connection, from the TCP connect to the stream: RFC 5044 §7.1, RFC 6581.
 * No sockets, no clock: the caller passes octets, decisions of the program and the time, and gets
 * frames to send and verdicts.
 */
#ifndef UWARP_CM_CM_H
#define UWARP_CM_CM_H

#include "mpa/handshake.h"

enum cm_state {
	CM_IDLE,
	CM_WAIT_REPLY,	 /* initiator: Request sent */
	CM_WAIT_REQUEST, /* responder: waits for the Request */
	/* responder: waits for the program to accept or reject; the peer must not send */
	CM_WAIT_ANSWER,
	CM_STREAM, /* agreed; FPDUs follow */
	CM_ENDED,
};

enum cm_verdict {
	CM_NOTHING,   /* wait for more */
	CM_REQUESTED, /* responder: cm->peer is the Request */
	CM_ACCEPTED,  /* initiator: cm->peer is the Reply, cm->agreed the agreed values */
	CM_REJECTED,  /* initiator: the peer's program rejected; cm->peer has its private data */
	CM_FAILED,    /* failed with cm->why; end the connection */
	CM_TERMINATE, /* initiator: start the stream, send a Terminate with cm->why, then close */
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

/* Parameters of the program (rdma_conn_param). */
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

/* Process octets from TCP. *used: octets of the start-up frame; in CM_STREAM the rest are FPDUs. */
enum cm_verdict cm_rx(struct cm_conn *cm, struct uw_rope in, size_t *used);

/* Responder: accept or reject; the Reply goes to out (MPA_START_MAX octets), *n = its length.
 * UW_E_STATE: no Request to answer. UW_E_LEN: too much private data. */
uw_status cm_accept(struct cm_conn *cm, const struct cm_param *p, uint8_t *out, size_t *n) UW_CHECK;
uw_status cm_reject(struct cm_conn *cm, const struct cm_param *p, uint8_t *out, size_t *n) UW_CHECK;

/* The time is now_us. CM_FAILED with UW_E_MPA_TIMEOUT after the deadline. */
enum cm_verdict cm_timer(struct cm_conn *cm, uint64_t now_us);

#endif
