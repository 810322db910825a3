/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CM-less RC (doc/adr/0006-cm-less-rc.md): two programs exchange their GIDs and QP numbers on a
 * channel of their own; then each takes its QP to RTR and names the other QP as the peer. The
 * stream is an ordinary MPA connection to TCP port RC_PORT of one of the two; the Request contains
 * both QP numbers. This file decides which of the two connects, encodes the private data, and
 * decides what to do with a received Request.
 */
#ifndef UWARP_CM_RC_H
#define UWARP_CM_RC_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ip.h"
#include "base/span.h"

/* TCP port; the same number as the UDP port of RoCEv2. */
#define RC_PORT 4791u

/* A QP, identified by its address and its QP number. */
struct rc_end {
	struct uw_ip addr;
	uint32_t qpn;
};

/* The private data of the Request and of the Reply. */
struct rc_wire {
	uint8_t key[4]; /* "uwRC" */
	uint8_t version;
	uint8_t refusal; /* enum rc_refusal */
	uint8_t rnr;	 /* the sender's RNR retry count plus 1; 0: not given */
	uint8_t zero;
	uint8_t from[4], to[4]; /* QP numbers */
};
static_assert(sizeof(struct rc_wire) == 16, "private data of CM-less RC");

enum rc_refusal {
	RC_REFUSED_NOT, /* no refusal: the message is a Request or an accepting Reply */
	RC_NO_SUCH_QP,	/* there is no QP with that number (any more) */
	RC_OTHER_PEER,	/* the QP has named another peer, and still does after a while */
	RC_NOT_READY,	/* the QP has not named a peer yet: try again */
	RC_WRONG_SIDE,	/* the other side should connect: the two do not agree on their addresses */
	RC_ELSEWHERE, /* no QP of this process, but others share its address: ask which port has it
		       */
};

/* retry count without a limit: InfiniBand specification, volume 1, §9.7.5.2.8 */
#define RC_RNR_FOR_EVER 7u

struct rc_hello {
	uint32_t from, to; /* QP numbers */
	enum rc_refusal refusal;
	/* The RNR retry count of the sender; RC_RNR_FOR_EVER: no limit, also the value if the
	 * sender gave none. */
	uint8_t rnr_retry;
};

void rc_hello_encode(const struct rc_hello *h, uint8_t out[sizeof(struct rc_wire)]);
/* False: pd is not of CM-less RC, or of another version. */
bool rc_hello_decode(struct uw_span pd, struct rc_hello *h);

/* How long a Send that finds no receive waits: the time that the retries of InfiniBand would take,
 * from our RNR NAK timer (encoded as in §9.7.5.2.8 table 45) and the retry count of the peer. At
 * least RC_RNR_LEAST_US; UINT64_MAX: no limit. */
#define RC_RNR_LEAST_US 3000000u
uint64_t rc_rnr_wait_us(uint8_t min_rnr_timer, uint8_t peer_rnr_retry);

/* Does `self` connect, rather than wait for a connection? True for exactly one of two ends; false
 * for an end that names itself. */
bool rc_connects(const struct rc_end *self, const struct rc_end *peer);

/* The progress of the QP for which a Request came. */
enum rc_phase {
	RC_NO_QP,
	RC_NAMES_NOBODY, /* the QP is not in RTR yet */
	RC_AWAITS,	 /* in RTR or RTS, and has had no stream since */
	RC_HAS_HAD_ONE,	 /* in RTR or RTS, and has a stream or has lost one */
};

enum rc_verdict {
	RC_TAKE,
	/* keep the Request: either the QP will need it, or its TCP connection will end by itself */
	RC_PARK,
	/* keep the Request for a moment, then refuse: the program may be about to reset the QP for
	   this peer */
	RC_PARK_BRIEFLY,
	RC_REFUSE,
};

/* Decide about a Request from `caller` for the QP `self`, which has named `named`. *why: the reason
 * to send with RC_REFUSE, or when the Request has been kept for too long. */
enum rc_verdict rc_judge(enum rc_phase phase, const struct rc_end *self, const struct rc_end *named,
			 const struct rc_end *caller, enum rc_refusal *why);

#endif
