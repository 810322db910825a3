/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "kv.h"
#include "report.h"
#include "log.h"
#include "server.h"
#include "store.h"
#include "mover.h"

#define SLOTS	    1024
#define STAGING_MAX (256u << 20)

struct kv_server {
	const struct kv_options *options;
	struct region memory;
	struct budget staging; /* of --staging, for all clients */
	struct store store;
	struct mover *mover;   /* of a host that has a SoC */
	_Atomic bool has_host; /* of a SoC */
};

/* A client's. */
struct stages {
	struct region memory;
	uint64_t octets; /* of the server's budget */
	uint32_t count, size, value_max;
	bool coordinator;
};

static void close_stages(struct stages *st, struct kv_server *kv)
{
	region_close(&st->memory);
	budget_give(&kv->staging, st->octets);
	free(st);
}

static int open_stages(struct stages *st, struct kv_server *kv, const struct device *d,
		       const struct kv_wish *w)
{
	uint64_t octets;
	int err;

	st->count = w->window;
	st->size = kv_stage_size(w->value_max);
	st->value_max = w->value_max;
	st->coordinator = w->coordinator;
	if (w->value_max > kv->options->value_max)
		return -EMSGSIZE;
	octets = (uint64_t)st->count * st->size;
	if (!w->window || octets > STAGING_MAX)
		return -EINVAL;
	err = budget_take(&kv->staging, octets);
	if (err)
		return err;
	st->octets = octets;
	return region_open(&st->memory, d, octets, REGION_WRITE);
}

/* When the host of a cluster ends, a store takes back what was moving (store_settle). So only a SoC
 * has a host, and one at a time. -EBUSY: the last one has not ended yet. */
static int let_coordinate(struct kv_server *kv)
{
	if (!kv->options->is_soc)
		return -EPERM;
	return atomic_exchange(&kv->has_host, true) ? -EBUSY : 0;
}

static int join(struct session *s, struct hello *hello)
{
	struct kv_server *kv = s->server->user;
	struct stages *st = calloc(1, sizeof(*st));
	struct kv_wish wish;
	struct kv_offer offer;
	int err;

	if (!st)
		return -ENOMEM;
	memcpy(&wish, hello->octets, sizeof(wish));
	err = open_stages(st, kv, &s->server->device, &wish);
	if (!err && wish.coordinator)
		err = let_coordinate(kv);
	if (err) {
		close_stages(st, kv);
		return err;
	}
	s->user = st;
	offer = (struct kv_offer){ .rkey = kv->memory.mr->rkey,
				   .base = (uintptr_t)kv->memory.base,
				   .buckets = kv->store.buckets,
				   .shard = kv->store.shard,
				   .staging = (uintptr_t)st->memory.base,
				   .staging_rkey = st->memory.mr->rkey,
				   .owner = kv->store.owner };
	memset(hello, 0, sizeof(*hello));
	memcpy(hello->octets, &offer, sizeof(offer));
	return 0;
}

static void leave(struct session *s)
{
	struct kv_server *kv = s->server->user;
	struct stages *st = s->user;

	/* the host is gone: what was on its way is ours */
	if (st->coordinator) {
		store_settle(&kv->store);
		kv->has_host = false;
	}
	close_stages(st, kv);
}

/* ---- calls ------------------------------------------------------------------------------- */

/* A record that no message holds goes where the client wants it, as it is: if it is replaced
 * meanwhile, the client sees that it is another version and asks again: what lies there may even be
 * whole, and the same key's, but of a write that is not done yet. The client has room for the
 * values that it told of when it connected, and others may have written longer ones. */
static uint8_t write_record(struct session *s, const struct kv_call *c, const struct kv_entry *e,
			    struct kv_reply *r)
{
	struct kv_server *kv = s->server->user;
	size_t at = store_index_size(kv->store.buckets) + kv_at(e);
	struct ibv_sge sge = region_sge(&kv->memory, at, e->length);
	const struct stages *st = s->user;

	if (e->length > kv_record_size(c->key_length, st->value_max))
		return EMSGSIZE;
	r->in_room = e->length;
	r->version = e->version;
	return session_write(s, &sge, c->room, c->room_rkey, 0) ? EIO : 0;
}

static uint32_t value_reply(struct session *s, const struct kv_call *c, struct span key,
			    struct kv_reply *r)
{
	struct kv_server *kv = s->server->user;
	struct span out = { r + 1, KV_MESSAGE - sizeof(*r) };
	struct kv_entry e;
	int err = c->head.op == KV_GET ? store_get(&kv->store, key, &out, &e)
				       : store_peek(&kv->store, key, &out, &e);

	r->value_length = out.n;
	r->head.status = err == -EMSGSIZE ? write_record(s, c, &e, r) : (uint8_t)-err;
	if (!err && !out.p)
		r->head.status = ENOENT;
	r->head.length = sizeof(*r) - sizeof(r->head) + (err ? 0 : out.n);
	return (uint32_t)sizeof(r->head) + r->head.length;
}

/* What clients ask for. */
static int change(struct kv_server *kv, const struct kv_call *c, struct span key, struct span value)
{
	switch (c->head.op) {
	case KV_PUT:
		return store_put(&kv->store, key, value);
	case KV_DELETE:
		return store_delete(&kv->store, key);
	case KV_HOT:
		return kv->mover ? mover_hear(kv->mover, value) : -EINVAL;
	case KV_MOVE_OUT:
	case KV_MOVE_IN:
		return kv->mover ? mover_ask(kv->mover, key, c->head.op == KV_MOVE_OUT) : -EINVAL;
	default:
		return -EINVAL;
	}
}

/* What the host asks the SoC for. */
static int hand_over(struct kv_server *kv, enum kv_op op, struct span key, struct span value)
{
	struct store *st = &kv->store;

	switch (op) {
	case KV_ADOPT:
		return store_set(st, key, value, KV_PENDING);
	case KV_ADOPT_ABSENT:
		return store_set(st, key, (struct span){ NULL, 0 }, KV_PENDING);
	case KV_COMMIT:
		return store_change(st, key, KV_PENDING, KV_HERE);
	case KV_DROP:
		store_forget(st, key);
		return 0;
	case KV_KEEP:
		return store_change(st, key, KV_FROZEN, KV_HERE)
			       ? store_change(st, key, KV_PENDING, KV_HERE)
			       : 0;
	default:
		return -EINVAL;
	}
}

/* Frozen first, so that the value in the reply is the last one. */
static int freeze(struct store *st, struct span key)
{
	return store_change(st, key, KV_HERE, KV_FROZEN)
		       ? store_change(st, key, KV_ABSENT, KV_PENDING)
		       : 0;
}

/* The call as it lies in so many octets; its head and key as they are used. */
struct request {
	struct kv_call call;
	struct span value;
	uint8_t key[KV_KEY_MAX];
};

/* What lies in a stage may be written to while it is looked at: head and key are copied, and what
 * is done goes by the copies. A value that changes is its writer's affair. */
static bool take_call(struct request *q, const uint8_t *at, uint32_t length)
{
	if (length < sizeof(q->call))
		return false;
	memcpy(&q->call, at, sizeof(q->call));
	if (q->call.key_length > KV_KEY_MAX ||
	    length - sizeof(q->call) < (uint64_t)q->call.key_length + q->call.value_length)
		return false;
	at += sizeof(q->call);
	memcpy(q->key, at, q->call.key_length);
	q->value = (struct span){ at + q->call.key_length, q->call.value_length };
	return true;
}

static uint32_t answer(struct session *s, const uint8_t *at, uint32_t length, struct kv_reply *r)
{
	struct kv_server *kv = s->server->user;
	const struct stages *st = s->user;
	struct request q = { .call.head = ((const struct kv_call *)(const void *)at)->head };
	bool whole = take_call(&q, at, length);
	const struct kv_call *c = &q.call;
	struct span key = { q.key, c->key_length }, value = q.value;
	int err = -EINVAL;

	*r = (struct kv_reply){ .head = { .op = c->head.op, .slot = c->head.slot } };
	if (whole && c->head.op == KV_GET)
		return value_reply(s, c, key, r);
	if (whole && c->head.op < KV_ADOPT)
		err = change(kv, c, key, value);
	else if (whole && st->coordinator && c->head.op == KV_RELEASE)
		err = freeze(&kv->store, key);
	else if (whole && st->coordinator)
		err = hand_over(kv, c->head.op, key, value);
	if (!err && c->head.op == KV_RELEASE)
		return value_reply(s, c, key, r);
	r->head.status = (uint8_t)-err;
	return sizeof(r->head);
}

static uint32_t handle(struct session *s, struct message *m)
{
	const struct kv_call *c = (const void *)m->in;
	struct stages *st = s->user;
	uint32_t slot;

	if (!m->has_imm && m->length < sizeof(c->head))
		return 0;
	if (!m->has_imm && c->head.op != KV_STAGED)
		return answer(s, m->in, m->length, (void *)m->out);
	slot = m->has_imm ? m->imm : c->head.slot;
	if (slot >= st->count)
		return 0;
	return answer(s, st->memory.base + (size_t)slot * st->size, st->size, (void *)m->out);
}

/* ---- life -------------------------------------------------------------------------------- */

static int open_store(struct kv_server *kv, const struct device *d)
{
	uint64_t size = kv->options->memory, buckets = kv->options->buckets;
	int err;

	if (store_index_size((uint32_t)buckets) >= size) {
		log_line("--memory %lu does not even hold the index; give more, or fewer --buckets",
			 size);
		return -EINVAL;
	}
	err = region_open(&kv->memory, d, size, REGION_READ);
	if (err)
		return err;
	store_open(&kv->store, kv->memory.base, size, (uint32_t)buckets);
	kv->store.owner = !kv->options->is_soc;
	return kv->options->soc ? mover_open(&kv->mover, kv->options, &kv->store) : 0;
}

static int report(struct kv_server *kv, const struct server *s)
{
	uint64_t served = 0;
	struct report r;

	for (unsigned i = 0; i < s->config.workers; i++)
		served += s->worker[i].served;
	report_open(&r, "uwarp-kv serve");
	report_count(&r, "calls", served);
	report_count(&r, "keys", store_keys(&kv->store));
	report_count(&r, "heap_used", kv->store.heap.used);
	if (kv->mover)
		mover_report(kv->mover, &r);
	return report_close(&r, &kv->options->common, NULL);
}

int kv_serve(const struct kv_options *o)
{
	static const struct server_ops ops = { .join = join, .handle = handle, .leave = leave };
	struct server_config config = { .service = KV_SERVICE,
					.host = o->common.bind,
					.port = o->common.server.port,
					.workers = o->common.threads,
					.events = o->common.events,
					.message = KV_MESSAGE,
					.slots = SLOTS };
	struct kv_server kv = { .options = o, .staging = budget_of(o->staging) };
	struct server s;
	int err = server_open(&s, &config, &ops);

	s.user = &kv;
	if (!err)
		err = open_store(&kv, &s.device);
	if (!err)
		err = server_run(&s);
	if (kv.mover)
		mover_stop(kv.mover);
	if (!err && o->common.json)
		err = report(&kv, &s);
	if (kv.mover)
		mover_close(kv.mover);
	if (kv.store.bucket)
		store_close(&kv.store);
	region_close(&kv.memory);
	server_close(&s);
	return err;
}
