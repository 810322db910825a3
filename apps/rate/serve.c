/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "rate.h"
#include "log.h"
#include "server.h"

#define SLOTS 1024

struct rate_server {
	const struct rate_options *options;
	struct budget memory; /* of --memory */
};

/* A connection's. */
struct room {
	struct region memory;
	uint64_t octets; /* of the server's budget */
	struct rate_wish wish;
	uint64_t received;
};

static void close_room(struct room *room, struct rate_server *rs)
{
	region_close(&room->memory);
	budget_give(&rs->memory, room->octets);
	free(room);
}

/* All others wait while a room is filled. */
static int fill(struct room *room, struct rate_server *rs, const struct device *d)
{
	const struct rate_wish *w = &room->wish;
	uint64_t octets = (uint64_t)w->size * w->slots;
	int err;

	if (!w->size || !w->slots || w->slots > RATE_SLOTS)
		return -EINVAL;
	err = budget_take(&rs->memory, octets);
	if (err)
		return err;
	room->octets = octets;
	err = region_open(&room->memory, d, RATE_DATA + octets, REGION_ATOMIC | REGION_WRITE);
	for (uint32_t i = 0; !err && i < w->slots; i++)
		rate_fill(room->memory.base + RATE_DATA + (size_t)i * w->size, w->size, ~w->seed,
			  i);
	return err;
}

static int join(struct session *s, struct hello *hello)
{
	struct rate_server *rs = s->server->user;
	struct room *room = calloc(1, sizeof(*room));
	struct rate_offer offer;
	int err;

	if (!room)
		return -ENOMEM;
	memcpy(&room->wish, hello->octets, sizeof(room->wish));
	err = fill(room, rs, &s->server->device);
	if (err) {
		close_room(room, rs);
		return err;
	}
	s->user = room;
	offer = (struct rate_offer){ .base = (uintptr_t)room->memory.base,
				     .rkey = room->memory.mr->rkey,
				     .message = (uint32_t)rs->options->message };
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
	close_room(s->user, s->server->user);
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
	struct rate_server rs = { .options = o, .memory = budget_of(o->memory) };
	struct server s;
	int err = server_open(&s, &config, &ops);

	s.user = &rs;
	if (!err)
		err = server_run(&s);
	server_close(&s);
	return err;
}
