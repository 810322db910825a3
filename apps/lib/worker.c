/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "clock.h"
#include "log.h"
#include "worker.h"

#define BATCH	   32
#define WAIT_MS	   50
#define FLUSH_NS   1000000000u /* what has not completed by then never will */
#define TAKE_NS	   2000000000u /* who takes no reply for so long may be disconnected */
#define REPLY_FLAG (1ull << 32)
#define WRITE_FLAG (1ull << 33)
#define WRITES_AT  34 /* wr_id: from this bit on the WRITEs that are complete with it */

/* ---- buffers ----------------------------------------------------------------------------- */

static size_t slot_at(const struct worker *w, uint32_t slot)
{
	return (size_t)slot * 2 * w->server->config.message;
}

static int post_slot(struct worker *w, uint32_t slot)
{
	struct ibv_sge sge = region_sge(&w->ring, slot_at(w, slot), w->server->config.message);
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(w->srq, &wr, &bad);
}

/* The replies that were not posted complete no more. */
static void flush(struct worker *w, struct session *s)
{
	unsigned all = s->conn.listed, posted = all;

	if (conn_flush(&s->conn, &posted) == 0)
		return;
	for (unsigned i = posted; i < all; i++) {
		if (!(s->conn.list[i].wr_id & REPLY_FLAG))
			continue;
		s->sending--;
		post_slot(w, (uint32_t)s->conn.list[i].wr_id);
	}
}

static void flush_all(struct worker *w)
{
	for (unsigned i = 0; i < w->n_touched; i++) {
		w->touched[i]->touched = false;
		flush(w, w->touched[i]);
	}
	w->n_touched = 0;
}

/* The session's next request goes with the others of this round, or those go first if they are too
 * many. */
static void make_room(struct worker *w, struct session *s)
{
	if (s->conn.listed == CONN_LIST - 1)
		flush(w, s);
	if (!s->touched && w->n_touched == SESSIONS_TOUCHED)
		flush_all(w);
	if (!s->touched)
		w->touched[w->n_touched++] = s;
	s->touched = true;
}

/* The next request has a completion: how many WRITEs that one tells of. */
static uint64_t tell_writes(struct session *s)
{
	uint64_t n = s->unsaid;

	s->unsaid = 0;
	return n << WRITES_AT;
}

static int send_reply(struct worker *w, struct session *s, uint32_t slot, uint32_t length)
{
	struct ibv_sge sge =
		region_sge(&w->ring, slot_at(w, slot) + w->server->config.message, length);
	int err;

	make_room(w, s);
	conn_next(&s->conn, IBV_WR_SEND, REPLY_FLAG | tell_writes(s) | slot,
		  IBV_SEND_SIGNALED | conn_inline(&s->conn, length), sge);
	err = conn_add(&s->conn);
	if (!s->sending)
		s->taken_at = w->now;
	s->sending += !err;
	return err;
}

/* So many are told of by one completion: few fill the CQ, and no more than a part of the send queue
 * waits for one. */
static uint32_t writes_each(const struct session *s)
{
	return s->server->config.slots / 4 + 1;
}

int session_write(struct session *s, struct ibv_sge *sge, uint64_t to, uint32_t rkey,
		  unsigned flags)
{
	uint64_t wr_id = WRITE_FLAG;
	struct ibv_send_wr *wr;

	make_room(s->worker, s);
	s->writing++;
	if (++s->unsaid >= writes_each(s)) {
		wr_id |= tell_writes(s);
		flags |= IBV_SEND_SIGNALED;
	}
	wr = conn_next(&s->conn, IBV_WR_RDMA_WRITE, wr_id, flags, *sge);
	wr->wr.rdma.remote_addr = to;
	wr->wr.rdma.rkey = rkey;
	return conn_add(&s->conn);
}

uint32_t session_room(const struct session *s)
{
	uint32_t all = SENDS_EACH * s->server->config.slots, used = s->writing + s->sending;

	return used < all ? all - used : 0;
}

/* ---- messages ---------------------------------------------------------------------------- */

static struct session *session_of(struct worker *w, uint32_t qp_num)
{
	struct session *s = w->by_qp[qp_num % SESSION_HASH];

	while (s && s->conn.qp->qp_num != qp_num)
		s = s->next;
	return s;
}

static void on_message(struct worker *w, struct session *s, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id, length;
	uint8_t *in = w->ring.base + slot_at(w, slot);
	struct message m = { .session = s,
			     .in = in,
			     .length = wc->byte_len,
			     .has_imm = wc->wc_flags & IBV_WC_WITH_IMM,
			     .out = in + w->server->config.message,
			     .slot = slot };

	if (m.has_imm)
		m.imm = ntohl(wc->imm_data);
	length = w->server->ops->handle(s, &m);
	w->served++;
	if (length == SERVER_LATER) {
		s->waiting++;
		return;
	}
	if (!length || send_reply(w, s, slot, length))
		post_slot(w, slot);
}

void session_reply(struct session *s, uint32_t slot, uint32_t length)
{
	s->waiting--;
	if (!length || s->left_at || send_reply(s->worker, s, slot, length))
		post_slot(s->worker, slot);
}

/* A completion without a session is of one that has gone: its buffers serve others. */
static void on_completion(struct worker *w, const struct ibv_wc *wc)
{
	struct session *s = session_of(w, wc->qp_num);
	bool reply = wc->wr_id & REPLY_FLAG;

	if (!s && w->server->ops->take && w->server->ops->take(w, wc))
		return;
	if (s)
		s->writing -= (uint32_t)(wc->wr_id >> WRITES_AT);
	if (wc->wr_id & WRITE_FLAG)
		return; /* the application's; if it failed, what comes after it fails, too */
	if (reply && s) {
		s->sending--;
		s->taken_at = w->now;
	}
	if (wc->status || reply || !s || s->left_at)
		post_slot(w, (uint32_t)wc->wr_id);
	else
		on_message(w, s, wc);
}

/* ---- sessions ---------------------------------------------------------------------------- */

void worker_add(struct worker *w, struct session *s)
{
	struct session **head = &w->by_qp[s->conn.qp->qp_num % SESSION_HASH];

	pthread_mutex_lock(&w->lock);
	s->next = *head;
	*head = s;
	pthread_mutex_unlock(&w->lock);
}

void worker_end(struct session *s)
{
	pthread_mutex_lock(&s->worker->lock);
	if (!s->left_at)
		s->left_at = clock_ns();
	pthread_mutex_unlock(&s->worker->lock);
}

static void destroy(struct session *s)
{
	s->server->ops->leave(s);
	conn_close(&s->conn);
	free(s);
}

static void drop(struct session *s)
{
	log_line("a client takes no replies, and %u wait for it: disconnected", s->sending);
	s->dropped = true;
	rdma_disconnect(s->conn.id);
}

/* The replies that wait for clients, of all of them or, to be dropped, of those who take none. */
static uint32_t waiting_replies(struct worker *w, bool drop_them)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < SESSION_HASH; i++)
		for (struct session *s = w->by_qp[i]; s; s = s->next) {
			sum += s->sending;
			if (drop_them && s->sending && !s->left_at && !s->dropped &&
			    w->now - s->taken_at > TAKE_NS)
				drop(s);
		}
	return sum;
}

/* Few receives are left for those who do take their replies. */
static void drop_those_who_take_none(struct worker *w)
{
	uint32_t slots = w->server->config.slots;

	if (waiting_replies(w, false) > slots - slots / 8)
		waiting_replies(w, true);
}

/* Those that have ended and whose replies have all come back. */
static void sweep(struct worker *w, bool all)
{
	uint64_t now = clock_ns();

	for (unsigned i = 0; i < SESSION_HASH; i++) {
		struct session **at = &w->by_qp[i];

		while (*at) {
			struct session *s = *at;

			if (!all && (!s->left_at || s->waiting ||
				     (s->sending && now - s->left_at < FLUSH_NS))) {
				at = &s->next;
				continue;
			}
			*at = s->next;
			destroy(s);
		}
	}
}

/* ---- thread ------------------------------------------------------------------------------ */

static void *work(void *arg)
{
	struct worker *w = arg;
	struct ibv_wc wc[BATCH];
	int wait = w->server->config.spin ? 0 : WAIT_MS;
	uint64_t swept = w->now;
	bool yield = false;

	while (!server_stopped()) {
		int n = comp_wait(&w->comp, wc, BATCH, wait);

		pthread_mutex_lock(&w->lock);
		w->now = clock_ns();
		for (int i = 0; i < n; i++)
			on_completion(w, &wc[i]);
		if (w->server->ops->look)
			w->server->ops->look(w);
		flush_all(w);
		yield = !n && w->server->config.spin && w->server->config.events;
		if (w->now - swept > WAIT_MS * 1000000u) {
			drop_those_who_take_none(w);
			sweep(w, false);
			swept = w->now;
		}
		pthread_mutex_unlock(&w->lock);
		if (n < 0)
			break;
		if (yield) /* it cannot sleep, but others may have the core */
			sched_yield();
	}
	return NULL;
}

int worker_start(struct worker *w, struct server *s, unsigned index)
{
	const struct server_config *c = &s->config;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = c->slots, .max_sge = 1 } };
	int err;

	w->server = s;
	w->index = index;
	w->now = clock_ns();
	pthread_mutex_init(&w->lock, NULL);
	err = comp_open(&w->comp, &s->device, 4 * c->slots + c->entries, c->events);
	if (!err)
		err = region_open(&w->ring, &s->device, (size_t)c->slots * 2 * c->message,
				  REGION_LOCAL);
	if (err)
		return err;
	w->srq = ibv_create_srq(s->device.pd, &attr);
	if (!w->srq)
		return log_errno("cannot make an SRQ of %u receives", c->slots);
	for (uint32_t i = 0; !err && i < c->slots; i++)
		err = post_slot(w, i) ? log_errno("cannot post a receive") : 0;
	if (!err && s->ops->start)
		err = s->ops->start(w);
	if (err)
		return err;
	if (pthread_create(&w->thread, NULL, work, w))
		return log_errno("cannot start a worker");
	return 0;
}

void worker_close(struct worker *w)
{
	pthread_join(w->thread, NULL);
	sweep(w, true);
	if (w->server->ops->stop)
		w->server->ops->stop(w);
	ibv_destroy_srq(w->srq);
	comp_close(&w->comp);
	region_close(&w->ring);
	pthread_mutex_destroy(&w->lock);
}
