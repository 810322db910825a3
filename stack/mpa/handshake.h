/* SPDX-License-Identifier: BSD-3-Clause */
/* MPA start-up: makes the Request and the Reply, and derives from both frames what was agreed. RFC
 * 5044 §7.1, RFC 6581. wire/mpa_wire encodes and decodes the frames. */
#ifndef UWARP_MPA_HANDSHAKE_H
#define UWARP_MPA_HANDSHAKE_H

#include "wire/mpa_wire.h"

/* The policy of this side. */
struct mpa_policy {
	uint8_t rev;	 /* offered by an initiator: 1 or 2 */
	uint8_t rev_max; /* accepted by a responder: 0..rev_max */
	bool crc;	 /* RFC 5044 §4.4: true unless the administrator says otherwise */
	bool rx_markers; /* ask the peer to send markers */
	bool p2p;	 /* RFC 6581 §9.2 A */
	unsigned rtr;	 /* kinds of RTR messages that we can send and receive, enum mpa_rtr bits */
	uint16_t ird_max; /* most inbound reads that this side can hold */
	uint16_t ord_max;
};

/* What both sides agreed on; valid once the Reply has been sent or accepted. */
struct mpa_agreed {
	uint8_t rev;
	bool crc;
	bool tx_markers, rx_markers;
	bool p2p;
	enum mpa_rtr rtr; /* one kind, or MPA_RTR_NONE */
	uint16_t ird, ord;
};

/* Make the initiator's Request. ird, ord: the values that the program asks for (0 allowed). */
void mpa_request_make(const struct mpa_policy *p, uint16_t ird, uint16_t ord,
		      struct mpa_start *req);

/* Responder: check the Request. UW_E_MPA_FRAME: the frame is a Reply (both sides are responders).
 * UW_E_MPA_REVISION: the revision is above rev_max, RFC 5044 §7.1.1. */
uw_status mpa_request_check(const struct mpa_policy *p, const struct mpa_start *req) UW_CHECK;

/* Responder: make the accepting Reply to req, and set *out to what is agreed. ird, ord: the values
 * that the program grants. */
void mpa_reply_make(const struct mpa_policy *p, const struct mpa_start *req, uint16_t ird,
		    uint16_t ord, struct mpa_start *rep, struct mpa_agreed *out);

/* Responder: the rejecting Reply (RFC 5044 §7.1.1 R). */
void mpa_reject_make(const struct mpa_policy *p, const struct mpa_start *req,
		     struct mpa_start *rep);

/* Initiator: check the Reply to req, and set *out to what is agreed. UW_E_REJECTED: R is set.
 * UW_E_MPA_INITIATOR: the frame is a Request. UW_E_MPA_FRAME, UW_E_MPA_REVISION: the Reply does not
 * fit the Request. UW_E_MPA_IRD, UW_E_MPA_RTR (RFC 6581 §9.1, §9.2): the caller must send a
 * Terminate with this error and close. */
uw_status mpa_reply_check(const struct mpa_policy *p, const struct mpa_start *req,
			  const struct mpa_start *rep, struct mpa_agreed *out) UW_CHECK;

#endif
