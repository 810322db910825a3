/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/addr.h"

static struct uw_net made_of(const uint8_t prefix[12], uint32_t host_be)
{
	struct uw_net n = { .bits = 64 };

	memcpy(n.ip.b, prefix, 12);
	memcpy(n.ip.b + 12, &host_be, sizeof(host_be));
	return n;
}

struct uw_net io_link_local_of(uint32_t host_be)
{
	static const uint8_t prefix[12] = { 0xfe, 0x80, [10] = 'u', 'w' };

	return made_of(prefix, host_be);
}

struct uw_net io_local_of(uint32_t host_be)
{
	static const uint8_t prefix[12] = { 0xfd, 'u', 'w', 'a', 'r', 'p' };

	return made_of(prefix, host_be);
}

static void add(struct io_link *l, struct uw_net n)
{
	if (l->n_ip6 < IO_IP6_MAX && !io_has(l, &n.ip))
		l->ip6[l->n_ip6++] = n;
}

void io_set_ip6(struct io_link *l, const struct uw_net *more, unsigned n)
{
	uint32_t host = l->addr ? l->addr : n ? uw_ip_v4_be(&more[0].ip) : 0;

	l->n_ip6 = 0;
	if (!host || l->mtu < IO_IP6_MIN_MTU)
		return;
	add(l, io_link_local_of(host));
	for (unsigned i = 0; i < n; i++)
		add(l, more[i]);
	if (l->flags & IO_P2P)
		add(l, io_local_of(host));
}

void io_share_ip6(struct io_link *l, const struct uw_net *all, unsigned n)
{
	l->n_ip6 = 0;
	if (l->mtu < IO_IP6_MIN_MTU)
		return;
	for (unsigned i = 0; i < n; i++)
		add(l, all[i]);
	l->flags |= IO_SHARED6;
}

bool io_has(const struct io_link *l, const struct uw_ip *a)
{
	if (uw_ip_is_v4(a))
		return l->addr && uw_ip_v4_be(a) == l->addr;
	for (unsigned i = 0; i < l->n_ip6; i++) {
		if (uw_ip_eq(a, &l->ip6[i].ip))
			return true;
	}
	return false;
}

/* Of the same network; else the first that is good for more than the link (RFC 6724 would weigh
 * more, but there is one link). */
bool io_source_for(const struct io_link *l, const struct uw_ip *to, struct uw_ip *out)
{
	if (uw_ip_is_v4(to)) {
		*out = uw_ip_v4(l->addr);
		return l->addr != 0;
	}
	for (unsigned i = 0; i < l->n_ip6; i++) {
		if (uw_net_has(&l->ip6[i], to)) {
			*out = l->ip6[i].ip;
			return true;
		}
	}
	if (l->n_ip6)
		*out = l->ip6[l->n_ip6 > 1].ip;
	return l->n_ip6;
}
