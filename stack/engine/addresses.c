/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/addresses.h"

#include <net/if.h>
#include <stdio.h>

#include "base/log.h"
#include "engine/links.h"
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

/* Has another process of this machine one of them? Where the interface is none of the kernel's, it
 * is this process's alone. */
static uw_status hold(struct uw_engine *e, const struct io_link *l)
{
	const char *name = link_interface(e->cfg.link);
	unsigned index = l->flags & IO_NEIGHBOURS && *name ? if_nametoindex(name) : 0;
	/* no pid: it is of another PID namespace, or has just ended */
	char ip[ROUTE_TEXT], pid[32] = "another process";
	struct held_by who = { .pid = 0 };

	if (!index || held_take(&e->held, l, index, e->cfg.vlan, &who))
		return UW_OK;
	if (who.pid)
		snprintf(pid, sizeof(pid), "process %d", who.pid);
	uw_log("address %s is in use: %s of this machine has it on %s; give an unused one (--ip)",
	       route_ip_text(&who.ip, ip), pid, name);
	return UW_E_ADDR_IN_USE;
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
	uw_status st = hold(e, links[0]);

	if (st || !e->cfg.dad_ms || !dad_is_due(links[0]))
		return st;
	st = dad_search_run(&s, &who);
	if (st) {
		say(&who);
		held_drop(&e->held);
	}
	return st;
}
