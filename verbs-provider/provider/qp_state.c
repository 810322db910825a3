/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_modify_qp() and ibv_query_qp(). A QP is connected by rdma_cm, which moves it with next to no
 * attributes, as iWARP devices have it; or its program names the peer on the way to RTR, and then
 * the rules are InfiniBand's: which attributes a step needs and which it takes.
 */
#include <netinet/in.h>
#include <string.h>

#include "facts.h"
#include "provider.h"

/* Nothing is said: who finds no receive waits for ever. */
const struct uw_path uwarp_new_path = { .rnr_retry = 7 };

/* ---- the peer ------------------------------------------------------------------------------ */

/* UC: its packets' sizes and numbers. */
static void fill_uc(struct uw_peer *peer, const struct ibv_qp_attr *attr)
{
	peer->path_mtu = 128u << attr->path_mtu;
	peer->rq_psn = attr->rq_psn;
	if (!attr->ah_attr.is_global)
		return;
	peer->hops = attr->ah_attr.grh.hop_limit;
	peer->flow_label = attr->ah_attr.grh.flow_label;
}

static int name_peer(struct uwarp_qp *qp, const struct ibv_qp_attr *attr)
{
	const struct ibv_ah_attr *ah = &attr->ah_attr;
	struct uw_device_attr dev;
	struct uwarp_stack stack;
	struct uwarp_ends ends;
	struct uw_peer peer = { .addr = (struct sockaddr *)&ends.peer,
				.qpn = attr->dest_qp_num,
				.ird = attr->max_dest_rd_atomic,
				.tos = ah->is_global ? ah->grh.traffic_class : 0 };
	int rc = uwarp_stack_get(&stack);

	if (rc)
		return rc;
	uwarp_query_for_lids(&stack, &dev);
	rc = uwarp_find_ends("ibv_modify_qp", &dev, ah, &ends);
	if (!rc && IN6_IS_ADDR_MULTICAST(&ends.peer.sin6_addr))
		rc = -EINVAL;
	if (rc)
		return rc;
	peer.from = ends.from;
	if (qp->vqp.qp.qp_type == IBV_QPT_UC)
		fill_uc(&peer, attr);
	return qp->api->qp_name_peer(qp->uw, &peer);
}

/* ---- modify -------------------------------------------------------------------------------- */

static bool depth_is_ok(unsigned depth)
{
	struct uw_device_attr dev;
	struct uwarp_stack stack;

	if (uwarp_stack_get(&stack))
		return true; /* which the step itself finds out */
	stack.api->engine_query(stack.engine, &dev);
	return depth <= dev.max_rd_atom;
}

static bool values_are_ok(const struct ibv_qp_attr *attr, int mask)
{
	return (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) || depth_is_ok(attr->max_rd_atomic)) &&
	       (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) || depth_is_ok(attr->max_dest_rd_atomic)) &&
	       (!(mask & IBV_QP_PORT) || attr->port_num == 1) &&
	       (!(mask & IBV_QP_PKEY_INDEX) || !attr->pkey_index) &&
	       (!(mask & IBV_QP_PATH_MTU) ||
		(attr->path_mtu >= IBV_MTU_256 && attr->path_mtu <= IBV_MTU_4096)) &&
	       (!(mask & IBV_QP_STATE) || attr->qp_state <= IBV_QPS_ERR);
}

/* An alternate path would be another address, and rates are not ours to shape. Above the last bit
 * of verbs none means anything, and nobody else takes one. */
#define VERBS_KNOWS ((IBV_QP_DEST_QPN << 1) - 1)
#define NOT_HERE    (IBV_QP_CAP | IBV_QP_ALT_PATH | ~VERBS_KNOWS)

static bool is_ud(const struct uwarp_qp *qp)
{
	return qp->vqp.qp.qp_type == IBV_QPT_UD;
}

static bool is_roce(void)
{
	struct uw_device_attr dev;
	struct uwarp_stack stack;

	if (uwarp_stack_get(&stack))
		return false;
	stack.api->engine_query(stack.engine, &dev);
	return dev.roce;
}

/* librdmacm takes its QP through INIT, RTR and RTS when it hears of CONNECT_RESPONSE, which there
 * is as RoCE. The connection has brought it to RTS by then. The peer may even have left again, with
 * which the QP is in error: InfiniBand's would not notice, so these steps do not fail either. */
static bool is_there_already(const struct uwarp_qp *qp, enum ibv_qp_state to)
{
	enum uw_qp_state now = qp->api->qp_state(qp->uw);

	if (qp->vqp.qp.qp_type != IBV_QPT_RC || qp->named)
		return false;
	if (now == UW_QPS_RTS)
		return to == IBV_QPS_INIT || to == IBV_QPS_RTR;
	return now == UW_QPS_ERR && to >= IBV_QPS_INIT && to <= IBV_QPS_RTS && is_roce();
}

static bool is_connected(const struct uwarp_qp *qp)
{
	return qp->api->qp_state(qp->uw) == UW_QPS_RTS;
}

/* What rdma_init_qp_attr() hands out for a step, as RoCE: INIT's attributes are InfiniBand's. To
 * RTR it names the access rights and no peer, since MPA tells no QP number: so a step without those
 * is none of rdma_cm's. Whatever else the step takes a program may add. */
static bool is_handed_out(enum ibv_qp_state now, enum ibv_qp_state to, int mask)
{
	int rest = mask & ~IBV_QP_TIMEOUT; /* RDMA_OPTION_ID_ACK_TIMEOUT: with any step */

	if (!rest)
		return true; /* its step to RTS */
	if (to == IBV_QPS_RTS)
		return uwarp_step_takes(IBV_QPT_RC, now, to, rest);
	return uwarp_step_is_ok(IBV_QPT_RC, now, to, rest) ||
	       (to == IBV_QPS_RTR && (rest & IBV_QP_ACCESS_FLAGS) &&
		uwarp_step_takes(IBV_QPT_RC, now, to, rest));
}

/* Does rdma_cm make this step? Its masks here are the kernel iwcm's, and anything that InfiniBand's
 * timers and path would be is ignored, as iWARP devices do: TCP has its own. As RoCE, who sets a
 * PSN has a peer to name, unless the connection has brought the QP here already. */
static bool is_of_rdma_cm(const struct uwarp_qp *qp, enum ibv_qp_state now, enum ibv_qp_state to,
			  int mask)
{
	const int of_a_peer = IBV_QP_RQ_PSN | IBV_QP_SQ_PSN;

	if (qp->vqp.qp.qp_type != IBV_QPT_RC || qp->named || (mask & (IBV_QP_AV | IBV_QP_DEST_QPN)))
		return false;
	if (!is_roce() || is_connected(qp) || is_there_already(qp, to))
		return true;
	return !(mask & of_a_peer) && is_handed_out(now, to, mask);
}

static int check(const struct uwarp_qp *qp, enum ibv_qp_state now, const struct ibv_qp_attr *attr,
		 int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : now;

	if ((mask & NOT_HERE) || (!is_ud(qp) && (mask & IBV_QP_QKEY)))
		return -EOPNOTSUPP;
	if (!values_are_ok(attr, mask))
		return -EINVAL;
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != now && !is_there_already(qp, to))
		return -EINVAL;
	if (is_of_rdma_cm(qp, now, to, mask))
		return 0;
	return uwarp_step_is_ok(qp->vqp.qp.qp_type, now, to, mask) ? 0 : -EINVAL;
}

/* What the stack is told of InfiniBand's timers. */
static int set_path(struct uwarp_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (!(mask & (IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER)))
		return 0;
	if (mask & IBV_QP_RNR_RETRY)
		qp->path.rnr_retry = attr->rnr_retry & 7;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		qp->path.min_rnr_timer = attr->min_rnr_timer & 31;
	return qp->api->qp_set_path(qp->uw, &qp->path);
}

/* UC and UD. What was set before stays. */
static int set_datagrams(const struct uwarp_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct uw_datagrams d = { .qkey = mask & IBV_QP_QKEY ? attr->qkey : qp->set.qkey };

	if (qp->vqp.qp.qp_type == IBV_QPT_RC || !(mask & (IBV_QP_QKEY | IBV_QP_SQ_PSN)))
		return 0;
	d.sq_psn = mask & IBV_QP_SQ_PSN ? attr->sq_psn : qp->set.sq_psn;
	return qp->api->qp_set_datagrams(qp->uw, &d);
}

/* Datagrams may come from RTR on. The link starts at INIT already: a peer that is told of us before
 * we go on (ibv_ud_pingpong) asks for our MAC, and fails without an answer. */
static int start_link(void)
{
	struct uwarp_stack stack;
	int rc = uwarp_stack_get(&stack);

	return rc ? rc : stack.api->engine_start(stack.engine);
}

static int move(struct uwarp_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int rc = 0;

	if (!(mask & IBV_QP_STATE))
		return 0;
	if (qp->vqp.qp.qp_type != IBV_QPT_RC &&
	    (attr->qp_state == IBV_QPS_INIT || attr->qp_state == IBV_QPS_RTR))
		rc = start_link();
	if (rc)
		return rc;
	if (is_there_already(qp, attr->qp_state))
		return 0;
	if (mask & IBV_QP_DEST_QPN) {
		rc = name_peer(qp, attr);
		qp->named = !rc;
		return rc;
	}
	if (attr->qp_state == IBV_QPS_SQD)
		qp->tell_drained = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr->en_sqd_async_notify;
	rc = qp->api->qp_modify(qp->uw, (enum uw_qp_state)attr->qp_state);
	if (!rc)
		qp->is_reset = attr->qp_state == IBV_QPS_RESET;
	if (!rc && attr->qp_state == IBV_QPS_RESET) {
		qp->named = false;
		qp->path = uwarp_new_path;
	}
	return rc;
}

#define KEEP(flag, field)                                                                          \
	do {                                                                                       \
		if (mask & (flag))                                                                 \
			to->field = from->field;                                                   \
	} while (0)

/* For ibv_query_qp(). */
static void remember(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
	if ((mask & IBV_QP_STATE) && from->qp_state == IBV_QPS_RESET)
		memset(to, 0, sizeof(*to));
	KEEP(IBV_QP_PKEY_INDEX, pkey_index);
	KEEP(IBV_QP_QKEY, qkey);
	KEEP(IBV_QP_AV, ah_attr);
	KEEP(IBV_QP_PATH_MTU, path_mtu);
	KEEP(IBV_QP_TIMEOUT, timeout);
	KEEP(IBV_QP_RETRY_CNT, retry_cnt);
	KEEP(IBV_QP_RNR_RETRY, rnr_retry);
	KEEP(IBV_QP_RQ_PSN, rq_psn);
	KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	KEEP(IBV_QP_SQ_PSN, sq_psn);
	KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(IBV_QP_PATH_MIG_STATE, path_mig_state);
	KEEP(IBV_QP_DEST_QPN, dest_qp_num);
}

int uwarp_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct uwarp_qp *qp = to_uwarp_qp(ibqp);
	enum ibv_qp_state now = (enum ibv_qp_state)qp->api->qp_state(qp->uw);
	int rc = check(qp, now, attr, mask);

	if (!rc && (mask & IBV_QP_ACCESS_FLAGS)) {
		rc = qp->api->qp_set_access(qp->uw, attr->qp_access_flags & QP_ACCESS);
		if (!rc)
			qp->access = attr->qp_access_flags & QP_ACCESS;
	}
	if (!rc)
		rc = set_path(qp, attr, mask);
	if (!rc)
		rc = set_datagrams(qp, attr, mask);
	if (!rc)
		rc = move(qp, attr, mask);
	if (!rc)
		remember(&qp->set, attr, mask);
	return -rc;
}

/* ---- query --------------------------------------------------------------------------------- */

static uint8_t as_octet(unsigned n)
{
	return (uint8_t)(n < UINT8_MAX ? n : UINT8_MAX);
}

/* Of a QP that rdma_cm connected: librdmacm sets none of this, and the connection has agreed on it.
 * The peer's number no MPA frame tells. */
static void add_agreed(const struct uwarp_qp *qp, struct ibv_qp_attr *attr)
{
	struct uw_depths depths = qp->api->qp_depths(qp->uw);
	struct uw_device_attr dev;
	struct uwarp_stack stack;

	if (attr->qp_state < IBV_QPS_RTS || !depths.ird || uwarp_stack_get(&stack))
		return;
	stack.api->engine_query(stack.engine, &dev);
	attr->path_mtu = (enum ibv_mtu)uwarp_active_mtu(&dev);
	attr->max_rd_atomic = as_octet(depths.ord);
	attr->max_dest_rd_atomic = as_octet(depths.ird);
}

int uwarp_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct uwarp_qp *qp = to_uwarp_qp(ibqp);

	(void)mask; /* says what is wanted at least */
	*attr = qp->set;
	attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)qp->api->qp_state(qp->uw);
	attr->qp_access_flags = qp->access;
	attr->cap = qp->cap;
	attr->port_num = 1;
	if (ibqp->qp_type == IBV_QPT_RC && !qp->named)
		add_agreed(qp, attr);
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = qp->cap,
		.qp_type = ibqp->qp_type,
		.sq_sig_all = qp->sq_sig_all,
	};
	return 0;
}
