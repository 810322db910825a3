/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack below the shim: endpoints that are blocks of their own, results that the input chooses,
 * and events that come when a real stack could have them. */
#include <arpa/inet.h>
#include <errno.h>

#include "shim_double.h"
#include "stack_double.h"

struct uw_ep {
	struct uw_ep *next;
	uw_cm_event_fn *fn;
	void *ctx; /* NULL: nobody has it yet */
	bool listens, connecting, requested;
	struct sockaddr_in local, peer;
};

static struct uw_ep *eps;
static unsigned eps_n;
static struct feed *feed;

#define EPS_MAX 64u

/* ---- what a callback leaves for when it is over ---- */

static struct {
	void (*fn)(void *arg);
	void *arg;
} left[8];
static unsigned left_n;

/* The input may say that there is no room for it. */
static bool later(struct uw_engine *stack, void (*fn)(void *arg), void *arg)
{
	(void)stack;
	if (left_n == COUNT(left) || feed_rarely(feed, 8))
		return false;
	left[left_n].fn = fn;
	left[left_n++].arg = arg;
	return true;
}

static void do_left(void)
{
	while (left_n) {
		left_n--;
		left[left_n].fn(left[left_n].arg);
	}
}

/* ---- events ------------------------------------------------------------------------------ */

static struct uw_ep *new_ep(uw_cm_event_fn *fn, void *ctx)
{
	struct uw_ep *ep = fuzz_alloc(sizeof(*ep));

	*ep = (struct uw_ep){ .next = eps, .fn = fn, .ctx = ctx };
	ep->local.sin_family = ep->peer.sin_family = AF_INET;
	eps = ep;
	eps_n++;
	return ep;
}

static void deliver(struct uw_ep *ep, enum uw_cm_event_type type)
{
	uint8_t pd[UW_PRIVATE_DATA_MAX];
	struct uw_cm_event ev = { .type = type };

	ev.param.private_data_len = (uint16_t)feed_length(feed, sizeof(pd));
	feed_fill(feed, pd, ev.param.private_data_len);
	ev.param.private_data = fuzz_copy(pd, ev.param.private_data_len);
	ev.param.ird = feed_u16(feed);
	ev.param.ord = feed_u16(feed);
	if (type != UW_CM_ESTABLISHED && type != UW_CM_DISCONNECTED)
		ev.error = -(int)feed_below(feed, 134);
	if (type == UW_CM_CONNECT_REQUEST) {
		ev.error = 0;
		ev.ep = new_ep(NULL, NULL);
		ev.ep->requested = true;
	}
	ep->fn(ep->ctx, &ev);
	do_left();
	free((void *)(uintptr_t)ev.param.private_data);
}

static void outcome(struct uw_ep *ep)
{
	static const enum uw_cm_event_type types[] = { UW_CM_ESTABLISHED, UW_CM_REJECTED,
						       UW_CM_REFUSED, UW_CM_UNREACHABLE,
						       UW_CM_CONNECT_ERROR };

	ep->connecting = false;
	if (ep->ctx)
		deliver(ep, types[feed_below(feed, COUNT(types))]);
}

void double_event(struct feed *f)
{
	unsigned at = eps_n ? feed_below(f, eps_n <= 256 ? eps_n : 256) : 0;
	struct uw_ep *ep = eps;

	while (at--)
		ep = ep->next;
	if (!ep || !ep->ctx)
		return;
	if (ep->listens && eps_n < EPS_MAX)
		deliver(ep, UW_CM_CONNECT_REQUEST);
	else if (ep->connecting)
		outcome(ep);
	else if (!ep->listens)
		deliver(ep, UW_CM_DISCONNECTED);
}

/* ---- the functions ----------------------------------------------------------------------- */

static int result(void)
{
	static const int errors[] = { EINVAL,	 ENOENT,       EADDRINUSE, EADDRNOTAVAIL, ENOTCONN,
				      ETIMEDOUT, EHOSTUNREACH, ENOMEM,	   EAFNOSUPPORT };
	uint8_t pick = feed_u8(feed);

	return pick < 224 ? 0 : -errors[pick % COUNT(errors)];
}

static bool is_ep(const struct uw_ep *ep)
{
	for (const struct uw_ep *e = eps; e; e = e->next)
		if (e == ep)
			return true;
	return false;
}

static int ep_create(struct uw_engine *e, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out)
{
	int err = eps_n < EPS_MAX ? result() : -ENOMEM;

	CHECK(e && fn && ctx);
	if (!err)
		*out = new_ep(fn, ctx);
	return err;
}

static void ep_set_ctx(struct uw_ep *ep, void *ctx)
{
	CHECK(is_ep(ep) && ctx);
	ep->ctx = ctx;
	ep->fn = cm_on_event;
}

static int ep_share_port(struct uw_ep *ep, bool on)
{
	CHECK(is_ep(ep) && on);
	return result();
}

static int ep_only6(struct uw_ep *ep, bool on)
{
	(void)on;
	CHECK(is_ep(ep));
	return result();
}

static void ep_set_tos(struct uw_ep *ep, uint8_t tos)
{
	(void)tos;
	CHECK(is_ep(ep));
}

static int ep_bind(struct uw_ep *ep, const struct sockaddr *addr)
{
	int err = result();

	CHECK(is_ep(ep) && (addr->sa_family == AF_INET || addr->sa_family == AF_INET6));
	if (!err)
		ep->local.sin_port = feed_u16(feed);
	return err;
}

static int ep_resolve(struct uw_ep *ep, const struct sockaddr *src, const struct sockaddr *dst,
		      unsigned timeout_ms)
{
	(void)timeout_ms;
	CHECK(is_ep(ep) && (dst->sa_family == AF_INET || dst->sa_family == AF_INET6));
	CHECK(!src || src->sa_family == AF_INET || src->sa_family == AF_INET6);
	return result();
}

static int ep_listen(struct uw_ep *ep, int backlog)
{
	CHECK(is_ep(ep) && backlog > 0);
	ep->listens = !result();
	return ep->listens ? 0 : -EADDRINUSE;
}

static void check_param(const struct uw_cm_param *p)
{
	CHECK(p->private_data_len <= UW_PRIVATE_DATA_MAX);
	free(fuzz_copy(p->private_data, p->private_data_len));
}

static int ep_connect(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	int err = result();

	(void)qpn;
	CHECK(is_ep(ep));
	check_param(p);
	ep->connecting = !err;
	if (!err && feed_rarely(feed, 4))
		outcome(ep); /* it may come before this returns */
	return err;
}

static int ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	int err = result();

	(void)qpn;
	CHECK(is_ep(ep));
	check_param(p);
	if (!err)
		deliver(ep, UW_CM_ESTABLISHED);
	return err;
}

static int ep_reject(struct uw_ep *ep, const struct uw_cm_param *p)
{
	CHECK(is_ep(ep));
	check_param(p);
	return result();
}

static int ep_disconnect(struct uw_ep *ep)
{
	CHECK(is_ep(ep));
	return result();
}

static void ep_destroy(struct uw_ep *ep)
{
	struct uw_ep **p = &eps;

	CHECK(is_ep(ep));
	while (*p != ep)
		p = &(*p)->next;
	*p = ep->next;
	eps_n--;
	free(ep);
}

static void ep_local_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	CHECK(is_ep(ep));
	memset(a, 0, sizeof(*a));
	memcpy(a, &ep->local, sizeof(ep->local));
}

static void ep_peer_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	CHECK(is_ep(ep));
	memset(a, 0, sizeof(*a));
	memcpy(a, &ep->peer, sizeof(ep->peer));
}

static const struct uw_api api = {
	.version = UW_API_VERSION,
	.ep_create = ep_create,
	.ep_set_ctx = ep_set_ctx,
	.ep_share_port = ep_share_port,
	.ep_only6 = ep_only6,
	.ep_set_tos = ep_set_tos,
	.ep_bind = ep_bind,
	.ep_resolve = ep_resolve,
	.ep_listen = ep_listen,
	.ep_connect = ep_connect,
	.ep_accept = ep_accept,
	.ep_reject = ep_reject,
	.ep_disconnect = ep_disconnect,
	.ep_destroy = ep_destroy,
	.ep_local_addr = ep_local_addr,
	.ep_peer_addr = ep_peer_addr,
	.later = later,
};

/* ---- the host ---------------------------------------------------------------------------- */

const struct uw_api *loader_api(void)
{
	return &api;
}

struct uw_engine *loader_engine(void)
{
	static char engine;

	return feed_rarely(feed, 64) ? NULL : (struct uw_engine *)&engine;
}

uint64_t loader_guid(void)
{
	return 0x0275770000000001u;
}

bool loader_device(struct uw_device_attr *attr)
{
	*attr = (struct uw_device_attr){ .guid = 0x0275770000000002u };
	return true;
}

bool loader_device_settled(struct uw_device_attr *attr)
{
	return loader_device(attr);
}

void loader_starting(void)
{
}

bool loader_ended(void)
{
	return false;
}

void stack_double_begin(struct feed *f)
{
	feed = f;
}

void stack_double_end(void)
{
	CHECK(!eps && !eps_n);
}
