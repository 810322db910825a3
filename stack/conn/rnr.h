/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiver not ready (RNR): a Send came and no receive is posted (doc/adr/0005). The connection's
 * octets stay where they are and TCP's window closes, until a receive is posted or the time is
 * over. Other connections go on.
 */
#ifndef UWARP_CONN_RNR_H
#define UWARP_CONN_RNR_H

#include "base/spin.h"
#include "qp/rq.h"

struct conn;
struct conn_qp;

/* A shared receive queue and the QPs that wait for its receives, first come first served. QPs of
 * several stacks may wait. */
struct rnr_srq {
	struct rq rq;
	struct spin
		takes; /* protects taking receives, first and last; inside a stack lock, or alone */
	_Atomic bool waited; /* first is not NULL, or is about to be set */
	struct conn_qp *first, **last;
};

enum rnr_state {
	RNR_NO,
	RNR_WAITS,
	RNR_WAITS_FIN, /* and the peer has closed its half of the connection behind that Send */
};

/* Any thread, after a post: does a Send wait for it? */
bool rnr_is_waited(_Atomic bool *waited);
/* Any thread, no stack lock: receives were posted to the SRQ and rnr_is_waited() says so. */
void rnr_srq_posted(struct rnr_srq *srq);

/* All below under the lock of the QP's stack. The QP has no receive for the Send that came: its
 * stream stops. False: there is a receive by now. */
bool rnr_wait(struct conn_qp *q);
/* May the stream go on? Then it counts as not waiting any more, but for struct conn. */
bool rnr_may_go_on(struct conn_qp *q);
/* Its QP has gone on, or will not: the next one of the list may, if receives are left. */
void rnr_wake_next(struct rnr_srq *srq);
/* The first half of rnr_wait: from now on a post hears that the QP waits. False: there is a
 * receive. */
bool rnr_enqueue(struct conn_qp *q);
/* No post needs to know any more. */
void rnr_dequeue(struct conn_qp *q);
/* The QP waits no longer. */
void rnr_forget(struct conn_qp *q);
/* The peer's FIN came. True: it has to wait behind a Send that waits. */
bool rnr_fin(struct conn *c);

#endif
