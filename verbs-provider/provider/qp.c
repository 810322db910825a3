/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: life. State is in qp_state.c, posting in post.c and qp_ex.c. */
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "base/log.h"
#include "provider.h"

#define LINE ((size_t)64)

static void on_event(void *arg, enum uw_event ev)
{
	struct uwarp_qp *qp = arg;

	if (ev != UW_EVENT_SQ_DRAINED || qp->tell_drained)
		uwarp_async_post(&qp->async, ev);
}

static enum uw_qp_type type_of(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? UW_QPT_UD : type == IBV_QPT_UC ? UW_QPT_UC : UW_QPT_RC;
}

static void fill_attr(struct uw_qp_attr *to, const struct ibv_qp_init_attr_ex *from,
		      struct uwarp_qp *qp)
{
	*to = (struct uw_qp_attr){
		.type = type_of(from->qp_type),
		.send_cq = to_uwarp_cq(from->send_cq)->uw,
		.recv_cq = to_uwarp_cq(from->recv_cq)->uw,
		.srq = from->srq ? to_uwarp_srq(from->srq)->uw : NULL,
		.max_send_wr = from->cap.max_send_wr,
		.max_recv_wr = from->cap.max_recv_wr,
		.max_send_sge = from->cap.max_send_sge,
		.max_recv_sge = from->cap.max_recv_sge,
		.max_inline = from->cap.max_inline_data,
		.sq_sig_all = from->sq_sig_all,
		.event = on_event,
		.ctx = qp,
	};
}

/* libibverbs leaves all of struct ibv_qp to the provider. */
static void fill_ibv_qp(struct ibv_qp *to, const struct ibv_qp_init_attr_ex *from, uint32_t num)
{
	to->context = from->pd->context;
	to->qp_context = from->qp_context;
	to->pd = from->pd;
	to->send_cq = from->send_cq;
	to->recv_cq = from->recv_cq;
	to->srq = from->srq;
	to->handle = to->qp_num = num;
	to->state = IBV_QPS_RESET;
	to->qp_type = from->qp_type;
	pthread_mutex_init(&to->mutex, NULL);
	pthread_cond_init(&to->cond, NULL);
}

/* Libraries try out all types of QPs (Open MPI, UCX) and take what there is. So the user is told at
 * the end, and only if the program got no QP at all. */
static atomic_bool refused_type, made_one;

__attribute__((destructor)) static void tell_of_refusal(void)
{
	if (refused_type && !made_one)
		uw_log("ibv_create_qp: %s has RC, UC and UD queue pairs; the program asked for "
		       "another type, such as XRC",
		       uwarp_device_name());
}

static bool has_type(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD;
}

static int qp_check(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS;

	if (!has_type(attr->qp_type)) {
		refused_type = true;
		return -EOPNOTSUPP;
	}
	if (attr->comp_mask & ~known)
		return -EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)
		return -EOPNOTSUPP; /* there is none that we have */
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->send_cq || !attr->recv_cq)
		return -EINVAL;
	if (uwarp_batch_wanted(attr) && !uwarp_batch_possible(attr))
		return -EOPNOTSUPP;
	return 0;
}

/* attr->cap comes back as granted. */
static int qp_new(struct ibv_qp_init_attr_ex *attr, struct uwarp_qp **out)
{
	struct uwarp_pd *pd = to_uwarp_pd(attr->pd);
	struct uw_qp_attr uw;
	struct uwarp_qp *qp;
	int rc;

	qp = aligned_alloc(LINE, (sizeof(*qp) + LINE - 1) & ~(LINE - 1));
	if (!qp)
		return -ENOMEM;
	memset(qp, 0, sizeof(*qp));
	qp->api = pd->api;
	qp->async.ctx = to_uwarp_context(attr->pd->context);
	qp->async.element = (uintptr_t)&qp->vqp.qp;
	qp->access = QP_ACCESS;
	qp->is_reset = true;
	qp->is_ud = attr->qp_type == IBV_QPT_UD;
	qp->path = uwarp_new_path;
	qp->sq_sig_all = attr->sq_sig_all;
	fill_attr(&uw, attr, qp);
	rc = qp->api->qp_create(pd->uw, &uw, &qp->uw);
	if (rc) {
		free(qp);
		return rc;
	}
	attr->cap = qp->cap = (struct ibv_qp_cap){
		.max_send_wr = uw.max_send_wr,
		.max_recv_wr = uw.max_recv_wr,
		.max_send_sge = uw.max_send_sge,
		.max_recv_sge = uw.max_recv_sge,
		.max_inline_data = uw.max_inline,
	};
	made_one = true;
	uwarp_pd_hold(attr->pd);
	fill_ibv_qp(&qp->vqp.qp, attr, qp->api->qp_num(qp->uw));
	*out = qp;
	return 0;
}

struct ibv_qp *uwarp_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	struct uwarp_qp *qp;
	int rc = qp_check(attr);

	(void)ibctx;
	if (!rc)
		rc = qp_new(attr, &qp);
	if (rc)
		return uwarp_fail(rc);
	if (uwarp_batch_wanted(attr)) {
		rc = uwarp_batch_create(qp);
		if (rc) {
			uwarp_destroy_qp(&qp->vqp.qp);
			return uwarp_fail(rc);
		}
	}
	return &qp->vqp.qp;
}

struct ibv_qp *uwarp_create_qp(struct ibv_pd *ibpd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = ibpd,
	};
	struct ibv_qp *qp = uwarp_create_qp_ex(ibpd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* Segments are placed in the order of the stream, but each by memcpy(), which promises no order
 * of the octets within it: a program that polls the last octet must not rely on the others. */
int uwarp_query_qp_data_in_order(struct ibv_qp *ibqp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)ibqp;
	(void)op;
	(void)flags;
	return 0;
}

/* The account of events: see uwarp_destroy_cq(). */
int uwarp_destroy_qp(struct ibv_qp *ibqp)
{
	struct uwarp_qp *qp = to_uwarp_qp(ibqp);
	int rc = qp->api->qp_destroy(qp->uw);

	if (rc)
		return -rc;
	uwarp_pd_put(ibqp->pd);
	uwarp_batch_destroy(qp);
	uwarp_async_drop(&qp->async);
	if (!uwarp_acked(&ibqp->mutex, &ibqp->cond, &ibqp->events_completed, qp->async.reported))
		return 0;
	pthread_mutex_destroy(&ibqp->mutex);
	pthread_cond_destroy(&ibqp->cond);
	free(qp);
	return 0;
}
