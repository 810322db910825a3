/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that keeps to nothing but the hello: hostile PROGRAM HOST [SEED]. It writes nonsense
 * wherever the server lets it write, and SENDs nonsense. Exit code 0: the server has taken it all,
 * or has ended the connection. hostile deaf HOST makes calls and takes no replies, until the server
 * ends the connection: 0; or takes nothing and does not end it either. hostile coordinator HOST
 * pretends to be the host of a cluster: 0, it is refused. hostile PROGRAM HOST index WRITEs into
 * what it was given to READ: 0, that is refused. hostile rooms HOST asks a uwarp-rate for rooms
 * that no client can need: 0, it gets none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "btree/wire.h"
#include "clock.h"
#include "kv/wire.h"
#include "log.h"
#include "rate/rate.h"
#include "seq/seq.h"

#define ROUNDS	 3000u
#define WINDOW	 16u
#define RECEIVES 64u
#define MESSAGE	 4096u
#define STAGE	 1000u
#define WAIT_MS	 5000
#define REPLY	 (1ull << 40) /* wr_id */

struct hostile {
	struct device device;
	struct comp comp;
	struct conn conn;
	struct region memory; /* what is sent, then what is received */
	struct hello hello;
	struct service service;
	uint64_t random;
	bool modest;		 /* it does not pretend to be a host */
	uint32_t number[WINDOW]; /* of each mailbox */
};

static uint32_t upto(struct hostile *h, uint32_t n)
{
	return (uint32_t)(random64(&h->random) % n);
}

/* A number that somebody may have forgotten. */
static uint64_t odd(struct hostile *h)
{
	static const uint64_t some[] = {
		0,	   1, 15, 16, 250, 251, 0x7fffffff, 0xffffffff, 1ull << 63, UINT64_MAX - 7,
		UINT64_MAX
	};
	uint32_t i = upto(h, sizeof(some) / sizeof(some[0]) + 3);

	return i < sizeof(some) / sizeof(some[0]) ? some[i] : random64(&h->random) >> upto(h, 60);
}

static int post_receive(struct hostile *h, uint64_t slot)
{
	struct ibv_sge sge = region_sge(&h->memory, MESSAGE * (1 + slot), MESSAGE);
	struct ibv_recv_wr wr = { .wr_id = REPLY | slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return -ibv_post_recv(h->conn.qp, &wr, &bad);
}

static int ready(struct conn *c, void *arg)
{
	struct hostile *h = arg;
	int err = 0;

	(void)c;
	for (unsigned i = 0; !err && i < RECEIVES; i++)
		err = post_receive(h, i);
	return err;
}

/* One request, until it is complete; replies that come meanwhile are of no interest. */
static int go(struct hostile *h, struct ibv_send_wr *wr, uint32_t n)
{
	struct ibv_sge sge = region_sge(&h->memory, 0, n);
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->sg_list = &sge;
	wr->num_sge = n ? 1 : 0;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(h->conn.qp, wr, &bad))
		return -ECONNRESET;
	for (;;) {
		int got = comp_wait(&h->comp, &wc, 1, WAIT_MS);

		if (got != 1)
			return got ? got : -ETIMEDOUT;
		if (wc.status)
			return -ECONNRESET;
		if (!(wc.wr_id & REPLY))
			return 0;
		if (post_receive(h, wc.wr_id & 0xffff))
			return -ECONNRESET;
	}
}

static int send_it(struct hostile *h, uint32_t n)
{
	return go(h, &(struct ibv_send_wr){ .opcode = IBV_WR_SEND }, n);
}

static int write_it(struct hostile *h, uint32_t n, uint64_t to, uint32_t rkey)
{
	return go(h,
		  &(struct ibv_send_wr){ .opcode = IBV_WR_RDMA_WRITE,
					 .wr.rdma = { .remote_addr = to, .rkey = rkey } },
		  n);
}

static void nonsense(struct hostile *h, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		h->memory.base[i] = (uint8_t)random64(&h->random);
}

/* ---- what each program is told ----------------------------------------------------------- */

static int to_kv(struct hostile *h)
{
	struct kv_offer offer;
	struct kv_call *c = (void *)h->memory.base;
	uint32_t n = upto(h, STAGE), stage = kv_stage_size(STAGE);

	memcpy(&offer, h->hello.octets, sizeof(offer));
	nonsense(h, STAGE);
	if (upto(h, 4)) {
		c->head = (struct rpc_head){ .op = (uint8_t)upto(h, KV_KEEP + 2),
					     .slot = (uint16_t)odd(h) };
		c->key_length = upto(h, 2) ? (uint32_t)odd(h) : upto(h, 300);
		c->value_length = (uint32_t)odd(h);
	}
	if (!offer.staging || upto(h, 2))
		return send_it(h, n);
	if (upto(h, 2))
		return write_it(h, n, offer.staging + (uint64_t)upto(h, WINDOW) * stage,
				offer.staging_rkey);
	return go(h,
		  &(struct ibv_send_wr){
			  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			  .imm_data = htonl(upto(h, 2) ? upto(h, WINDOW) : (uint32_t)odd(h)),
			  .wr.rdma = { .remote_addr =
					       offer.staging + (uint64_t)upto(h, WINDOW) * stage,
				       .rkey = offer.staging_rkey } },
		  n);
}

/* Calls that are whole in all but their sense, and some that are not. */
static int to_btree(struct hostile *h)
{
	struct mail *m = (struct mail *)h->memory.base;
	uint32_t slot = upto(h, WINDOW), n = sizeof(*m);
	struct btree_offer offer;
	bool whole = upto(h, 4);

	memcpy(&offer, h->hello.octets, sizeof(offer));
	nonsense(h, MESSAGE);
	if (!offer.mail || !upto(h, 3))
		return send_it(h, upto(h, BTREE_MESSAGE + 1));
	if (whole) {
		*m = (struct mail){ .key = odd(h),
				    .value = odd(h),
				    .until = odd(h),
				    .slot = (uint32_t)odd(h),
				    .count = (uint32_t)odd(h) };
		m->number = ++h->number[slot];
		mail_seal(m, (enum mail_type)(1 + upto(h, MAIL_REPLY + 1)));
	} else {
		slot = upto(h, WINDOW);
		n = upto(h, n);
	}
	return write_it(h, n, offer.mail + slot * sizeof(*m), offer.mail_rkey);
}

static int to_others(struct hostile *h)
{
	nonsense(h, MESSAGE);
	return send_it(h, upto(h, SEQ_MESSAGE + 1));
}

static const struct {
	struct service service;
	int (*tell)(struct hostile *h);
} programs[] = { { KV_SERVICE, to_kv },
		 { BTREE_SERVICE, to_btree },
		 { SEQ_SERVICE, to_others },
		 { RATE_SERVICE, to_others } };

/* ---- connections ------------------------------------------------------------------------- */

static void greet(struct hostile *h, bool sane)
{
	struct kv_wish kv = { .window = WINDOW,
			      .value_max = STAGE,
			      .coordinator = !h->modest && upto(h, 2) };
	struct btree_wish btree = { .window = WINDOW, .base = odd(h), .rkey = (uint32_t)odd(h) };
	struct rate_wish rate = { .verify = 1,
				  .size = upto(h, STAGE),
				  .slots = sane ? WINDOW : (uint32_t)odd(h) };

	nonsense(h, MESSAGE);
	memcpy(h->hello.octets, h->memory.base, sizeof(h->hello));
	if (sane && h->service.magic == programs[0].service.magic)
		memcpy(h->hello.octets, &kv, sizeof(kv));
	if (sane && h->service.magic == programs[1].service.magic)
		memcpy(h->hello.octets, &btree, sizeof(btree));
	if (h->service.magic == programs[3].service.magic)
		memcpy(h->hello.octets, &rate, sizeof(rate));
}

static int connect_to(struct hostile *h, const char *host, bool sane)
{
	const struct server_name to = { host, "7471", 0 };
	const struct conn_wish wish = { .service = h->service,
					.cq = h->comp.cq,
					.sends = 2,
					.receives = RECEIVES,
					.ready = ready,
					.arg = h };

	greet(h, sane);
	memset(h->number, 0, sizeof(h->number));
	return conn_open(&h->conn, &h->device, &to, &wish, &h->hello);
}

/* Calls that are right, to a sequencer. */
static int be_deaf(struct hostile *h, const char *host)
{
	const struct server_name to = { host, "7471", 5 };
	const struct conn_wish wish = { .service = h->service, .cq = h->comp.cq, .sends = 2 };
	struct rpc_head *call = (void *)h->memory.base;
	uint64_t n = 1, made = 0;
	int err = conn_open(&h->conn, &h->device, &to, &wish, &h->hello);

	*call = (struct rpc_head){ .op = SEQ_OP_NEXT, .length = sizeof(n) };
	memcpy(call + 1, &n, sizeof(n));
	for (; !err; made++)
		err = send_it(h, sizeof(*call) + sizeof(n));
	printf("%llu calls, then %s\n", (unsigned long long)made, strerror(-err));
	conn_close(&h->conn);
	return err == -ECONNRESET ? 0 : 1;
}

/* Who is let in and leaves again has all that was given away forgotten. */
static int be_coordinator(struct hostile *h, const char *host)
{
	const struct server_name to = { host, "7471", 1 };
	const struct conn_wish wish = { .service = h->service, .cq = h->comp.cq, .sends = 2 };
	struct kv_wish kv = { .window = WINDOW, .value_max = STAGE, .coordinator = 1 };
	int err;

	memcpy(h->hello.octets, &kv, sizeof(kv));
	err = conn_open(&h->conn, &h->device, &to, &wish, &h->hello);
	conn_close(&h->conn);
	return err == -EPERM || err == -EBUSY ? 0 : 1;
}

/* No octets, in so many slots that others would wait for the server to go through them. */
static int be_roomy(struct hostile *h, const char *host)
{
	static const struct rate_wish rooms[] = { { .size = 8, .slots = 0 },
						  { .size = 0, .slots = UINT32_MAX },
						  { .size = 1, .slots = RATE_SLOTS + 1 } };
	const struct server_name to = { host, "7471", 1 };
	const struct conn_wish wish = { .service = h->service, .cq = h->comp.cq, .sends = 2 };

	for (unsigned i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		int err;

		memcpy(h->hello.octets, &rooms[i], sizeof(rooms[i]));
		err = conn_open(&h->conn, &h->device, &to, &wish, &h->hello);
		conn_close(&h->conn);
		if (err != -EINVAL)
			return 1;
	}
	return 0;
}

/* What clients READ: a store's index, a front's copy of it, or a tree's root. */
static void readable(const struct hostile *h, uint64_t *base, uint32_t *rkey)
{
	struct kv_offer kv;
	struct btree_offer btree;

	memcpy(&kv, h->hello.octets, sizeof(kv));
	memcpy(&btree, h->hello.octets, sizeof(btree));
	*base = h->service.magic == programs[0].service.magic ? kv.base : btree.base;
	*rkey = h->service.magic == programs[0].service.magic ? kv.rkey : btree.rkey;
}

/* A WRITE may complete before its refusal comes; the READ behind it does not. */
static int be_writer(struct hostile *h, const char *host)
{
	struct ibv_send_wr read = { .opcode = IBV_WR_RDMA_READ };
	int err;

	h->modest = true;
	err = connect_to(h, host, true);
	if (err)
		return err;
	readable(h, &read.wr.rdma.remote_addr, &read.wr.rdma.rkey);
	err = go(h, &read, sizeof(uint64_t));
	if (err)
		return err;
	nonsense(h, sizeof(uint64_t));
	err = write_it(h, sizeof(uint64_t), read.wr.rdma.remote_addr, read.wr.rdma.rkey);
	if (!err)
		err = go(h, &read, sizeof(uint64_t));
	conn_close(&h->conn);
	return err == -ECONNRESET ? 0 : 1;
}

static int be_hostile(struct hostile *h, const char *host, int (*tell)(struct hostile *h))
{
	unsigned ended = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		int err = h->conn.id ? tell(h) : connect_to(h, host, upto(h, 8));

		if (err == -ETIMEDOUT)
			return log_errno("the server takes nothing");
		if (err && h->conn.id) {
			conn_close(&h->conn);
			ended++;
		}
	}
	printf("%u rounds, %u connections ended\n", ROUNDS, ended);
	conn_close(&h->conn);
	return 0;
}

int main(int argc, char **argv)
{
	struct hostile h = { .random = argc > 3 ? strtoull(argv[3], NULL, 0) : 1 };
	int (*tell)(struct hostile * h) = NULL;
	bool deaf = argc > 2 && !strcmp(argv[1], "deaf");
	bool coordinator = argc > 2 && !strcmp(argv[1], "coordinator");
	bool writer = argc > 3 && !strcmp(argv[3], "index");
	bool roomy = argc > 2 && !strcmp(argv[1], "rooms");
	const char *name = deaf		 ? "uwarp-seq"
			   : coordinator ? "uwarp-kv"
			   : roomy	 ? "uwarp-rate"
			   : argc > 2	 ? argv[1]
					 : "";
	int rc;

	for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (strcmp(name, programs[i].service.name))
			continue;
		h.service = programs[i].service;
		tell = programs[i].tell;
	}
	if (!tell)
		return 2;
	if (device_open_to(&h.device, argv[2], "7471") ||
	    comp_open(&h.comp, &h.device, 4 * RECEIVES, true) ||
	    region_open(&h.memory, &h.device, MESSAGE * (1 + RECEIVES), REGION_WRITE))
		return 1;
	rc = deaf	   ? be_deaf(&h, argv[2])
	     : coordinator ? be_coordinator(&h, argv[2])
	     : writer	   ? be_writer(&h, argv[2])
	     : roomy	   ? be_roomy(&h, argv[2])
			   : be_hostile(&h, argv[2], tell);
	region_close(&h.memory);
	comp_close(&h.comp);
	device_close(&h.device);
	return rc ? 1 : 0;
}
