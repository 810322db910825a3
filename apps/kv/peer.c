/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "peer.h"

#define LOOK_MS 100 /* so often a wait sees that it is to end */

static int done(void *arg, unsigned slot, int status, struct kv_slot *s, const uint8_t *value,
		uint32_t n)
{
	struct peer *p = arg;

	(void)slot;
	(void)s;
	p->done = true;
	p->status = status;
	if (p->value && value && n <= p->value->n)
		memcpy((void *)p->value->p, value, n);
	if (p->value)
		p->value->n = n;
	return 0;
}

int peer_open(struct peer *p, const struct kv_options *o, const _Atomic bool *stop)
{
	struct kv_client_config config = { .common = &p->common,
					   .device = &p->device,
					   .comp = &p->comp,
					   .window = 1,
					   .coordinator = true,
					   .way = KV_RPC,
					   .value_max = (uint32_t)o->value_max,
					   .done = done,
					   .arg = p };
	int err;

	p->stop = stop;
	p->common = o->common;
	p->common.server.host = o->soc;
	if (o->soc_port)
		p->common.server.port = o->soc_port;
	config.server = p->common.server;
	err = device_open_to(&p->device, config.server.host, config.server.port);
	if (!err)
		err = comp_open(&p->comp, &p->device, 2 * KV_CLIENT_CQE, o->common.events);
	return err ? err : kv_client_open(&p->client, &config);
}

void peer_close(struct peer *p)
{
	kv_client_close(&p->client);
	comp_close(&p->comp);
	device_close(&p->device);
}

static int take(struct peer *p, int milliseconds)
{
	struct ibv_wc wc;
	int err = conn_flush(&p->client.conn, NULL), n;

	if (err)
		return err;
	n = comp_wait(&p->comp, &wc, 1, milliseconds);
	return n > 0 ? kv_client_take(&p->client, &wc) : n < 0 ? n : -ETIMEDOUT;
}

static int wait_for(struct peer *p)
{
	int err = kv_go(&p->client, 0);

	p->done = false;
	while (!p->done && (!err || err == -ETIMEDOUT)) {
		if (*p->stop)
			return -ECANCELED;
		err = take(p, LOOK_MS);
	}
	return err ? -ECONNRESET : p->status;
}

int peer_call(struct peer *p, enum kv_op op, const struct kv_key *key, struct span value)
{
	uint8_t *room;

	if (op == KV_ADOPT && !value.p)
		op = KV_ADOPT_ABSENT;
	room = kv_room(&p->client, 0, op, key, value.n);
	if (value.n)
		memcpy(room, value.p, value.n);
	p->value = NULL;
	return wait_for(p);
}

int peer_take(struct peer *p, const struct kv_key *key, struct span *value)
{
	int err;

	kv_room(&p->client, 0, KV_RELEASE, key, 0);
	p->value = value;
	err = wait_for(p);
	p->value = NULL; /* the answer may come yet, and `value` be gone */
	if (err != -ENOENT)
		return err;
	*value = (struct span){ NULL, 0 };
	return 0;
}

void peer_hang_up(struct peer *p)
{
	conn_close(&p->client.conn);
}

bool peer_is_gone(struct peer *p)
{
	int err = take(p, 0);

	return err && err != -ETIMEDOUT;
}
