/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#include <stdlib.h>

#include "provider.h"

static void on_event(void *arg, enum uw_event ev)
{
	struct uwarp_srq *srq = arg;

	uwarp_async_post(&srq->async, ev);
}

struct ibv_srq *uwarp_create_srq(struct ibv_pd *ibpd, struct ibv_srq_init_attr *attr)
{
	struct uwarp_pd *pd = to_uwarp_pd(ibpd);
	struct uwarp_srq *srq = calloc(1, sizeof(*srq));
	struct uw_srq_attr uw = {
		.max_wr = attr->attr.max_wr,
		.max_sge = attr->attr.max_sge,
		.event = on_event,
		.ctx = srq,
	};
	int rc;

	if (!srq)
		return uwarp_fail(-ENOMEM);
	srq->api = pd->api;
	srq->async.ctx = to_uwarp_context(ibpd->context);
	srq->async.element = (uintptr_t)&srq->srq;
	rc = srq->api->srq_create(pd->uw, &uw, &srq->uw);
	if (rc) {
		free(srq);
		return uwarp_fail(rc);
	}
	uwarp_pd_hold(ibpd);
	srq->max_wr = attr->attr.max_wr = uw.max_wr;
	srq->max_sge = uw.max_sge;
	return &srq->srq;
}

/* libibverbs leaves all of struct ibv_srq to the provider here. */
struct ibv_srq *uwarp_create_srq_ex(struct ibv_context *ibctx, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	struct ibv_srq_init_attr plain = { .srq_context = attr->srq_context, .attr = attr->attr };
	struct ibv_srq *srq;

	if ((attr->comp_mask & ~known) ||
	    ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC))
		return uwarp_fail(-EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		return uwarp_fail(-EINVAL);
	srq = uwarp_create_srq(attr->pd, &plain);
	if (!srq)
		return NULL;
	attr->attr = plain.attr;
	srq->context = ibctx;
	srq->srq_context = attr->srq_context;
	srq->pd = attr->pd;
	pthread_mutex_init(&srq->mutex, NULL);
	pthread_cond_init(&srq->cond, NULL);
	return srq;
}

int uwarp_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct uwarp_srq *srq = to_uwarp_srq(ibsrq);
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->max_wr;
	int rc;

	if (mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR))
		return EINVAL;
	if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > max_wr)
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		rc = srq->api->srq_resize(srq->uw, &max_wr);
		if (rc)
			return -rc;
		srq->max_wr = max_wr;
	}
	if (!(mask & IBV_SRQ_LIMIT))
		return 0;
	return -srq->api->srq_set_limit(srq->uw, attr->srq_limit);
}

int uwarp_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct uwarp_srq *srq = to_uwarp_srq(ibsrq);

	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->api->srq_limit(srq->uw);
	return 0;
}

/* The account of events: see uwarp_destroy_cq(). */
int uwarp_destroy_srq(struct ibv_srq *ibsrq)
{
	struct uwarp_srq *srq = to_uwarp_srq(ibsrq);
	int rc = srq->api->srq_destroy(srq->uw);

	if (rc)
		return -rc;
	uwarp_pd_put(ibsrq->pd);
	uwarp_async_drop(&srq->async);
	if (uwarp_acked(&ibsrq->mutex, &ibsrq->cond, &ibsrq->events_completed, srq->async.reported))
		free(srq);
	return 0;
}
