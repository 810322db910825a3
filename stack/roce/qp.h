/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a UC or a UD queue pair has besides its queues (struct qp), and its two ends: packets out,
 * packets in. Neither is acknowledged: a request is done when its last packet is made, and what is
 * lost is lost. IBA volume 1, §9.8.2 (UC), §9.8.3 (UD).
 */
#ifndef UWARP_ROCE_QP_H
#define UWARP_ROCE_QP_H

#include "qp/qp.h"
#include "roce/packet.h"

/* The message that is being received. */
enum roce_message { ROCE_NO_MESSAGE, ROCE_SEND, ROCE_WRITE };

struct roce_qp {
	struct qp *qp;
	uint8_t transport; /* ROCE_UC or ROCE_UD */
	bool infiniband;   /* uw_config.infiniband: what a datagram looks like */
	uint32_t psn;	   /* of the next packet to send */
	uint32_t mtu;	   /* octets of payload in a packet, at most */
	uint32_t qkey;	   /* UD */
	/* UC: the peer */
	struct roce_path path;
	uint32_t dest_qpn;
	/* UC: sending; octets of the request sq.tx that are sent */
	uint64_t sent;
	/* UC: receiving */
	uint32_t expected; /* PSN */
	uint8_t open;	   /* enum roce_message */
	bool has_recv;	   /* a receive was taken for `sgl`, and is not completed */
	struct mem_sgl sgl;
	struct roce_reth target; /* ROCE_WRITE */
	uint32_t got;		 /* octets of the message that have come */
};

/* The opcodes that a queue pair of this transport refuses: bits 1 << enum uw_wr_opcode. */
uint32_t roce_refused_ops(enum roce_transport t);

/* ---- send.c ------------------------------------------------------------------------------ */

/* A UD request names where it goes by an address handle, whose contents are in these fields of the
 * request: remote_addr, compare_add and swap. rkey is the Q_Key. */
struct roce_to {
	struct uw_ip dst;
	uint32_t qpn;
	uint8_t tos, hops;
	uint8_t source; /* which of the own addresses; the caller's numbers */
};
struct roce_to roce_to_of(const struct sqe *e);
/* The same the other way, without the QP number. */
void roce_to_pack(const struct roce_to *to, uint64_t *how, uint64_t dst[2]);

/* Has the QP a packet to send now? */
bool roce_tx_ready(const struct roce_qp *r);
/* The request that the next packet is of. */
const struct sqe *roce_tx_next(const struct roce_qp *r);
/* Make the next packet, for UD to `to` by `path`, for UC path is r->path. `room` is that of the
 * link's MTU. Returns its octets; 0: the request failed, and its QP is in error. */
size_t roce_tx(struct roce_qp *r, const struct roce_path *path, uint8_t *out, size_t room);

/* ---- receive.c --------------------------------------------------------------------------- */

/* Take in a packet to this QP. UW_OK: it was taken, or dropped and counted. Any other status: the
 * QP cannot go on. */
uw_status roce_rx(struct roce_qp *r, const struct roce_packet *p) UW_CHECK;

/* Forget a message that is only half here: the QP is reset. */
void roce_rx_forget(struct roce_qp *r);

#endif
