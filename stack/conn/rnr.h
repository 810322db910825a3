/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiver not ready (RNR): a Send came and no receive is posted (doc/adr/0005). The received
 * octets wait, and TCP's window closes, until a receive is posted or a time limit is over. Other
 * connections are not affected. A FLUSH that waits for its disk (persist.h) waits the same way, but
 * without a limit.
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
	/* protects the taking of receives, and `first` and `last`; taken inside a stack lock, or
	 * alone */
	struct spin takes;
	_Atomic bool waited; /* `first` is not NULL, or will be set */
	struct conn_qp *first, **last;
};

enum rnr_state {
	RNR_NO,
	RNR_WAITS,
	RNR_WAITS_FIN, /* and the peer sent its FIN after that Send */
};

/* Any thread, after a post: does a Send wait for a receive? */
bool rnr_is_waited(_Atomic bool *waited);
/* Any thread, no stack lock: call this if rnr_is_waited() is true after receives were posted to the
 * SRQ. */
void rnr_srq_posted(struct rnr_srq *srq);

/* All below under the lock of the QP's stack. A Send came and the QP has no receive, or a FLUSH is
 * under way: pause the stream. False: there is a receive by now. */
bool rnr_wait(struct conn_qp *q);
/* May the stream go on? If true, the QP no longer waits in the queues; the caller updates struct
 * conn. */
bool rnr_may_go_on(struct conn_qp *q);
/* Wake the first QP in the list of the SRQ, if receives are left. */
void rnr_wake_next(struct rnr_srq *srq);
/* The first half of rnr_wait: mark the QP as waiting, so that a post sees the mark. False: there is
 * a receive. */
bool rnr_enqueue(struct conn_qp *q);
/* Cancel the wait of the QP, if any. */
void rnr_forget(struct conn_qp *q);
/* The peer's FIN came. True: handle the FIN later, since a Send before the FIN waits. */
bool rnr_fin(struct conn *c);

#endif
