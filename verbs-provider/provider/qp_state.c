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

/* ---- which attributes a step takes --------------------------------------------------------- */

#define TO_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define PEER                                                                                       \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |                           \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define SENDING                                                                                    \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |                    \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define ANY_TIME                                                                                   \
	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |        \
	 IBV_QP_MIN_RNR_TIMER)
#define PATH                                                                                       \
	(IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |                        \
	 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX)

/* The InfiniBand specification's table (volume 1, §11.2.5.2) for RC. To RESET and to ERR lead all
 * states, without attributes. */
static const struct step {
	uint8_t from, to;
	int needs, takes;
} steps[] = {
	{ IBV_QPS_RESET, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, TO_INIT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, PEER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, SENDING, ANY_TIME },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, ANY_TIME },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, ANY_TIME },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, ANY_TIME | PATH },
};

static bool step_is_ok(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	int rest = mask & ~IBV_QP_STATE;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return !(rest & ~IBV_QP_CUR_STATE);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct step *s = &steps[i];

		if (s->from == from && s->to == to)
			return (rest & s->needs) == s->needs && !(rest & ~(s->needs | s->takes));
	}
	return false;
}

/* ---- the peer ------------------------------------------------------------------------------ */

static bool gid_to_ip(const uint8_t gid[16], struct sockaddr_in6 *a)
{
	*a = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	memcpy(&a->sin6_addr, gid, sizeof(a->sin6_addr));
	return !IN6_IS_ADDR_UNSPECIFIED(&a->sin6_addr) && !IN6_IS_ADDR_MULTICAST(&a->sin6_addr);
}

/* Both ends are of one version, as an address and its GID index are with RoCEv2. */
static int find_own(const struct uw_device_attr *dev, uint8_t index, const struct sockaddr_in6 *to,
		    struct sockaddr_in6 *own)
{
	struct uwarp_facts f;

	uwarp_facts_of(dev, &f);
	if (index >= f.n_gids || !f.gid[index].present) {
		uwarp_warn("ibv_modify_qp: sgid_index %u is no GID of " UWARP_DEV_NAME
			   "; ibv_devinfo -v lists them",
			   index);
		return -EINVAL;
	}
	gid_to_ip(f.gid[index].raw, own);
	if (!IN6_IS_ADDR_V4MAPPED(&own->sin6_addr) == !IN6_IS_ADDR_V4MAPPED(&to->sin6_addr))
		return 0;
	uwarp_warn("ibv_modify_qp: one of the peer's GID and the own (index %u) is IPv4, the other "
		   "IPv6: let both sides use the same GID index",
		   index);
	return -EINVAL;
}

/* A program that names no GID has a LID. That is the lower half of the address (facts.h), and the
 * upper half is that of our own. */
static bool lid_to_ip(const struct uw_device_attr *dev, uint16_t lid, struct sockaddr_in6 *a)
{
	const struct sockaddr_in *own = (const struct sockaddr_in *)&dev->addr;
	uint32_t ip = own->sin_family != AF_INET
			      ? 0
			      : htonl((ntohl(own->sin_addr.s_addr) & 0xffff0000u) | lid);

	*a = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	a->sin6_addr.s6_addr[10] = a->sin6_addr.s6_addr[11] = 0xff;
	memcpy(&a->sin6_addr.s6_addr[12], &ip, sizeof(ip));
	return lid != 0 && own->sin_family == AF_INET;
}

static int name_peer(struct uwarp_qp *qp, const struct ibv_qp_attr *attr)
{
	const struct ibv_ah_attr *ah = &attr->ah_attr;
	struct uw_device_attr dev;
	struct uwarp_stack stack;
	struct sockaddr_in6 a, own;
	struct uw_peer peer = { .addr = (struct sockaddr *)&a,
				.qpn = attr->dest_qp_num,
				.ird = attr->max_dest_rd_atomic,
				.tos = ah->is_global ? ah->grh.traffic_class : 0 };
	int rc = uwarp_stack_get(&stack);
	bool ok;

	if (rc)
		return rc;
	stack.api->engine_query(stack.engine, &dev);
	if (attr->max_dest_rd_atomic > dev.max_rd_atom)
		return -EINVAL;
	if (ah->port_num != 1)
		return -EINVAL;
	ok = ah->is_global ? gid_to_ip(ah->grh.dgid.raw, &a) : lid_to_ip(&dev, ah->dlid, &a);
	if (!ok) {
		uwarp_warn("ibv_modify_qp: the peer's %s is not that of a uwarp device%s",
			   ah->is_global ? "GID" : "LID",
			   ah->is_global || ah->dlid
				   ? ""
				   : "; RoCE has no LIDs, name a GID (pingpong: -g 0)");
		return -EINVAL;
	}
	if (ah->is_global) {
		rc = find_own(&dev, ah->grh.sgid_index, &a, &own);
		if (rc)
			return rc;
	}
	/* The engine may still choose its first address when it starts. */
	if (ah->is_global && memcmp(&own.sin6_addr, dev.gid[0], sizeof(own.sin6_addr)) != 0)
		peer.from = (struct sockaddr *)&own;
	return qp->api->qp_name_peer(qp->uw, &peer);
}

/* ---- modify -------------------------------------------------------------------------------- */

static bool values_are_ok(const struct ibv_qp_attr *attr, int mask)
{
	return (!(mask & IBV_QP_PORT) || attr->port_num == 1) &&
	       (!(mask & IBV_QP_PKEY_INDEX) || !attr->pkey_index) &&
	       (!(mask & IBV_QP_PATH_MTU) ||
		(attr->path_mtu >= IBV_MTU_256 && attr->path_mtu <= IBV_MTU_4096)) &&
	       (!(mask & IBV_QP_STATE) || attr->qp_state <= IBV_QPS_ERR);
}

/* An alternate path would be another address, and rates are not ours to shape. */
#define NOT_HERE (IBV_QP_CAP | IBV_QP_QKEY | IBV_QP_ALT_PATH | IBV_QP_RATE_LIMIT)

/* With rdma_cm the masks are the kernel iwcm's, and anything that InfiniBand's timers and paths
 * would be is ignored, as iWARP devices do: TCP has its own. */
static int check(const struct uwarp_qp *qp, enum ibv_qp_state now, const struct ibv_qp_attr *attr,
		 int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : now;
	bool names = mask & (IBV_QP_AV | IBV_QP_DEST_QPN);

	if (mask & NOT_HERE)
		return -EOPNOTSUPP;
	if (!values_are_ok(attr, mask))
		return -EINVAL;
	if (!qp->named && !names)
		return 0;
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != now)
		return -EINVAL;
	return step_is_ok(now, to, mask) ? 0 : -EINVAL;
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

/* librdmacm takes its QP through INIT and RTR when it hears of CONNECT_RESPONSE. The connection has
 * brought it to RTS by then. */
static bool is_there_already(const struct uwarp_qp *qp, enum ibv_qp_state to)
{
	return !qp->named && (to == IBV_QPS_INIT || to == IBV_QPS_RTR) &&
	       qp->api->qp_state(qp->uw) == UW_QPS_RTS;
}

static int move(struct uwarp_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int rc;

	if (!(mask & IBV_QP_STATE))
		return 0;
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
		rc = move(qp, attr, mask);
	if (!rc)
		remember(&qp->set, attr, mask);
	return -rc;
}

/* ---- query --------------------------------------------------------------------------------- */

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
