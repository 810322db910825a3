/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets made and listeners. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "io/fds.h"
#include "base/log.h"
#include "io/socket/sock.h"

#define ACCEPTS	     64u /* in one round */
#define AGAIN_US     100000u
#define KEEPALIVES   3
#define NOTSENT_MOST (256 * 1024)

static void set(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

static void say_no_descriptor(void)
{
	static bool said;

	if (!said)
		uw_log("no descriptor is left for a connection: raise ulimit -n");
	said = true;
}

/* Accepted ones inherit all of it. */
static void prepare(int fd, const struct io_link *l)
{
	uint32_t s = (sock.cfg.keepalive_ms + 999) / 1000, mss = host_link_mss(l);

	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	/* What waits in the kernel without being sent only gets old there. */
	set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_MOST);
	if (mss)
		set(fd, IPPROTO_TCP, TCP_MAXSEG, (int)mss);
	if (!s)
		return;
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)s);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)s);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVES);
}

int sock_new(int family, const struct io_link *l)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		say_no_descriptor();
	fd = fds_keep(fd);
	if (fd >= 0)
		prepare(fd, l);
	return fd;
}

/* Sockets of IPv6 speak IPv4, too, and have a field for each; those of IPv4 refuse the other. */
void sock_mark(int fd, uint8_t tos)
{
	set(fd, IPPROTO_IP, IP_TOS, tos);
	set(fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
}

uw_status sock_status(int error)
{
	switch (error) {
	case 0:
		return UW_OK;
	case EADDRINUSE:
		return UW_E_ADDR_IN_USE;
	case EADDRNOTAVAIL:
		return UW_E_ADDR;
	case EACCES:
	case EPERM:
		return UW_E_PERM;
	case ECONNREFUSED:
		return UW_E_REFUSED;
	case ETIMEDOUT:
		return UW_E_TIMEOUT;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EINVAL: /* from 127.0.0.0/8 to elsewhere */
		return UW_E_UNREACHABLE;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return UW_E_NOMEM;
	default:
		return UW_E_LLP_CLOSED;
	}
}

/* ---- listening ------------------------------------------------------------------------------- */

/* A kernel without IPv6 takes :: for 0.0.0.0. */
static int bound(const struct uw_ip *ip, uint16_t port, bool only6, const struct io_link *l)
{
	const struct uw_ip any = uw_ip_v4(INADDR_ANY);
	struct sockaddr_storage a;
	socklen_t n = sock_addr_make(ip, port, &a);
	int fd = sock_new(a.ss_family, l), error;

	if (fd < 0 && errno == EAFNOSUPPORT && uw_ip_is_any(ip)) {
		n = sock_addr_make(&any, port, &a);
		fd = sock_new(a.ss_family, l);
	}
	if (fd >= 0 && only6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (fd < 0 || !bind(fd, (struct sockaddr *)&a, n))
		return fd;
	error = errno;
	fds_close(fd);
	errno = error;
	return -1;
}

uw_status sock_listen(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
		      struct llp_listener **out)
{
	struct uw_ip ip = at->own ? uw_ip_v4(l->addr) : at->addr;
	struct llp_listener *ls = calloc(1, sizeof(*ls));
	uw_status st;

	if (!ls)
		return UW_E_NOMEM;
	*ls = (struct llp_listener){ .w = { .listens = true }, .l = l, .ctx = ctx };
	ls->w.fd = bound(&ip, at->port, at->only6, l);
	if (ls->w.fd >= 0 && at->tos)
		sock_mark(ls->w.fd, at->tos); /* accepted ones inherit it */
	if (ls->w.fd < 0 || listen(ls->w.fd, backlog > 0 ? backlog : SOMAXCONN) ||
	    !sock_watch(&ls->w, EPOLLIN)) {
		st = sock_status(errno);
		fds_close(ls->w.fd);
		free(ls);
		return st;
	}
	ls->next = sock.listeners;
	ls->link = &sock.listeners;
	if (ls->next)
		ls->next->link = &ls->next;
	sock.listeners = ls;
	*out = ls;
	return UW_OK;
}

void sock_unlisten(struct llp_listener *ls)
{
	*ls->link = ls->next;
	if (ls->next)
		ls->next->link = ls->link;
	epoll_ctl(sock.epoll, EPOLL_CTL_DEL, ls->w.fd, NULL);
	fds_close(ls->w.fd);
	ls->w.fd = -1;
	ls->next = sock.unheard;
	sock.unheard = ls;
}

/* Without SO_REUSEADDR: nobody has it, not even in TIME_WAIT. */
bool sock_port_free(uint16_t port)
{
	const struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = port };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool free_one = fd >= 0 && !bind(fd, (const struct sockaddr *)&a, sizeof(a));

	if (fd >= 0)
		close(fd);
	return free_one;
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void welcome(struct llp_listener *ls, int fd)
{
	struct llp_conn *c = fd < 0 ? NULL : sock_conn_new(fd, NULL);

	if (!c) {
		fds_close(fd);
		return;
	}
	sock_conn_opened(c);
	if (sock_watch(&c->w, EPOLLIN))
		c->ctx = sock.cfg.user->accepted(ls->ctx, c);
	if (!c->ctx && c->state == SOCK_CONN_OPEN)
		sock_abort(c);
}

void sock_accept(struct llp_listener *ls)
{
	for (unsigned i = 0; i < ACCEPTS; i++) {
		int fd = accept4(ls->w.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			welcome(ls, fds_keep(fd));
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			say_no_descriptor();
			sock_watch(&ls->w, 0);
			ls->again_us = sock_now_us() + AGAIN_US;
		}
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}
