/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim.h"
#include "ucma.h"

#define BACKLOG_MAX	    1024 /* = net.rdma_ucm.max_backlog */
#define DISCONNECT_WAIT_SEC 10	 /* longer than the stack's start-up timeout */

static void set_state(struct cm_id *id, enum cm_state state)
{
	pthread_mutex_lock(&cm.lock);
	id->state = state;
	pthread_mutex_unlock(&cm.lock);
}

/* A resolving helper changes the state while no command is under way. */
static enum cm_state state_of(const struct cm_id *id)
{
	enum cm_state state;

	pthread_mutex_lock(&cm.lock);
	state = id->state;
	pthread_mutex_unlock(&cm.lock);
	return state;
}

static bool is_stream(const struct cm_id *id)
{
	return id->qp_type != CM_QPT_UD;
}

/* ---- bind and listen -------------------------------------------------------------------- */

static in_port_t *port_of(struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? &((struct sockaddr_in *)a)->sin_port
				       : &((struct sockaddr_in6 *)a)->sin6_port;
}

/* The address stays the one that the program named (a wildcard, a loopback address); the port may
 * be the stack's choice. As with kernels, a loopback address is no device's: whoever looks for one
 * by an address (libfabric) finds it by an address that others know, too. Datagram ids are for
 * show: nothing will come of them on iWARP. */
static int bind_to(struct cm_id *id, const void *addr)
{
	struct sockaddr_storage src = { 0 }, chosen;
	int err = 0;

	if (state_of(id) != CM_IDLE)
		return -EINVAL;
	memcpy(&src, addr, cm_addr_len(addr));
	if (is_stream(id)) {
		err = cm_id_endpoint(id);
		if (!err && id->shares_port)
			err = id->api->ep_share_port(id->ep, true);
		if (!err && id->only6)
			err = id->api->ep_only6(id->ep, true);
		if (!err)
			err = id->api->ep_bind(id->ep, addr);
		if (err)
			return err;
		cm_id_local_addr(id, src.ss_family, &chosen);
		*port_of(&src) = *port_of(&chosen);
	}
	pthread_mutex_lock(&cm.lock);
	id->src = src;
	id->has_dev = !cm_addr_is_any(addr) && !cm_addr_is_loopback(addr);
	id->state = CM_BOUND;
	pthread_mutex_unlock(&cm.lock);
	return 0;
}

int cm_cmd_bind_ip(const struct cm_call *c)
{
	const struct rdma_ucm_bind_ip *cmd = c->in;

	if (!cm_addr_len(&cmd->addr))
		return -EINVAL;
	return bind_to(c->id, &cmd->addr);
}

/* AF_IB is refused here: librdmacm tries it once, and then keeps to the IP commands. */
int cm_cmd_bind(const struct cm_call *c)
{
	const struct rdma_ucm_bind *cmd = c->in;

	if (cmd->reserved || !cmd->addr_size || cmd->addr_size != cm_addr_len(&cmd->addr))
		return -EINVAL;
	return bind_to(c->id, &cmd->addr);
}

int cm_cmd_listen(const struct cm_call *c)
{
	const struct rdma_ucm_listen *cmd = c->in;
	const struct sockaddr_in any = { .sin_family = AF_INET };
	struct cm_id *id = c->id;
	int err, backlog = (int)cmd->backlog;

	if (backlog <= 0 || backlog > BACKLOG_MAX)
		backlog = BACKLOG_MAX;
	err = state_of(id) == CM_IDLE ? bind_to(id, &any) : 0;
	if (!err && state_of(id) != CM_BOUND)
		err = -EINVAL;
	if (err)
		return err;
	pthread_mutex_lock(&cm.lock);
	id->state = CM_LISTEN; /* requests may come before ep_listen() returns */
	id->backlog = (uint32_t)backlog;
	pthread_mutex_unlock(&cm.lock);
	if (is_stream(id))
		err = id->api->ep_listen(id->ep, backlog);
	if (err)
		set_state(id, CM_BOUND);
	return err;
}

/* ---- resolve ---------------------------------------------------------------------------- */

/* Resolving may take as long as the program allows, and other ids must not wait for it: a helper
 * does. Those that want to know the same go after it. */
struct cm_resolve {
	TAILQ_ENTRY(cm_resolve) link; /* of cm.resolves, or of the one that it goes after */
	struct cm_resolves after;
	struct cm_id *id; /* held */
	struct sockaddr_storage src, dst;
	uint32_t timeout_ms;
};

static int resolve_within(struct cm_resolve *r, uint32_t timeout_ms, struct sockaddr_storage *src)
{
	const struct sockaddr *from = r->src.ss_family ? (struct sockaddr *)&r->src : NULL;
	struct cm_id *id = r->id;
	int err;

	if (!is_stream(id))
		return id->ps == RDMA_PS_IPOIB ? -EINVAL : -ENODEV;
	err = id->api->ep_resolve(id->ep, from, (struct sockaddr *)&r->dst, timeout_ms);
	if (!err)
		cm_id_local_addr(id, r->dst.ss_family, src);
	return err;
}

static void resolved(struct cm_resolve *r, int err, const struct sockaddr_storage *src)
{
	struct cm_id *id = r->id;
	struct cm_event *e = cm_event_new(id, err ? CM_EV_ADDR_ERROR : CM_EV_ADDR_RESOLVED, err);

	pthread_mutex_lock(&cm.lock);
	if (err) {
		id->state = CM_BOUND; /* as in the kernel: it may be tried again */
	} else {
		id->state = CM_ADDR_RESOLVED;
		id->src = *src;
		id->dst = r->dst;
		id->has_dev = true;
	}
	if (e && !id->dying)
		cm_event_queue(e);
	else
		free(e);
	pthread_mutex_unlock(&cm.lock);
	cm_id_put(id);
	free(r);
}

static void resolve_soon(struct cm_resolve *r);
static void resolve_alone(struct cm_resolve *r);

static void *resolve_run(void *arg)
{
	struct cm_resolve *r = arg, *next;
	struct cm_resolves after = TAILQ_HEAD_INITIALIZER(after);
	struct sockaddr_storage src = { 0 };
	/* 0 means something else to the stack */
	int err = resolve_within(r, r->timeout_ms ? r->timeout_ms : 1, &src);

	pthread_mutex_lock(&cm.lock);
	TAILQ_REMOVE(&cm.resolves, r, link);
	TAILQ_CONCAT(&after, &r->after, link);
	pthread_mutex_unlock(&cm.lock);
	resolved(r, err, &src);
	while ((next = TAILQ_FIRST(&after))) {
		TAILQ_REMOVE(&after, next, link);
		if (err)
			resolve_alone(next); /* each has its own time */
		else
			resolve_soon(next);
	}
	return NULL;
}

static void resolve_alone(struct cm_resolve *r)
{
	TAILQ_INIT(&r->after);
	pthread_mutex_lock(&cm.lock);
	TAILQ_INSERT_TAIL(&cm.resolves, r, link);
	pthread_mutex_unlock(&cm.lock);
	if (shim_spawn(resolve_run, r))
		resolve_run(r); /* no thread to be had: then the caller waits */
}

/* One that is waited for, for no longer than r would. */
static struct cm_resolve *the_same(const struct cm_resolve *r)
{
	struct cm_resolve *o;

	TAILQ_FOREACH(o, &cm.resolves, link)
	if (o->timeout_ms <= r->timeout_ms && !memcmp(&o->dst, &r->dst, sizeof(r->dst)) &&
	    !memcmp(&o->src, &r->src, sizeof(r->src)))
		return o;
	return NULL;
}

static bool goes_after_another(struct cm_resolve *r)
{
	struct cm_resolve *o;

	pthread_mutex_lock(&cm.lock);
	o = the_same(r);
	if (o)
		TAILQ_INSERT_TAIL(&o->after, r, link);
	pthread_mutex_unlock(&cm.lock);
	return o;
}

/* Most peers are known. A thread for each would cost more than the connection that follows. */
static void resolve_soon(struct cm_resolve *r)
{
	struct sockaddr_storage src = { 0 };
	int err = resolve_within(r, 0, &src);

	if (err != -EAGAIN)
		resolved(r, err, &src);
	else if (!goes_after_another(r))
		resolve_alone(r);
}

/* A wildcard destination is this machine. */
static void name_loopback(struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		((struct sockaddr_in *)a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)a)->sin6_addr = in6addr_loopback;
}

static int resolve_start(struct cm_id *id, const void *src, const void *dst, uint32_t timeout_ms)
{
	const enum cm_state state = state_of(id);
	struct cm_resolve *r;
	int err;

	if (state != CM_IDLE && state != CM_BOUND)
		return -EINVAL;
	if (state == CM_BOUND && id->src.ss_family &&
	    id->src.ss_family != ((const struct sockaddr *)dst)->sa_family)
		return -EINVAL;
	err = is_stream(id) ? cm_id_endpoint(id) : 0;
	r = err ? NULL : calloc(1, sizeof(*r));
	if (!r)
		return err ? err : -ENOMEM;
	r->id = id;
	r->timeout_ms = timeout_ms;
	if (state == CM_IDLE && src) /* a bound id has its source already */
		memcpy(&r->src, src, cm_addr_len(src));
	memcpy(&r->dst, dst, cm_addr_len(dst));
	if (cm_addr_is_any(&r->dst))
		name_loopback(&r->dst);
	pthread_mutex_lock(&cm.lock);
	id->state = CM_ADDR_QUERY;
	id->refs++;
	pthread_mutex_unlock(&cm.lock);
	resolve_soon(r);
	return 0;
}

int cm_cmd_resolve_ip(const struct cm_call *c)
{
	const struct rdma_ucm_resolve_ip *cmd = c->in;
	bool has_src = cmd->src_addr.sin6_family != AF_UNSPEC;

	if (!cm_addr_len(&cmd->dst_addr) || (has_src && !cm_addr_len(&cmd->src_addr)))
		return -EINVAL;
	if (has_src && cmd->src_addr.sin6_family != cmd->dst_addr.sin6_family)
		return -EINVAL;
	return resolve_start(c->id, has_src ? &cmd->src_addr : NULL, &cmd->dst_addr,
			     cmd->timeout_ms);
}

int cm_cmd_resolve_addr(const struct cm_call *c)
{
	const struct rdma_ucm_resolve_addr *cmd = c->in;

	if (cmd->reserved || !cmd->dst_size || cmd->dst_size != cm_addr_len(&cmd->dst_addr) ||
	    (cmd->src_size && cmd->src_size != cm_addr_len(&cmd->src_addr)))
		return -EINVAL;
	if (cmd->src_size && cmd->src_addr.ss_family != cmd->dst_addr.ss_family)
		return -EINVAL;
	return resolve_start(c->id, cmd->src_size ? &cmd->src_addr : NULL, &cmd->dst_addr,
			     cmd->timeout_ms);
}

/* IP routing is all there is to a route on iWARP, and resolving the address found it. */
int cm_cmd_resolve_route(const struct cm_call *c)
{
	struct cm_id *id = c->id;
	struct cm_event *e;

	if (state_of(id) != CM_ADDR_RESOLVED)
		return -EINVAL;
	e = cm_event_new(id, CM_EV_ROUTE_RESOLVED, 0);
	if (!e)
		return -ENOMEM;
	pthread_mutex_lock(&cm.lock);
	id->state = CM_ROUTE_RESOLVED;
	cm_event_queue(e);
	pthread_mutex_unlock(&cm.lock);
	return 0;
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
	};
}

/* The kernel has no word of its own for a QP number that names nothing. */
static int no_such_qp(int err)
{
	return err == -ENOENT ? -EINVAL : err;
}

int cm_cmd_connect(const struct cm_call *c)
{
	const struct rdma_ucm_connect *cmd = c->in;
	const struct uw_cm_param param = param_of(&cmd->conn_param);
	struct cm_id *id = c->id;
	int err;

	if (!cmd->conn_param.valid || state_of(id) != CM_ROUTE_RESOLVED)
		return -EINVAL;
	pthread_mutex_lock(&cm.lock);
	id->state = CM_CONNECT; /* the outcome may come before ep_connect() returns */
	id->connecting = true;
	pthread_mutex_unlock(&cm.lock);
	err = id->api->ep_connect(id->ep, cmd->conn_param.qp_num, &param);
	if (!err)
		return 0;
	pthread_mutex_lock(&cm.lock);
	id->state = CM_ROUTE_RESOLVED;
	id->connecting = false;
	pthread_mutex_unlock(&cm.lock);
	return no_such_qp(err);
}

static bool is_request(const struct cm_id *id)
{
	return state_of(id) == CM_CONNECT && id->unanswered;
}

static int reject(struct cm_id *id, const void *data, uint8_t len)
{
	const struct uw_cm_param param = { .private_data = data, .private_data_len = len };

	id->unanswered = false;
	return id->api->ep_reject(id->ep, &param);
}

/* rdma_establish(), by which programs with a QP of their own confirm a connection that they asked
 * for. With MPA it has been one since the Reply, so there is nothing left to do. */
static int establish(const struct cm_id *id)
{
	bool stands;

	pthread_mutex_lock(&cm.lock);
	stands = id->stands && !id->passive;
	pthread_mutex_unlock(&cm.lock);
	return stands ? 0 : -EINVAL;
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
	pthread_mutex_lock(&cm.lock);
	id->uid = cmd->uid; /* ESTABLISHED may come before ep_accept() returns */
	id->connecting = true;
	pthread_mutex_unlock(&cm.lock);
	err = id->api->ep_accept(id->ep, cmd->conn_param.qp_num, &param);
	if (!err) {
		id->unanswered = false;
		return 0;
	}
	pthread_mutex_lock(&cm.lock);
	id->uid = 0;
	id->connecting = false;
	pthread_mutex_unlock(&cm.lock);
	reject(id, NULL, 0); /* as the kernel does */
	return no_such_qp(err);
}

int cm_cmd_reject(const struct cm_call *c)
{
	const struct rdma_ucm_reject *cmd = c->in;

	if (!is_request(c->id))
		return -EINVAL;
	return reject(c->id, cmd->private_data, cmd->private_data_len);
}

/* False: it took too long, or the id is being destroyed. */
static bool wait_for_outcome(struct cm_id *id)
{
	struct timespec until;
	bool settled;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DISCONNECT_WAIT_SEC;
	pthread_mutex_lock(&cm.lock);
	while (id->connecting && !id->dying && !err)
		err = pthread_cond_timedwait(&cm.changed, &cm.lock, &until);
	settled = !id->connecting;
	pthread_mutex_unlock(&cm.lock);
	return settled;
}

/* The kernel first waits until a connection that is being made exists or has failed, and finds
 * nothing wrong with one that the peer has ended already. */
int cm_cmd_disconnect(const struct cm_call *c)
{
	struct cm_id *id = c->id;
	int err;

	if (state_of(id) != CM_CONNECT)
		return -EINVAL;
	if (id->unanswered)
		return 0;
	err = id->api->ep_disconnect(id->ep);
	if (err == -ENOTCONN && wait_for_outcome(id))
		err = id->api->ep_disconnect(id->ep);
	return err == -ENOTCONN ? 0 : err;
}
