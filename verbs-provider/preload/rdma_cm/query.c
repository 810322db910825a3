/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "facts.h"
#include "libc/raw.h"
#include "loader/loader.h"
#include "rdma_cm.h"
#include "uverbs/uverbs.h"

enum { QPS_INIT = 1, QPS_RTR = 2, QPS_ERR = 6 }; /* = IBV_QPS_* */
enum {						 /* = IBV_QP_* */
       QP_STATE = 1 << 0,
       QP_ACCESS_FLAGS = 1 << 3,
       QP_PKEY_INDEX = 1 << 4,
       QP_PORT = 1 << 5,
       QP_QKEY = 1 << 6,
       QP_TIMEOUT = 1 << 9,
};

#define NO_INDEX UINT32_MAX /* the GUID alone names the device */

struct addrs {
	struct sockaddr_storage src, dst;
	bool has_dev;
};

/* The stack may choose the local port as late as it connects. */
static struct addrs addrs_of(const struct cm_call *c)
{
	struct sockaddr_storage now = { 0 };
	struct cm_id *id = c->id;
	struct addrs a;

	if (id->ep && (id->state == CM_ROUTE_RESOLVED || id->state == CM_CONNECT))
		cm_id_local_addr(id, id->dst.ss_family, &now);
	cm_lock();
	if (now.ss_family)
		id->src = now;
	a = (struct addrs){ .src = id->src, .dst = id->dst, .has_dev = id->has_dev };
	cm_unlock();
	return a;
}

void cm_address_to_gid(const struct sockaddr_storage *a, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (a->ss_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
	} else {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
	}
}

/* Datagrams: the path as RoCE has it, of which programs make an address handle (rsockets). It has a
 * GRH since the hop limit is above 1. */
static void fill_datagram_path(const struct cm_call *c, struct rdma_ucm_query_route_resp *r)
{
	struct ib_user_path_rec *p = &r->ib_route[0];
	struct uw_device_attr dev;

	if (!cm_id_is_ud(c->id) || c->id->state < CM_ROUTE_RESOLVED || !loader_device(&dev))
		return;
	r->num_paths = 1;
	if (c->id->ep)
		c->id->api->ep_peer_gid(c->id->ep, p->dgid);
	p->hop_limit = 64;
	p->traffic_class = c->id->tos;
	p->reversible = 1;
	p->numb_path = 1;
	p->pkey = htobe16(0xffff);
	p->mtu_selector = p->rate_selector = p->packet_life_time_selector = 2; /* exactly */
	p->mtu = uwarp_active_mtu(&dev);
}

int cm_cmd_query_route(const struct cm_call *c)
{
	const struct rdma_ucm_query *cmd = c->in;
	const struct addrs a = addrs_of(c);
	struct rdma_ucm_query_route_resp r;

	memset(&r, 0, sizeof(r));
	memcpy(&r.src_addr, &a.src, cm_addr_len(&a.src));
	memcpy(&r.dst_addr, &a.dst, cm_addr_len(&a.dst));
	r.ibdev_index = NO_INDEX;
	if (a.has_dev) {
		r.node_guid = htobe64(loader_guid());
		r.port_num = 1;
		uverbs_gid_of(&a.src, r.ib_route[0].sgid);
		if (a.dst.ss_family)
			cm_address_to_gid(&a.dst, r.ib_route[0].dgid);
		fill_datagram_path(c, &r);
	}
	return cm_answer(c, cmd->response, &r, sizeof(r),
			 offsetof(struct rdma_ucm_query_route_resp, ibdev_index));
}

static int query_addr(const struct cm_call *c, uint64_t to)
{
	const struct addrs a = addrs_of(c);
	struct rdma_ucm_query_addr_resp r;

	memset(&r, 0, sizeof(r));
	r.src_size = (uint16_t)cm_addr_len(&a.src);
	r.dst_size = (uint16_t)cm_addr_len(&a.dst);
	memcpy(&r.src_addr, &a.src, r.src_size);
	memcpy(&r.dst_addr, &a.dst, r.dst_size);
	r.ibdev_index = NO_INDEX;
	if (a.has_dev) {
		r.node_guid = htobe64(loader_guid());
		r.port_num = 1;
	}
	return cm_answer(c, to, &r, sizeof(r),
			 offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

static int query_path(const struct cm_call *c, uint64_t to)
{
	const struct rdma_ucm_query_path_resp none = { 0 };

	return cm_answer(c, to, &none, sizeof(none), sizeof(none));
}

/* struct sockaddr_ib, which no uapi header has for programs. */
struct cm_sockaddr_ib {
	uint16_t family, pkey;
	uint32_t flowinfo;
	uint8_t gid[16];
	uint64_t sid, sid_mask, scope_id;
};

static int query_gid(const struct cm_call *c, uint64_t to)
{
	const struct addrs a = addrs_of(c);
	struct rdma_ucm_query_addr_resp r;
	struct cm_sockaddr_ib ib = { .family = AF_IB };

	memset(&r, 0, sizeof(r));
	r.src_size = r.dst_size = sizeof(ib);
	r.ibdev_index = NO_INDEX;
	memcpy(&r.dst_addr, &ib, sizeof(ib));
	if (a.has_dev) {
		r.node_guid = htobe64(loader_guid());
		r.port_num = 1;
		uverbs_gid_of(&a.src, ib.gid);
	}
	memcpy(&r.src_addr, &ib, sizeof(ib));
	return cm_answer(c, to, &r, sizeof(r),
			 offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

int cm_cmd_query(const struct cm_call *c)
{
	const struct rdma_ucm_query *cmd = c->in;

	switch (cmd->option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(c, cmd->response);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(c, cmd->response);
	case RDMA_USER_CM_QUERY_GID:
		return query_gid(c, cmd->response);
	default:
		return -ENOSYS;
	}
}

/* The path as RoCE would have it. The mask does not name these fields, so librdmacm does not set
 * them. Programs that connect a QP of their own read them (UCX: path MTU and address handle). */
static void fill_path(const struct cm_call *c, struct ib_uverbs_qp_attr *r)
{
	const struct addrs a = addrs_of(c);
	struct uw_device_attr dev;

	if (!loader_device(&dev))
		return;
	r->path_mtu = uwarp_active_mtu(&dev);
	r->port_num = 1;
	r->ah_attr.is_global = 1;
	r->ah_attr.port_num = 1;
	r->ah_attr.grh.hop_limit = 64;
	cm_address_to_gid(&a.dst, r->ah_attr.grh.dgid);
}

void cm_event_fill_ah(struct cm_event *e)
{
	struct ib_uverbs_ah_attr *ah = &e->resp.param.ud.ah_attr;

	if (!e->has_ah)
		return;
	ah->is_global = 1;
	ah->port_num = 1;
	ah->grh.hop_limit = 64;
	ah->grh.traffic_class = e->tos;
	ah->grh.sgid_index = uverbs_gid_index(e->own_gid);
	memcpy(ah->grh.dgid, e->peer_gid, sizeof(ah->grh.dgid));
}

/* As the kernel for a QP of datagrams, which librdmacm takes to RTS by itself. */
static int init_datagrams(const struct cm_call *c, uint32_t state)
{
	const struct rdma_ucm_init_qp_attr *cmd = c->in;
	struct ib_uverbs_qp_attr r;

	memset(&r, 0, sizeof(r));
	r.qp_state = state;
	r.port_num = 1;
	r.qkey = UW_UD_QKEY;
	r.qp_attr_mask = QP_STATE | QP_PKEY_INDEX | QP_PORT | QP_QKEY;
	return cm_answer(c, cmd->response, &r, sizeof(r), sizeof(r));
}

static bool is_roce(void)
{
	struct uw_device_attr dev;

	return loader_device(&dev) && dev.roce;
}

/* As the kernel's iwcm, which leaves everything but the access rights to the connection itself.
 * It grants no atomics, because no kernel iWARP device has them; this one does (RFC 7306). As RoCE
 * the step to INIT wants the partition and the port as well. */
int cm_cmd_init_qp_attr(const struct cm_call *c)
{
	const struct rdma_ucm_init_qp_attr *cmd = c->in;
	struct ib_uverbs_qp_attr r;

	if (c->out < sizeof(r))
		return -ENOSPC;
	if (cmd->qp_state > QPS_ERR || !c->id->has_dev)
		return -EINVAL;
	if (cm_id_is_ud(c->id))
		return init_datagrams(c, cmd->qp_state);
	memset(&r, 0, sizeof(r));
	r.qp_state = cmd->qp_state;
	if (cmd->qp_state == QPS_INIT || cmd->qp_state == QPS_RTR) {
		r.qp_attr_mask = QP_STATE | QP_ACCESS_FLAGS;
		r.qp_access_flags = UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ |
				    UW_ACCESS_REMOTE_ATOMIC | UW_ACCESS_FLUSH_GLOBAL |
				    UW_ACCESS_FLUSH_PERSISTENT; /* as Linux gives, since 6.2 */
	}
	if (cmd->qp_state == QPS_INIT && is_roce()) {
		r.qp_attr_mask |= QP_PKEY_INDEX | QP_PORT;
		r.port_num = 1;
	}
	if (c->id->has_ack_timeout) {
		r.qp_attr_mask |= QP_STATE | QP_TIMEOUT;
		r.timeout = c->id->ack_timeout;
	}
	if (cmd->qp_state == QPS_RTR)
		fill_path(c, &r);
	return cm_answer(c, cmd->response, &r, sizeof(r), sizeof(r));
}
