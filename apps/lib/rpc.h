/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's side of SEND and RECV: up to `window` calls under way on one connection, each in a
 * slot of its own. Every message begins with struct rpc_head; the slot travels with the call and
 * comes back with the reply. The connection needs window + 1 receives.
 */
#ifndef APPS_RPC_H
#define APPS_RPC_H

#include "conn.h"

struct rpc_head {
	uint8_t op;	/* the application's */
	uint8_t status; /* in a reply: 0, or an errno */
	uint16_t slot;
	uint32_t length; /* of what follows */
};

struct rpc {
	struct conn *conn;
	struct region ring; /* pairs of a call and a reply; one reply more, so that a call may be
			     * made while another one's reply is still looked at */
	unsigned window;
	uint32_t message;
};

/* wr_id of all requests that this makes; the application's own use other values. */
#define RPC_CALL  (1ull << 40)
#define RPC_REPLY (2ull << 40)

int rpc_open(struct rpc *r, const struct device *d, unsigned window, uint32_t message);
void rpc_close(struct rpc *r);
/* All replies may come from now on; for conn_open()'s `ready`. */
int rpc_ready(struct rpc *r, struct conn *conn);

/* The room for the slot's call, head first. */
void *rpc_room(const struct rpc *r, unsigned slot);
/* Sends it with the next conn_flush(); the octets after the head are counted by its length. 0 or a
 * negative errno. */
int rpc_call(struct rpc *r, unsigned slot, uint8_t op, uint32_t length);
/* The reply that a completion with RPC_REPLY in its wr_id brought; NULL: it makes no sense.
 * Valid until rpc_done(), which makes room for another reply. */
const struct rpc_head *rpc_reply(const struct rpc *r, const struct ibv_wc *wc);
int rpc_done(struct rpc *r, const struct ibv_wc *wc);

#endif
