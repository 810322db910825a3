/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: where datagrams go; and multicast groups. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

struct ibv_ah *uwarp_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr)
{
	struct uwarp_pd *pd = to_uwarp_pd(ibpd);
	struct uw_device_attr dev;
	struct uwarp_stack stack;
	struct uwarp_ends ends;
	struct uw_ah_attr uw = { .addr = (struct sockaddr *)&ends.peer };
	struct uwarp_ah *ah;
	int rc = uwarp_stack_get(&stack);

	if (rc)
		return uwarp_fail(rc);
	uwarp_query_for_lids(&stack, &dev);
	rc = uwarp_find_ends("ibv_create_ah", &dev, attr, &ends);
	if (rc)
		return uwarp_fail(rc);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return uwarp_fail(-ENOMEM);
	uw.from = ends.from;
	if (attr->is_global) {
		uw.tos = attr->grh.traffic_class;
		uw.hops = attr->grh.hop_limit;
	}
	rc = pd->api->ah_make(pd->uw, &uw, &ah->uw);
	if (rc) {
		free(ah);
		return uwarp_fail(rc);
	}
	uwarp_pd_hold(ibpd);
	return &ah->ah;
}

int uwarp_destroy_ah(struct ibv_ah *ibah)
{
	uwarp_pd_put(ibah->pd);
	free(uwarp_container(ibah, struct uwarp_ah, ah));
	return 0;
}

void uwarp_fill_to(struct uw_send_wr *to, const struct ibv_ah *ibah, uint32_t qpn, uint32_t qkey)
{
	const struct uw_ah *ah = &uwarp_container(ibah, const struct uwarp_ah, ah)->uw;

	to->remote_addr = ah->how | (qpn & 0xffffff);
	to->compare_add = ah->dst[0];
	to->swap = ah->dst[1];
	to->rkey = qkey;
}

/* ---- groups ------------------------------------------------------------------------------- */

static int change_group(struct ibv_qp *ibqp, const union ibv_gid *gid, bool in)
{
	const struct uwarp_qp *qp = to_uwarp_qp(ibqp);
	struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
	struct uwarp_stack stack;
	int rc = uwarp_stack_get(&stack);

	if (!rc)
		rc = stack.api->engine_start(stack.engine);
	memcpy(&a.sin6_addr, gid->raw, sizeof(a.sin6_addr));
	return -(rc ? rc : qp->api->qp_group(qp->uw, (struct sockaddr *)&a, in));
}

int uwarp_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return change_group(ibqp, gid, true);
}

int uwarp_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return change_group(ibqp, gid, false);
}
