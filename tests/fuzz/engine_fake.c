/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine_fake.h"

#include <errno.h>

#include "fake_engine.h"
#include "loader/loader.h"
#include "rdma_cm/rdma_cm.h"
#include "sysfs/netdev.h"

#define EPS_MAX 64u

static struct uw_engine engine;
static struct feed *feed;

static unsigned count(void)
{
	unsigned n = 0;
	struct uw_ep *ep;

	LIST_FOREACH(ep, &engine.eps, link)
	n++;
	return n;
}

/* ---- events ------------------------------------------------------------------------------ */

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
	if (type == UW_CM_CONNECT_REQUEST)
		ev.error = 0;
	fake_deliver(ep, &ev);
	free((void *)(uintptr_t)ev.param.private_data);
}

static void outcome(struct uw_ep *ep)
{
	static const enum uw_cm_event_type types[] = { UW_CM_ESTABLISHED, UW_CM_REJECTED,
						       UW_CM_REFUSED, UW_CM_UNREACHABLE,
						       UW_CM_CONNECT_ERROR };

	ep->state = EP_END;
	if (ep->ctx)
		deliver(ep, types[feed_below(feed, COUNT(types))]);
}

bool fuzz_stack_settle(void)
{
	struct uw_ep *ep;
	bool any = false;

	LIST_FOREACH(ep, &engine.eps, link)
	{
		if (ep->state != EP_CONNECTING || !ep->ctx)
			continue;
		outcome(ep);
		any = true;
	}
	return any;
}

void fuzz_stack_event(struct feed *f)
{
	unsigned n = count(), at = n ? feed_below(f, n) : 0;
	struct uw_ep *ep = LIST_FIRST(&engine.eps);

	while (at--)
		ep = LIST_NEXT(ep, link);
	if (!ep || !ep->ctx)
		return;
	if (ep->state == EP_LISTEN && n < EPS_MAX)
		deliver(ep, UW_CM_CONNECT_REQUEST);
	else if (ep->state == EP_CONNECTING)
		outcome(ep);
	else if (ep->state != EP_LISTEN)
		deliver(ep, UW_CM_DISCONNECTED);
}

/* ---- what calls return ------------------------------------------------------------------- */

static int result(void)
{
	static const int errors[] = { EINVAL,	 ENOENT,       EADDRINUSE, EADDRNOTAVAIL, ENOTCONN,
				      ETIMEDOUT, EHOSTUNREACH, ENOMEM,	   EAFNOSUPPORT };
	uint8_t pick = feed_u8(feed);

	return pick < 224 ? 0 : -errors[pick % COUNT(errors)];
}

static int decide(struct uw_ep *ep, enum fake_call call)
{
	int err = call == FAKE_LATER ? feed_rarely(feed, 8) : result();

	if (call == FAKE_CREATE)
		return count() < EPS_MAX ? err : -ENOMEM;
	if (err)
		return err;
	if (call == FAKE_BIND)
		ep->local.sin_port = feed_u16(feed);
	if (call == FAKE_LISTEN)
		ep->state = EP_LISTEN;
	if (call == FAKE_CONNECT) {
		ep->state = EP_CONNECTING;
		if (feed_rarely(feed, 4))
			outcome(ep); /* it may come before the call returns */
	}
	if (call == FAKE_ACCEPT)
		deliver(ep, UW_CM_ESTABLISHED);
	return 0;
}

/* ---- the loader -------------------------------------------------------------------------- */

const struct uw_api *loader_api(void)
{
	return fake_api();
}

struct uw_engine *loader_engine(void)
{
	return feed_rarely(feed, 64) ? NULL : &engine;
}

uint64_t loader_guid(void)
{
	return 0x0275770000000001u;
}

bool loader_device(struct uw_device_attr *attr)
{
	*attr = fake.attr;
	return true;
}

bool loader_device_settled(struct uw_device_attr *attr)
{
	return loader_device(attr);
}

bool loader_facts(struct uwarp_facts *f)
{
	uwarp_facts_of(&fake.attr, f);
	return true;
}

bool loader_facts_settled(struct uwarp_facts *f)
{
	return loader_facts(f);
}

void netdev_find(struct netdev *dev)
{
	*dev = (struct netdev){ .index = feed_rarely(feed, 8) ? 0 : 1, .name = "lo" };
}

void loader_starting(void)
{
}

bool loader_ended(void)
{
	return false;
}

bool loader_helper_begin(void)
{
	return true;
}

void loader_helper_end(void)
{
}

void fuzz_stack_begin(struct feed *f)
{
	feed = f;
	fake_reset();
	fake.attr.roce = feed_bool(f);
	fake_engine_init(&engine);
	engine.decide = decide;
}

void fuzz_stack_end(void)
{
	CHECK(LIST_EMPTY(&engine.eps));
}
