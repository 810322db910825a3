/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uwarp-kv's client, and what it believes of a record that the server WRITES to it. The server and
 * the connection are below here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client.h"
#include "get.h"

#define VALUE 8000u /* octets, more than a message holds */

static struct {
	struct ibv_mr mr;
	uint64_t call[KV_MESSAGE / sizeof(uint64_t)];
	struct kv_reply reply;
	unsigned calls, done;
	int status;
	uint32_t length;
} bed;

/* ---- the connection ---------------------------------------------------------------------- */

int region_open(struct region *r, const struct device *d, size_t size, int access)
{
	(void)d;
	(void)access;
	*r = (struct region){ .base = calloc(1, size), .size = size, .mr = &bed.mr };
	return 0;
}

void region_close(struct region *r)
{
	free(r->base);
}

struct ibv_sge region_sge(const struct region *r, size_t at, uint32_t n)
{
	return (struct ibv_sge){ .addr = (uintptr_t)r->base + at, .length = n };
}

int conn_open(struct conn *c, const struct device *d, const struct server_name *to,
	      const struct conn_wish *w, struct hello *hello)
{
	(void)c;
	(void)d;
	(void)to;
	(void)w;
	(void)hello;
	return 0;
}

void conn_close(struct conn *c)
{
	(void)c;
}

int conn_add(struct conn *c)
{
	(void)c;
	return 0;
}

int rpc_open(struct rpc *r, const struct device *d, unsigned window, uint32_t message)
{
	(void)r;
	(void)d;
	(void)window;
	(void)message;
	return 0;
}

void rpc_close(struct rpc *r)
{
	(void)r;
}

int rpc_ready(struct rpc *r, struct conn *conn)
{
	(void)r;
	(void)conn;
	return 0;
}

void *rpc_room(const struct rpc *r, unsigned slot)
{
	(void)r;
	(void)slot;
	return bed.call;
}

int rpc_call(struct rpc *r, unsigned slot, uint8_t op, uint32_t length)
{
	(void)r;
	(void)slot;
	(void)op;
	(void)length;
	bed.calls++;
	return 0;
}

const struct rpc_head *rpc_reply(const struct rpc *r, const struct ibv_wc *wc)
{
	(void)r;
	(void)wc;
	return &bed.reply.head;
}

int rpc_done(struct rpc *r, const struct ibv_wc *wc)
{
	(void)r;
	(void)wc;
	return 0;
}

/* ---- tests ------------------------------------------------------------------------------- */

static int done(void *arg, unsigned slot, int status, struct kv_slot *s, const uint8_t *value,
		uint32_t n)
{
	(void)arg;
	(void)slot;
	(void)s;
	(void)value;
	bed.done++;
	bed.status = status;
	bed.length = n;
	return 0;
}

/* A record of the key, whole, as it lies where the server reads it to WRITE it. */
static void place_record(struct kv_client *c, const struct kv_key *key, uint32_t version)
{
	struct kv_record *r = get_record(c, 0);

	*r = (struct kv_record){ .version = version,
				 .key_length = key->length,
				 .value_length = VALUE };
	memcpy(r + 1, key->octets, key->length);
	r->check = kv_record_check(r);
}

static void reply(struct kv_client *c, uint32_t version)
{
	const struct ibv_wc wc = { .wr_id = RPC_REPLY };

	bed.reply =
		(struct kv_reply){ .head = { .op = KV_GET,
					     .length = sizeof(bed.reply) - sizeof(bed.reply.head) },
				   .value_length = VALUE,
				   .in_room = kv_record_size(KV_KEY_MIN, VALUE),
				   .version = version };
	assert_int_equal(kv_client_take(c, &wc), 0);
}

/* The server looked a record up, and when its octets left they were those of a later write, which
 * may not have been done then, or never: it is not the answer. */
static void test_a_record_that_was_not_looked_up(void **state)
{
	struct options common = { .seed = 1 };
	struct comp comp = { 0 };
	struct kv_client_config config = { .common = &common,
					   .comp = &comp,
					   .window = 1,
					   .way = KV_RPC,
					   .value_max = VALUE,
					   .done = done };
	struct kv_key key = { .length = KV_KEY_MIN };
	struct kv_client c;

	(void)state;
	assert_int_equal(kv_client_open(&c, &config), 0);
	assert_int_equal(kv_get(&c, 0, &key), 0);
	assert_int_equal(bed.calls, 1);
	place_record(&c, &key, 8);
	reply(&c, 7);
	assert_int_equal(bed.done, 0);
	assert_int_equal(bed.calls, 2);
	assert_int_equal(c.torn, 1);
	reply(&c, 8);
	assert_int_equal(bed.done, 1);
	assert_int_equal(bed.status, 0);
	assert_int_equal(bed.length, VALUE);
	assert_int_equal(bed.calls, 2);
	kv_client_close(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_record_that_was_not_looked_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
