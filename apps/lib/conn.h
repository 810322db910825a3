/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reliable connection by rdma_cm. A client's is set up by conn_open(), which blocks; a server's
 * by server.h. What both sides have to tell each other first (where memory is, how large it is)
 * travels as private data with the connection: the hello. Its first word says which program speaks,
 * and in which version: who meets another one hears what it is, instead of nonsense.
 */
#ifndef APPS_CONN_H
#define APPS_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#include "device.h"

#define HELLO_MAX 56 /* what rdma_cm leaves on InfiniBand, in either direction; iWARP has more */

/* A hello's first word, which conn_open() and the server put there, and whose it is. */
struct service {
	const char *name;
	uint32_t magic;
};

struct hello {
	uint8_t octets[HELLO_MAX];
};

/* Private data of a connection that a server refuses. */
struct refusal {
	uint32_t magic; /* REFUSAL_MAGIC */
	int32_t why;	/* errno; EPROTO: the hello is another service's, or another version's */
	char service[24];
};

#define REFUSAL_MAGIC 0x6f6e2075u

struct conn;

struct conn_wish {
	struct service service; /* of a client: the server's has to be the same */
	struct ibv_cq *cq;	/* for both queues */
	struct ibv_srq *srq;	/* or NULL */
	uint32_t sends, receives;
	uint32_t inline_data; /* as much as the device has, up to this; conn.inline_max tells */
	/* NULL, or called before the peer can send: the place to post receives. */
	int (*ready)(struct conn *c, void *arg);
	void *arg;
};

#define CONN_LIST 32u

struct conn {
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	uint32_t inline_max;
	/* requests that conn_add() keeps until conn_flush() posts them as one list */
	struct ibv_send_wr list[CONN_LIST];
	struct ibv_sge list_sge[CONN_LIST];
	unsigned listed;
};

struct server_name {
	const char *host, *port;
	double patience; /* seconds to wait for a server that does not listen yet */
};

/* Connects. hello: ours in, the server's out. A server that refuses is not asked again; that of
 * another service, or none of ours, is -EPROTO. */
int conn_open(struct conn *c, const struct device *d, const struct server_name *to,
	      const struct conn_wish *w, struct hello *hello);
void conn_close(struct conn *c);

/* What both kinds of connection are set up with. */
int conn_make_qp(struct conn *c, const struct device *d, const struct conn_wish *w);
struct rdma_conn_param conn_param(const struct device *d, const struct hello *hello);
void conn_take_hello(struct hello *h, const struct rdma_conn_param *p);
void hello_mark(struct hello *h, struct service s);
bool hello_is_of(const struct hello *h, struct service s);

/* Post a request of one SGE together with those before and after it: a list costs the device less
 * than its requests one by one. conn_next() is where the request is made; what its opcode needs
 * beside these (wr, imm_data) is the caller's to set, since what the last request there had is not
 * cleared. conn_add() makes it part of the list. Its octets must stay until conn_flush(), inline or
 * not. Posts what is kept if there is no more room. 0 or a negative errno. */
static inline struct ibv_send_wr *conn_next(struct conn *c, enum ibv_wr_opcode opcode,
					    uint64_t wr_id, unsigned flags, struct ibv_sge sge)
{
	struct ibv_send_wr *wr = &c->list[c->listed];

	c->list_sge[c->listed] = sge;
	wr->wr_id = wr_id;
	wr->next = wr + 1;
	wr->sg_list = &c->list_sge[c->listed];
	wr->num_sge = 1;
	wr->opcode = opcode;
	wr->send_flags = flags;
	return wr;
}

int conn_add(struct conn *c);
/* Post what is kept; call it before you wait for completions. 0 or a negative errno: then *posted
 * (if not NULL) of them are posted, and c->list still has all. */
int conn_flush(struct conn *c, unsigned *posted);

/* IBV_SEND_INLINE if n octets fit into the request, or 0. */
static inline unsigned conn_inline(const struct conn *c, uint32_t n)
{
	return n <= c->inline_max ? IBV_SEND_INLINE : 0;
}

#endif
