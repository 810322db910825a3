/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many QPs (base/prefetch.h): a post and a segment fetch what the message will touch. Under the
 * lock, but for engine_warm_post; nothing happens with few QPs, or over a transport that has no use
 * for it.
 */
#ifndef UWARP_ENGINE_WARM_H
#define UWARP_ENGINE_WARM_H

#include "engine/engine.h"

/* The QP has got its stream. */
void engine_warm_start(struct uw_qp *qp);

void engine_warm_own(const struct uw_qp *qp);
void engine_warm_next_slots(struct uw_qp *qp);
void engine_warm_recv_buffer(struct uw_qp *qp);
void engine_warm_send_buffer(struct uw_qp *qp);

static inline bool engine_is_warmed(const struct uw_qp *qp)
{
	return qp->at_llp && engine_of(qp)->lead->qps.used >= UW_PREFETCH_FROM;
}

/* Any thread, no lock: something is about to be posted, and other QPs' turns came since the last.
 */
static inline void engine_warm_post(const struct uw_qp *qp)
{
	__builtin_prefetch(&qp->prefetch_list);
	if (engine_of(qp)->lead->qps.used >= UW_PREFETCH_FROM)
		engine_warm_own(qp);
}
/* The slots that come next are others now. */
static inline void engine_warm_next(struct uw_qp *qp)
{
	if (engine_is_warmed(qp))
		engine_warm_next_slots(qp);
}
/* Octets came: where do they go? */
static inline void engine_warm_recv(struct uw_qp *qp)
{
	if (engine_is_warmed(qp))
		engine_warm_recv_buffer(qp);
}
/* Something is to be sent: where is it? */
static inline void engine_warm_send(struct uw_qp *qp)
{
	if (engine_is_warmed(qp))
		engine_warm_send_buffer(qp);
}

#endif
