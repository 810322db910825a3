/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_host.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <rdma/ib_user_verbs.h>

struct fake_host fake_host;
static struct uw_engine the_engine;

void fake_host_reset(void)
{
	fake_reset();
	fake_engine_stop(&the_engine);
	fake_engine_init(&the_engine);
	fake_host = (struct fake_host){ .channel_wr = -1,
					.channel_rd = -1,
					.discovery = fake_host.discovery };
}

static const struct uw_api *api(void)
{
	return fake_api();
}

static struct uw_engine *engine(void)
{
	fake_host.engine_asked++;
	return fake_host.no_engine ? NULL : &the_engine;
}

static struct channel {
	char nothing;
} the_channel;

static struct channel *channel_hold(int fd)
{
	if (fd != fake_host.channel_rd)
		return NULL;
	fake_host.held++;
	return &the_channel;
}

static void channel_let_go(struct channel *c)
{
	if (c != &the_channel || !fake_host.held--)
		abort();
}

static int channel_post(struct channel *c, const void *event, size_t len)
{
	if (c != &the_channel || !fake_host.held)
		abort();
	return send(fake_host.channel_wr, event, len, MSG_DONTWAIT) == (ssize_t)len ? 0 : -EAGAIN;
}

static int channel_drop(struct channel *c, uint64_t handle)
{
	struct ib_uverbs_comp_event_desc d[FAKE_MAX];
	int n = 0, dropped = 0;

	while (recv(fake_host.channel_rd, &d[n], sizeof(d[n]), MSG_DONTWAIT) ==
	       (ssize_t)sizeof(d[n]))
		n++;
	for (int i = 0; i < n; i++) {
		if (d[i].cq_handle == handle)
			dropped++;
		else if (channel_post(c, &d[i], sizeof(d[i])))
			abort();
	}
	return dropped;
}

static void on_discovery(void (*fn)(void))
{
	fake_host.discovery = fn;
}

static const struct uwarp_host the_host = {
	.version = UWARP_HOST_VERSION,
	.api = api,
	.engine = engine,
	.channel_hold = channel_hold,
	.channel_let_go = channel_let_go,
	.channel_post = channel_post,
	.channel_drop = channel_drop,
	.on_discovery = on_discovery,
};

__attribute__((visibility("default"))) const struct uwarp_host *uwarp_host(uint32_t version)
{
	return version == UWARP_HOST_VERSION ? &the_host : NULL;
}
