/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FLUSH to a file waits for a disk. A thread of its own does, so that the stack and its other
 * connections go on (doc/adr/0033). The QP's stream waits meanwhile, as for a receive (rnr.h).
 */
#ifndef UWARP_CONN_PERSIST_H
#define UWARP_CONN_PERSIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/status.h"

struct conn_domain;
struct conn_qp;
struct persister;
struct qp;

enum persist_state {
	PERSIST_NO,
	PERSIST_WAITS, /* in the list of the thread, or the thread is at it */
	PERSIST_DONE,
	PERSIST_FAILED,
};

/* The FLUSH of a QP's stream. */
struct persist_job {
	TAILQ_ENTRY(persist_job) link; /* persister.jobs, under its lock */
	void *va;
	uint64_t len;
	_Atomic enum persist_state state;
};

/* Under all locks: from now on a thread calls `persist`, as in struct mem_table. */
uw_status persister_start(struct conn_domain *d, bool (*persist)(void *va, uint64_t len)) UW_CHECK;
/* No stack lock. A FLUSH that the thread has not begun is not carried out any more. False: the one
 * under way took more than `us` microseconds; the thread goes on. */
bool persister_stop(struct conn_domain *d, uint32_t us) UW_CHECK;
/* After persister_stop, which said true. */
void persister_forget(struct conn_domain *d);

/* All below under the stack lock. For qp.persist: UW_MORE: the thread is at it, and puts the QP on
 * its post ring when that is done. Without a thread it is done at once. */
uw_status persist_for_qp(struct qp *qp, void *va, uint64_t len) UW_CHECK;
/* Does a FLUSH of this QP's stream wait, or has one waited whose result nobody has taken yet? */
enum persist_state persist_state(const struct conn_qp *q);
/* Nobody waits for it any more. */
void persist_cancel(struct conn_qp *q);

#endif
