/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/routes.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/links.h"
#include "io/route/kernel.h"
#include "io/route/options.h"

#define TIDY_MS 2000

struct engine_routes {
	struct uw_engine *e;
	struct route_table named;	      /* the user's; constant */
	struct route_table of[UW_STACKS_MAX]; /* each under its stack's lock */
	struct io_link *link[UW_STACKS_MAX];  /* constant; NULL: no such stack */
	char interface[IF_NAMESIZE];	      /* "": the link is none of the kernel's */
	unsigned mtu;			      /* of the links when they were opened */
	bool same_mac;			      /* the links have the interface's MAC address */
	bool watches, follows;
	bool lost, gone; /* an address, the interface; when last read */
	bool cut;	 /* the interface was down or without a carrier when last read */
	struct route_watch watch;
	pthread_t thread;
};

/* ---- which ones ---------------------------------------------------------------------------- */

static bool named_for(const struct route_table *named, const struct uw_net *net)
{
	for (unsigned i = 0; i < named->n; i++) {
		const struct uw_net *n = &named->at[i].net;

		if (n->bits == net->bits && uw_ip_eq(&n->ip, &net->ip))
			return true;
	}
	return false;
}

/* What the kernel reaches by a gateway that is near us we reach by it as well. Its neighbours are
 * ours if its address is. */
static bool is_usable(const struct io_link *l, const struct route *r)
{
	if (!uw_ip_is_any(&r->via))
		return route_is_near(l, &r->via);
	return io_shared_versions(l) & (uw_ip_is_v4(&r->net.ip) ? IO_V4 : IO_V6);
}

static void collect(const struct engine_routes *er, const struct io_link *l,
		    const struct route_kernel *k, struct route_table *out)
{
	for (unsigned i = 0; i < er->named.n; i++)
		route_add(out, &er->named.at[i]);
	/* the kernel's are of the network without a tag */
	for (unsigned i = 0; i < k->routes.n && !er->e->cfg.vlan; i++) {
		const struct route *r = &k->routes.at[i];

		if (is_usable(l, r) && !named_for(&er->named, &r->net))
			route_add(out, r);
	}
	for (unsigned i = 0; i < k->routes.n_near && !er->e->cfg.vlan; i++)
		route_add_neighbour(out, &k->routes.near[i]);
	route_sort(out);
}

static unsigned mtu_of(const struct engine_routes *er, const struct route_kernel *k)
{
	return k->mtu && k->mtu < er->mtu ? k->mtu : er->mtu;
}

/* True: the interface has got another one, and the link now has it, too. */
static bool take_mac(const struct engine_routes *er, struct io_link *l,
		     const struct route_kernel *k)
{
	if (!er->same_mac || !k->has_mac || !memcmp(l->mac, k->mac, sizeof(l->mac)))
		return false;
	memcpy(l->mac, k->mac, sizeof(l->mac));
	return true;
}

/* Under the stack's lock, or before it uses the link. True: something is new. */
static bool take(struct engine_routes *er, unsigned i, const struct route_kernel *k)
{
	struct io_link *l = er->link[i];
	struct route_table fresh = { 0 };
	unsigned mtu = mtu_of(er, k);
	bool other = take_mac(er, l, k);

	collect(er, l, k, &fresh);
	if (!other && l->routes && l->mtu == mtu && route_same(&fresh, &er->of[i])) {
		route_clear(&fresh);
		return false;
	}
	route_clear(&er->of[i]);
	er->of[i] = fresh;
	l->routes = &er->of[i];
	l->mtu = mtu;
	return true;
}

/* ---- changes ------------------------------------------------------------------------------- */

static bool has(const struct uw_net *v, unsigned n, const struct uw_ip *ip)
{
	for (unsigned i = 0; i < n; i++) {
		if (uw_ip_eq(&v[i].ip, ip))
			return true;
	}
	return n == ROUTE_ADDRS_MAX;
}

/* The first address that we share and the kernel does not have. False: there is none. */
static bool find_lost(const struct io_link *l, const struct route_kernel *k, struct uw_ip *out)
{
	*out = uw_ip_v4(l->addr);
	if (l->flags & IO_SHARED && !has(k->addr, k->n_addr, out))
		return true;
	for (unsigned i = 0; l->flags & IO_SHARED6 && i < l->n_ip6; i++) {
		*out = l->ip6[i].ip;
		if (!has(k->addr6, k->n_addr6, out))
			return true;
	}
	return false;
}

/* One of the same name that is made later is another one: our sockets stay with the old one. */
static void check_interface(struct engine_routes *er, const struct route_kernel *k)
{
	if (!k->there && !er->gone)
		uw_log("interface %s is gone: its connections end; start the program again when it "
		       "is there",
		       er->interface);
	er->gone = !k->there;
}

/* Said once each time: the program's connections and GIDs have the address. */
static void check_address(struct engine_routes *er, const struct route_kernel *k)
{
	char text[ROUTE_TEXT];
	struct uw_ip ip;
	bool lost = find_lost(er->link[0], k, &ip);

	if (lost && !er->lost && !er->gone)
		uw_log("interface %s has lost the address %s, by which this program is known: its "
		       "connections end unless it comes back (ip address add)",
		       er->interface, route_ip_text(&ip, text));
	er->lost = lost;
}

static void apply(struct engine_routes *er, const struct route_kernel *k)
{
	for (unsigned i = 0; i < er->e->n_stacks; i++) {
		struct stack *s = er->e->stack[i];

		sched_lock(&s->sched);
		if (take(er, i, k) && s->n_links && s->llp->link_changed)
			s->llp->link_changed(er->link[i]);
		if (er->cut && k->running && s->n_links && s->llp->link_up)
			s->llp->link_up(er->link[i]);
		sched_unlock(&s->sched);
	}
	er->cut = !k->running;
	check_interface(er, k);
	check_address(er, k);
}

static bool is_tidied(const struct engine_routes *er)
{
	return er->link[0]->ops->tidy != NULL;
}

static void read_news(struct engine_routes *er)
{
	struct route_kernel k;

	if (route_watch_read(&er->watch, &k))
		apply(er, &k);
	route_clear(&k.routes);
}

/* It also tidies up the links, since it is there whoever drives the stack, and may wait for the
 * kernel. */
static void *follow(void *arg)
{
	struct engine_routes *er = arg;
	int timeout_ms = is_tidied(er) ? TIDY_MS : -1;
	enum route_wait what;

	pthread_setname_np(pthread_self(), "uwarp-routes");
	while ((what = route_watch_wait(&er->watch, timeout_ms)) != ROUTE_STOPPED) {
		/* a transport that cannot be told keeps what it began with */
		if (what == ROUTE_NEWS && er->e->stack[0]->llp->link_changed)
			read_news(er);
		for (unsigned i = 0; i < er->e->n_stacks && is_tidied(er); i++)
			er->link[i]->ops->tidy(er->link[i]);
	}
	return NULL;
}

int engine_routes_follow(struct uw_engine *e)
{
	struct engine_routes *er = e->routes;
	int err;

	if (!er || !er->watches || (!e->stack[0]->llp->link_changed && !is_tidied(er)))
		return 0;
	err = sched_spawn(&er->thread, follow, er);
	er->follows = !err;
	return err;
}

void engine_routes_stop(struct uw_engine *e)
{
	struct engine_routes *er = e->routes;

	if (!er || !er->follows)
		return;
	route_watch_stop(&er->watch);
	pthread_join(er->thread, NULL);
	er->follows = false;
}

void engine_routes_free(struct uw_engine *e)
{
	struct engine_routes *er = e->routes;

	if (!er)
		return;
	if (er->watches)
		route_watch_close(&er->watch);
	for (unsigned i = 0; i < UW_STACKS_MAX; i++)
		route_clear(&er->of[i]);
	route_clear(&er->named);
	free(er);
	e->routes = NULL;
}

/* ---- opening ------------------------------------------------------------------------------- */

static uw_status say_bad(const char *name, const char *bad, const char *want)
{
	uw_log("%s: %s is not of the form %s", name, bad, want);
	return UW_E_INVAL;
}

static uw_status read_named(struct engine_routes *er)
{
	const struct uw_config *c = &er->e->cfg;
	char bad[64];

	if (!route_parse_gateways(c->gateway, &er->named, bad, sizeof(bad)))
		return say_bad("UWARP_GATEWAY", bad, "A.B.C.D or A:B::C (--gateway)");
	if (!route_parse_list(c->routes, &er->named, bad, sizeof(bad)))
		return say_bad("UWARP_ROUTES", bad, "NETWORK/BITS=GATEWAY (--route)");
	return UW_OK;
}

static uw_status check_named(const struct engine_routes *er)
{
	const struct io_link *l = er->link[0];
	char text[ROUTE_TEXT];

	if (er->named.n && l->flags & IO_P2P) {
		uw_log("the link %s has no routers: leave --gateway and --route out", l->ops->name);
		return UW_E_INVAL;
	}
	for (unsigned i = 0; i < er->named.n; i++) {
		const struct uw_ip *via = &er->named.at[i].via;

		if (route_is_near(l, via))
			continue;
		uw_log("gateway %s is in none of the link's networks: give one that is, or an "
		       "address with its prefix (--gateway, --route, --ip A/N)",
		       route_ip_text(via, text));
		return UW_E_INVAL;
	}
	return UW_OK;
}

/* Without an answer of the kernel there are the named routes. */
static void read_kernel(struct engine_routes *er, struct route_kernel *k)
{
	*k = (struct route_kernel){ 0 };
	if (!er->interface[0] || route_watch_open(&er->watch, er->interface))
		return;
	er->watches = true;
	if (!route_watch_read(&er->watch, k))
		uw_log("the kernel does not tell the routes of %s: only --gateway and --route "
		       "count",
		       er->interface);
}

static void say_routes(const struct engine_routes *er)
{
	const struct route_table *t = &er->of[0];
	char net[ROUTE_TEXT], via[ROUTE_TEXT];

	for (unsigned i = 0; i < t->n && er->e->cfg.verbose; i++) {
		const struct route *r = &t->at[i];
		unsigned skip = uw_ip_is_v4(&r->net.ip) ? UW_IP_V4_BITS : 0;

		uw_log("route to %s/%u %s%s", route_ip_text(&r->net.ip, net), r->net.bits - skip,
		       uw_ip_is_any(&r->via) ? "without gateway" : "by ",
		       uw_ip_is_any(&r->via) ? "" : route_ip_text(&r->via, via));
	}
	if (t->full)
		uw_log("the interface has more than %u routes: some are not used", ROUTE_MAX);
}

uw_status engine_routes_open(struct uw_engine *e, struct io_link *const *links)
{
	struct engine_routes *er = calloc(1, sizeof(*er));
	struct route_kernel k;
	uw_status st;

	if (!er)
		return UW_E_NOMEM;
	e->routes = er;
	er->e = e;
	er->mtu = links[0]->mtu;
	for (unsigned i = 0; i < e->n_stacks; i++)
		er->link[i] = links[i];
	snprintf(er->interface, sizeof(er->interface), "%s", link_interface(e->cfg.link));
	st = read_named(er);
	if (!st)
		st = check_named(er);
	if (st)
		return st;
	if (!er->interface[0] && !er->named.n)
		return UW_OK;
	read_kernel(er, &k);
	er->same_mac = k.has_mac && !memcmp(links[0]->mac, k.mac, sizeof(k.mac));
	for (unsigned i = 0; i < e->n_stacks; i++)
		take(er, i, &k);
	route_clear(&k.routes);
	say_routes(er);
	return UW_OK;
}
