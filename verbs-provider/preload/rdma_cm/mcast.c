/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JOIN and LEAVE of multicast groups. The emulation names the group; the program's QP becomes a
 * member by ibv_attach_mcast, which librdmacm calls when it hears of the join. As the kernel does
 * for RoCEv2: the group's GID is its address, its Q_Key that of all ids, its QP number 0xffffff.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_cm.h"

#define MULTICAST_QPN 0xffffffu

/* On a host whose kernel has no IPv4 address getaddrinfo() makes ::ffff:239.1.2.3 of 239.1.2.3. */
static bool is_multicast(const void *addr)
{
	const struct sockaddr_in *in = addr;
	const struct in6_addr *six = &((const struct sockaddr_in6 *)addr)->sin6_addr;
	uint32_t four = in->sin_addr.s_addr;

	if (in->sin_family != AF_INET && !IN6_IS_ADDR_V4MAPPED(six))
		return IN6_IS_ADDR_MULTICAST(six);
	if (in->sin_family != AF_INET)
		memcpy(&four, six->s6_addr + 12, sizeof(four));
	return IN_MULTICAST(ntohl(four));
}

/* As cm_id_get gives handles: the lowest free one. The caller holds cm.lock. */
static uint32_t free_handle(void)
{
	const struct cm_mc *mc;
	uint32_t h = 1;

again:
	LIST_FOREACH(mc, &cm.mcs, link)
	if (mc->handle == h) {
		h++;
		goto again;
	}
	return h;
}

static void fill_event(struct cm_event *e, const struct cm_id *id,
		       const struct sockaddr_storage *group)
{
	e->resp.param.ud.qp_num = MULTICAST_QPN;
	e->resp.param.ud.qkey = UW_UD_QKEY;
	e->has_ah = true;
	e->tos = id->tos;
	cm_address_to_gid(&id->src, e->own_gid);
	cm_address_to_gid(group, e->peer_gid);
}

/* The caller holds cm.lock. */
static int enter(struct cm_id *id, uint64_t uid, const struct sockaddr_storage *group,
		 uint32_t *handle)
{
	struct cm_event *e;
	struct cm_mc *mc;

	if (id->qp_type != CM_QPT_UD || !id->has_dev ||
	    (id->state != CM_BOUND && id->state != CM_ADDR_RESOLVED &&
	     id->state != CM_ROUTE_RESOLVED))
		return -EINVAL;
	mc = calloc(1, sizeof(*mc));
	e = cm_event_new(id, CM_EV_MULTICAST_JOIN, 0);
	if (!mc || !e) {
		free(mc);
		free(e);
		return -ENOMEM;
	}
	mc->id = id;
	mc->uid = uid;
	*handle = mc->handle = free_handle();
	LIST_INSERT_HEAD(&cm.mcs, mc, link);
	e->mc = mc;
	fill_event(e, id, group);
	cm_event_queue(e);
	return 0;
}

static int join(const struct cm_call *c, uint64_t response, uint64_t uid, const void *addr)
{
	struct rdma_ucm_create_id_resp resp;
	struct sockaddr_storage group = { 0 };
	int err;

	if (c->out < sizeof(resp))
		return -ENOSPC;
	if (!response)
		return -EFAULT;
	if (!is_multicast(addr))
		return -EINVAL;
	memcpy(&group, addr, cm_addr_len(addr));
	cm_lock();
	err = enter(c->id, uid, &group, &resp.id);
	if (!err) /* the program may hear of it at once */
		err = cm_answer(c, response, &resp, sizeof(resp), sizeof(resp));
	cm_unlock();
	return err;
}

int cm_cmd_join_ip(const struct cm_call *c)
{
	const struct rdma_ucm_join_ip_mcast *cmd = c->in;

	if (!cm_addr_len(&cmd->addr))
		return -EINVAL;
	return join(c, cmd->response, cmd->uid, &cmd->addr);
}

int cm_cmd_join(const struct cm_call *c)
{
	const struct rdma_ucm_join_mcast *cmd = c->in;

	if (!cmd->addr_size || cmd->addr_size != cm_addr_len(&cmd->addr) ||
	    cmd->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	return join(c, cmd->response, cmd->uid, &cmd->addr);
}

static void drop_events(struct cm_mc *mc)
{
	struct cm_event *e, *next;

	for (e = TAILQ_FIRST(&mc->id->events); e; e = next) {
		next = TAILQ_NEXT(e, of_id);
		if (e->mc != mc)
			continue;
		cm_event_unlink(e);
		free(e);
	}
	cm_file_signal(mc->id->file);
}

int cm_cmd_leave(const struct cm_call *c)
{
	const struct rdma_ucm_destroy_id *cmd = c->in;
	struct rdma_ucm_destroy_id_resp resp;
	struct cm_mc *mc;
	int err = 0;

	if (c->out < sizeof(resp))
		return -ENOSPC;
	cm_lock();
	LIST_FOREACH(mc, &cm.mcs, link)
	if (mc->handle == cmd->id)
		break;
	if (!mc)
		err = -ENOENT;
	else if (mc->id->file != c->file)
		err = -EINVAL;
	if (!err) {
		drop_events(mc);
		resp.events_reported = mc->events_reported;
		LIST_REMOVE(mc, link);
		free(mc);
	}
	cm_unlock();
	return err ? err : cm_answer(c, cmd->response, &resp, sizeof(resp), sizeof(resp));
}

void cm_mcs_free(const struct cm_id *id)
{
	struct cm_mc *mc, *next;

	for (mc = LIST_FIRST(&cm.mcs); mc; mc = next) {
		next = LIST_NEXT(mc, link);
		if (mc->id != id)
			continue;
		LIST_REMOVE(mc, link);
		free(mc);
	}
}
