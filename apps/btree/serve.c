/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "btree.h"
#include "report.h"
#include "log.h"
#include "server.h"
#include "tree.h"
#include "values.h"
#include "wire.h"

#define SLOTS	   1024
#define WINDOW_MAX 4096u
#define ANSWER	   2u	 /* requests of one answer, at most */
#define STRIDE	   7919u /* a prime: keys are put in no order, which leaves pages two thirds full */

/* A session's mailboxes, its replies, and room for the items of scans. */
struct box {
	struct session *session;
	struct btree_wish wish;
	struct region memory;
	uint32_t *number;   /* of each slot, the next call's */
	uint32_t next_slot; /* where to look first: behind the last one that there was room for */
	struct box *next;
};

struct btree_server {
	const struct btree_options *options;
	struct region memory;
	struct tree tree;
	struct worker_boxes {
		pthread_mutex_t lock;
		struct box *first;
	} * boxes; /* of each worker */
};

static struct mail *call_in(const struct box *b, uint32_t slot)
{
	return (struct mail *)b->memory.base + slot;
}

static size_t reply_at(const struct box *b, uint32_t slot)
{
	return ((size_t)b->wish.window + slot) * sizeof(struct mail);
}

static size_t items_at(const struct box *b, uint32_t slot)
{
	return 2 * (size_t)b->wish.window * sizeof(struct mail) +
	       (size_t)slot * BTREE_SCAN_MAX * sizeof(struct page_item);
}

/* ---- sessions ---------------------------------------------------------------------------- */

static int open_box(struct box *b, const struct server *s)
{
	uint32_t window = b->wish.window;

	if (!window || window > WINDOW_MAX)
		return -EINVAL;
	b->number = malloc(window * sizeof(*b->number));
	if (!b->number)
		return -ENOMEM;
	for (uint32_t i = 0; i < window; i++)
		b->number[i] = 1;
	return region_open(&b->memory, &s->device, items_at(b, window), REGION_WRITE);
}

static void close_box(struct box *b)
{
	region_close(&b->memory);
	free(b->number);
	free(b);
}

static int join(struct session *s, struct hello *hello)
{
	struct btree_server *bs = s->server->user;
	struct worker_boxes *boxes = &bs->boxes[s->worker->index];
	struct box *b = calloc(1, sizeof(*b));
	struct btree_offer offer;
	int err;

	if (!b)
		return -ENOMEM;
	b->session = s;
	memcpy(&b->wish, hello->octets, sizeof(b->wish));
	err = open_box(b, s->server);
	if (err) {
		close_box(b);
		return err;
	}
	s->user = b;
	offer = (struct btree_offer){ .page = bs->tree.page,
				      .base = (uintptr_t)bs->memory.base,
				      .rkey = bs->memory.mr->rkey,
				      .mail_rkey = b->memory.mr->rkey,
				      .mail = bs->options->mail ? (uintptr_t)b->memory.base : 0 };
	memset(hello, 0, sizeof(*hello));
	memcpy(hello->octets, &offer, sizeof(offer));
	pthread_mutex_lock(&boxes->lock);
	b->next = boxes->first;
	boxes->first = b;
	pthread_mutex_unlock(&boxes->lock);
	return 0;
}

static void leave(struct session *s)
{
	struct btree_server *bs = s->server->user;
	struct worker_boxes *boxes = &bs->boxes[s->worker->index];
	struct box *b = s->user, **at = &boxes->first;

	pthread_mutex_lock(&boxes->lock);
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	pthread_mutex_unlock(&boxes->lock);
	close_box(b);
}

/* ---- calls ------------------------------------------------------------------------------- */

static int scan(struct btree_server *bs, struct box *b, const struct mail *call, struct mail *reply)
{
	struct page_item *item = (struct page_item *)(b->memory.base + items_at(b, call->slot));
	uint32_t most = call->count < BTREE_SCAN_MAX ? call->count : BTREE_SCAN_MAX, octets;
	struct ibv_sge sge;

	reply->count = tree_scan(&bs->tree, call->key, call->until, item, most);
	octets = reply->count * (uint32_t)sizeof(*item);
	reply->items_check = XXH3_64bits(item, octets);
	if (!octets)
		return 0;
	sge = region_sge(&b->memory, items_at(b, call->slot), octets);
	return session_write(b->session, &sge, btree_room(&b->wish, call->slot), b->wish.rkey, 0)
		       ? -EIO
		       : 0;
}

/* `out` may be where the client can write: only what is complete goes there, and is not read again.
 */
static void answer(struct box *b, const struct mail *call, struct mail *out)
{
	struct btree_server *bs = b->session->server->user;
	uint64_t value = call->value;
	struct mail reply;
	int err = -EINVAL;

	reply = (struct mail){ .key = call->key, .number = call->number, .slot = call->slot };
	switch (call->type) {
	case MAIL_GET:
		err = tree_get(&bs->tree, call->key, &value);
		break;
	case MAIL_PUT:
		err = tree_put(&bs->tree, call->key, call->value);
		break;
	case MAIL_DELETE:
		err = tree_delete(&bs->tree, call->key);
		break;
	case MAIL_SCAN:
		err = scan(bs, b, call, &reply);
		break;
	default:
		break;
	}
	reply.value = value;
	reply.status = (uint32_t)-err;
	mail_seal(&reply, MAIL_REPLY);
	memcpy(out, &reply, sizeof(reply));
}

/* By SEND. */
static uint32_t handle(struct session *s, struct message *m)
{
	const struct rpc_head *head = (const void *)m->in;
	struct rpc_head *out = (void *)m->out;
	struct box *b = s->user;
	struct mail call;

	if (m->length != sizeof(*head) + sizeof(call) || head->slot >= b->wish.window)
		return 0;
	memcpy(&call, head + 1, sizeof(call));
	call.slot = head->slot;
	answer(b, &call, (struct mail *)(out + 1));
	*out = (struct rpc_head){ .op = head->op, .slot = head->slot, .length = sizeof(call) };
	return sizeof(*out) + sizeof(call);
}

/* By WRITE. */
static int post_reply(struct box *b, uint32_t slot)
{
	struct ibv_sge sge = region_sge(&b->memory, reply_at(b, slot), sizeof(struct mail));

	return session_write(b->session, &sge, b->wish.base + slot * sizeof(struct mail),
			     b->wish.rkey, conn_inline(&b->session->conn, sge.length));
}

/* While there is room for an answer, which may be a scan's items and a reply; what is left waits
 * where it is, and comes first the next time. */
static unsigned look_into(struct box *b)
{
	uint32_t slot = b->next_slot, window = b->wish.window;
	struct mail call;
	unsigned n = 0;

	for (uint32_t i = 0; i < window; i++, slot = slot + 1 < window ? slot + 1 : 0) {
		if (!mail_take(call_in(b, slot), b->number[slot], &call))
			continue;
		if (session_room(b->session) < ANSWER)
			break;
		call.slot = slot;
		answer(b, &call, (struct mail *)(b->memory.base + reply_at(b, slot)));
		if (post_reply(b, slot))
			break;
		b->number[slot]++;
		n++;
	}
	b->next_slot = slot;
	return n;
}

static void look(struct worker *w)
{
	struct btree_server *bs = w->server->user;
	struct worker_boxes *boxes = &bs->boxes[w->index];

	pthread_mutex_lock(&boxes->lock);
	for (struct box *b = boxes->first; b; b = b->next)
		if (!b->session->left_at && b->session->conn.qp)
			w->served += look_into(b);
	pthread_mutex_unlock(&boxes->lock);
}

/* ---- life -------------------------------------------------------------------------------- */

/* Pages for the keys and as many again, two thirds full. */
static uint64_t pages_for(const struct btree_options *o)
{
	uint64_t each = page_capacity((uint32_t)o->page) / 2;

	return o->pages ? o->pages : 2 * (o->keys / each) + 1024;
}

static int load(struct tree *t, const struct btree_options *o)
{
	uint64_t n = o->keys, step = n % STRIDE ? STRIDE : 1;
	int err = 0;

	for (uint64_t i = 0; !err && i < n; i++) {
		uint64_t number = o->first + i * step % n;

		err = tree_put(t, btree_key(number), value_of(number, 0));
	}
	if (err)
		log_line("no room for %lu keys; give more --pages", n);
	return err;
}

static int open_tree(struct btree_server *bs, const struct server *s)
{
	const struct btree_options *o = bs->options;
	uint64_t pages = pages_for(o);
	int err;

	bs->boxes = calloc(s->config.workers, sizeof(*bs->boxes));
	if (!bs->boxes)
		return -ENOMEM;
	for (unsigned i = 0; i < s->config.workers; i++)
		pthread_mutex_init(&bs->boxes[i].lock, NULL);
	err = region_open(&bs->memory, &s->device, pages * o->page, REGION_READ);
	if (err)
		return err;
	tree_open(&bs->tree, bs->memory.base, pages, (uint32_t)o->page);
	return load(&bs->tree, o);
}

static int report(struct btree_server *bs)
{
	struct report r;

	report_open(&r, "uwarp-btree serve");
	report_count(&r, "keys", bs->tree.keys);
	report_count(&r, "levels", tree_levels(&bs->tree));
	report_count(&r, "pages", bs->tree.used - bs->tree.free_count);
	report_count(&r, "splits", bs->tree.splits);
	report_count(&r, "merges", bs->tree.merges);
	return report_close(&r, &bs->options->common, NULL);
}

int btree_serve(const struct btree_options *o)
{
	struct server_ops ops = {
		.join = join, .handle = handle, .leave = leave, .look = o->mail ? look : NULL
	};
	struct server_config config = { .service = BTREE_SERVICE,
					.host = o->common.bind,
					.port = o->common.server.port,
					.workers = o->common.threads,
					.events = o->common.events,
					.spin = o->mail,
					.message = BTREE_MESSAGE,
					.slots = SLOTS };
	struct btree_server bs = { .options = o };
	struct server s;
	int err = server_open(&s, &config, &ops);

	s.user = &bs;
	if (!err)
		err = open_tree(&bs, &s);
	if (!err)
		err = server_run(&s);
	if (!err && o->common.json)
		err = report(&bs);
	if (bs.tree.base)
		tree_close(&bs.tree);
	region_close(&bs.memory);
	free(bs.boxes);
	server_close(&s);
	return err;
}
