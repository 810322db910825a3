/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/links.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/say.h"
#include "io/loop/loop.h"
#include "io/rate.h"

static uint32_t own_address(void)
{
	/* Unlike those that uwarp-run gives out (127.0.x.y), and unlike any other process's. */
	return htonl(0x7f400000u | ((uint32_t)getpid() & 0x3fffff));
}

uw_status link_read_ip(const char *ip, struct link_addr *out)
{
	char buf[64];
	char *slash, *end;
	unsigned long bits = 8;
	struct in_addr in;

	if (!*ip) {
		*out = (struct link_addr){ own_address(), htonl(0xff000000u) };
		return UW_OK;
	}
	if (strlen(ip) >= sizeof(buf))
		return UW_E_INVAL;
	strcpy(buf, ip);
	slash = strchr(buf, '/');
	if (slash) {
		*slash = 0;
		bits = strtoul(slash + 1, &end, 10);
		if (!slash[1] || *end || bits < 1 || bits > 32)
			return UW_E_INVAL;
	} else if (strncmp(buf, "127.", 4)) {
		bits = 24;
	}
	if (inet_pton(AF_INET, buf, &in) != 1)
		return UW_E_INVAL;
	*out = (struct link_addr){ in.s_addr, htonl((uint32_t)(0xffffffffull << (32 - bits))) };
	return UW_OK;
}

uw_status link_parse_ip(const char *ip, struct link_addr *out)
{
	uw_status st = link_read_ip(ip, out);

	if (st)
		engine_say("address %s is not of the form A.B.C.D or A.B.C.D/N (--ip, UWARP_IP)",
			   ip);
	return st;
}

uw_status link_open_loop(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	struct link_addr a;
	uw_status st = link_parse_ip(e->cfg.ip, &a);
	struct loop_config cfg = { .mtu = e->cfg.mtu ? e->cfg.mtu : 9000,
				   .flags = IO_P2P,
				   .now_us = e->now_us,
				   .arg = e->now_arg };

	if (st)
		return st;
	cfg.addr[0] = a.addr;
	cfg.mask = a.mask;
	return loop_open_single(&cfg, env, out);
}

static uint64_t clock_ns(void *arg)
{
	struct timespec t;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uw_status link_limit(struct uw_engine *e, struct io_link **l)
{
	uw_status st = UW_OK;

	if (e->cfg.rate_bps)
		st = rate_open(*l, e->cfg.rate_bps, clock_ns, NULL, l);
	if (st)
		(*l)->ops->close(*l);
	return st;
}
