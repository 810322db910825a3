/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that bind, listen, connect, accept, reject and disconnect. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "libc/waits.h"
#include "loader/loader.h"
#include "rdma_cm.h"

#define BACKLOG_MAX 1024 /* = net.rdma_ucm.max_backlog */

/* ---- bind and listen -------------------------------------------------------------------- */

static in_port_t *port_of(struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? &((struct sockaddr_in *)a)->sin_port
				       : &((struct sockaddr_in6 *)a)->sin6_port;
}

/* As Linux's rdma_cm says it (cma_check_port()): EADDRNOTAVAIL where either of two ids has a
 * wildcard. A port that another program has, which Linux notices when it listens, is in use. */
static int port_is_taken(const struct cm_id *id, struct sockaddr_storage *addr)
{
	bool any = cm_addr_is_any(addr), ours = false;

	cm_lock();
	for (uint32_t i = 0; i < cm.room; i++) {
		struct cm_id *o = cm.ids[i];

		if (!o || o->ps != id->ps || !o->src.ss_family ||
		    *port_of(&o->src) != *port_of(addr))
			continue;
		ours = true;
		any |= cm_addr_is_any(&o->src);
	}
	cm_unlock();
	return ours && any ? -EADDRNOTAVAIL : -EADDRINUSE;
}

/* The address stays the one that the program named (a wildcard, a loopback address); the port may
 * be the stack's choice. As with kernels, a loopback address is no device's: whoever looks for one
 * by an address (libfabric) finds it by an address that others know, too. An id of datagrams has
 * the device at once, since rsockets make its QP without asking. */
int cm_id_bind(struct cm_id *id, const void *addr)
{
	struct sockaddr_storage src = { 0 }, chosen;
	int err = 0;

	if (cm_id_state(id) != CM_IDLE)
		return -EINVAL;
	memcpy(&src, addr, cm_addr_len(addr));
	if (cm_id_has_endpoint(id)) {
		err = cm_id_endpoint(id);
		if (!err && id->shares_port)
			err = id->api->ep_share_port(id->ep, true);
		if (!err && id->only6)
			err = id->api->ep_only6(id->ep, true);
		if (!err)
			err = id->api->ep_bind(id->ep, addr);
		if (err)
			return err == -EADDRINUSE ? port_is_taken(id, &src) : err;
		cm_id_local_addr(id, src.ss_family, &chosen);
		*port_of(&src) = *port_of(&chosen);
	}
	cm_lock();
	id->src = src;
	id->has_dev = !cm_addr_is_any(addr) && (cm_id_is_ud(id) || !cm_addr_is_loopback(addr));
	id->state = CM_BOUND;
	cm_unlock();
	return 0;
}

int cm_cmd_bind_ip(const struct cm_call *c)
{
	const struct rdma_ucm_bind_ip *cmd = c->in;

	if (!cm_addr_len(&cmd->addr))
		return -EINVAL;
	return cm_id_bind(c->id, &cmd->addr);
}

/* AF_IB is refused here: librdmacm tries it once, and then keeps to the IP commands. */
int cm_cmd_bind(const struct cm_call *c)
{
	const struct rdma_ucm_bind *cmd = c->in;

	if (cmd->reserved || !cmd->addr_size || cmd->addr_size != cm_addr_len(&cmd->addr))
		return -EINVAL;
	return cm_id_bind(c->id, &cmd->addr);
}

int cm_cmd_listen(const struct cm_call *c)
{
	const struct rdma_ucm_listen *cmd = c->in;
	const struct sockaddr_in any = { .sin_family = AF_INET };
	struct cm_id *id = c->id;
	int err, backlog = (int)cmd->backlog;

	if (backlog <= 0 || backlog > BACKLOG_MAX)
		backlog = BACKLOG_MAX;
	err = cm_id_state(id) == CM_IDLE ? cm_id_bind(id, &any) : 0;
	if (!err && cm_id_state(id) != CM_BOUND)
		err = -EINVAL;
	if (!err && !cm_id_has_endpoint(id))
		err = -EOPNOTSUPP;
	if (err)
		return err;
	cm_lock();
	id->state = CM_LISTEN; /* requests may come before ep_listen() returns */
	id->backlog = (uint32_t)backlog;
	cm_unlock();
	err = id->api->ep_listen(id->ep, backlog);
	if (err)
		cm_id_set_state(id, CM_BOUND);
	return err;
}

/* ---- connections ------------------------------------------------------------------------ */

#define RNR_FOR_EVER 7 /* IBTA 9.7.5.2.8 */

static struct uw_cm_param param_of(const struct rdma_ucm_conn_param *p)
{
	return (struct uw_cm_param){
		.private_data = p->private_data,
		.private_data_len = p->private_data_len,
		.ird = p->responder_resources,
		.ord = p->initiator_depth,
		.rnr_for_ever = p->rnr_retry_count == RNR_FOR_EVER,
		.qkey = p->qkey,
	};
}

static bool is_roce(const struct cm_id *id)
{
	struct uw_device_attr dev;

	return !cm_id_is_ud(id) && loader_device(&dev) && dev.roce;
}

typedef int connect_or_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p);

/* A number that names no RC QP is refused as the kernel's iWARP does, which has no word of its own
 * for it; as RoCE the id gets a QP. */
static int with_qp(struct cm_id *id, connect_or_accept *fn, uint32_t qpn,
		   const struct uw_cm_param *p)
{
	int err = fn(id->ep, qpn, p);

	if (err != -ENOENT)
		return err;
	if (!is_roce(id))
		return -EINVAL;
	err = cm_spare_qp(id, &qpn);
	return err ? err : fn(id->ep, qpn, p);
}

int cm_cmd_connect(const struct cm_call *c)
{
	const struct rdma_ucm_connect *cmd = c->in;
	const struct uw_cm_param param = param_of(&cmd->conn_param);
	struct cm_id *id = c->id;
	int err;

	if (!cmd->conn_param.valid || cm_id_state(id) != CM_ROUTE_RESOLVED)
		return -EINVAL;
	err = cm_events_reserve(id);
	if (err)
		return err;
	id->as_roce = is_roce(id);
	waits_begin_outcome();
	cm_lock();
	id->state = CM_CONNECT; /* the outcome may come before ep_connect() returns */
	id->connecting = true;
	cm_id_under_way(id, true);
	cm_unlock();
	err = with_qp(id, id->api->ep_connect, cmd->conn_param.qp_num, &param);
	if (!err)
		return 0;
	cm_lock();
	id->state = CM_ROUTE_RESOLVED;
	id->connecting = false;
	cm_id_under_way(id, false);
	cm_unlock();
	return err;
}

static bool is_request(const struct cm_id *id)
{
	return cm_id_state(id) == CM_CONNECT && id->unanswered;
}

static int reject(struct cm_id *id, const void *data, uint8_t len)
{
	const struct uw_cm_param param = { .private_data = data, .private_data_len = len };

	id->unanswered = false;
	return id->api->ep_reject(id->ep, &param);
}

/* rdma_establish(), by which programs with a QP of their own confirm a connection that they asked
 * for. With MPA it has been one since the Reply, so there is nothing left to do. The peer may have
 * left since: with InfiniBand it does not before the confirmation, so that comes first, and then
 * DISCONNECTED. */
static int establish(struct cm_id *id)
{
	bool was_one;

	cm_lock();
	was_one = (id->established || id->unconfirmed) && !id->passive;
	id->unconfirmed = false;
	cm_unlock();
	return was_one ? 0 : -EINVAL;
}

int cm_cmd_accept(const struct cm_call *c)
{
	const struct rdma_ucm_accept *cmd = c->in;
	const struct uw_cm_param param = param_of(&cmd->conn_param);
	struct cm_id *id = c->id;
	int err;

	if (!cmd->conn_param.valid)
		return establish(id);
	if (!is_request(id))
		return -EINVAL;
	err = cm_events_reserve(id);
	cm_lock();
	id->uid = cmd->uid;		   /* ESTABLISHED may come before ep_accept() returns */
	id->connecting = !cm_id_is_ud(id); /* for datagrams an answer is all */
	cm_unlock();
	if (!err)
		err = with_qp(id, id->api->ep_accept, cmd->conn_param.qp_num, &param);
	if (!err) {
		id->unanswered = false;
		return 0;
	}
	cm_lock();
	id->uid = 0;
	id->connecting = false;
	cm_unlock();
	reject(id, NULL, 0); /* as the kernel does */
	return err;
}

int cm_cmd_reject(const struct cm_call *c)
{
	const struct rdma_ucm_reject *cmd = c->in;

	if (!is_request(c->id))
		return -EINVAL;
	return reject(c->id, cmd->private_data, cmd->private_data_len);
}

/* The stack tells the outcome of each connect, within limits of its own (doc/failures.md). False:
 * the id is being destroyed. */
static bool wait_for_outcome(struct cm_id *id)
{
	bool settled;

	cm_lock();
	while (id->connecting && !id->dying)
		pthread_cond_wait(&cm.changed, &cm.lock);
	settled = !id->connecting;
	cm_unlock();
	return settled;
}

/* The kernel first waits until a connection that is being made exists or has failed, and finds
 * nothing wrong with one that the peer has ended already. */
int cm_cmd_disconnect(const struct cm_call *c)
{
	struct cm_id *id = c->id;
	int err;

	if (cm_id_state(id) != CM_CONNECT || cm_id_is_ud(id))
		return -EINVAL;
	if (id->unanswered)
		return 0;
	waits_begin_outcome();
	cm_lock();
	cm_id_under_way(id, id->established || id->under_way);
	cm_unlock();
	err = id->api->ep_disconnect(id->ep);
	if (err == -ENOTCONN && wait_for_outcome(id))
		err = id->api->ep_disconnect(id->ep);
	return err == -ENOTCONN ? 0 : err;
}
