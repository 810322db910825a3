/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rate.h"
#include "log.h"
#include "server.h"

#define SLOTS	   1024
#define MEMORY_MAX (1ull << 30)

/* A connection's. */
struct room {
	struct region memory;
	struct rate_wish wish;
	uint64_t received;
};

static int fill(struct room *room, const struct device *d)
{
	const struct rate_wish *w = &room->wish;
	uint64_t octets = (uint64_t)w->size * w->slots;
	int err;

	if (!w->slots || octets > MEMORY_MAX)
		return -EINVAL;
	err = region_open(&room->memory, d, RATE_DATA + octets, REGION_ATOMIC | REGION_WRITE);
	for (uint32_t i = 0; !err && i < w->slots; i++)
		rate_fill(room->memory.base + RATE_DATA + (size_t)i * w->size, w->size, ~w->seed,
			  i);
	return err;
}

static int join(struct session *s, struct hello *hello)
{
	const struct rate_options *o = s->server->user;
	struct room *room = calloc(1, sizeof(*room));
	struct rate_offer offer;
	int err;

	if (!room)
		return -ENOMEM;
	memcpy(&room->wish, hello->octets, sizeof(room->wish));
	err = fill(room, &s->server->device);
	if (err) {
		region_close(&room->memory);
		free(room);
		return err;
	}
	s->user = room;
	offer = (struct rate_offer){ .base = (uintptr_t)room->memory.base,
				     .rkey = room->memory.mr->rkey,
				     .message = (uint32_t)o->message };
	memset(hello, 0, sizeof(*hello));
	memcpy(hello->octets, &offer, sizeof(offer));
	return 0;
}

/* Messages that are what comes next are counted where the client can read it. */
static uint32_t handle(struct session *s, struct message *m)
{
	struct room *room = s->user;
	const struct rate_wish *w = &room->wish;
	uint64_t n = room->received++;

	if (m->length != w->size ||
	    (w->verify && !rate_right(m->in, w->size, w->seed, (uint32_t)(n % w->slots), n)))
		return 0;
	__atomic_fetch_add((uint64_t *)room->memory.base, 1, __ATOMIC_RELAXED);
	return 0;
}

static void leave(struct session *s)
{
	struct room *room = s->user;

	region_close(&room->memory);
	free(room);
}

int rate_serve(const struct rate_options *o)
{
	static const struct server_ops ops = { .join = join, .handle = handle, .leave = leave };
	struct server_config config = { .service = RATE_SERVICE,
					.host = o->common.bind,
					.port = o->common.server.port,
					.workers = o->common.threads,
					.events = o->common.events,
					.message = (uint32_t)o->message,
					.slots = SLOTS };
	struct server s;
	int err = server_open(&s, &config, &ops);

	s.user = (void *)o;
	if (!err)
		err = server_run(&s);
	server_close(&s);
	return err;
}
