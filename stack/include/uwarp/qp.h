/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and shared receive queues; conventions are in uwarp.h. */
#ifndef UWARP_QP_H
#define UWARP_QP_H

#include "uwarp/config.h"

struct uw_srq_attr {
	uint32_t max_wr;  /* 0 to 32768; out: how many there is room for, a power of two */
	uint32_t max_sge; /* 0 to 32; 0 counts as 1 */
	void (*event)(void *ctx, enum uw_event ev);
	void *ctx;
};
/* Receives are checked against pd, whatever QP takes them. -EINVAL: above the limits; -ENOMEM. */
int uw_srq_create(struct uw_pd *pd, struct uw_srq_attr *attr, struct uw_srq **out);
int uw_srq_destroy(struct uw_srq *srq); /* -EBUSY while QPs use the SRQ */
/* Raise SRQ_LIMIT_REACHED once when fewer than `limit` receives are left; 0 disarms. */
int uw_srq_set_limit(struct uw_srq *srq, uint32_t limit);
/* Resize to at least *max_wr receives; the granted number comes back in *max_wr. -EINVAL: more
 * receives are posted, or *max_wr is too large. -ENOMEM. */
int uw_srq_resize(struct uw_srq *srq, uint32_t *max_wr);
uint32_t uw_srq_limit(const struct uw_srq *srq);
/* Post n receives; *done = how many were taken. -ENOMEM full, -EINVAL too many SGEs. */
int uw_srq_post_recv(struct uw_srq *srq, const struct uw_recv_wr *wr, unsigned n, unsigned *done);

/* RC speaks iWARP. UC and UD speak RoCEv2 (doc/adr/0032): they need the transport raw, and are all
 * on the first stack. */
enum uw_qp_type { UW_QPT_RC, UW_QPT_UC, UW_QPT_UD };

struct uw_qp_attr {
	enum uw_qp_type type;
	struct uw_cq *send_cq, *recv_cq;
	struct uw_srq *srq; /* NULL: the QP has its own RQ */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline; /* in/out */
	bool sq_sig_all;
	void (*event)(void *ctx, enum uw_event ev);
	void *ctx;
};

/* Create a QP. The capacities in *attr are set to the granted values (>= asked). -EINVAL: above the
 * limits of uw_device_attr; -ENOMEM; -EOPNOTSUPP: type, with a line on stderr. */
int uw_qp_create(struct uw_pd *pd, struct uw_qp_attr *attr, struct uw_qp **out);
/* Destroy the QP; ends the connection if there is one, and removes completions of the QP from the
 * CQs. */
int uw_qp_destroy(struct uw_qp *qp);
uint32_t uw_qp_num(const struct uw_qp *qp);
enum uw_qp_state uw_qp_state(const struct uw_qp *qp);
/* Most Reads and atomics in flight that both ends agreed on: of the peer (IRD), own (ORD). 0: no
 * stream has been made yet. */
struct uw_depths {
	uint16_t ird, ord;
};
struct uw_depths uw_qp_depths(const struct uw_qp *qp);
/* RESET, INIT and ERR take effect at once (RESET drops posted requests and their completions). RTR
 * and RTS take effect when the connection manager has the stream (RFC 5040 has no QP states). SQD
 * closes the stream once all posted requests were sent (rdma_disconnect). -EINVAL otherwise. */
int uw_qp_modify(struct uw_qp *qp, enum uw_qp_state to);

/* CM-less RC (doc/adr/0006-cm-less-rc.md): name the peer, and go from INIT to RTR. From now on the
 * QP has the states of InfiniBand. uw_qp_modify goes to RTS at once. Requests posted before the
 * peer is connected wait for cfg.rc_wait_ms; then the first fails with UW_WC_RETRY_EXC_ERR. SQD
 * stops sending, and RTS continues. The loss of the peer shows in the next request. A Send that
 * finds no receive waits for one. Starts the link. peer: addr, with any port; from: the local
 * address, NULL = that of the link. -EINVAL: not in INIT, or the peer is the QP itself;
 * -EAFNOSUPPORT, -EADDRNOTAVAIL, -EADDRINUSE, -ENOMEM. */
struct uw_peer {
	const struct sockaddr *addr, *from;
	uint32_t qpn;
	uint16_t ird; /* most Reads and atomics of the peer in flight */
	uint8_t tos;  /* DS field, as in uw_ep_set_tos */
	/* UC only, whose path is found here, which may block for a second */
	uint8_t hops;	     /* of multicast: TTL or hop limit; else 64 */
	uint32_t flow_label; /* chooses the UDP source port; 0: the QP numbers do */
	uint32_t path_mtu;   /* octets of payload in a packet; 0, or above that of the link: that */
	uint32_t rq_psn;
};
int uw_qp_name_peer(struct uw_qp *qp, const struct uw_peer *peer);
/* Timers in the encodings of InfiniBand; may be set at any time. The peer is told rnr_retry if set
 * before RTS, or within 20 ms after RTR. */
struct uw_path {
	/* A Send that finds no receive on this side waits as long as the retries of the peer would
	 * take, each min_rnr_timer long, but at least 3 s. Then the QP of the peer goes to error,
	 * and its first unacknowledged request fails with UW_WC_RNR_RETRY_EXC_ERR. 7 retries: no
	 * limit (the default). */
	uint8_t rnr_retry, min_rnr_timer;
};
int uw_qp_set_path(struct uw_qp *qp, const struct uw_path *path);
/* The UW_ACCESS_REMOTE_* rights of the stream; default all (the MR limits them further). */
int uw_qp_set_access(struct uw_qp *qp, unsigned access);

/* UC and UD: the PSN of the first packet, and for UD the Q_Key of datagrams to the QP. */
struct uw_datagrams {
	uint32_t sq_psn, qkey;
};
int uw_qp_set_datagrams(struct uw_qp *qp, const struct uw_datagrams *d);

/* Groups of a process, and QPs of a group. */
#define UW_GROUPS_MAX	 64u
#define UW_GROUP_QPS_MAX 64u
/* in: make a UD QP a member of a multicast group (any port), else end that. It gets what is sent to
 * the group with its Q_Key, but for what it sends itself. Starts the link; may block for a second.
 * -EINVAL: not a UD QP, no multicast address, or not a member; -ENOMEM; -EOPNOTSUPP: the link. */
int uw_qp_group(struct uw_qp *qp, const struct sockaddr *group, bool in);

/* Where a datagram goes. A request to a UD QP has `how` plus the QP number of the destination as
 * remote_addr, dst as compare_add and swap, and the Q_Key as rkey. */
struct uw_ah {
	uint64_t how, dst[2];
};
struct uw_ah_attr {
	/* the destination, with any port; the local address, NULL = that of the link */
	const struct sockaddr *addr, *from;
	uint8_t tos, hops; /* DS field; of multicast: TTL or hop limit, else 64 */
};
/* Starts the link. Finds the way to the destination if there is one, which may block for a second;
 * without one what is sent is lost. -EAFNOSUPPORT, -EADDRNOTAVAIL. */
int uw_ah_make(struct uw_pd *pd, const struct uw_ah_attr *a, struct uw_ah *out);

/* Post n requests in order; *done = number posted. The error is that of the first request that was
 * refused: -EINVAL state, opcode, too many SGEs or inline too long; -ENOMEM SQ full (a slot becomes
 * free when its completion, or a later one, was polled). A request posted to a QP in error
 * completes with UW_WC_WR_FLUSH_ERR. */
int uw_post_send(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n, unsigned *done);
/* As uw_post_send, but posts all n requests or none. */
int uw_post_send_all(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n);
/* Post n receives, as uw_post_send; -ENOMEM RQ full. */
int uw_post_recv(struct uw_qp *qp, const struct uw_recv_wr *wr, unsigned n, unsigned *done);

#endif
