/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/addresses.h"

#include "base/log.h"
#include "io/dad/search.h"
#include "io/route/options.h"

static void lock(void *arg, unsigned i)
{
	sched_lock(&((struct uw_engine *)arg)->stack[i]->sched);
}

static void unlock(void *arg, unsigned i)
{
	sched_unlock(&((struct uw_engine *)arg)->stack[i]->sched);
}

static void say(const struct dad_conflict *c)
{
	char ip[ROUTE_TEXT];

	uw_log("address %s is in use: a host with the MAC %02x:%02x:%02x:%02x:%02x:%02x has it; "
	       "give "
	       "an unused one (--ip)",
	       route_ip_text(&c->ip, ip), c->mac[0], c->mac[1], c->mac[2], c->mac[3], c->mac[4],
	       c->mac[5]);
}

uw_status engine_addresses_search(struct uw_engine *e, struct io_link *const *links)
{
	const struct dad_search s = { .link = links,
				      .n = e->n_stacks,
				      .lock = lock,
				      .unlock = unlock,
				      .arg = e,
				      .ms = *e->cfg.ip ? e->cfg.dad_ms : 0 };
	struct dad_conflict who;
	uw_status st;

	if (!e->cfg.dad_ms || !dad_is_due(links[0]))
		return UW_OK;
	st = dad_search_run(&s, &who);
	if (st)
		say(&who);
	return st;
}
