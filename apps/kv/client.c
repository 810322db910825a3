/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "clock.h"
#include "get.h"
#include "log.h"

#define BATCH	    32
#define STAGE_WRITE (3ull << 40) /* wr_id */

/* ---- set-up ------------------------------------------------------------------------------ */

static int ready(struct conn *conn, void *arg)
{
	return rpc_ready(arg, conn);
}

static int open_memory(struct kv_client *c)
{
	unsigned window = c->config.window;
	int err = rpc_open(&c->rpc, c->config.device, window, KV_MESSAGE);

	if (!err)
		err = region_open(&c->reads, c->config.device, window * get_room(c), REGION_SINK);
	if (!err)
		err = region_open(&c->stages, c->config.device,
				  (size_t)window * kv_stage_size(c->config.value_max),
				  REGION_LOCAL);
	c->slot = calloc(window, sizeof(*c->slot));
	if (c->config.cache)
		c->known = calloc(c->config.cache, sizeof(*c->known));
	return err ? err : c->slot && !c->config.cache == !c->known ? 0 : -ENOMEM;
}

int kv_client_open(struct kv_client *c, const struct kv_client_config *config)
{
	struct kv_wish wish = { .window = config->window,
				.value_max = config->value_max,
				.coordinator = config->coordinator };
	struct conn_wish conn = { .service = KV_SERVICE,
				  .cq = config->comp->cq,
				  .sends = 3 * config->window,
				  .receives = config->window + 1,
				  .inline_data = 256,
				  .ready = ready,
				  .arg = &c->rpc };
	struct hello hello = { { 0 } };
	int err;

	memset(c, 0, sizeof(*c));
	c->config = *config;
	c->random = config->common->seed;
	memcpy(hello.octets, &wish, sizeof(wish));
	err = open_memory(c);
	if (err)
		return err;
	err = conn_open(&c->conn, config->device, &config->server, &conn, &hello);
	memcpy(&c->offer, hello.octets, sizeof(c->offer));
	return err;
}

void kv_client_close(struct kv_client *c)
{
	conn_close(&c->conn);
	rpc_close(&c->rpc);
	region_close(&c->reads);
	region_close(&c->stages);
	free(c->slot);
	free(c->known);
}

/* ---- calls ------------------------------------------------------------------------------- */

/* Writes the call behind which key and value go; returns where they do. */
static uint8_t *build(struct kv_client *c, unsigned slot, enum kv_op op, uint32_t value_length)
{
	struct kv_slot *s = &c->slot[slot];
	uint32_t all = (uint32_t)sizeof(struct kv_call) + s->key.length + value_length;
	struct kv_call *call;

	s->op = op;
	s->staged = all > KV_MESSAGE || (c->config.stage_all && op == KV_PUT);
	s->call_length = all - (uint32_t)sizeof(struct rpc_head);
	call = s->staged ? (void *)(c->stages.base +
				    (size_t)slot * kv_stage_size(c->config.value_max))
			 : rpc_room(&c->rpc, slot);
	*call = (struct kv_call){
		.head = { .op = (uint8_t)op, .slot = (uint16_t)slot, .length = s->call_length },
		.key_length = s->key.length,
		.value_length = value_length,
		.room = (uintptr_t)get_record(c, slot),
		.room_rkey = c->reads.mr->rkey
	};
	memcpy(call + 1, s->key.octets, s->key.length);
	return (uint8_t *)(call + 1) + s->key.length;
}

/* The call is WRITTEN into its stage; an immediate, or a short SEND behind it, tells the server. */
static int go_staged(struct kv_client *c, unsigned slot)
{
	uint32_t size = kv_stage_size(c->config.value_max);
	struct ibv_sge sge =
		region_sge(&c->stages, (size_t)slot * size,
			   c->slot[slot].call_length + (uint32_t)sizeof(struct rpc_head));
	struct ibv_send_wr *wr = conn_next(
		&c->conn, c->config.with_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		STAGE_WRITE, c->config.with_imm ? IBV_SEND_SIGNALED : 0, sge);
	int err;

	wr->imm_data = htonl(slot);
	wr->wr.rdma.remote_addr = c->offer.staging + (uint64_t)slot * size;
	wr->wr.rdma.rkey = c->offer.staging_rkey;
	err = conn_add(&c->conn);
	return err || c->config.with_imm ? err : rpc_call(&c->rpc, slot, KV_STAGED, 0);
}

int kv_go(struct kv_client *c, unsigned slot)
{
	struct kv_slot *s = &c->slot[slot];

	s->state = SLOT_CALL;
	return s->staged ? go_staged(c, slot)
			 : rpc_call(&c->rpc, slot, (uint8_t)s->op, s->call_length);
}

static void begin(struct kv_client *c, unsigned slot, const struct kv_key *key)
{
	struct kv_slot *s = &c->slot[slot];

	s->key = *key;
	s->repeats = 0;
	s->by_reads = false;
	s->began = c->config.comp->at;
}

uint8_t *kv_room(struct kv_client *c, unsigned slot, enum kv_op op, const struct kv_key *key,
		 uint32_t n)
{
	begin(c, slot, key);
	return build(c, slot, op, n);
}

/* ---- GET --------------------------------------------------------------------------------- */

#define EXPLORE 64 /* one of so many takes the way that seems the slower one */
#define SMOOTH	0.02

static bool by_reads(struct kv_client *c)
{
	bool reads;

	if (c->config.way != KV_HYBRID)
		return c->config.way == KV_READS;
	reads = c->cost[0] <= c->cost[1];
	return random64(&c->random) % EXPLORE ? reads : !reads;
}

/* The call for a value, once more or instead of READs. */
static int ask(struct kv_client *c, unsigned slot)
{
	build(c, slot, c->slot[slot].op, 0);
	return kv_go(c, slot);
}

int kv_get(struct kv_client *c, unsigned slot, const struct kv_key *key)
{
	struct kv_slot *s = &c->slot[slot];

	begin(c, slot, key);
	s->op = KV_GET;
	s->by_reads = by_reads(c);
	return s->by_reads ? get_begin_known(c, slot) : ask(c, slot);
}

int kv_find(struct kv_client *c, unsigned slot, const struct kv_key *key)
{
	begin(c, slot, key);
	c->slot[slot].op = KV_LOCATE;
	return get_begin(c, slot);
}

int kv_get_entry(struct kv_client *c, unsigned slot, const struct kv_key *key,
		 const struct kv_entry *e)
{
	struct kv_entry copy = *e; /* it may lie in the slot */

	begin(c, slot, key);
	c->slot[slot].op = KV_GET;
	c->slot[slot].by_reads = true;
	return get_begin_at(c, slot, &copy);
}

static int finish(struct kv_client *c, unsigned slot, int status, const uint8_t *value, uint32_t n)
{
	struct kv_slot *s = &c->slot[slot];

	s->state = SLOT_IDLE;
	if (s->op == KV_GET) {
		double *cost = &c->cost[!s->by_reads],
		       now = (double)(c->config.comp->at - s->began);

		*cost += *cost > 0 ? SMOOTH * (now - *cost) : now;
		c->by_reads += s->by_reads;
		c->by_rpc += !s->by_reads;
	}
	return c->config.done(c->config.arg, slot, status, s, value, n);
}

/* ---- completions ------------------------------------------------------------------------- */

static int on_value(struct kv_client *c, unsigned slot, const struct kv_reply *r)
{
	const struct kv_record *record = get_record(c, slot);
	const uint32_t fixed = sizeof(*r) - sizeof(r->head);

	if (r->head.length < fixed || (!r->in_room && r->value_length > r->head.length - fixed))
		return -EPROTO;
	if (!r->in_room)
		return finish(c, slot, 0, (const uint8_t *)(r + 1), r->value_length);
	if (!get_is_right(c, slot, r->in_room, r->version)) {
		c->torn++;
		return ask(c, slot);
	}
	return finish(c, slot, 0, (const uint8_t *)(record + 1) + record->key_length,
		      record->value_length);
}

static bool brings_value(enum kv_op op)
{
	return op == KV_GET || op == KV_RELEASE || op == KV_LOCATE || op == KV_GET_AFAR;
}

static int on_reply(struct kv_client *c, const struct ibv_wc *wc)
{
	const struct rpc_head *h = rpc_reply(&c->rpc, wc);
	unsigned slot;
	int err;

	if (!h || c->slot[h->slot].state != SLOT_CALL)
		return -EPROTO;
	slot = h->slot;
	if (brings_value(c->slot[slot].op) && !h->status)
		err = on_value(c, slot, (const struct kv_reply *)h);
	else
		err = finish(c, slot, -(int)h->status, NULL, 0);
	/* the value was in the reply until now */
	return err ? err : rpc_done(&c->rpc, wc);
}

static int on_read(struct kv_client *c, unsigned slot)
{
	struct kv_slot *s = &c->slot[slot];
	const struct kv_record *record = get_record(c, slot);
	int status = s->state == SLOT_BUCKET ? get_bucket(c, slot) : get_value(c, slot);

	if (status == -EINPROGRESS)
		return 0;
	if (status == -EAGAIN) {
		s->by_reads = false;
		return ask(c, slot);
	}
	if (status)
		return finish(c, slot, status, NULL, 0);
	if (s->op == KV_LOCATE)
		return finish(c, slot, 0, (const uint8_t *)&s->entry, sizeof(s->entry));
	return finish(c, slot, 0, (const uint8_t *)(record + 1) + s->key.length,
		      s->entry.length - kv_record_size(s->key.length, 0));
}

int kv_client_take(struct kv_client *c, const struct ibv_wc *wc)
{
	if (wc->status)
		return -ECONNRESET;
	if (wc->wr_id == STAGE_WRITE || (wc->wr_id & ~0xffffull) == RPC_CALL)
		return 0;
	if ((wc->wr_id & ~0xffffull) == RPC_REPLY)
		return on_reply(c, wc);
	return on_read(c, (unsigned)wc->wr_id);
}
