/* SPDX-License-Identifier: BSD-3-Clause */
/* Our addresses and the kernel's. */
#include <netinet/in.h>
#include <string.h>

#include "io/socket/sock.h"

socklen_t sock_addr_make(const struct uw_ip *ip, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (uw_ip_is_v4(ip)) {
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		v4->sin_addr.s_addr = uw_ip_v4_be(ip);
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = port;
	memcpy(&v6->sin6_addr, ip, sizeof(*ip));
	return sizeof(*v6);
}

void sock_addr_read(const struct sockaddr_storage *from, struct uw_ip *ip, uint16_t *port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;

	if (from->ss_family == AF_INET) {
		*ip = uw_ip_v4(v4->sin_addr.s_addr);
		*port = v4->sin_port;
		return;
	}
	memcpy(ip, &v6->sin6_addr, sizeof(*ip));
	*port = v6->sin6_port;
}

bool sock_is_own_net(const struct uw_ip *ip)
{
	return uw_ip_is_v4(ip) ? ip->b[12] == IN_LOOPBACKNET : uw_ip_is_loopback(ip);
}
