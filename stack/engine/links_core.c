/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without DPDK has the in-memory link only. */
#include <string.h>

#include "engine/links.h"
#include "base/log.h"

uw_status engine_link_open(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	if (link_is_uwarpd(e))
		return link_open_uwarpd(e, env, out);
	if (link_is_packet(e))
		return link_open_packet(e, env, out);
	if (e->cfg.link[0] && strcmp(e->cfg.link, "loop")) {
		uw_log("unknown link %s: this build has loop and interfaces only", e->cfg.link);
		return UW_E_NO_LINK;
	}
	return link_open_loop(e, env, out);
}

uw_status engine_links_open(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	(void)env;
	(void)out;
	uw_log("UWARP_STACKS=%u: the link %s has one queue (--stacks)", e->cfg.stacks,
	       e->cfg.link[0] ? e->cfg.link : "loop");
	return UW_E_UNSUPPORTED;
}
