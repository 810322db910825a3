/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "clock.h"
#include "descend.h"
#include "log.h"

#define BATCH	    32
#define SIGNAL_EACH 16u
#define SENDS_EACH  4u		 /* requests that the send queue takes, for each slot */
#define MAIL_WRITE  (3ull << 40) /* wr_id */
#define LEAVES_EACH 16u		 /* leaves that are known for each inner page that is kept */
#define LOOK_AT	    1024u	 /* looks at the mailboxes until the clock is read */

/* ---- set-up ------------------------------------------------------------------------------ */

static int ready(struct conn *conn, void *arg)
{
	return rpc_ready(arg, conn);
}

static int open_memory(struct btree_client *c, struct link *l)
{
	unsigned window = c->options->common.window;
	int err = rpc_open(&l->rpc, &c->device, window, BTREE_MESSAGE);

	if (!err)
		err = region_open(&l->calls, &c->device, window * sizeof(struct mail),
				  REGION_LOCAL);
	if (!err)
		err = region_open(&l->replies, &c->device, btree_replies_size(window),
				  REGION_WRITE);
	l->number = calloc(window, sizeof(*l->number));
	return err ? err : l->number ? 0 : -ENOMEM;
}

static int check_offer(const struct btree_client *c, const struct link *l)
{
	if (c->options->way == BY_MAIL && !l->offer.mail) {
		log_line("the server does not look into mailboxes; start it with --mail, or use "
			 "--by "
			 "send");
		return -EPROTO;
	}
	return 0;
}

static int open_link(struct btree_client *c, struct link *l, const struct server_name *to)
{
	unsigned window = c->options->common.window;
	struct conn_wish wish = { .service = BTREE_SERVICE,
				  .cq = c->comp.cq,
				  .sends = SENDS_EACH * window + SIGNAL_EACH,
				  .receives = window + 1,
				  .inline_data = BTREE_MESSAGE,
				  .ready = ready,
				  .arg = &l->rpc };
	struct hello hello = { { 0 } };
	int err = open_memory(c, l);

	if (err)
		return err;
	l->wish = (struct btree_wish){ .window = window,
				       .base = (uintptr_t)l->replies.base,
				       .rkey = l->replies.mr->rkey };
	memcpy(hello.octets, &l->wish, sizeof(l->wish));
	err = conn_open(&l->conn, &c->device, to, &wish, &hello);
	memcpy(&l->offer, hello.octets, sizeof(l->offer));
	if (!err)
		err = check_offer(c, l);
	if (!err)
		err = region_open(&l->pages, &c->device, (size_t)window * l->offer.page,
				  REGION_SINK);
	if (!err)
		err = page_cache_open(&l->kept, l->offer.page, c->options->cache);
	return err ? err
		   : leaf_map_open(&l->leaves, l->offer.page, LEAVES_EACH * c->options->cache);
}

int btree_client_open(struct btree_client *c, const struct btree_options *o)
{
	struct server_name soc = { o->soc, o->soc_port ? o->soc_port : o->common.server.port,
				   o->common.server.patience };
	int err;

	c->options = o;
	c->slot = calloc(o->common.window, sizeof(*c->slot));
	if (!c->slot)
		return -ENOMEM;
	err = device_open_to(&c->device, o->common.server.host, o->common.server.port);
	if (!err)
		err = comp_open(&c->comp, &c->device, LINKS * 6 * o->common.window + 64,
				o->common.events);
	c->links = 1;
	if (!err)
		err = open_link(c, &c->link[0], &o->common.server);
	if (!err && o->soc) {
		c->links = 2;
		err = open_link(c, &c->link[1], &soc);
	}
	return err;
}

void btree_client_close(struct btree_client *c)
{
	for (unsigned i = 0; i < LINKS; i++) {
		struct link *l = &c->link[i];

		conn_close(&l->conn);
		rpc_close(&l->rpc);
		region_close(&l->pages);
		page_cache_close(&l->kept);
		leaf_map_close(&l->leaves);
		region_close(&l->calls);
		region_close(&l->replies);
		free(l->number);
	}
	comp_close(&c->comp);
	device_close(&c->device);
	free(c->slot);
}

/* ---- calls ------------------------------------------------------------------------------- */

/* Into the server's mailbox; its reply comes into ours. */
static int post_mail(struct btree_client *c, unsigned slot)
{
	struct btree_slot *s = &c->slot[slot];
	struct link *l = &c->link[s->link];
	struct mail *call = (struct mail *)l->calls.base + slot;
	struct ibv_sge sge = region_sge(&l->calls, slot * sizeof(*call), sizeof(*call));
	struct ibv_send_wr *wr = conn_next(&l->conn, IBV_WR_RDMA_WRITE, MAIL_WRITE,
					   conn_inline(&l->conn, sizeof(*call)), sge);

	s->step = STEP_MAIL;
	s->number = s->call.number = ++l->number[slot];
	*call = s->call;
	mail_seal(call, s->type);
	if (++l->written % SIGNAL_EACH == 0)
		wr->send_flags |= IBV_SEND_SIGNALED;
	wr->wr.rdma.remote_addr = l->offer.mail + slot * sizeof(*call);
	wr->wr.rdma.rkey = l->offer.mail_rkey;
	c->mails++;
	return conn_add(&l->conn);
}

static int call(struct btree_client *c, unsigned slot)
{
	struct btree_slot *s = &c->slot[slot];
	struct link *l = &c->link[s->link];
	struct mail *m;

	if (c->options->way == BY_MAIL)
		return post_mail(c, slot);
	s->step = STEP_SEND;
	m = (struct mail *)((struct rpc_head *)rpc_room(&l->rpc, slot) + 1);
	*m = s->call;
	mail_seal(m, s->type);
	return rpc_call(&l->rpc, slot, (uint8_t)s->type, sizeof(*m));
}

static struct btree_slot *begin(struct btree_client *c, unsigned slot, unsigned link,
				enum mail_type type)
{
	c->slot[slot] = (struct btree_slot){ .type = type, .link = (uint8_t)link };
	return &c->slot[slot];
}

int btree_get(struct btree_client *c, unsigned slot, unsigned link, uint64_t key)
{
	struct btree_slot *s = begin(c, slot, link, MAIL_GET);

	s->key = s->call.key = key;
	return c->options->way == BY_READS ? descend_begin(c, slot) : call(c, slot);
}

int btree_put(struct btree_client *c, unsigned slot, unsigned link, uint64_t key, uint64_t value)
{
	struct btree_slot *s = begin(c, slot, link, MAIL_PUT);

	s->call.key = key;
	s->call.value = value;
	return call(c, slot);
}

int btree_delete(struct btree_client *c, unsigned slot, unsigned link, uint64_t key)
{
	begin(c, slot, link, MAIL_DELETE)->call.key = key;
	return call(c, slot);
}

int btree_scan(struct btree_client *c, unsigned slot, unsigned link,
	       const struct page_item *from_until, unsigned n)
{
	struct btree_slot *s = begin(c, slot, link, MAIL_SCAN);

	s->call.key = from_until->key;
	s->call.until = from_until->value;
	s->call.count = n;
	return call(c, slot);
}

/* ---- replies ----------------------------------------------------------------------------- */

static const struct page_item *items_of(const struct link *l, unsigned slot)
{
	return (const void *)(l->replies.base + (btree_room(&l->wish, slot) - l->wish.base));
}

static int finish(struct btree_client *c, unsigned slot, const struct mail *reply)
{
	struct btree_slot *s = &c->slot[slot];
	struct page_item one = { reply->key, reply->value };
	bool scan = s->type == MAIL_SCAN;

	s->step = STEP_IDLE;
	return c->done(c->arg, slot, -(int)reply->status,
		       scan ? items_of(&c->link[s->link], slot) : &one, scan ? reply->count : 1);
}

/* A scan's items are only there when they are what their check says. */
static bool items_came(const struct btree_client *c, unsigned slot, const struct mail *reply)
{
	const struct btree_slot *s = &c->slot[slot];

	if (s->type != MAIL_SCAN || reply->status || reply->count > BTREE_SCAN_MAX)
		return true;
	return XXH3_64bits(items_of(&c->link[s->link], slot),
			   reply->count * sizeof(struct page_item)) == reply->items_check;
}

/* Each reply may lead to one more call. A reply may be here before the completion of its call is
 * taken, so those whose replies are here are no measure. */
static bool has_room(const struct btree_client *c)
{
	unsigned window = c->options->common.window;

	for (unsigned i = 0; i < c->links; i++)
		if (c->link[i].written - c->link[i].complete >
		    (SENDS_EACH - 1) * window + SIGNAL_EACH)
			return false;
	return true;
}

static int look_at_mail(struct btree_client *c, unsigned *taken)
{
	int err = 0;

	if (!has_room(c))
		return 0;
	for (unsigned i = 0; !err && c->mails && i < c->options->common.window; i++) {
		struct btree_slot *s = &c->slot[i];
		struct mail reply;

		if (s->step != STEP_MAIL ||
		    !mail_take((struct mail *)c->link[s->link].replies.base + i, s->number,
			       &reply) ||
		    !items_came(c, i, &reply))
			continue;
		if (!(*taken)++)
			comp_mark(&c->comp);
		c->mails--;
		err = finish(c, i, &reply);
	}
	return err;
}

static int on_reply(struct btree_client *c, struct link *l, const struct ibv_wc *wc)
{
	const struct rpc_head *h = rpc_reply(&l->rpc, wc);
	const struct mail *m = (const void *)(h + 1);
	int err;

	if (!h || h->length != sizeof(*m) || c->slot[h->slot].step != STEP_SEND ||
	    !items_came(c, h->slot, m))
		return -EPROTO;
	err = finish(c, h->slot, m);
	return err ? err : rpc_done(&l->rpc, wc);
}

static int on_page(struct btree_client *c, unsigned slot)
{
	struct mail reply = { .key = c->slot[slot].key };
	int err = descend_page(c, slot, &reply.value);

	if (err == -EINPROGRESS)
		return 0;
	if (err && err != -ENOENT)
		return err;
	reply.status = (uint32_t)-err;
	return finish(c, slot, &reply);
}

static int on_completion(struct btree_client *c, const struct ibv_wc *wc)
{
	struct link *l = &c->link[c->links > 1 && wc->qp_num == c->link[1].conn.qp->qp_num];

	if (wc->status) {
		log_line("the connection failed: %s", ibv_wc_status_str(wc->status));
		return -ECONNRESET;
	}
	if (wc->wr_id == MAIL_WRITE)
		l->complete += SIGNAL_EACH;
	if (wc->wr_id == MAIL_WRITE || (wc->wr_id & ~0xffffull) == RPC_CALL)
		return 0;
	if ((wc->wr_id & ~0xffffull) == RPC_REPLY)
		return on_reply(c, l, wc);
	return on_page(c, (unsigned)wc->wr_id);
}

/* One look at completions and mailboxes. Returns how many have come, or a negative errno. */
static int look(struct btree_client *c, int milliseconds)
{
	struct ibv_wc wc[BATCH];
	unsigned taken = 0;
	int n, err = 0;

	for (unsigned i = 0; !err && i < c->links; i++)
		err = conn_flush(&c->link[i].conn, NULL);
	if (err)
		return err;
	n = comp_wait(&c->comp, wc, comp_half(c->options->common.window, BATCH), milliseconds);
	err = n < 0 ? n : 0;
	for (int i = 0; !err && i < n; i++)
		err = on_completion(c, &wc[i]);
	if (!err)
		err = look_at_mail(c, &taken);
	return err ? err : n + (int)taken;
}

int btree_poll(struct btree_client *c, int milliseconds)
{
	uint64_t end = 0;

	if (!c->mails) {
		int n = look(c, milliseconds);

		return n > 0 ? 0 : n ? n : -ETIMEDOUT;
	}
	for (unsigned round = 1;; round++) {
		int n = look(c, 0);

		if (n)
			return n > 0 ? 0 : n;
		if (round % LOOK_AT)
			continue;
		end = end ? end : clock_ns() + (uint64_t)milliseconds * 1000000u;
		if (clock_ns() > end)
			return -ETIMEDOUT;
	}
}
