/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/socket/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/fds.h"

#define IP_TCP_HEADERS 40u
#define MSS_MOST       32767u /* of those that may be asked for */
#define INTERFACES     64
#define TRIES	       64u

struct host_link {
	struct io_link l; /* first */
	uint32_t mss;
	int claim; /* holds our address among the processes that do this; -1: somebody else does */
};

/* ---- what the engine asks of a link ---------------------------------------------------------- */

static unsigned no_frames(struct io_link *l, struct io_frame **v, unsigned n)
{
	(void)l;
	(void)v;
	(void)n;
	return 0;
}

static bool nothing_pending(struct io_link *l)
{
	(void)l;
	return false;
}

/* The kernel finds the way, and 127.0.0.1 too. */
static uw_status found(struct io_link *l, struct uw_ip *to, uint16_t port, unsigned timeout_ms)
{
	(void)l;
	(void)to;
	(void)port;
	(void)timeout_ms;
	return UW_OK;
}

static void host_close(struct io_link *l)
{
	struct host_link *h = (struct host_link *)l;

	fds_close(h->claim);
	free(h);
}

/* Whatever moves frames is left out: there are none. */
static const struct io_ops host_ops = {
	.name = "host",
	.rx = no_frames,
	.pending = nothing_pending,
	.resolve = found,
	.close = host_close,
};

uint32_t host_link_mss(const struct io_link *l)
{
	return ((const struct host_link *)l)->mss;
}

/* ---- which address --------------------------------------------------------------------------- */

/* A name that the kernel gives to one process of the network namespace and takes back when it ends.
 */
static int claim(uint32_t addr)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = fds_keep(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	int n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "uwarp-host-%08x", ntohl(addr));

	if (fd >= 0 && bind(fd, (struct sockaddr *)&un,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n))) {
		fds_close(fd);
		return -1;
	}
	return fd;
}

/* Processes that were given one address between them: every one of them gets its own. */
static void choose_another(struct host_link *h)
{
	for (uint32_t i = 0; i < TRIES && h->claim < 0; i++) {
		h->l.addr = htonl(0x7f400000u | (((uint32_t)getpid() + i * 7919) & 0x3fffff));
		h->claim = claim(h->l.addr);
	}
}

static uw_status is_ours(uint32_t addr)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { addr } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uw_status st = UW_OK;

	if (fd < 0)
		return UW_E_NOMEM;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		st = errno == EADDRNOTAVAIL ? UW_E_ADDR : UW_E_INVAL;
	close(fd);
	return st;
}

/* ---- how large ------------------------------------------------------------------------------- */

static uint32_t mtu_of_interface(int fd, const struct ifreq *named)
{
	struct ifreq r = *named;

	return ioctl(fd, SIOCGIFMTU, &r) ? 0 : (uint32_t)r.ifr_mtu;
}

/* Of the interface that has the address; 0: not found. */
static uint32_t mtu_of(uint32_t addr)
{
	static const struct ifreq loopback = { .ifr_name = "lo" };
	struct ifreq v[INTERFACES];
	struct ifconf all = { .ifc_len = sizeof(v), .ifc_req = v };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t mtu = 0;

	if (fd < 0)
		return 0;
	if (ntohl(addr) >> 24 == IN_LOOPBACKNET)
		mtu = mtu_of_interface(fd, &loopback);
	else if (ioctl(fd, SIOCGIFCONF, &all))
		all.ifc_len = 0;
	for (int i = 0; !mtu && i < all.ifc_len / (int)sizeof(v[0]); i++) {
		const struct sockaddr_in *a = (const struct sockaddr_in *)&v[i].ifr_addr;

		if (a->sin_addr.s_addr == addr)
			mtu = mtu_of_interface(fd, &v[i]);
	}
	close(fd);
	return mtu;
}

static uint32_t own_mtu(uint32_t addr)
{
	uint32_t own = mtu_of(addr);

	return own ? own : 1500;
}

void host_foresee(const struct host_config *cfg, struct io_link *l)
{
	uint32_t own = own_mtu(cfg->addr);

	l->mtu = cfg->mtu && cfg->mtu < own ? cfg->mtu : own;
	l->bps = IO_BPS_UNKNOWN;
}

static void set_size(struct host_link *h, const struct host_config *cfg)
{
	host_foresee(cfg, &h->l);
	if (h->l.mtu < own_mtu(cfg->addr))
		h->mss =
			cfg->mtu - IP_TCP_HEADERS < MSS_MOST ? cfg->mtu - IP_TCP_HEADERS : MSS_MOST;
}

uw_status host_link_open(const struct host_config *cfg, const struct io_env *env,
			 struct io_link **out)
{
	struct host_link *h;
	uw_status st = is_ours(cfg->addr);

	if (st)
		return st;
	h = calloc(1, sizeof(*h));
	if (!h)
		return UW_E_NOMEM;
	h->l = (struct io_link){ .ops = &host_ops, .addr = cfg->addr, .mask = cfg->mask };
	if (env)
		h->l.env = *env;
	h->claim = claim(cfg->addr);
	if (cfg->addr_auto)
		choose_another(h);
	set_size(h, cfg);
	*out = &h->l;
	return UW_OK;
}
