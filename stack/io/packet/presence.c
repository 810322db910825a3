/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/presence.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
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

/* ---- whose it is ---------------------------------------------------------------------------- */

#define OCTETS 32768 /* the kernel gives no more at a time */

struct search {
	const char *name;
	size_t len;
	bool trusted;
};

static bool is_trusted(uint32_t uid)
{
	return uid == 0 || uid == geteuid();
}

static void read_socket(struct search *s, const struct nlmsghdr *h)
{
	const size_t head = NLMSG_SPACE(sizeof(struct unix_diag_msg));
	const struct rtattr *a = (const void *)((const char *)h + head);
	int left = (int)h->nlmsg_len - (int)head;
	bool named = false, trusted = false;
	uint32_t uid;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == UNIX_DIAG_NAME)
			named = RTA_PAYLOAD(a) == s->len && !memcmp(RTA_DATA(a), s->name, s->len);
		if (a->rta_type != UNIX_DIAG_UID || RTA_PAYLOAD(a) < sizeof(uid))
			continue;
		memcpy(&uid, RTA_DATA(a), sizeof(uid));
		trusted = is_trusted(uid);
	}
	s->trusted |= named && trusted;
}

/* False: that was all of it. */
static bool read_some(struct search *s, int fd)
{
	_Alignas(8) char octets[OCTETS];
	ssize_t n = recv(fd, octets, sizeof(octets), MSG_DONTWAIT);
	unsigned left = n > 0 ? (unsigned)n : 0;

	if (!left)
		return false;
	for (const struct nlmsghdr *h = (const void *)octets; NLMSG_OK(h, left);
	     h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
			return false;
		read_socket(s, h);
	}
	return true;
}

/* Anybody may bind a name. A kernel that does not tell whose a socket is (before 5.3, or without
 * unix_diag) leaves it at that: nobody is trusted. */
static bool is_of_uwarpd(int interface, const struct uw_ip *addr)
{
	const struct {
		struct nlmsghdr h;
		struct unix_diag_req r;
	} q = { .h = { .nlmsg_len = sizeof(q),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.r = { .sdiag_family = AF_UNIX,
		       .udiag_states = UINT32_MAX,
		       .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID } };
	struct sockaddr_un name;
	struct search s = { .name = name.sun_path };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return false;
	s.len = name_of(interface, addr, &name) - offsetof(struct sockaddr_un, sun_path);
	if (send(fd, &q, sizeof(q), MSG_NOSIGNAL) == (ssize_t)sizeof(q)) {
		while (read_some(&s, fd))
			;
	}
	close(fd);
	return s.trusted;
}

bool presence_of_uwarpd(int interface, const struct uw_ip *addr)
{
	int fd = with_name(connect, interface, addr);

	if (fd < 0)
		return false;
	close(fd);
	return is_of_uwarpd(interface, addr);
}
