/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/ingress.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "io/fds.h"
#include "io/packet/filter.h"
#include "io/packet/nft.h"

#define ANSWER 4096u

static const char *set_of(enum io_versions version)
{
	return version == IO_V6 ? "ports6" : "ports";
}

void ingress_init(struct ingress *g)
{
	g->fd = -1;
}

void ingress_close(struct ingress *g)
{
	fds_close(g->fd);
	g->fd = -1;
}

/* ---- the kernel ---------------------------------------------------------------------------- */

/* The kernel carries it out before send() returns. 0 or an errno. */
static int carry_out(const struct ingress *g, struct nft_batch *b)
{
	_Alignas(8) uint8_t answer[ANSWER];
	size_t n = nft_end(b);
	bool more = true;
	int err = n ? 0 : ENOSPC;

	if (!err && send(g->fd, b->at, n, MSG_NOSIGNAL) < 0)
		err = errno;
	while (!err && more) {
		ssize_t got = recv(g->fd, answer, sizeof(answer), MSG_DONTWAIT);

		err = got < 0 ? errno : nft_answer(answer, (size_t)got, &more);
	}
	return err;
}

/* The table's name is nobody else's of this network namespace: the socket's own number. */
static int open_socket(struct ingress *g)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	socklen_t n = sizeof(a);

	g->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (g->fd >= 0)
		g->fd = fds_keep(g->fd);
	if (g->fd < 0 || bind(g->fd, (const void *)&a, n) || getsockname(g->fd, (void *)&a, &n))
		return errno;
	snprintf(g->table, sizeof(g->table), "uwarp-%u", a.nl_pid);
	return 0;
}

/* ---- rules --------------------------------------------------------------------------------- */

static bool is_shared(const struct ingress_ask *a, enum io_versions version)
{
	return a->shared & version;
}

/* *what for each address of *a. */
static void add_rules(struct nft_batch *b, const struct ingress *g, const struct ingress_ask *a,
		      const struct nft_drop *what)
{
	struct nft_drop d = *what;

	d.ip6 = false;
	d.ports = what->ports ? set_of(IO_V4) : NULL;
	memcpy(d.addr, &a->addr, sizeof(a->addr));
	if (a->addr)
		nft_rule(b, g->table, &d);
	d.ip6 = true;
	d.ports = what->ports ? set_of(IO_V6) : NULL;
	for (unsigned i = 0; i < a->n_ip6; i++) {
		memcpy(d.addr, a->ip6[i].ip.b, sizeof(d.addr));
		nft_rule(b, g->table, &d);
	}
}

/* The addresses of *a that the kernel has, too, or the others. */
static struct ingress_ask part(const struct ingress_ask *a, bool shared)
{
	struct ingress_ask some = *a;

	if (is_shared(a, IO_V4) != shared)
		some.addr = 0;
	if (is_shared(a, IO_V6) != shared)
		some.n_ip6 = 0;
	return some;
}

int ingress_open(struct ingress *g, const struct ingress_ask *a)
{
	const struct nft_drop all = { 0 },
			      held = { .protocol = IPPROTO_TCP, .ports = set_of(IO_V4) };
	const struct ingress_ask shared = part(a, true), own = part(a, false);
	struct nft_batch b;
	int err = open_socket(g);

	if (!err) {
		nft_begin(&b);
		nft_table(&b, g->table);
		nft_port_set(&b, g->table, set_of(IO_V4), 1);
		nft_port_set(&b, g->table, set_of(IO_V6), 2);
		nft_chain(&b, g->table, a->interface);
		add_rules(&b, g, &shared, &held);
		add_rules(&b, g, &own, &all);
		err = carry_out(g, &b);
	}
	if (err)
		ingress_close(g);
	return err;
}

/* A port that stayed in the set could be used by nobody. */
static void settle(struct ingress *g, int err)
{
	if (!err)
		return;
	uw_log("frames go to the host's IP stack, too, from now on: %s", strerror(err));
	ingress_close(g);
}

void ingress_port(struct ingress *g, enum io_versions version, uint16_t port, bool ours)
{
	struct nft_batch b;

	if (g->fd < 0)
		return;
	nft_begin(&b);
	nft_port(&b, g->table, set_of(version), port, ours);
	settle(g, carry_out(g, &b));
}

void ingress_roce(struct ingress *g, const struct ingress_ask *a)
{
	const struct nft_drop roce = { .protocol = IPPROTO_UDP, .port = htons(ROCE_PORT) };
	const struct ingress_ask shared = part(a, true);
	struct nft_batch b;

	if (g->fd < 0)
		return;
	nft_begin(&b);
	add_rules(&b, g, &shared, &roce);
	settle(g, carry_out(g, &b));
}
