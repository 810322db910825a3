/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/route/kernel.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#include "io/fds.h"

#define OCTETS	  32768 /* the kernel gives no more at a time */
#define TRIES	  8	/* while routes change as they are read */
#define ANSWER_MS 2000
#define CALM_MS	  20  /* changes come in groups */
#define GROUP_MS  500 /* ... that end, or else are read so often */

#define GROUPS                                                                                     \
	(RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE |                     \
	 RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE)

static int open_socket(unsigned groups)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const void *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd < 0 ? -1 : fds_keep(fd);
}

uw_status route_watch_open(struct route_watch *w, const char *interface)
{
	*w = (struct route_watch){ .ask = -1, .hear = -1, .bell = -1 };
	w->index = (int)if_nametoindex(interface);
	w->hear = open_socket(GROUPS);
	w->ask = open_socket(0);
	w->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->index && w->hear >= 0 && w->ask >= 0 && w->bell >= 0 && fds_keep(w->bell) >= 0)
		return UW_OK;
	route_watch_close(w);
	return UW_E_NO_LINK;
}

void route_watch_close(struct route_watch *w)
{
	if (!w->taken) {
		fds_close(w->ask);
		fds_close(w->hear);
		fds_close(w->bell);
	}
	w->ask = w->hear = w->bell = -1;
}

/* ---- questions ----------------------------------------------------------------------------- */

static bool await(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ANSWER_MS) > 0;
}

static enum route_read answer(struct route_watch *w, struct route_kernel *k)
{
	_Alignas(8) uint8_t octets[OCTETS];
	enum route_read r = ROUTE_MORE;

	while (r == ROUTE_MORE) {
		ssize_t n = await(w->ask) ? recv(w->ask, octets, sizeof(octets), MSG_DONTWAIT) : -1;

		if (n < 0)
			return ROUTE_ERROR;
		r = route_read(k, octets, (size_t)n, w->seq);
	}
	return r;
}

static enum route_read dump(struct route_watch *w, struct route_kernel *k, uint16_t type,
			    uint8_t family)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg m; /* as long as or longer than the others' bodies */
		uint8_t pad[8];
	} q = { .h = { .nlmsg_len = sizeof(q),
		       .nlmsg_type = type,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		       .nlmsg_seq = ++w->seq },
		.m = { .rtm_family = family } };

	static_assert(sizeof(struct ndmsg) == sizeof(struct rtmsg), "one length for both");
	if (type == RTM_GETROUTE || type == RTM_GETNEIGH)
		q.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg));
	else if (type == RTM_GETADDR)
		q.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg) - 4);
	else
		q.h.nlmsg_len = NLMSG_LENGTH(16);
	if (send(w->ask, &q, q.h.nlmsg_len, MSG_NOSIGNAL) < 0)
		return ROUTE_ERROR;
	return answer(w, k);
}

static enum route_read read_once(struct route_watch *w, struct route_kernel *k)
{
	static const struct {
		uint16_t type;
		uint8_t family;
	} what[] = { { RTM_GETLINK, AF_UNSPEC }, { RTM_GETADDR, AF_INET },
		     { RTM_GETADDR, AF_INET6 },	 { RTM_GETROUTE, AF_INET },
		     { RTM_GETROUTE, AF_INET6 }, { RTM_GETNEIGH, AF_INET },
		     { RTM_GETNEIGH, AF_INET6 } };
	enum route_read all = ROUTE_DONE;

	for (unsigned i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		enum route_read r = dump(w, k, what[i].type, what[i].family);

		if (r == ROUTE_AGAIN)
			return r;
		/* there may be no IPv6, and emulators of Linux do not tell of neighbours */
		if (r != ROUTE_DONE && what[i].family != AF_INET6 && what[i].type != RTM_GETNEIGH)
			all = r;
	}
	return all;
}

/* What is left of an answer that was given up is passed over by its number. */
bool route_watch_read(struct route_watch *w, struct route_kernel *k)
{
	enum route_read r = ROUTE_AGAIN;

	for (unsigned i = 0; i < TRIES && r == ROUTE_AGAIN; i++) {
		if (i)
			route_clear(&k->routes);
		*k = (struct route_kernel){ .index = w->index };
		r = read_once(w, k);
	}
	route_sort(&k->routes);
	return r == ROUTE_DONE;
}

/* ---- news ---------------------------------------------------------------------------------- */

/* Whatever it is, everything is read again. True: it is something. */
static bool drain(struct route_watch *w)
{
	_Alignas(8) uint8_t octets[4096];
	bool news = false;
	ssize_t n;

	while ((n = recv(w->hear, octets, sizeof(octets), MSG_DONTWAIT)) > 0 ||
	       (n < 0 && errno == ENOBUFS))
		news |= n < 0 || route_is_news(octets, (size_t)n, w->index);
	w->taken |= !n || (errno != EAGAIN && errno != EINTR);
	return news;
}

static bool rung(struct route_watch *w, int timeout_ms, bool *news)
{
	struct pollfd p[] = { { .fd = w->hear, .events = POLLIN },
			      { .fd = w->bell, .events = POLLIN } };

	fds_poll(p, 2, timeout_ms);
	w->taken |= p[1].revents && !fds_rung(w->bell);
	*news = p[0].revents && drain(w);
	w->stopped |= w->taken;
	return w->stopped;
}

static int left_ms(uint64_t until)
{
	uint64_t now = uw_clock_ms();

	return until == UINT64_MAX ? -1 : now < until ? (int)(until - now) : 0;
}

enum route_wait route_watch_wait(struct route_watch *w, int timeout_ms)
{
	uint64_t until = timeout_ms < 0 ? UINT64_MAX : uw_clock_ms() + (unsigned)timeout_ms;
	bool news = false;

	while (!news && uw_clock_ms() < until) {
		if (rung(w, left_ms(until), &news))
			return ROUTE_STOPPED;
	}
	if (!news)
		return ROUTE_QUIET;
	until = uw_clock_ms() + GROUP_MS;
	while (news && uw_clock_ms() < until) {
		if (rung(w, CALM_MS, &news))
			return ROUTE_STOPPED;
	}
	return ROUTE_NEWS;
}

void route_watch_stop(struct route_watch *w)
{
	w->stopped = true;
	if (!w->taken)
		fds_ring(w->bell);
}
