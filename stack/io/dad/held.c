/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/dad/held.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "io/fds.h"

struct place {
	uint32_t ifindex, vlan;
	struct held_by *who;
};

static socklen_t name_of(const struct place *p, struct sockaddr_un *un)
{
	const uint8_t *b = p->who->ip.b;
	int n;

	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "uwarp-address-%u-%u-", p->ifindex,
		     p->vlan);
	for (unsigned i = 0; i < sizeof(p->who->ip.b); i++)
		n += snprintf(un->sun_path + 1 + n, sizeof(un->sun_path) - 1 - (size_t)n, "%02x",
			      b[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int new_socket(void)
{
	return fds_keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* Of the process that listens there; nobody ever accepts. */
static int pid_of(const struct sockaddr_un *un, socklen_t n)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);
	int fd = new_socket();

	if (fd >= 0 && (connect(fd, (const struct sockaddr *)un, n) ||
			getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)))
		cred.pid = 0;
	fds_close(fd);
	return cred.pid;
}

/* False: another process has it. */
static bool take(struct held *h, const struct place *p)
{
	struct sockaddr_un un;
	socklen_t n = name_of(p, &un);
	int fd = new_socket();
	bool taken;

	if (fd < 0)
		return true;
	if (!bind(fd, (const struct sockaddr *)&un, n) && !listen(fd, SOMAXCONN)) {
		h->fd[h->n++] = fd;
		return true;
	}
	taken = errno == EADDRINUSE;
	fds_close(fd);
	if (taken)
		p->who->pid = pid_of(&un, n);
	return !taken;
}

bool held_take(struct held *h, const struct io_link *l, uint32_t ifindex, uint32_t vlan,
	       struct held_by *who)
{
	const struct place p = { ifindex, vlan, who };
	bool free_all = true;

	h->n = 0;
	who->ip = uw_ip_v4(l->addr);
	if (l->addr && !(l->flags & IO_SHARED))
		free_all = take(h, &p);
	/* the first is made of the IPv4 address, which many processes may share */
	for (unsigned i = 1; free_all && i < l->n_ip6 && !(l->flags & IO_SHARED6); i++) {
		who->ip = l->ip6[i].ip;
		free_all = take(h, &p);
	}
	if (!free_all)
		held_drop(h);
	return free_all;
}

void held_drop(struct held *h)
{
	while (h->n)
		fds_close(h->fd[--h->n]);
}
