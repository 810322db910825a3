/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device is and can: uw_engine_query. */
#include <arpa/inet.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/links.h"

#ifndef UWARP_VERSION
#define UWARP_VERSION "0"
#endif

#define TCP_HEADERS 40u

/* The same before and after the link is up, since programs compare, and tell each other. */
static uint64_t guid_of(uint32_t addr)
{
	return 0x0275770000000000u | ntohl(addr);
}

static void add_gid(struct uw_device_attr *a, const struct uw_ip *ip)
{
	if (a->n_gids < UW_GIDS_MAX)
		memcpy(a->gid[a->n_gids++], ip, sizeof(*ip));
}

static void fill_addresses(const struct io_link *l, struct uw_device_attr *a)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&a->addr;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&a->addr;
	struct uw_ip four = uw_ip_v4(l->addr);

	if (l->addr)
		add_gid(a, &four);
	for (unsigned i = 1; i < l->n_ip6; i++)
		add_gid(a, &l->ip6[i].ip);
	if (l->n_ip6)
		add_gid(a, &l->ip6[0].ip);
	if (l->addr || !a->n_gids) {
		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = l->addr;
	} else {
		six->sin6_family = AF_INET6;
		memcpy(&six->sin6_addr, a->gid[0], sizeof(six->sin6_addr));
	}
	memcpy(&four, a->gid[0], sizeof(four));
	a->guid = guid_of(uw_ip_v4_be(&four));
}

#define LOCK_US 1000000u /* it may be lost, in a process that ends: then the link stays */

/* What is said of the link. Under the lock: its addresses may change, and in a process that ends it
 * goes. False: there is none. */
static bool look_at_link(struct uw_engine *e, struct io_link *out)
{
	struct stack *s = e->stack[0];
	const struct io_link *l;
	bool locked;

	if (!uw_engine_started(e) && !e->manual)
		return false;
	locked = sched_lock_within(&s->sched, LOCK_US);
	l = s->n_links ? s->links[0] : NULL;
	if (l) {
		out->addr = l->addr;
		out->n_ip6 = l->n_ip6;
		memcpy(out->ip6, l->ip6, sizeof(out->ip6));
		out->mtu = l->mtu;
		out->bps = l->bps;
	}
	if (locked)
		sched_unlock(&s->sched);
	return l != NULL;
}

void uw_engine_query(struct uw_engine *e, struct uw_device_attr *a)
{
	struct io_link l;
	bool there = look_at_link(e, &l);

	if (!there)
		link_foresee(&e->cfg, &l);
	*a = (struct uw_device_attr){
		.max_qp = VERBS_QPS_MAX,
		.max_qp_wr = 1u << 15,
		.max_sge = 32,
		.max_cq = VERBS_CQS_MAX,
		.max_cqe = 1u << 22,
		.max_mr = VERBS_REGIONS_MAX,
		/* both together, see uw_mw_alloc */
		.max_mw = e->n_stacks > 1 ? 0 : VERBS_REGIONS_MAX,
		.max_pd = VERBS_PDS_MAX,
		.max_srq = VERBS_SRQS_MAX,
		.max_srq_wr = 1u << 15,
		.max_inline = 1024,
		.max_rd_atom = e->cfg.ird,
		.link_bps = l.bps,
		.link_up = true,
		/* a uwarpd says which addresses they are when it is joined; those of IPv6 that the
		 * packet link shares are the interface's */
		.addr_is_final =
			there || (!e->cfg.ip_auto && !link_is_uwarpd(e) && !link_is_packet(e)),
		.addr_is_unknown = !there && link_is_uwarpd(e),
		.roce = e->cfg.roce,
		.infiniband = e->cfg.infiniband,
		.datagram_ids = atomic_load_explicit(&e->conn.datagram_eps, memory_order_relaxed),
		.fw_ver = UWARP_VERSION,
	};
	a->mtu = l.mtu;
	a->mulpdu = (uint32_t)mpa_mulpdu(a->mtu - TCP_HEADERS, false);
	fill_addresses(&l, a);
}
