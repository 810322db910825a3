/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC and UD queue pairs: packets of RoCEv2 beside TCP, on the first stack
 * (doc/adr/0032). roce/ knows the packets; this folder finds the QP, the addresses and the room.
 * Under the stack lock unless a comment says otherwise.
 */
#ifndef UWARP_CONN_DGRAM_DGRAM_H
#define UWARP_CONN_DGRAM_DGRAM_H

#include "conn/conn_qp.h"
#include "roce/qp.h"

struct dgram {
	struct roce_qp r;
	struct conn_qp *q;
	struct io_link *l; /* UC: the link to the peer */
	bool waits;	   /* on the list stack.dgram_first */
	struct dgram *next;
};

/* ---- dgram.c ------------------------------------------------------------------------------- */

/* Can the process have UC and UD QPs? UW_E_UNSUPPORTED: no; a line on stderr says why. */
uw_status dgram_possible(const struct conn_domain *d) UW_CHECK;
/* Make q, which is all zero but for its queues, a UC or UD QP. No lock held. */
uw_status dgram_make(struct conn_qp *q, const struct conn_domain *domain,
		     enum roce_transport t) UW_CHECK;
/* q is reset, or about to be destroyed; it may be an RC QP. */
void dgram_reset(struct conn_qp *q);
/* Before RTR, for UC and UD: packets may come from now on. An RC QP needs nothing. */
uw_status dgram_ready(struct conn_qp *q) UW_CHECK;
/* The part of uw_qp_name_peer for UC after the way to the peer was found: INIT to RTR. */
uw_status dgram_name_peer(struct conn_qp *q, const struct uw_peer *p) UW_CHECK;
/* No lock held; may block. Find the way to the address of a; *out is for the requests. */
uw_status dgram_address(struct stack *s, const struct uw_ah_attr *a, struct uw_ah *out) UW_CHECK;
/* No lock held; may block. Find the way to a UC QP's peer. */
void dgram_find_way(struct stack *s, const struct uw_peer *p);

/* ---- dgram_group.c ------------------------------------------------------------------------- */

/* A QP is a member of a multicast group. */
struct dgram_group {
	struct dgram_group *next; /* stack.groups */
	struct conn_qp *q;
	struct uw_ip addr;
};

/* Under all locks. *first, *last: the process was, or is, no member otherwise, so dgram_tell_links
 * is due. Joining twice is joining once. UW_E_INVAL: no UD QP, no multicast address, no member.
 * UW_E_NOMEM: there are UW_GROUPS_MAX, or that many members, already. */
uw_status dgram_join(struct conn_qp *q, const struct uw_ip *group, bool *first) UW_CHECK;
uw_status dgram_leave(struct conn_qp *q, const struct uw_ip *group, bool *last) UW_CHECK;
/* Any group that q is a member of; false: none. */
bool dgram_some_group(struct conn_qp *q, struct uw_ip *out);
/* No lock held; may block (io_ops.group). */
uw_status dgram_tell_links(struct stack *s, const struct uw_ip *group, bool in) UW_CHECK;
/* A packet to a group; sender: the QP of ours that sends it, NULL: it came from the link. */
void dgram_group_packet(struct stack *s, const struct roce_packet *p, const struct conn_qp *sender);

/* ---- dgram_link.c -------------------------------------------------------------------------- */

/* The link and the address that roce_to.source names; NULL: none. */
struct io_link *dgram_source(const struct stack *s, uint8_t source, struct uw_ip *out);

/* Largest payload of a packet on the link: 256, 512, ... 4096 (IBA §9.6.1.6). */
uint32_t dgram_mtu(const struct io_link *l);

/* Before packets to QP number qpn can come, of which there need be none (io_ops.claim_packets).
 * Under the locks of all stacks. */
uw_status dgram_claim(const struct stack *s, uint32_t qpn) UW_CHECK;

/* The UC or UD QP of this number, NULL: none of this process. */
struct conn_qp *dgram_find(const struct stack *s, uint32_t qpn);

/* ---- dgram_send.c -------------------------------------------------------------------------- */

/* conn_peer_ops of UC and UD */
extern const struct conn_peer_ops dgram_peer_ops;
/* Those that wait for room or for their turn. */
void dgram_send_waiting(struct stack *s);
void dgram_wait_no_more(struct dgram *d);

/* ---- dgram_receive.c ----------------------------------------------------------------------- */

/* llp_user.packet */
void dgram_packet(void *arg, struct io_link *l, struct uw_rope packet);

#endif
