/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "rpc.h"
#include "log.h"
#include "seq.h"
#include "server.h"

#define SLOTS	   1024
#define FAULT_EACH 1000u

struct sequencer {
	const struct seq_options *options;
	struct region memory;
	struct seq_hello hello;
};

static int join(struct session *s, struct hello *hello)
{
	struct sequencer *q = s->server->user;

	memcpy(hello->octets, &q->hello, sizeof(q->hello));
	return 0;
}

static void leave(struct session *s)
{
	(void)s;
}

static uint64_t next(struct sequencer *q, uint64_t n)
{
	uint64_t *counter = (uint64_t *)(q->memory.base + SEQ_RPC * q->hello.stride);
	uint64_t first = __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);

	if (q->options->twice && first && first % FAULT_EACH == 0)
		first--;
	return first;
}

static uint32_t handle(struct session *s, struct message *m)
{
	const struct rpc_head *call = (const void *)m->in;
	struct rpc_head *reply = (void *)m->out;
	uint64_t n;

	if (m->length != sizeof(*call) + sizeof(n) || call->op != SEQ_OP_NEXT)
		return 0;
	memcpy(&n, call + 1, sizeof(n));
	n = next(s->server->user, n);
	*reply = (struct rpc_head){ .op = call->op, .slot = call->slot, .length = sizeof(n) };
	memcpy(reply + 1, &n, sizeof(n));
	return sizeof(*reply) + sizeof(n);
}

static int open_memory(struct sequencer *q, const struct device *d)
{
	uint64_t stride = SEQ_COUNTER_SIZE + q->options->entries * sizeof(uint64_t);
	int err = region_open(&q->memory, d, SEQ_WAYS * stride, REGION_ATOMIC);

	if (err)
		return err;
	if (d->attr.atomic_cap == IBV_ATOMIC_NONE)
		log_line("this device has no atomics: only --mode rpc without --verify will work");
	q->hello = (struct seq_hello){ .base = (uintptr_t)q->memory.base,
				       .stride = stride,
				       .entries = q->options->entries,
				       .rkey = q->memory.mr->rkey };
	return 0;
}

int seq_serve(const struct seq_options *o)
{
	static const struct server_ops ops = { .join = join, .handle = handle, .leave = leave };
	struct server_config config = { .service = SEQ_SERVICE,
					.host = o->common.bind,
					.port = o->common.server.port,
					.workers = o->common.threads,
					.events = o->common.events,
					.message = SEQ_MESSAGE,
					.slots = SLOTS };
	struct sequencer q = { .options = o };
	struct server s;
	int err = server_open(&s, &config, &ops);

	s.user = &q;
	if (!err)
		err = open_memory(&q, &s.device);
	if (!err)
		err = server_run(&s);
	region_close(&q.memory);
	server_close(&s);
	return err;
}
