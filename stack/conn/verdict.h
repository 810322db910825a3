/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a connection's QP failed, in words. */
#ifndef UWARP_CONN_VERDICT_H
#define UWARP_CONN_VERDICT_H

#include "conn/walk.h"

#define CONN_VERDICT_TEXT 320u

/* One sentence without a full stop, such as "peer 10.0.0.2:7471 sent no ACK for 12.3 s: TCP gave
 * the connection up after 9 timeouts". why: as for conn_qp_down(). Under the stack lock. */
void conn_verdict(const struct conn *c, uw_status why, char out[CONN_VERDICT_TEXT]);

/* The QP of c goes to error: note it, and call conn_hooks.failed unless that is an orderly end. */
void conn_failed(struct conn *c, uw_status why);

#endif
