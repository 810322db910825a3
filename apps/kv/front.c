/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uwarp-kv front HOST: a SoC before a store that stays at the host, as on a DPU. It keeps a copy of
 * the host's index, which clients may READ, and does for them what they ask for:
 *
 *   KV_LOCATE    the entry, from the copy; the client READs the record at the host itself
 *   KV_GET       the entry from the copy, the record READ at the host, the value in the reply
 *   KV_GET_AFAR  the same with both READ at the host
 *
 * The copy may be old. That is no harm: a record that was replaced or deleted does not pass its
 * check from the moment on that its memory is given back, which is before the writer hears that
 * it is done. Who meets one looks into the host's index.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "log.h"
#include "server.h"

#define SLOTS	     256u
#define VALUE_MAX    (64u << 10)
#define CHUNK	     (64u << 10) /* octets of the index READ at once */
#define LOOK_MS	     100
#define FRESH_US     20000u
#define FRESH_ROUNDS 50u

/* A worker's connection to the host. Its slots are those of the worker's messages, and its
 * completions come with the clients'. */
struct runner {
	struct kv_client host;
	struct message message[SLOTS];
};

struct front {
	struct kv_options options;
	struct server server;
	struct region index;	/* the copy, as what comes from the host is placed in it */
	struct ibv_mr *offered; /* the same memory as clients have it: to READ, and no more */
	struct kv_offer offer;
	struct runner *runner; /* of each worker */
	struct comp comp;      /* of who keeps the copy fresh */
	struct kv_client fresh;
	pthread_t thread;
	_Atomic bool stop, stale, alone;
};

/* ---- the copy ---------------------------------------------------------------------------- */

static int nothing_done(void *arg, unsigned slot, int status, struct kv_slot *s,
			const uint8_t *value, uint32_t n)
{
	(void)arg;
	(void)slot;
	(void)status;
	(void)s;
	(void)value;
	(void)n;
	return 0;
}

/* A host that says nothing may be stopped: the device says when it is gone. -ECANCELED: the front
 * is to end. */
static int wait_for_read(struct front *f)
{
	struct ibv_wc wc;
	int n = 0;

	while (!n && !server_stopped())
		n = comp_wait(&f->comp, &wc, 1, LOOK_MS);
	if (!n)
		return -ECANCELED;
	return n < 0 || wc.status ? -ECONNRESET : 0;
}

static int read_index(struct front *f)
{
	int err = 0;

	for (size_t at = 0; !err && at < f->index.size; at += CHUNK) {
		uint32_t n = f->index.size - at < CHUNK ? (uint32_t)(f->index.size - at) : CHUNK;
		struct ibv_sge sge = region_sge(&f->index, at, n);
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_READ,
					  .send_flags = IBV_SEND_SIGNALED,
					  .wr.rdma = { .remote_addr = f->offer.base + at,
						       .rkey = f->offer.rkey } },
				   *bad;

		err = ibv_post_send(f->fresh.conn.qp, &wr, &bad) ? -ECONNRESET : wait_for_read(f);
	}
	return err;
}

/* Without it there is nothing to do. */
static void lose_host(struct front *f)
{
	if (!f->alone)
		log_line("the host is gone");
	f->alone = true;
	kill(getpid(), SIGTERM);
}

/* Again when a worker has met an old entry; clients who meet one do not tell, so also now and then.
 */
static void *keep_fresh(void *arg)
{
	struct front *f = arg;
	int err = 0;

	for (unsigned round = 1; !err && !f->stop; round++) {
		usleep(FRESH_US);
		if (!f->stale && round % FRESH_ROUNDS)
			continue;
		f->stale = false;
		err = read_index(f);
	}
	if (err && err != -ECANCELED)
		lose_host(f);
	return NULL;
}

/* The entry in the copy; false: it is not there, or torn. */
static bool find(const struct front *f, const struct kv_key *key, struct kv_entry *found)
{
	uint64_t tag = kv_tag(key->octets, key->length);
	const struct kv_bucket *bucket = (const void *)f->index.base;
	uint32_t home = (uint32_t)tag & (f->offer.buckets - 1), b = home;

	do {
		for (unsigned i = 0; i < KV_ENTRIES; i++) {
			*found = bucket[b].entry[i];
			if (found->tag == tag)
				return found->check == kv_entry_check(found);
		}
		if (!bucket[b].spilled)
			return false;
		b = kv_next_bucket(b, f->offer.shard);
	} while (b != home);
	return false;
}

/* ---- calls ------------------------------------------------------------------------------- */

static uint32_t reply_with(const struct message *m, int status, const void *value, uint32_t n)
{
	const struct kv_call *c = (const void *)m->in;
	struct kv_reply *r = (void *)m->out;

	*r = (struct kv_reply){
		.head = { .op = c->head.op, .slot = c->head.slot, .status = (uint8_t)-status },
		.value_length = n
	};
	r->head.length = sizeof(*r) - sizeof(r->head) + n;
	if (n)
		memcpy(r + 1, value, n);
	return (uint32_t)sizeof(r->head) + r->head.length;
}

/* For which the client has room. */
static uint32_t value_max(const struct session *s)
{
	return (uint32_t)(uintptr_t)s->user;
}

/* The host has answered. A value that no message holds goes on from where it came. */
static int done(void *arg, unsigned slot, int status, struct kv_slot *ks, const uint8_t *value,
		uint32_t n)
{
	struct runner *r = arg;
	struct message *m = &r->message[slot];
	const struct kv_call *c = (const void *)m->in;
	struct front *f = m->session->server->user;
	struct kv_reply *reply = (void *)m->out;
	const struct kv_record *record;
	struct ibv_sge sge;
	uint32_t length;

	if (ks->repeats)
		f->stale = true;
	if (n > KV_MESSAGE - sizeof(*reply) && n > value_max(m->session))
		status = -EMSGSIZE;
	if (status)
		n = 0;
	if (status || n <= KV_MESSAGE - sizeof(*reply)) {
		session_reply(m->session, slot, reply_with(m, status, value, n));
		return 0;
	}
	length = reply_with(m, 0, NULL, 0);
	record = (const void *)(value - ks->key.length - sizeof(*record));
	reply->in_room = kv_record_size(ks->key.length, n);
	reply->version = record->version;
	sge = (struct ibv_sge){ .addr = (uintptr_t)record,
				.length = reply->in_room,
				.lkey = r->host.reads.mr->lkey };
	if (!m->session->left_at && session_write(m->session, &sge, c->room, c->room_rkey, 0))
		reply->head.status = EIO;
	session_reply(m->session, slot, length);
	return 0;
}

static uint32_t handle(struct session *s, struct message *m)
{
	struct front *f = s->server->user;
	struct runner *r = &f->runner[s->worker->index];
	const struct kv_call *c = (const void *)m->in;
	struct kv_entry e;
	struct kv_key key;
	bool found;

	if (m->length < sizeof(*c) || c->key_length > KV_KEY_MAX ||
	    m->length - sizeof(*c) < c->key_length)
		return 0;
	key.length = (uint8_t)c->key_length;
	memcpy(key.octets, c + 1, key.length);
	found = c->head.op != KV_GET_AFAR && find(f, &key, &e);
	if (c->head.op == KV_LOCATE)
		return found ? reply_with(m, 0, &e, sizeof(e)) : reply_with(m, -ENOENT, NULL, 0);
	if (c->head.op != KV_GET && c->head.op != KV_GET_AFAR)
		return reply_with(m, -EINVAL, NULL, 0);
	r->message[m->slot] = *m;
	if (found ? kv_get_entry(&r->host, m->slot, &key, &e) : kv_get(&r->host, m->slot, &key))
		return reply_with(m, -EIO, NULL, 0);
	return SERVER_LATER;
}

static bool take(struct worker *w, const struct ibv_wc *wc)
{
	struct front *f = w->server->user;
	struct runner *r = &f->runner[w->index];

	if (wc->qp_num != r->host.conn.qp->qp_num)
		return false;
	if (kv_client_take(&r->host, wc))
		lose_host(f);
	return true;
}

/* What the round has made for the host. */
static void look(struct worker *w)
{
	struct front *f = w->server->user;

	if (conn_flush(&f->runner[w->index].host.conn, NULL))
		lose_host(f);
}

/* ---- sessions ---------------------------------------------------------------------------- */

static int join(struct session *s, struct hello *hello)
{
	struct front *f = s->server->user;
	struct kv_wish wish;
	struct kv_offer offer = f->offer;

	memcpy(&wish, hello->octets, sizeof(wish));
	if (wish.value_max > VALUE_MAX)
		return -EMSGSIZE;
	s->user = (void *)(uintptr_t)wish.value_max;
	offer.base = (uintptr_t)f->index.base;
	offer.rkey = f->offered->rkey;
	offer.staging = 0;
	memset(hello, 0, sizeof(*hello));
	memcpy(hello->octets, &offer, sizeof(offer));
	return 0;
}

static void leave(struct session *s)
{
	(void)s;
}

/* ---- life -------------------------------------------------------------------------------- */

static int start(struct worker *w)
{
	struct front *f = w->server->user;
	struct runner *r = &f->runner[w->index];
	struct kv_client_config config = { .common = &f->options.common,
					   .server = f->options.common.server,
					   .device = &f->server.device,
					   .comp = &w->comp,
					   .window = SLOTS,
					   .way = KV_READS,
					   .value_max = VALUE_MAX,
					   .done = done,
					   .arg = r };

	return kv_client_open(&r->host, &config);
}

static void stop(struct worker *w)
{
	struct front *f = w->server->user;

	kv_client_close(&f->runner[w->index].host);
}

/* A key of the copy that lets the host's octets in lets in anybody's who has it. So clients get
 * another one. */
static int open_index(struct front *f)
{
	size_t size = (size_t)f->offer.buckets * sizeof(struct kv_bucket);
	int err = region_open(&f->index, &f->server.device, size, REGION_SINK);

	if (err)
		return err;
	f->offered = ibv_reg_mr(f->server.device.pd, f->index.base, size, IBV_ACCESS_REMOTE_READ);
	return f->offered ? 0 : log_errno("cannot register %zu octets", size);
}

static int open_copy(struct front *f)
{
	struct kv_client_config config = { .common = &f->options.common,
					   .server = f->options.common.server,
					   .device = &f->server.device,
					   .comp = &f->comp,
					   .window = 1,
					   .value_max = 64,
					   .done = nothing_done };
	int err = comp_open(&f->comp, &f->server.device, 2 * KV_CLIENT_CQE, true);

	if (!err)
		err = kv_client_open(&f->fresh, &config);
	if (err)
		return err;
	f->offer = f->fresh.offer;
	err = open_index(f);
	if (!err)
		err = read_index(f);
	if (!err && pthread_create(&f->thread, NULL, keep_fresh, f))
		err = log_errno("no thread");
	f->stop = err; /* then there is no thread */
	return err;
}

static void close_front(struct front *f)
{
	if (!f->stop) {
		f->stop = true;
		pthread_join(f->thread, NULL);
	}
	kv_client_close(&f->fresh);
	comp_close(&f->comp);
	if (f->offered)
		ibv_dereg_mr(f->offered);
	region_close(&f->index);
	free(f->runner);
	server_close(&f->server);
}

int kv_front(const struct kv_options *o)
{
	static const struct server_ops ops = { .join = join,
					       .handle = handle,
					       .leave = leave,
					       .start = start,
					       .stop = stop,
					       .take = take,
					       .look = look };
	struct server_config config = { .service = KV_SERVICE,
					.host = o->common.bind,
					.port = o->soc_port ? o->soc_port : o->common.server.port,
					.workers = o->common.threads,
					.events = o->common.events,
					.message = KV_MESSAGE,
					.slots = SLOTS,
					.entries = KV_CLIENT_CQE * SLOTS };
	struct front f = { .options = *o, .stop = true };
	int err = server_open(&f.server, &config, &ops);

	f.server.user = &f;
	f.runner = calloc(o->common.threads, sizeof(*f.runner));
	if (!err && !f.runner)
		err = -ENOMEM;
	f.stop = true;
	if (!err) {
		f.stop = false;
		err = open_copy(&f);
	}
	if (!err)
		err = server_run(&f.server);
	if (!err && f.alone)
		err = -ECONNRESET;
	close_front(&f);
	return err;
}
