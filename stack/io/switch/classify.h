/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switching table of uwarpd: which client holds which TCP port and which QP of datagrams, and
 * where a frame goes. All clients share one IPv4 address and a few of IPv6. Frames come in as
 * octets, verdicts come out: no I/O, no clock, no memory of its own.
 *
 * A client may send TCP segments from the ports that it holds, with an address and the MAC of the
 * uwarpd, packets of RoCEv2 (datagram.c), and questions for neighbours: ARP requests, and neighbor
 * solicitations of IPv6 (icmp6.c). It receives TCP segments to its ports, packets of RoCEv2 to its
 * QPs, answers of neighbours, and ICMPv6 errors about segments from its ports. What goes to a
 * shared address itself goes from client to client.
 */
#ifndef UWARP_IO_SWITCH_CLASSIFY_H
#define UWARP_IO_SWITCH_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ip.h"

enum {
	SWITCH_NOBODY = 0, /* no client; clients have the numbers 1 to SWITCH_CLIENTS_MAX */
	SWITCH_CLIENTS_MAX = 1024,
	SWITCH_FRAME_MAX = 65535, /* octets of a frame, Ethernet header included */
	/* Octets that are looked at, at most: Ethernet, IPv6, and what a question of RC without
	 * rdma_cm asks for (datagram.c). Ethernet, IPv4 and TCP with all options are shorter. */
	SWITCH_HEAD_MAX = 14 + 40 + 108,
	SWITCH_SEGMENTS_MAX = 64, /* most segments of a merged frame */
	SWITCH_CM_QP = 1,	  /* of management datagrams; several clients may have it */
	SWITCH_RC_PORT = 4791,	  /* TCP: where RC without rdma_cm is called first */
	SWITCH_QPN_END = 1 << 24, /* QP numbers are below */
	SWITCH_IP6_MAX = 6,	  /* addresses of IPv6 */
	SWITCH_ASKED_MAX = 4096,  /* questions whose asker is known; a power of two */
	SWITCH_ASKED_S = 3,	  /* so long nobody else asks in the place of one */
};

/* Who waits for an answer, on SWITCH_CM_QP. Transactions are random (roce/mad.h). */
struct switch_asked {
	uint64_t tid;
	uint16_t client; /* SWITCH_NOBODY: none */
	uint16_t second; /* struct switch_qps.second when it asked */
};

/* Which client has which QP, of datagrams or of RC without rdma_cm. Large, and only touched where
 * there is one. */
struct switch_qps {
	uint16_t holder[SWITCH_QPN_END];      /* by QP number, SWITCH_CM_QP apart */
	uint16_t n[SWITCH_CLIENTS_MAX + 1];   /* by client: how many it has in holder */
	bool manages[SWITCH_CLIENTS_MAX + 1]; /* by client: it has SWITCH_CM_QP */
	/* Questions that clients have sent, by the lower bits of their transaction. */
	struct switch_asked asked[SWITCH_ASKED_MAX];
	uint16_t second; /* counts up */
	/* A question about a QP that nobody has claimed may go to all: its claim may have failed
	 * for a passing reason, and is made again when it is asked for. One for each time this is
	 * set, since each wakes all. */
	bool may_ask_all;
};

struct switch_table {
	uint32_t addr; /* IPv4, network order; 0: none */
	struct uw_ip ip6[SWITCH_IP6_MAX];
	unsigned n_ip6;
	uint8_t mac[6];
	uint32_t mtu; /* octets of an IP packet; a merged frame may be longer */
	/* Nobody else has the addresses: the uwarpd answers who asks for them (ARP, ND), and resets
	 * connections to ports that nobody holds. Else the kernel does. */
	bool own;
	bool merges; /* the port takes merged frames */
	/* Of SWITCH_RC_PORT: the uwarpd has it from the kernel, gives it to no client and refuses
	 * who calls there. */
	bool refuses, refuses6;
	/* By port in host order: number of the client, SWITCH_NOBODY. IPv6 has its own ports. */
	uint16_t holder[65536], holder6[65536];
	struct switch_qps *qps; /* NULL: packets of RoCEv2 are dropped */
};

/* What became of a frame. */
enum switch_verdict {
	SWITCH_DROP,
	SWITCH_TO_PORT,	  /* out */
	SWITCH_TO_CLIENT, /* to one client */
	SWITCH_TO_ALL,	  /* to every client */
	SWITCH_TO_CM,	  /* to every client with SWITCH_CM_QP but the one that sent it */
	SWITCH_ANSWER,	  /* the uwarpd answers it: answer.h */
};

/* Why a frame was dropped. A counter exists for each. */
#define SWITCH_REASONS(X)                                                                          \
	X(none)                                                                                    \
	X(length)      /* shorter than its headers, longer than the link's MTU, or cut */          \
	X(protocol)    /* none of those above, or a message of it that may not be sent */          \
	X(fragment)    /* a fragment of an IP packet */                                            \
	X(source_mac)  /* from a client: another MAC than the link's */                            \
	X(source_addr) /* from a client: another IP address than the link's */                     \
	X(source_port) /* from a client: a port that it does not hold */                           \
	X(source_qp)   /* from a client: a QP that it does not have */                             \
	X(target)      /* to a MAC or address that the frame may not be sent to */                 \
	X(no_holder)   /* to a port or a QP that no client holds */                                \
	X(merge)       /* a merged frame that may not be sent */                                   \
	X(room)	       /* the client's conduit is full */

enum switch_reason {
#define SWITCH_REASON_NAME(name) SWITCH_WHY_##name,
	SWITCH_REASONS(SWITCH_REASON_NAME)
#undef SWITCH_REASON_NAME
		SWITCH_WHY_COUNT
};

struct switch_counts {
	uint64_t by[SWITCH_WHY_COUNT];
};

/* A frame. Only `head` is read: the first octets, which nobody else can change meanwhile. */
struct switch_frame {
	const uint8_t *head;
	uint32_t head_len; /* at least the smaller of len and SWITCH_HEAD_MAX */
	uint32_t len;	   /* octets of the frame */
	uint16_t gso_size; /* octets of payload in a segment, if merged; else 0 */
};

struct switch_result {
	enum switch_verdict verdict;
	enum switch_reason why; /* SWITCH_DROP */
	uint16_t client;	/* SWITCH_TO_CLIENT */
	uint32_t headers;	/* of TCP: octets of all headers; else 0 */
	uint32_t tcp;		/* of TCP: where its header begins */
	uint32_t segments;	/* on the wire, at least 1 */
};

/* A frame that `client` sends. Never SWITCH_TO_ALL. SWITCH_ANSWER: it is for a port of the shared
 * address that no client holds, and the answer goes back to `client`. */
struct switch_result switch_out(const struct switch_table *t, uint16_t client,
				const struct switch_frame *f);
/* A frame that came in at the port. Never SWITCH_TO_PORT. */
struct switch_result switch_in(const struct switch_table *t, const struct switch_frame *f);

/* Is it an address of IPv6 that the clients share (16 octets)? */
bool switch_is_ours6(const struct switch_table *t, const uint8_t *addr);

/* The name of a reason, as counters show it. */
const char *switch_why(enum switch_reason why);

#endif
