/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and shared receive queues; conventions are in uwarp.h. */
#ifndef UWARP_QP_H
#define UWARP_QP_H

#include "uwarp/config.h"

struct uw_srq_attr {
	uint32_t max_wr, max_sge;
	void (*event)(void *ctx, enum uw_event ev);
	void *ctx;
};
int uw_srq_create(struct uw_pd *pd, const struct uw_srq_attr *attr, struct uw_srq **out);
int uw_srq_destroy(struct uw_srq *srq); /* -EBUSY while QPs use it */
/* Raise SRQ_LIMIT_REACHED once when fewer than `limit` receives are left; 0 disarms. */
int uw_srq_set_limit(struct uw_srq *srq, uint32_t limit);
/* *max_wr: at least what is wanted; what was granted comes back. -EINVAL: more receives are posted
 * than that, or too many are wanted. -ENOMEM. */
int uw_srq_resize(struct uw_srq *srq, uint32_t *max_wr);
uint32_t uw_srq_limit(const struct uw_srq *srq);
/* Post n receives; *done = how many were taken. -ENOMEM full, -EINVAL too many SGEs. */
int uw_srq_post_recv(struct uw_srq *srq, const struct uw_recv_wr *wr, unsigned n, unsigned *done);

struct uw_qp_attr {
	struct uw_cq *send_cq, *recv_cq;
	struct uw_srq *srq; /* NULL: the QP has its own RQ */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline; /* in/out */
	bool sq_sig_all;
	void (*event)(void *ctx, enum uw_event ev);
	void *ctx;
};

/* attr's capacities come back as granted (>= asked). -EINVAL beyond uw_device_attr, -ENOMEM. */
int uw_qp_create(struct uw_pd *pd, struct uw_qp_attr *attr, struct uw_qp **out);
/* Ends the connection if there is one; completions still in the CQs disappear. */
int uw_qp_destroy(struct uw_qp *qp);
uint32_t uw_qp_num(const struct uw_qp *qp);
enum uw_qp_state uw_qp_state(const struct uw_qp *qp);
/* RESET, INIT and ERR are taken as asked (RESET forgets what is posted and its completions); RTR
 * and RTS are accepted and take effect when the connection manager has the stream (iWARP: RFC 5040
 * has no QP states); SQD is taken as a graceful close of the stream once what was posted is sent
 * (rdma_disconnect). -EINVAL otherwise. */
int uw_qp_modify(struct uw_qp *qp, enum uw_qp_state to);

/* CM-less RC (doc/adr/0006-cm-less-rc.md): name the peer, to RTR. From now on the QP's states are
 * the verbs' of InfiniBand: uw_qp_modify takes it to RTS at once, requests that are posted before
 * the peer is there wait for it (cfg.rc_wait_ms, then the first fails with UW_WC_RETRY_EXC_ERR),
 * SQD stops sending and back, and that the peer went away shows in the next request. A Send that
 * finds no receive waits for one. Starts the link. peer: the address, any port; from: ours, NULL =
 * the link's. -EINVAL not in INIT, or itself; -EAFNOSUPPORT, -EADDRNOTAVAIL, -EADDRINUSE, -ENOMEM.
 */
struct uw_peer {
	const struct sockaddr *addr, *from;
	uint32_t qpn;
	uint16_t ird; /* reads and atomics that it may have under way here */
	uint8_t tos;  /* as uw_ep_set_tos */
};
int uw_qp_name_peer(struct uw_qp *qp, const struct uw_peer *peer);
/* What InfiniBand's programs say of timers, in its encodings; at any time. The peer hears of
 * rnr_retry if it is known before RTS, or 20 ms after RTR. */
struct uw_path {
	/* A Send that finds no receive here waits for one as long as the peer's retries, of which
	 * each would take min_rnr_timer, and not less than 3 s: then the peer's QP goes to error,
	 * and a request that it has no acknowledgement of fails with UW_WC_RNR_RETRY_EXC_ERR. 7
	 * retries: for ever (the default). */
	uint8_t rnr_retry, min_rnr_timer;
};
int uw_qp_set_path(struct uw_qp *qp, const struct uw_path *path);
/* UW_ACCESS_REMOTE_* that the stream may use; default all (the MR decides). */
int uw_qp_set_access(struct uw_qp *qp, unsigned access);

/* Post n requests in order, one doorbell for all; *done = how many were taken. The first refused
 * one gives the return value: -EINVAL state, opcode, too many SGEs or inline too long; -ENOMEM SQ
 * full (a slot is free again when its completion, or a later one, was polled). A posted request on
 * a QP in error completes with UW_WC_WR_FLUSH_ERR. */
int uw_post_send(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n, unsigned *done);
/* All n or none. */
int uw_post_send_all(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n);
/* The same of receives; -ENOMEM RQ full. */
int uw_post_recv(struct uw_qp *qp, const struct uw_recv_wr *wr, unsigned n, unsigned *done);

#endif
