/* SPDX-License-Identifier: BSD-3-Clause */
/* Which attributes a step from one state to another needs, and which it takes. */
#include "provider.h"

/* A row with `to` RESET ends a table: to RESET and to ERR lead all states, without attributes. */
struct step {
	uint8_t from, to;
	int needs, takes;
};

#define TO_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define PEER	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)

/* ---- RC ---- */

#define RC_INIT (TO_INIT | IBV_QP_ACCESS_FLAGS)
#define RC_PEER (PEER | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define SENDING                                                                                    \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |                    \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define UC_ANY_TIME                                                                                \
	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define ANY_TIME (UC_ANY_TIME | IBV_QP_MIN_RNR_TIMER)
#define PATH                                                                                       \
	(IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |                        \
	 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX)

/* The InfiniBand specification's tables (volume 1, §11.2.5.2). */
static const struct step rc[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, RC_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, RC_INIT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, RC_PEER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, SENDING, ANY_TIME },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, ANY_TIME },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, ANY_TIME },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, ANY_TIME | PATH },
	{ 0 },
};

/* ---- UC ---- */

static const struct step uc[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, RC_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, RC_INIT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, PEER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, UC_ANY_TIME },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, UC_ANY_TIME },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, UC_ANY_TIME },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, UC_ANY_TIME | IBV_QP_AV | IBV_QP_PKEY_INDEX },
	{ 0 },
};

/* ---- UD ---- */

#define UD_INIT	    (TO_INIT | IBV_QP_QKEY)
#define UD_ANY_TIME (IBV_QP_CUR_STATE | IBV_QP_QKEY)

static const struct step ud[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, UD_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, UD_INIT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_QKEY | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, UD_ANY_TIME },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, UD_ANY_TIME },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, UD_ANY_TIME },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, UD_ANY_TIME | IBV_QP_PKEY_INDEX },
	{ 0 },
};

/* NULL: no such step. */
static const struct step *find(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const struct step *s = type == IBV_QPT_UD ? ud : type == IBV_QPT_UC ? uc : rc;

	while (s->to && (s->from != from || s->to != to))
		s++;
	return s->to ? s : NULL;
}

bool uwarp_step_takes(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	const struct step *s = find(type, from, to);
	int rest = mask & ~IBV_QP_STATE;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return !(rest & ~IBV_QP_CUR_STATE);
	return s && !(rest & ~(s->needs | s->takes));
}

bool uwarp_step_is_ok(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	const struct step *s = find(type, from, to);

	return uwarp_step_takes(type, from, to, mask) && (!s || (mask & s->needs) == s->needs);
}
