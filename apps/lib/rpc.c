/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "rpc.h"

static size_t call_at(const struct rpc *r, unsigned slot)
{
	return (size_t)slot * 2 * r->message;
}

static int post_reply(struct rpc *r, unsigned slot)
{
	struct ibv_sge sge = region_sge(&r->ring, call_at(r, slot) + r->message, r->message);
	struct ibv_recv_wr wr = { .wr_id = RPC_REPLY | slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return -ibv_post_recv(r->conn->qp, &wr, &bad);
}

int rpc_open(struct rpc *r, const struct device *d, unsigned window, uint32_t message)
{
	memset(r, 0, sizeof(*r));
	r->window = window;
	r->message = message;
	return region_open(&r->ring, d, (size_t)(window + 1) * 2 * message, REGION_LOCAL);
}

void rpc_close(struct rpc *r)
{
	region_close(&r->ring);
}

int rpc_ready(struct rpc *r, struct conn *conn)
{
	int err = 0;

	r->conn = conn;
	for (unsigned i = 0; !err && i <= r->window; i++)
		err = post_reply(r, i);
	return err;
}

void *rpc_room(const struct rpc *r, unsigned slot)
{
	return r->ring.base + call_at(r, slot);
}

int rpc_call(struct rpc *r, unsigned slot, uint8_t op, uint32_t length)
{
	struct rpc_head *h = rpc_room(r, slot);
	uint32_t all = (uint32_t)sizeof(*h) + length;
	struct ibv_sge sge = region_sge(&r->ring, call_at(r, slot), all);

	conn_next(r->conn, IBV_WR_SEND, RPC_CALL | slot,
		  IBV_SEND_SIGNALED | conn_inline(r->conn, all), sge);
	*h = (struct rpc_head){ .op = op, .slot = (uint16_t)slot, .length = length };
	return conn_add(r->conn);
}

const struct rpc_head *rpc_reply(const struct rpc *r, const struct ibv_wc *wc)
{
	const struct rpc_head *h =
		(const void *)(r->ring.base + call_at(r, (unsigned)(wc->wr_id & 0xffff)) +
			       r->message);

	if (wc->byte_len < sizeof(*h) || wc->byte_len - sizeof(*h) < h->length ||
	    h->slot >= r->window)
		return NULL;
	return h;
}

int rpc_done(struct rpc *r, const struct ibv_wc *wc)
{
	return post_reply(r, (unsigned)(wc->wr_id & 0xffff));
}
