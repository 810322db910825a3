/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake engine as a libuwarp.so that the preloaded library can load. Its address is 127.7.0.1.
 * The environment makes it fail: FAKE_START_ERRNO is the error of engine_start() and ep_create(),
 * FAKE_CLOSE_FD names a descriptor that gets an octet for every engine_end().
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_engine.h"
#include "fake_ep.h"
#include "fake_waits.h"

static int engine_start(struct uw_engine *e)
{
	const char *fail = getenv("FAKE_START_ERRNO");

	return fail ? -atoi(fail) : fake_engine_start(e);
}

static int ep_create(struct uw_engine *e, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out)
{
	int err = engine_start(e);

	return err ? err : fake_ep_create(e, fn, ctx, out);
}

static void engine_end(struct uw_engine *e)
{
	const char *told = getenv("FAKE_CLOSE_FD");

	if (told && write(atoi(told), "", 1) != 1)
		abort();
	fake_engine_end(e);
}

static void engine_query(struct uw_engine *e, struct uw_device_attr *attr)
{
	const char *identity = getenv("UWARP_IDENTITY");

	*attr = fake.attr;
	attr->link_up = true;
	attr->addr_is_final = e->started || !getenv("UWARP_IP_AUTO");
	attr->infiniband = identity && !strcmp(identity, "ib");
	attr->roce = attr->infiniband || (identity && !strcmp(identity, "roce"));
}

static void set_address(void)
{
	*(struct sockaddr_in *)&fake.attr.addr =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f070001) };
	memcpy(fake.attr.gid[0] + 12, "\x7f\x07\0\1", 4);
	memcpy(fake.attr.gid[1] + 12, "\x7f\x07\0\1", 4);
	fake.attr.guid = 0x0275fffe7f070001;
}

__attribute__((visibility("default"))) const struct uw_api *uw_api_get(uint32_t version)
{
	static struct uw_api api;

	if (version != UW_API_VERSION)
		return NULL;
	fake_reset();
	set_address();
	api = *fake_api();
	api.engine_start = engine_start;
	api.engine_query = engine_query;
	api.engine_end = engine_end;
	api.ep_create = ep_create;
	fake_waits_fill(&api);
	return &api;
}
