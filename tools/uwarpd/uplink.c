/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice among the kinds of port, and the one that is none. */
#include "uplink.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/addr.h"
#include "io/packet/packet.h"

#define MTU_NONE 9000u

static bool send_nowhere(struct uplink *p, const struct uplink_out *f)
{
	(void)f;
	p->lost++;
	return true;
}

static bool receive_nothing(struct uplink *p, struct uplink_in *f)
{
	(void)p;
	(void)f;
	return false;
}

void uplink_own_ip6(struct uplink *p, const struct options *o)
{
	if (p->mtu < IO_IP6_MIN_MTU)
		return;
	p->ip6[p->n_ip6++] = io_link_local_of(p->addr);
	for (unsigned i = 0; i < o->n_ip6; i++)
		p->ip6[p->n_ip6++] = o->ip6[i];
}

static void close_none(struct uplink *p)
{
	free(p);
}

struct uplink *uplink_open_none(const struct options *o)
{
	static const struct uplink_ops ops = { .send = send_nowhere,
					       .receive = receive_nothing,
					       .close = close_none };
	struct uplink *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct uplink){ .ops = &ops,
			      .addr = o->addr,
			      .mask = o->mask,
			      .mtu = o->mtu ? o->mtu : MTU_NONE,
			      .bps = UINT64_C(10000000000),
			      .flags = SWITCH_FLAG_SUMS | SWITCH_FLAG_MERGES,
			      .own = true,
			      .fd = -1 };
	io_mac_of(p->addr, p->mac);
	uplink_own_ip6(p, o);
	return p;
}

struct uplink *uplink_open(const struct options *o)
{
	const char *interface;

	if (!strcmp(o->link, "none"))
		return uplink_open_none(o);
	if (!strcmp(o->link, "memif") || !strcmp(o->link, "loop") ||
	    !strncmp(o->link, "uwarpd", 6)) {
		uw_log("--link %s: no port; name an interface, or none", o->link);
		return NULL;
	}
	interface = packet_interface(o->link);
	if (!interface && !strchr(o->link, ':') && strncmp(o->link, "net_", 4)) {
		uw_log("--link %s: no such interface (ip link shows those there are)", o->link);
		return NULL;
	}
	return interface ? uplink_open_packet(o, interface) : uplink_open_link(o);
}
