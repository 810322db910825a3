/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Management datagrams (MADs) of the communication manager: the two messages by which datagrams
 * find their peer (SIDR, service ID resolution). IBA volume 1, §13.4.2 (MAD header), §12.11.1
 * (SIDR_REQ), §12.11.2 (SIDR_REP), annex A11.2 (addresses in a request). They go from QP 1 to QP 1.
 * Layout only, no state. Numbers are in host order in the structs and big-endian on the wire.
 */
#ifndef UWARP_ROCE_MAD_H
#define UWARP_ROCE_MAD_H

#include "base/ip.h"
#include "base/span.h"

#define MAD_SIZE 256u	     /* octets of every MAD, IBA §13.4.2 */
#define MAD_QPN	 1u	     /* the QP of general services, IBA §13.5.1 */
#define MAD_QKEY 0x80010000u /* its Q_Key, IBA §10.2.4.2 */

#define SIDR_REQ_DATA 180u /* octets of private data that a program has of a request, annex A11 */
#define SIDR_REP_DATA 136u /* and of a reply, IBA §12.11.2 */

/* The port spaces of annex A11.2.1: part of a service ID. */
enum sidr_space {
	SIDR_TCP = 0x0106,
	SIDR_UDP = 0x0111,
	/* RFC 3692 §2.1 leaves protocol 253 to experiments: which TCP port leads to an RC QP
	 * (doc/adr/0048). Data of the request: the QP number, 4 octets; of the reply: the port, 2.
	 */
	SIDR_RC = 0x01fd,
};

/* Status of a reply, IBA §12.11.2.1. */
enum sidr_status { SIDR_VALID = 0, SIDR_NO_SERVICE = 1, SIDR_REJECTED = 2 };

struct sidr_req {
	uint16_t space, port;  /* the service that is asked for; port in host order */
	uint16_t src_port;     /* host order */
	struct uw_ip src, dst; /* of one version */
	uint8_t data[SIDR_REQ_DATA];
};

struct sidr_rep {
	uint8_t status; /* enum sidr_status; others are refusals, too */
	uint32_t qpn;	/* SIDR_VALID: where datagrams go to, and with which Q_Key */
	uint32_t qkey;
	uint16_t space, port; /* as in the request */
	uint8_t data[SIDR_REP_DATA];
};

enum mad_kind {
	MAD_OTHER, /* nothing that is understood here: to be dropped (IBA §13.4.6.4 allows it) */
	MAD_SIDR_REQ,
	MAD_SIDR_REP,
};

struct mad {
	enum mad_kind kind;
	uint64_t tid;	     /* transaction: a reply has the request's */
	uint32_t request_id; /* the same */
	union {
		struct sidr_req req;
		struct sidr_rep rep;
	};
};

/* Write m, which is not MAD_OTHER. */
void mad_encode(const struct mad *m, uint8_t out[MAD_SIZE]);
/* Read a datagram's payload of any length and content; returns m->kind. */
enum mad_kind mad_decode(struct uw_rope in, struct mad *m);

#endif
