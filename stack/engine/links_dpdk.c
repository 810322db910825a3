/* SPDX-License-Identifier: BSD-3-Clause */
/* The links of libuwarp.so: in memory, or anything that DPDK drives. */
#include <string.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/links.h"
#include "io/dpdk/dpdk.h"

uw_status engine_link_open(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	const char *link = e->cfg.link[0] ? e->cfg.link : "memif";
	static const enum dpdk_tso tso[] = { [UW_TSO_AUTO] = DPDK_TSO_AUTO,
					     [UW_TSO_ON] = DPDK_TSO_ON,
					     [UW_TSO_OFF] = DPDK_TSO_OFF };
	char run_dir[32];
	struct link_addr a;
	struct dpdk_config cfg = { .link = link,
				   .mtu = e->cfg.mtu,
				   .run_dir = e->cfg.run_dir,
				   .addr_fd = e->cfg.addr_fd,
				   .addr_auto = e->cfg.ip_auto,
				   .tso = tso[e->cfg.tso],
				   .verbose = e->cfg.verbose };
	uw_status st;

	if (!strcmp(link, "loop"))
		return link_open_loop(e, env, out);
	st = link_parse_ip(&e->cfg, &a);
	if (st)
		return st;
	cfg.addr = a.addr;
	cfg.mask = a.mask;
	cfg.ip6 = a.ip6;
	cfg.n_ip6 = a.n_ip6;
	if (!*cfg.run_dir) {
		snprintf(run_dir, sizeof(run_dir), "/tmp/uwarp-%u", (unsigned)getuid());
		cfg.run_dir = run_dir;
	}
	return dpdk_link_open(&cfg, env, out);
}
