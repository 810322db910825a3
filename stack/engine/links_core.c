/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without DPDK has the in-memory link only. */
#include <string.h>

#include "engine/links.h"
#include "engine/say.h"

uw_status engine_link_open(struct uw_engine *e, const struct io_env *env, struct io_link **out)
{
	if (e->cfg.link[0] && strcmp(e->cfg.link, "loop")) {
		engine_say("unknown link %s: this build has loop only", e->cfg.link);
		return UW_E_NO_LINK;
	}
	return link_open_loop(e, env, out);
}

uw_status links_open(struct uw_engine *lead, const struct io_env *env, struct io_link **out)
{
	(void)env;
	(void)out;
	engine_say("UWARP_STACKS=%u: the link loop has one queue (--stacks)", lead->cfg.stacks);
	return UW_E_UNSUPPORTED;
}
