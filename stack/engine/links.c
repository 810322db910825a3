/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/links.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/addr.h"
#include "io/impair/link.h"
#include "io/loop/loop.h"
#include "io/packet/packet.h"
#include "io/rate.h"
#include "io/run_dir.h"
#include "io/socket/host.h"
#include "io/uwarpd/uwarpd.h"

static uint32_t own_address(void)
{
	/* Unlike those that uwarp-run gives out (127.0.x.y), and unlike any other process's. */
	return htonl(0x7f400000u | ((uint32_t)getpid() & 0x3fffff));
}

static bool between_processes(const struct uw_config *c)
{
	return !c->link[0] || !strcmp(c->link, "memif") || !strcmp(c->link, "loop");
}

/* False: it does not parse, or is none that a host can have. */
static bool add_ip6(const char *text, unsigned long bits, struct link_addr *out)
{
	struct uw_net *n = &out->ip6[out->n_ip6];

	if (out->n_ip6 == LINK_IP6_MAX || bits > 128 || inet_pton(AF_INET6, text, n->ip.b) != 1)
		return false;
	n->bits = (uint8_t)(bits ? bits : 64);
	out->n_ip6++;
	return n->ip.b[0] != 0xff && !uw_ip_is_v4(&n->ip) && !uw_ip_is_any(&n->ip) &&
	       !uw_ip_is_loopback(&n->ip) && !uw_ip_is_link_local(&n->ip);
}

static bool add_ip4(const char *text, unsigned long bits, struct link_addr *out)
{
	struct in_addr in;

	if (out->addr || bits > 32 || inet_pton(AF_INET, text, &in) != 1 || !in.s_addr)
		return false;
	if (!bits)
		bits = strncmp(text, "127.", 4) ? 24 : 8;
	out->addr = in.s_addr;
	out->mask = htonl((uint32_t)(0xffffffffull << (32 - bits)));
	return true;
}

static bool add_one(char *text, struct link_addr *out)
{
	char *slash = strchr(text, '/'), *end;
	unsigned long bits = 0;

	if (slash) {
		*slash = 0;
		bits = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end || !bits)
			return false;
	}
	return strchr(text, ':') ? add_ip6(text, bits, out) : add_ip4(text, bits, out);
}

static bool read_list(const char *ip, struct link_addr *out)
{
	char buf[sizeof(((struct uw_config *)0)->ip)], *rest = buf, *one;

	memset(out, 0, sizeof(*out));
	snprintf(buf, sizeof(buf), "%s", ip);
	while ((one = strsep(&rest, ","))) {
		if (!add_one(one, out))
			return false;
	}
	return true;
}

/* An address alone tells the process: all end in the same four octets, the IPv4 address. */
static bool same_host(struct link_addr *a)
{
	uint8_t first;

	if (!a->addr) {
		a->addr = uw_ip_v4_be(&a->ip6[0].ip);
		first = a->ip6[0].ip.b[12];
		a->mask = htonl(first == 127 ? 0xff000000u : 0xffffff00u);
		if (!first || first >= 224)
			return false;
	}
	for (unsigned i = 0; i < a->n_ip6; i++) {
		if (!io_ends_in(&a->ip6[i], a->addr))
			return false;
	}
	return true;
}

enum problem { NONE, NO_FORM, NO_HOST };

static enum problem read_ip(const struct uw_config *c, struct link_addr *out)
{
	if (!*c->ip)
		*out = (struct link_addr){ .addr = own_address(), .mask = htonl(0xff000000u) };
	else if (!read_list(c->ip, out))
		return NO_FORM;
	return between_processes(c) && !same_host(out) ? NO_HOST : NONE;
}

uw_status link_parse_ip(const struct uw_config *c, struct link_addr *out)
{
	switch (read_ip(c, out)) {
	case NONE:
		return UW_OK;
	case NO_FORM:
		uw_log("address %s is not of the form A.B.C.D, A.B.C.D/N or A:B::C/N, or none "
		       "that a "
		       "host can have (--ip, UWARP_IP)",
		       c->ip);
		return UW_E_INVAL;
	default:
		uw_log("address %s: between processes an IPv6 address ends in the IPv4 one, "
		       "such as fd00::127.0.0.5 (--ip, UWARP_IP)",
		       c->ip);
		return UW_E_INVAL;
	}
}

static void foresee_size(const struct uw_config *c, uint32_t addr, struct io_link *l)
{
	const struct host_config host = { .mtu = c->mtu, .addr = addr };
	const char *interface = link_interface(c->link);

	l->bps = IO_BPS_UNKNOWN;
	l->mtu = c->mtu ? c->mtu : between_processes(c) ? IO_MTU_PROCESSES : 1500;
	if (!strcmp(c->link, LINK_HOST))
		host_foresee(&host, l);
	else if (*interface)
		packet_foresee(interface, c->mtu, l);
	if (*interface && !packet_interface(c->link)) { /* DPDK's drivers know neither more */
		l->bps = IO_BPS_UNKNOWN;
		l->mtu = l->mtu < IO_MTU_PORT ? l->mtu : IO_MTU_PORT;
	}
	if (c->rate_bps)
		l->bps = c->rate_bps;
}

void link_foresee(const struct uw_config *c, struct io_link *l)
{
	struct link_addr a = { 0 };

	*l = (struct io_link){ 0 };
	if (between_processes(c))
		l->flags = IO_P2P;
	if (read_ip(c, &a))
		a = (struct link_addr){ .addr = htonl((uint32_t)getpid()) };
	foresee_size(c, a.addr, l);
	l->addr = a.addr;
	l->mask = a.mask;
	if (strcmp(c->link, LINK_HOST))
		io_set_ip6(l, a.ip6, a.n_ip6);
}

static uw_status check_mtu(struct uw_engine *e, const struct io_link *l)
{
	if (l->mtu < IO_MTU_LEAST) {
		uw_log("link %s: an MTU of %u octets is too small; raise it to at least %u (ip "
		       "link set IF mtu 1500)",
		       l->ops->name, l->mtu, IO_MTU_LEAST);
		return UW_E_INVAL;
	}
	if (l->n_ip6 || !strchr(e->cfg.ip, ':'))
		return UW_OK;
	uw_log("IPv6 needs an MTU of at least %u octets, and the link has %u (--mtu, UWARP_MTU)",
	       IO_IP6_MIN_MTU, l->mtu);
	return UW_E_INVAL;
}

uw_status link_open_loop(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	struct link_addr a;
	uw_status st = link_parse_ip(&e->cfg, &a);
	struct loop_config cfg = { .mtu = e->cfg.mtu ? e->cfg.mtu : IO_MTU_PROCESSES,
				   .flags = IO_P2P,
				   .now_us = e->stack[0]->sched.now_us,
				   .arg = e->stack[0]->sched.now_arg };

	if (st)
		return st;
	cfg.addr[0] = a.addr;
	cfg.mask = a.mask;
	st = loop_open_single(&cfg, env, out);
	if (!st)
		io_set_ip6(*out, a.ip6, a.n_ip6);
	return st;
}

const char *link_interface(const char *link)
{
	static const char *const prefix[] = { "af_packet:", "af_xdp:" };
	const char *name = packet_interface(link);

	for (unsigned i = 0; !name && i < 2; i++) {
		if (!strncmp(link, prefix[i], strlen(prefix[i])))
			name = link + strlen(prefix[i]);
	}
	return name && strlen(name) < IF_NAMESIZE ? name : "";
}

bool link_is_packet(const struct uw_engine *e)
{
	return packet_interface(e->cfg.link);
}

uw_status link_open_packet(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	struct link_addr a = { 0 };
	uw_status st = *e->cfg.ip ? link_parse_ip(&e->cfg, &a) : UW_OK;
	struct packet_config cfg = { .interface = packet_interface(e->cfg.link),
				     .addr = a.addr,
				     .mask = a.mask,
				     .ip6 = a.ip6,
				     .n_ip6 = a.n_ip6,
				     .mtu = e->cfg.mtu,
				     .vlan = (uint16_t)e->cfg.vlan,
				     .no_tso = e->cfg.tso == UW_TSO_OFF,
				     .verbose = e->cfg.verbose };

	return st ? st : packet_link_open(&cfg, env, out);
}

bool link_is_uwarpd(const struct uw_engine *e)
{
	return uwarpd_link_path(e->cfg.link);
}

uw_status link_open_uwarpd(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	const char *named = uwarpd_link_path(e->cfg.link), *path = *named ? named : e->cfg.uwarpd;
	char run_dir[sizeof(e->cfg.run_dir)];
	struct link_addr a = { 0 };
	uw_status st = *e->cfg.ip ? link_parse_ip(&e->cfg, &a) : UW_OK;
	struct uwarpd_config cfg = {
		.path = *path ? path : NULL,
		.run_dir = run_dir_find(e->cfg.run_dir, run_dir, sizeof(run_dir)) ? run_dir : NULL,
		.addr = a.addr,
		.mtu = e->cfg.mtu,
		.no_tso = e->cfg.tso == UW_TSO_OFF,
		.verbose = e->cfg.verbose
	};

	if (!st && a.n_ip6) {
		uw_log("address %s: over the link uwarpd a process has the uwarpd's addresses "
		       "of IPv6: leave it out (--ip, UWARP_IP)",
		       e->cfg.ip);
		st = UW_E_INVAL;
	}
	return st ? st : uwarpd_link_open(&cfg, env, out);
}

uw_status link_open_host(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	struct link_addr a;
	uw_status st = link_parse_ip(&e->cfg, &a);
	struct host_config cfg = { .mtu = e->cfg.mtu, .addr_auto = e->cfg.ip_auto };

	if (st)
		return st;
	if (strcmp(e->cfg.link, LINK_HOST)) {
		uw_log("UWARP_LINK=%s: the transport socket has the link host only", e->cfg.link);
		return UW_E_NO_LINK;
	}
	if (!a.addr || a.n_ip6) {
		uw_log("address %s: over the transport socket the device has one of IPv4 (--ip, "
		       "UWARP_IP)",
		       e->cfg.ip);
		return UW_E_INVAL;
	}
	if (e->cfg.rate_bps || e->cfg.impair[0] || *e->cfg.pcap) {
		uw_log("%s: the transport socket has no frames; use tc or tcpdump",
		       e->cfg.rate_bps	  ? "UWARP_LINK_RATE"
		       : e->cfg.impair[0] ? "UWARP_IMPAIR"
					  : "UWARP_PCAP");
		return UW_E_UNSUPPORTED;
	}
	cfg.addr = a.addr;
	cfg.mask = a.mask;
	st = host_link_open(&cfg, env, out);
	if (st == UW_E_ADDR)
		uw_log("address %s is none of this host's (--ip, UWARP_IP)", e->cfg.ip);
	return st;
}

static uint64_t clock_ns(void *arg)
{
	(void)arg;
	return uw_clock_ns();
}

/* A link of DPDK's that cannot has said why, and is not open. */
static uw_status check_tso(const struct uw_engine *e, const struct io_link *l)
{
	if (e->cfg.tso != UW_TSO_ON || l->flags & IO_TSO)
		return UW_OK;
	uw_log("no TSO on link %s: it has no port that cuts (--tso, UWARP_TSO)", l->ops->name);
	return UW_E_UNSUPPORTED;
}

/* Links that have tags have taken it. */
static uw_status check_vlan(const struct uw_engine *e, const struct io_link *l)
{
	if (!e->cfg.vlan || l->flags & IO_NEIGHBOURS)
		return UW_OK;
	uw_log("no VLANs on link %s: leave --vlan out (UWARP_VLAN)", l->ops->name);
	return UW_E_UNSUPPORTED;
}

uw_status links_limit(struct uw_engine *e, struct io_link **l)
{
	uw_status st = check_mtu(e, l[0]);

	if (!st)
		st = check_tso(e, l[0]);
	if (!st)
		st = check_vlan(e, l[0]);
	if (!st && (e->cfg.rate_bps || e->cfg.impair[0])) {
		uw_log("%s: a link that several stacks share cannot be limited "
		       "(--stacks, UWARP_STACKS)",
		       e->cfg.rate_bps ? "UWARP_LINK_RATE" : "UWARP_IMPAIR");
		st = UW_E_UNSUPPORTED;
	}
	for (unsigned i = 0; st && i < e->cfg.stacks; i++)
		l[i]->ops->close(l[i]);
	return st;
}

static void say_line(const char *line)
{
	uw_log("%s", line);
}

/* In front of *l one that impairs, as UWARP_IMPAIR says. */
static uw_status impair(const struct uw_engine *e, struct io_link **l)
{
	struct impair_link_config c = { .now_ns = clock_ns,
					.say = e->cfg.verbose ? say_line : NULL };
	char why[256];
	uw_status st;

	if (!e->cfg.impair[0])
		return UW_OK;
	if (impair_parse(e->cfg.impair, &c.options, why, sizeof(why)))
		return UW_E_INVAL; /* said when the configuration was read */
	if (c.options.dir & IMPAIR_IN && (*l)->flags & IO_RX_CSUM) {
		uw_log("UWARP_IMPAIR: link %s receives merged frames without checksums, so "
		       "impair what is sent at the other end (dir=out)",
		       (*l)->ops->name);
		return UW_E_UNSUPPORTED;
	}
	st = impair_open(*l, &c, l);
	/* Damage is to be found by checksums from before it. */
	if (!st)
		(*l)->flags &= ~(unsigned)IO_TX_CSUM;
	return st;
}

uw_status link_limit(struct uw_engine *e, struct io_link **l)
{
	uw_status st = check_mtu(e, *l);

	if (!st)
		st = check_tso(e, *l);
	if (!st)
		st = check_vlan(e, *l);
	if (!st && e->cfg.rate_bps)
		st = rate_open(*l, e->cfg.rate_bps, clock_ns, NULL, l);
	if (!st)
		st = impair(e, l);
	if (st)
		(*l)->ops->close(*l);
	return st;
}
