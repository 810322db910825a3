/* SPDX-License-Identifier: BSD-3-Clause */
/* The links of libuwarp.so: in memory, or anything that DPDK drives. */
#include <errno.h>
#include <string.h>

#include "engine/links.h"
#include "base/log.h"
#include "io/dpdk/dpdk.h"
#include "io/run_dir.h"

struct parts {
	struct link_addr a;
	char run_dir[256]; /* as in struct uw_config */
};

static const char *link_of(const struct uw_engine *e)
{
	return e->cfg.link[0] ? e->cfg.link : "memif";
}

/* What the configuration asks for; p is what it points into. */
static uw_status read_config(const struct uw_engine *e, struct parts *p, struct dpdk_config *out)
{
	static const enum dpdk_tso tso[] = { [UW_TSO_AUTO] = DPDK_TSO_AUTO,
					     [UW_TSO_ON] = DPDK_TSO_ON,
					     [UW_TSO_OFF] = DPDK_TSO_OFF };
	uw_status st = link_parse_ip(&e->cfg, &p->a);

	if (st)
		return st;
	*out = (struct dpdk_config){ .link = link_of(e),
				     .addr = p->a.addr,
				     .mask = p->a.mask,
				     .ip6 = p->a.ip6,
				     .n_ip6 = p->a.n_ip6,
				     .mtu = e->cfg.mtu,
				     .vlan = e->cfg.vlan,
				     .run_dir = p->run_dir,
				     .addr_fd = e->cfg.addr_fd,
				     .addr_auto = e->cfg.ip_auto,
				     .tso = tso[e->cfg.tso],
				     .queues = e->cfg.stacks,
				     .verbose = e->cfg.verbose };
	if (run_dir_find(e->cfg.run_dir, p->run_dir, sizeof(p->run_dir)))
		return UW_OK;
	uw_log("run directory (UWARP_DIR): %s", strerror(errno));
	return UW_E_NO_LINK;
}

uw_status engine_link_open(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	struct dpdk_config cfg;
	struct parts p;
	uw_status st;

	if (!strcmp(link_of(e), "loop"))
		return link_open_loop(e, env, out);
	if (link_is_uwarpd(e))
		return link_open_uwarpd(e, env, out);
	if (link_is_packet(e))
		return link_open_packet(e, env, out);
	st = read_config(e, &p, &cfg);
	return st ? st : dpdk_link_open(&cfg, env, out);
}

uw_status engine_links_open(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	struct dpdk_config cfg;
	struct parts p;
	uw_status st;

	if (!strcmp(link_of(e), "loop") || link_is_packet(e) || link_is_uwarpd(e)) {
		uw_log("UWARP_STACKS=%u: the link %s has one queue (--stacks)", e->cfg.stacks,
		       link_of(e));
		return UW_E_UNSUPPORTED;
	}
	st = read_config(e, &p, &cfg);
	return st ? st : dpdk_links_open(&cfg, env, out);
}
