/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "route.h"
#include "log.h"

#define BATCH	  32
#define TELL_EACH 512u	   /* operations between two reports of what is popular */
#define ASK_MAX	  1000000u /* a key that is on its way that long never comes */
#define ONE_NODE  0x80u	   /* in route_slot.node: not to be looked for elsewhere */

static uint64_t *seen(struct route *r, uint64_t tag)
{
	return &r->seen[tag % ROUTE_SEEN];
}

/* How a GET goes when the SoC is a front of the host (front.c); writes go to the host. */
static int ask_front(struct route *r, unsigned slot)
{
	const struct kv_key *key = &r->slot[slot].key;
	struct kv_client *soc = &r->node[NODE_SOC];
	unsigned way = r->options->alternative[slot % 2];
	static const enum kv_op op[] = { [2] = KV_GET_AFAR, [3] = KV_GET, [5] = KV_LOCATE };

	switch (way) {
	case 1:
		return kv_get(&r->node[NODE_HOST], slot, key);
	case 4:
		return kv_find(soc, slot, key);
	default:
		kv_room(soc, slot, op[way], key, 0);
		return kv_go(soc, slot);
	}
}

static int ask_node(struct route *r, unsigned slot)
{
	struct route_slot *s = &r->slot[slot];
	struct kv_client *c = &r->node[s->node & ~ONE_NODE];
	uint8_t *room;

	s->asked++;
	if (s->op == KV_GET && r->options->alternative[0])
		return ask_front(r, slot);
	if (s->op == KV_GET)
		return kv_get(c, slot, &s->key);
	room = kv_room(c, slot, s->op, &s->key, s->length);
	if (s->op == KV_PUT)
		r->ops->fill(r->arg, slot, room, s->length);
	return kv_go(c, slot);
}

/* Tells the host what is popular, now and then. */
static int tell(struct route *r)
{
	unsigned slot = r->options->common.window, n;
	struct kv_hot hot[KV_HOT_MAX];
	struct kv_key none = { .length = 0 };
	uint8_t *room;

	if (!r->sketch || r->telling || ++r->begun % TELL_EACH)
		return 0;
	n = sketch_tell(r->sketch, hot);
	if (!n)
		return 0;
	room = kv_room(&r->node[NODE_HOST], slot, KV_HOT, &none, n * (uint32_t)sizeof(*hot));
	memcpy(room, hot, n * sizeof(*hot));
	r->telling = true;
	return kv_go(&r->node[NODE_HOST], slot);
}

int route_begin(struct route *r, unsigned slot, enum kv_op op, const struct kv_key *key,
		uint32_t length)
{
	struct route_slot *s = &r->slot[slot];
	uint64_t tag = r->nodes > 1 ? kv_tag(key->octets, key->length) : 0;
	bool away = r->nodes > 1 && !r->options->alternative[0] && !r->down[NODE_SOC] &&
		    *seen(r, tag) == tag;
	int err = tell(r);

	*s = (struct route_slot){
		.key = *key, .op = op, .length = length, .node = away ? NODE_SOC : NODE_HOST
	};
	if (op == KV_MOVE_OUT || op == KV_MOVE_IN)
		s->node = NODE_HOST | ONE_NODE;
	else if (r->sketch)
		sketch_count(r->sketch, key);
	return err ? err : ask_node(r, slot);
}

int route_at(struct route *r, unsigned slot, unsigned node, enum kv_op op, const struct kv_key *key)
{
	r->slot[slot] =
		(struct route_slot){ .key = *key, .op = op, .node = (uint8_t)(node | ONE_NODE) };
	return ask_node(r, slot);
}

static int deliver(struct route *r, unsigned slot, int status, const uint8_t *value, uint32_t n)
{
	struct route_slot *s = &r->slot[slot];

	r->at_soc += s->node == NODE_SOC;
	r->again += s->asked - 1;
	return r->ops->done(r->arg, slot, status, s->op, value, n);
}

/* The node does not own the key: the other one is asked, and remembered. */
static int elsewhere(struct route *r, unsigned slot)
{
	struct route_slot *s = &r->slot[slot];
	uint64_t tag = kv_tag(s->key.octets, s->key.length);

	if (r->nodes == 1 || (s->node == NODE_HOST && r->down[NODE_SOC]))
		return deliver(r, slot, -EHOSTDOWN, NULL, 0);
	s->node ^= 1;
	*seen(r, tag) = s->node == NODE_SOC ? tag : 0;
	return ask_node(r, slot);
}

static int done(void *arg, unsigned slot, int status, struct kv_slot *ks, const uint8_t *value,
		uint32_t n)
{
	struct route *r = arg;
	struct route_slot *s = &r->slot[slot];

	if (ks->op == KV_HOT) {
		r->telling = false;
		return 0;
	}
	if (ks->op == KV_LOCATE) /* what the front does not know the host may */
		return status ? kv_get(&r->node[NODE_HOST], slot, &s->key)
			      : kv_get_entry(&r->node[NODE_HOST], slot, &s->key,
					     (const struct kv_entry *)value);
	if (s->asked < ASK_MAX &&
	    ((status == -EBUSY && !(s->node & ONE_NODE)) || status == -EAGAIN))
		return ask_node(r, slot);
	if (s->asked < ASK_MAX && status == -EXDEV && !(s->node & ONE_NODE))
		return elsewhere(r, slot);
	return deliver(r, slot, status, value, n);
}

/* ---- a node that goes -------------------------------------------------------------------- */

/* What is under way there has no answer: a write may have been done, or not. */
static int lose_soc(struct route *r)
{
	int err = 0;

	if (r->down[NODE_SOC])
		return 0;
	r->down[NODE_SOC] = true;
	log_line("the SoC is gone");
	for (unsigned i = 0; !err && i < r->options->common.window; i++) {
		struct kv_slot *ks = &r->node[NODE_SOC].slot[i];

		if (ks->state == SLOT_IDLE)
			continue;
		ks->state = SLOT_IDLE;
		err = deliver(r, i, -EHOSTDOWN, NULL, 0);
	}
	return err;
}

static int take(struct route *r, const struct ibv_wc *wc)
{
	const struct ibv_qp *soc = r->node[NODE_SOC].conn.qp;
	unsigned node = soc && wc->qp_num == soc->qp_num ? NODE_SOC : NODE_HOST;
	int err = r->down[node] ? 0 : kv_client_take(&r->node[node], wc);

	if (err != -ECONNRESET)
		return err;
	if (node == NODE_SOC)
		return lose_soc(r);
	log_line("the connection failed: %s", ibv_wc_status_str(wc->status));
	return err;
}

static int flush(struct route *r, unsigned node)
{
	int err = r->down[node] ? 0 : conn_flush(&r->node[node].conn, NULL);

	return err && node == NODE_SOC ? lose_soc(r) : err;
}

int route_poll(struct route *r, int milliseconds)
{
	struct ibv_wc wc[BATCH];
	int n, err = 0;

	for (unsigned i = 0; !err && i < NODES; i++)
		err = flush(r, i);
	if (err)
		return err;
	n = comp_wait(&r->comp, wc, comp_half(r->options->common.window, BATCH), milliseconds);
	err = n < 0 ? n : 0;
	for (int i = 0; !err && i < n; i++)
		err = take(r, &wc[i]);
	return err ? err : n ? 0 : -ETIMEDOUT;
}

/* ---- life -------------------------------------------------------------------------------- */

static int open_node(struct route *r, unsigned node)
{
	const struct kv_options *o = r->options;
	struct kv_client_config config = { .common = &o->common,
					   .server = o->common.server,
					   .device = &r->device,
					   .comp = &r->comp,
					   .window = o->common.window + 1,
					   .way = o->way,
					   .with_imm = o->with_imm,
					   .stage_all = o->stage_all,
					   .cache = (uint32_t)o->cache,
					   .believe = o->oracle.believe,
					   .value_max = (uint32_t)o->value_high,
					   .done = done,
					   .arg = r };

	if (node == NODE_SOC) {
		config.server.host = o->soc;
		config.server.port = o->soc_port ? o->soc_port : config.server.port;
	}
	return kv_client_open(&r->node[node], &config);
}

int route_open(struct route *r, const struct kv_options *o, const struct route_ops *ops, void *arg)
{
	unsigned slots = o->common.window + 1;
	int err;

	memset(r, 0, sizeof(*r));
	r->options = o;
	r->ops = ops;
	r->arg = arg;
	r->slot = calloc(slots, sizeof(*r->slot));
	r->seen = calloc(ROUTE_SEEN, sizeof(*r->seen));
	r->sketch = o->soc && o->hot ? calloc(1, sizeof(*r->sketch)) : NULL;
	if (!r->slot || !r->seen || (o->soc && o->hot && !r->sketch))
		return -ENOMEM;
	err = device_open_to(&r->device, o->common.server.host, o->common.server.port);
	if (!err)
		err = comp_open(&r->comp, &r->device, NODES * KV_CLIENT_CQE * slots,
				o->common.events);
	if (!err)
		err = open_node(r, NODE_HOST);
	r->nodes = o->soc ? NODES : 1;
	if (err || !o->soc)
		return err;
	err = open_node(r, NODE_SOC);
	r->down[NODE_SOC] = err && o->may_lose;
	return r->down[NODE_SOC] ? 0 : err;
}

void route_close(struct route *r)
{
	for (unsigned i = 0; i < NODES; i++)
		kv_client_close(&r->node[i]);
	comp_close(&r->comp);
	device_close(&r->device);
	free(r->slot);
	free(r->seen);
	free(r->sketch);
}
