/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/presence.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* An abstract one: its first octet is 0, and no file has it. */
static socklen_t name_of(int interface, const struct uw_ip *addr, struct sockaddr_un *out)
{
	char text[INET6_ADDRSTRLEN];
	int n;

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	inet_ntop(AF_INET6, addr->b, text, sizeof(text));
	n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "uwarpd/%d/%s", interface, text);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

typedef int call(int fd, const struct sockaddr *name, socklen_t n);

/* The socket; -1: the call failed. */
static int with_name(call *fn, int interface, const struct uw_ip *addr)
{
	struct sockaddr_un name;
	socklen_t n = name_of(interface, addr, &name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || !fn(fd, (const struct sockaddr *)&name, n))
		return fd;
	close(fd);
	return -1;
}

int presence_tell(int interface, const struct uw_ip *addr)
{
	return with_name(bind, interface, addr);
}

bool presence_of_uwarpd(int interface, const struct uw_ip *addr)
{
	int fd = with_name(connect, interface, addr);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
