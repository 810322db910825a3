/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses that verbs name by a GID or a LID. */
#include <netinet/in.h>
#include <string.h>

#include "facts.h"
#include "base/log.h"
#include "provider.h"

static bool gid_to_ip(const uint8_t gid[16], struct sockaddr_in6 *a)
{
	*a = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	memcpy(&a->sin6_addr, gid, sizeof(a->sin6_addr));
	return !IN6_IS_ADDR_UNSPECIFIED(&a->sin6_addr);
}

/* Both ends are of one version, as an address and its GID index are with RoCEv2. */
static int find_own(const char *call, const struct uw_device_attr *dev, uint8_t index,
		    struct uwarp_ends *ends)
{
	struct uwarp_facts f;

	uwarp_facts_of(dev, &f);
	if (index >= f.n_gids || !f.gid[index].present) {
		uw_log("%s: sgid_index %u is no GID of %s; ibv_devinfo -v lists them", call, index,
		       uwarp_device_name());
		return -EINVAL;
	}
	gid_to_ip(f.gid[index].raw, &ends->own);
	if (!IN6_IS_ADDR_V4MAPPED(&ends->own.sin6_addr) ==
	    !IN6_IS_ADDR_V4MAPPED(&ends->peer.sin6_addr))
		return 0;
	uw_log("%s: one of the peer's GID and the own (index %u) is IPv4, the other "
	       "IPv6: let both sides use the same GID index",
	       call, index);
	return -EINVAL;
}

/* A program that names no GID has a LID. That is the lower half of the address (facts.h), and the
 * upper half is that of our own. */
static bool lid_to_ip(const struct uw_device_attr *dev, uint16_t lid, struct sockaddr_in6 *a)
{
	const struct sockaddr_in *own = (const struct sockaddr_in *)&dev->addr;
	uint32_t ip = own->sin_family != AF_INET
			      ? 0
			      : htonl((ntohl(own->sin_addr.s_addr) & 0xffff0000u) | lid);

	*a = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	a->sin6_addr.s6_addr[10] = a->sin6_addr.s6_addr[11] = 0xff;
	memcpy(&a->sin6_addr.s6_addr[12], &ip, sizeof(ip));
	return lid != 0 && own->sin_family == AF_INET;
}

/* As of an InfiniBand port, whose LID the program has read: so rsockets name their own QP. The
 * pingpongs do it by mistake, without rdma_cm, and are told. */
static bool names_itself(const struct uw_device_attr *dev, const struct ibv_ah_attr *ah)
{
	return dev->roce && dev->datagram_ids && !ah->is_global && !ah->dlid;
}

int uwarp_find_ends(const char *call, const struct uw_device_attr *dev,
		    const struct ibv_ah_attr *ah, struct uwarp_ends *ends)
{
	bool ok;

	ends->from = NULL;
	if (ah->port_num != 1)
		return -EINVAL;
	if (names_itself(dev, ah))
		return gid_to_ip(dev->gid[0], &ends->peer) ? 0 : -EINVAL;
	ok = ah->is_global ? gid_to_ip(ah->grh.dgid.raw, &ends->peer)
			   : lid_to_ip(dev, ah->dlid, &ends->peer);
	if (!ok) {
		uw_log("%s: the peer's %s is not that of a uwarp device%s", call,
		       ah->is_global ? "GID" : "LID",
		       ah->is_global || ah->dlid
			       ? ""
			       : "; a LID of 0 is none, name a GID (pingpong: -g 0)");
		return -EINVAL;
	}
	if (!ah->is_global)
		return 0;
	/* The engine may still choose its first address when it starts. */
	if (find_own(call, dev, ah->grh.sgid_index, ends))
		return -EINVAL;
	if (memcmp(&ends->own.sin6_addr, dev->gid[0], sizeof(ends->own.sin6_addr)) != 0)
		ends->from = (struct sockaddr *)&ends->own;
	return 0;
}
