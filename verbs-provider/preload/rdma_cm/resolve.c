/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address and route resolution. The stack knows the way to most peers at once. Where it has to find
 * out, that may take as long as the program allows, and commands on other ids must not wait for it.
 * So a helper thread waits. Requests for the same destination wait for the first one's helper.
 *
 * The stack has no way to interrupt such a wait. DESTROY_ID does not wait for it either: it leaves
 * the id to the helper, which frees it when the stack answers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libc/threads.h"
#include "loader/loader.h"
#include "rdma_cm.h"

struct cm_resolve {
	TAILQ_ENTRY(cm_resolve) link; /* of cm.resolves, or of `after` of another */
	struct cm_resolves after;     /* the requests that wait for this one */
	struct cm_id *id;	      /* its `resolving` is set */
	struct cm_event *event;	      /* to tell what it comes to */
	struct sockaddr_storage src;  /* as the program named it; the endpoint is bound to it */
	struct sockaddr_storage dst;
	uint32_t timeout_ms;
};

static int resolve_within(struct cm_resolve *r, uint32_t timeout_ms, struct sockaddr_storage *src)
{
	struct cm_id *id = r->id;
	int err;

	if (!cm_id_has_endpoint(id))
		return -EINVAL;
	err = id->api->ep_resolve(id->ep, NULL, (struct sockaddr *)&r->dst, timeout_ms);
	if (!err)
		cm_id_local_addr(id, r->dst.ss_family, src);
	return err;
}

static void resolved(struct cm_resolve *r, int err, const struct sockaddr_storage *src)
{
	struct cm_id *id = r->id;
	struct cm_event *e = r->event;
	bool orphaned;

	e->resp.event = err ? CM_EV_ADDR_ERROR : CM_EV_ADDR_RESOLVED;
	e->resp.status = (uint32_t)err;

	cm_lock();
	if (err) {
		id->state = CM_BOUND; /* as in the kernel: it may be tried again */
	} else {
		id->state = CM_ADDR_RESOLVED;
		id->src = *src;
		id->dst = r->dst;
		id->has_dev = true;
	}
	if (!id->dying)
		cm_event_queue(e);
	else
		free(e);
	id->resolving = false;
	orphaned = id->orphaned;
	cm_unlock();
	if (orphaned)
		cm_id_free(id);
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

	cm_lock();
	TAILQ_REMOVE(&cm.resolves, r, link);
	TAILQ_CONCAT(&after, &r->after, link);
	cm_unlock();
	resolved(r, err, &src);
	while ((next = TAILQ_FIRST(&after))) {
		TAILQ_REMOVE(&after, next, link);
		if (err)
			resolve_alone(next); /* each has its own time */
		else
			resolve_soon(next);
	}
	loader_helper_end();
	return NULL;
}

static void resolve_alone(struct cm_resolve *r)
{
	if (!loader_helper_begin())
		return; /* the process ends, nobody waits for the answer */
	TAILQ_INIT(&r->after);
	cm_lock();
	TAILQ_INSERT_TAIL(&cm.resolves, r, link);
	cm_unlock();
	if (helper_start(resolve_run, r))
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

	cm_lock();
	o = the_same(r);
	if (o)
		TAILQ_INSERT_TAIL(&o->after, r, link);
	cm_unlock();
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

/* rdma_resolve_addr(3): with a source "the same as if rdma_bind_addr were called". */
static int prepare(struct cm_id *id, const void *src)
{
	int err = cm_id_has_endpoint(id) ? cm_id_endpoint(id) : 0;

	return err || !src ? err : cm_id_bind(id, src);
}

static struct cm_resolve *resolve_new(struct cm_id *id)
{
	struct cm_resolve *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->id = id;
	r->event = cm_event_new(id, CM_EV_ADDR_RESOLVED, 0);
	if (r->event)
		return r;
	free(r);
	return NULL;
}

static int resolve_start(struct cm_id *id, const void *src, const void *dst, uint32_t timeout_ms)
{
	const enum cm_state state = cm_id_state(id);
	struct cm_resolve *r;
	int err;

	if (state != CM_IDLE && state != CM_BOUND)
		return -EINVAL;
	if (state == CM_BOUND && id->src.ss_family &&
	    id->src.ss_family != ((const struct sockaddr *)dst)->sa_family)
		return -EINVAL;
	if (state == CM_BOUND)
		src = NULL; /* it has one already */
	err = prepare(id, src);
	r = err ? NULL : resolve_new(id);
	if (!r)
		return err ? err : -ENOMEM;
	r->timeout_ms = timeout_ms;
	if (src)
		memcpy(&r->src, src, cm_addr_len(src));
	memcpy(&r->dst, dst, cm_addr_len(dst));
	if (cm_addr_is_any(&r->dst))
		name_loopback(&r->dst);
	cm_lock();
	id->state = CM_ADDR_QUERY;
	id->resolving = true;
	cm_unlock();
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

	if (cm_id_state(id) != CM_ADDR_RESOLVED)
		return -EINVAL;
	e = cm_event_new(id, CM_EV_ROUTE_RESOLVED, 0);
	if (!e)
		return -ENOMEM;
	cm_lock();
	id->state = CM_ROUTE_RESOLVED;
	cm_event_queue(e);
	cm_unlock();
	return 0;
}
