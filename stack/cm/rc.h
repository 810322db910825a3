/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CM-less RC (doc/adr/0006-cm-less-rc.md): two programs tell each other their GIDs and QP numbers
 * by means of their own, then each takes its QP to RTR, naming the other. Underneath is an ordinary
 * MPA connection to port RC_PORT of one of the two, whose Request says for which QP it is. Which of
 * the two connects, what the Request says, and what to do with one that came.
 */
#ifndef UWARP_CM_RC_H
#define UWARP_CM_RC_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ip.h"
#include "base/span.h"

/* TCP. The number that RoCEv2 has in UDP. */
#define RC_PORT 4791u

/* A QP in the network: numbers are unique per address. */
struct rc_end {
	struct uw_ip addr;
	uint32_t qpn;
};

/* The private data of the Request and of the Reply. */
struct rc_wire {
	uint8_t key[4]; /* "uwRC" */
	uint8_t version;
	uint8_t refusal; /* enum rc_refusal */
	uint8_t rnr;	 /* the sender's RNR retry count and 1; 0: it does not say */
	uint8_t zero;
	uint8_t from[4], to[4]; /* QP numbers */
};
static_assert(sizeof(struct rc_wire) == 16, "private data of CM-less RC");

enum rc_refusal {
	RC_REFUSED_NOT, /* a Request */
	RC_NO_SUCH_QP,	/* there is none of that number (any more) */
	RC_OTHER_PEER,	/* it names another peer, and has not changed its mind for a while */
	RC_NOT_READY,	/* it names nobody yet: try again */
	RC_WRONG_SIDE,	/* it is the other side that connects: the two do not agree on addresses */
};

#define RC_RNR_FOR_EVER 7u /* InfiniBand specification, volume 1, §9.7.5.2.8 */

struct rc_hello {
	uint32_t from, to; /* QP numbers */
	enum rc_refusal refusal;
	/* How often its Sends that find no receive would be tried again; RC_RNR_FOR_EVER: no limit,
	 * and what those mean that do not say. */
	uint8_t rnr_retry;
};

void rc_hello_encode(const struct rc_hello *h, uint8_t out[sizeof(struct rc_wire)]);
/* False: it is not ours, or of another version. */
bool rc_hello_decode(struct uw_span pd, struct rc_hello *h);

/* How long a Send that finds no receive waits for one: what InfiniBand's retries would take, by
 * this side's RNR NAK timer (its encoding, §9.7.5.2.8 table 45) and the peer's retry count. Never
 * less than RC_RNR_LEAST_US; UINT64_MAX: for ever. */
#define RC_RNR_LEAST_US 3000000u
uint64_t rc_rnr_wait_us(uint8_t min_rnr_timer, uint8_t peer_rnr_retry);

/* Does `self` connect, rather than wait to be connected? For any two ends it is exactly one; an end
 * that names itself does not. */
bool rc_connects(const struct rc_end *self, const struct rc_end *peer);

/* How far the QP is that a Request is for. */
enum rc_phase {
	RC_NO_QP,
	RC_NAMES_NOBODY, /* not yet in RTR */
	RC_AWAITS,	 /* in RTR or RTS, and has had no stream since */
	RC_HAS_HAD_ONE,	 /* ... has one, or has lost it */
};

enum rc_verdict {
	RC_TAKE,
	RC_PARK,	 /* it will be wanted, or will go by itself */
	RC_PARK_BRIEFLY, /* the QP may be about to be reset for this peer; then refuse it */
	RC_REFUSE,
};

/* What to do with a Request from `caller` for the QP `self`, which names `named`. *why: what to
 * tell it with RC_REFUSE, or once it has been parked too long. */
enum rc_verdict rc_judge(enum rc_phase phase, const struct rc_end *self, const struct rc_end *named,
			 const struct rc_end *caller, enum rc_refusal *why);

#endif
