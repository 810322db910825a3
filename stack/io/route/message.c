/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/route/message.h"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#define ATTRS (RTA_MAX + 1)

/* The last attribute of each kind; NULL: there is none. */
struct attrs {
	const struct rtattr *of[ATTRS];
};

static void read_attrs(const void *at, size_t n, struct attrs *out)
{
	const uint8_t *p = at;

	*out = (struct attrs){ 0 };
	while (n >= sizeof(struct rtattr)) {
		const struct rtattr *a = (const void *)p;
		size_t step = RTA_ALIGN(a->rta_len);
		unsigned type = a->rta_type & NLA_TYPE_MASK;

		if (a->rta_len < sizeof(*a) || a->rta_len > n)
			return;
		if (type < ATTRS)
			out->of[type] = a;
		p += step;
		n -= step < n ? step : n;
	}
}

static bool get_u32(const struct rtattr *a, uint32_t *out)
{
	if (!a || RTA_PAYLOAD(a) < sizeof(*out))
		return false;
	memcpy(out, RTA_DATA(a), sizeof(*out));
	return true;
}

static bool get_ip(const struct rtattr *a, unsigned family, struct uw_ip *out)
{
	uint32_t four;

	if (!a)
		return false;
	if (family == AF_INET && get_u32(a, &four)) {
		*out = uw_ip_v4(four);
		return true;
	}
	if (family != AF_INET6 || RTA_PAYLOAD(a) < 16)
		return false;
	memcpy(out->b, RTA_DATA(a), 16);
	return true;
}

/* ---- routes -------------------------------------------------------------------------------- */

/* A gateway of the other version of IP (RFC 8950), or a tunnel: without them it would seem that the
 * destination were a neighbour. */
static bool is_beyond_us(const struct attrs *a)
{
	return a->of[RTA_VIA] || a->of[RTA_ENCAP];
}

/* Of a route with several next hops the first one of this interface that lives. */
static bool read_hops(const struct rtattr *a, unsigned family, int index, struct route *r)
{
	const uint8_t *p = RTA_DATA(a);
	size_t n = RTA_PAYLOAD(a);

	while (n >= sizeof(struct rtnexthop)) {
		const struct rtnexthop *h = (const void *)p;
		size_t step = RTNH_ALIGN(h->rtnh_len);
		struct attrs own;

		if (h->rtnh_len < sizeof(*h) || h->rtnh_len > n)
			return false;
		read_attrs(p + sizeof(*h), h->rtnh_len - sizeof(*h), &own);
		if (h->rtnh_ifindex == index && !(h->rtnh_flags & RTNH_F_DEAD) &&
		    !is_beyond_us(&own)) {
			get_ip(own.of[RTA_GATEWAY], family, &r->via);
			return true;
		}
		p += step;
		n -= step < n ? step : n;
	}
	return false;
}

static void read_mtu(const struct rtattr *metrics, struct route *r)
{
	struct attrs m;

	if (!metrics)
		return;
	read_attrs(RTA_DATA(metrics), RTA_PAYLOAD(metrics), &m);
	get_u32(m.of[RTAX_MTU], &r->mtu);
}

static void read_route(struct route_kernel *k, const struct rtmsg *m, size_t n)
{
	struct route r = { 0 };
	uint32_t oif = 0, table = m->rtm_table;
	struct attrs a;
	unsigned most = m->rtm_family == AF_INET ? 32 : 128;

	read_attrs(m + 1, n - sizeof(*m), &a);
	get_u32(a.of[RTA_TABLE], &table);
	if ((m->rtm_family != AF_INET && m->rtm_family != AF_INET6) || table != RT_TABLE_MAIN ||
	    m->rtm_type != RTN_UNICAST || m->rtm_flags & (RTM_F_CLONED | RTNH_F_DEAD) ||
	    m->rtm_dst_len > most || m->rtm_src_len || is_beyond_us(&a))
		return;
	if (m->rtm_family == AF_INET)
		r.net.ip = uw_ip_v4(0);
	get_ip(a.of[RTA_DST], m->rtm_family, &r.net.ip);
	r.net.bits = (uint8_t)(m->rtm_dst_len + (most == 32 ? UW_IP_V4_BITS : 0));
	get_u32(a.of[RTA_PRIORITY], &r.metric);
	read_mtu(a.of[RTA_METRICS], &r);
	get_ip(a.of[RTA_GATEWAY], m->rtm_family, &r.via);
	get_u32(a.of[RTA_OIF], &oif);
	if ((int)oif == k->index ||
	    (a.of[RTA_MULTIPATH] && read_hops(a.of[RTA_MULTIPATH], m->rtm_family, k->index, &r)))
		route_add(&k->routes, &r);
}

/* ---- the interface ------------------------------------------------------------------------- */

static void read_link(struct route_kernel *k, const struct ifinfomsg *m, size_t n)
{
	struct attrs a;
	uint32_t mtu;

	if (m->ifi_index != k->index)
		return;
	k->there = true;
	read_attrs(m + 1, n - sizeof(*m), &a);
	if (get_u32(a.of[IFLA_MTU], &mtu))
		k->mtu = mtu;
	if (a.of[IFLA_ADDRESS] && RTA_PAYLOAD(a.of[IFLA_ADDRESS]) == sizeof(k->mac)) {
		memcpy(k->mac, RTA_DATA(a.of[IFLA_ADDRESS]), sizeof(k->mac));
		k->has_mac = true;
	}
	k->up = m->ifi_flags & IFF_UP;
	k->running = k->up && m->ifi_flags & IFF_RUNNING;
}

static void read_addr6(struct route_kernel *k, const struct ifaddrmsg *m, const struct attrs *a)
{
	struct uw_net one = { .bits = m->ifa_prefixlen };
	uint32_t flags = m->ifa_flags;

	get_u32(a->of[IFA_FLAGS], &flags);
	if (flags & IFA_F_TENTATIVE && !(flags & (IFA_F_OPTIMISTIC | IFA_F_DADFAILED))) {
		k->tentative = true;
		return;
	}
	if (flags & (IFA_F_TEMPORARY | IFA_F_DADFAILED) || m->ifa_prefixlen > 128 ||
	    k->n_addr6 == ROUTE_ADDRS_MAX ||
	    !get_ip(a->of[IFA_LOCAL] ? a->of[IFA_LOCAL] : a->of[IFA_ADDRESS], AF_INET6, &one.ip))
		return;
	if (flags & IFA_F_DEPRECATED)
		k->deprecated6 |= (uint32_t)1 << k->n_addr6;
	k->addr6[k->n_addr6++] = one;
}

static void read_addr(struct route_kernel *k, const struct ifaddrmsg *m, size_t n)
{
	struct uw_net one = { 0 };
	struct attrs a;

	if ((int)m->ifa_index != k->index)
		return;
	read_attrs(m + 1, n - sizeof(*m), &a);
	if (m->ifa_family == AF_INET6)
		read_addr6(k, m, &a);
	if (m->ifa_family != AF_INET || m->ifa_prefixlen > 32 || k->n_addr == ROUTE_ADDRS_MAX)
		return;
	if (!get_ip(a.of[IFA_LOCAL] ? a.of[IFA_LOCAL] : a.of[IFA_ADDRESS], AF_INET, &one.ip))
		return;
	one.bits = (uint8_t)(UW_IP_V4_BITS + m->ifa_prefixlen);
	k->addr[k->n_addr++] = one;
}

/* ---- neighbours ---------------------------------------------------------------------------- */

static bool is_fixed(const struct ndmsg *m)
{
	return m->ndm_state & NUD_PERMANENT && !(m->ndm_flags & NTF_PROXY);
}

static void read_neighbour(struct route_kernel *k, const struct ndmsg *m, size_t n)
{
	struct route_neighbour one = { 0 };
	struct attrs a;

	if (m->ndm_ifindex != k->index || !is_fixed(m))
		return;
	read_attrs(m + 1, n - sizeof(*m), &a);
	if (!get_ip(a.of[NDA_DST], m->ndm_family, &one.ip) || !a.of[NDA_LLADDR] ||
	    RTA_PAYLOAD(a.of[NDA_LLADDR]) != sizeof(one.mac))
		return;
	memcpy(one.mac, RTA_DATA(a.of[NDA_LLADDR]), sizeof(one.mac));
	route_add_neighbour(&k->routes, &one);
}

/* ---- messages ------------------------------------------------------------------------------ */

static void read_one(struct route_kernel *k, const struct nlmsghdr *h)
{
	size_t n = h->nlmsg_len - NLMSG_HDRLEN;
	const void *body = NLMSG_DATA(h);

	if (h->nlmsg_type == RTM_NEWROUTE && n >= sizeof(struct rtmsg))
		read_route(k, body, n);
	else if (h->nlmsg_type == RTM_NEWLINK && n >= sizeof(struct ifinfomsg))
		read_link(k, body, n);
	else if (h->nlmsg_type == RTM_NEWADDR && n >= sizeof(struct ifaddrmsg))
		read_addr(k, body, n);
	else if (h->nlmsg_type == RTM_NEWNEIGH && n >= sizeof(struct ndmsg))
		read_neighbour(k, body, n);
}

/* Neighbours come and go all the time; only those that are fixed matter. One that goes does not say
 * what it was. */
static bool is_news(const struct nlmsghdr *h, int index)
{
	const struct ndmsg *m = NLMSG_DATA(h);

	if (h->nlmsg_type != RTM_NEWNEIGH && h->nlmsg_type != RTM_DELNEIGH)
		return true;
	return h->nlmsg_len >= NLMSG_LENGTH(sizeof(*m)) && m->ndm_ifindex == index &&
	       (h->nlmsg_type == RTM_DELNEIGH || is_fixed(m));
}

bool route_is_news(const void *octets, size_t n, int index)
{
	const uint8_t *p = octets;

	while (n >= NLMSG_HDRLEN) {
		const struct nlmsghdr *h = (const void *)p;
		size_t step = NLMSG_ALIGN(h->nlmsg_len);

		if (h->nlmsg_len < NLMSG_HDRLEN || h->nlmsg_len > n || is_news(h, index))
			return true;
		p += step;
		n -= step < n ? step : n;
	}
	return false;
}

enum route_read route_read(struct route_kernel *k, const void *octets, size_t n, uint32_t seq)
{
	const uint8_t *p = octets;

	while (n >= NLMSG_HDRLEN) {
		const struct nlmsghdr *h = (const void *)p;
		size_t step = NLMSG_ALIGN(h->nlmsg_len);

		if (h->nlmsg_len < NLMSG_HDRLEN || h->nlmsg_len > n)
			return ROUTE_ERROR;
		if (h->nlmsg_seq == seq && h->nlmsg_flags & NLM_F_DUMP_INTR)
			return ROUTE_AGAIN;
		if (h->nlmsg_seq == seq && h->nlmsg_type == NLMSG_ERROR)
			return ROUTE_ERROR;
		if (h->nlmsg_seq == seq && h->nlmsg_type == NLMSG_DONE)
			return ROUTE_DONE;
		if (h->nlmsg_seq == seq)
			read_one(k, h);
		p += step;
		n -= step < n ? step : n;
	}
	return ROUTE_MORE;
}
