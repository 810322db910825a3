/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients: each keeps `window` requests for tickets under way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "report.h"
#include "rpc.h"
#include "log.h"
#include "seq.h"
#include "team.h"

#define BATCH	32
#define WAIT_MS 5000 /* for any completion at all */

/* A request for tickets. With --verify the tickets are then claimed one after the other. */
struct request {
	uint64_t began;
	uint64_t ticket, end; /* those still to be claimed */
	bool claiming;
};

struct taker {
	struct member *member;
	const struct seq_options *options;
	struct device device;
	struct comp comp;
	struct conn conn;
	struct rpc rpc;
	struct region results; /* a word for each request: what an atomic returns */
	struct seq_hello hello;
	struct request *request;
	uint64_t begun, wrong;
	unsigned under_way;
};

static int post_atomic(struct taker *t, unsigned slot, enum ibv_wr_opcode op, uint64_t at,
		       uint64_t value)
{
	struct ibv_sge sge = region_sge(&t->results, slot * sizeof(uint64_t), sizeof(uint64_t));
	struct ibv_send_wr *wr = conn_next(&t->conn, op, slot, IBV_SEND_SIGNALED, sge);

	wr->wr.atomic.remote_addr = at;
	wr->wr.atomic.rkey = t->hello.rkey;
	/* FETCH_ADD adds compare_add; CMP_SWAP puts swap where compare_add was: 0, no owner */
	wr->wr.atomic.compare_add = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? value : 0;
	wr->wr.atomic.swap = value;
	return conn_add(&t->conn);
}

static int ask(struct taker *t, unsigned slot)
{
	const struct seq_options *o = t->options;

	t->request[slot].claiming = false;
	t->request[slot].began = t->comp.at;
	t->begun += o->batch;
	if (o->way == SEQ_FAA)
		return post_atomic(t, slot, IBV_WR_ATOMIC_FETCH_AND_ADD,
				   seq_counter(&t->hello, SEQ_FAA), o->batch);
	memcpy((struct rpc_head *)rpc_room(&t->rpc, slot) + 1, &o->batch, sizeof(o->batch));
	return rpc_call(&t->rpc, slot, SEQ_OP_NEXT, sizeof(o->batch));
}

static int claim(struct taker *t, unsigned slot)
{
	struct request *r = &t->request[slot];

	if (r->ticket >= t->hello.entries) {
		log_line("ticket %lu has no entry in the ledger; give the server more --entries",
			 r->ticket);
		return -ENOSPC;
	}
	return post_atomic(t, slot, IBV_WR_ATOMIC_CMP_AND_SWP,
			   seq_entry(&t->hello, t->options->way, r->ticket), t->options->id);
}

/* The slot's request is complete: another one, if there is time. */
static int go_on(struct taker *t, unsigned slot)
{
	if (member_goes_on(t->member, t->begun))
		return ask(t, slot);
	t->under_way--;
	return 0;
}

static int on_tickets(struct taker *t, unsigned slot, uint64_t first)
{
	struct request *r = &t->request[slot];

	member_done(t->member, t->options->batch, t->comp.at - r->began);
	if (!t->options->verify)
		return go_on(t, slot);
	r->claiming = true;
	r->ticket = first;
	r->end = first + t->options->batch;
	return claim(t, slot);
}

static int on_claim(struct taker *t, unsigned slot, uint64_t owner)
{
	struct request *r = &t->request[slot];

	if (owner && !t->wrong++)
		log_line("ticket %lu was given twice", r->ticket);
	return ++r->ticket < r->end ? claim(t, slot) : go_on(t, slot);
}

static int on_reply(struct taker *t, const struct ibv_wc *wc)
{
	const struct rpc_head *reply = rpc_reply(&t->rpc, wc);
	unsigned slot;
	uint64_t first;
	int err;

	if (!reply || reply->length != sizeof(first))
		return -EPROTO;
	slot = reply->slot;
	memcpy(&first, reply + 1, sizeof(first));
	err = rpc_done(&t->rpc, wc);
	return err ? err : on_tickets(t, slot, first);
}

static int on_completion(struct taker *t, const struct ibv_wc *wc)
{
	unsigned slot = (unsigned)wc->wr_id;

	if (wc->status) {
		log_line("the connection failed: %s", ibv_wc_status_str(wc->status));
		return -ECONNRESET;
	}
	if (wc->wr_id & RPC_CALL)
		return 0;
	if (wc->wr_id & RPC_REPLY)
		return on_reply(t, wc);
	if (t->request[slot].claiming)
		return on_claim(t, slot, ((uint64_t *)t->results.base)[slot]);
	return on_tickets(t, slot, ((uint64_t *)t->results.base)[slot]);
}

static int run(struct member *m)
{
	struct taker *t = m->user;
	struct ibv_wc wc[BATCH];
	int err = 0, n = 0;

	comp_mark(&t->comp);
	for (unsigned i = 0; !err && i < m->team->options->window && member_goes_on(m, t->begun);
	     i++) {
		err = ask(t, i);
		t->under_way++;
	}
	while (!err && t->under_way) {
		err = conn_flush(&t->conn, NULL);
		if (err)
			break;
		n = comp_wait(&t->comp, wc, comp_half(m->team->options->window, BATCH), WAIT_MS);
		if (n <= 0)
			err = n ? n : -ETIMEDOUT;
		for (int i = 0; !err && i < n; i++)
			err = on_completion(t, &wc[i]);
	}
	if (err == -ETIMEDOUT)
		log_line("the server has not answered for %d s", WAIT_MS / 1000);
	return err ? err : t->wrong ? -EBADMSG : 0;
}

static int ready(struct conn *c, void *arg)
{
	return rpc_ready(arg, c);
}

static int open_taker(struct member *m)
{
	const struct options *o = m->team->options;
	struct taker *t = calloc(1, sizeof(*t));
	struct hello hello = { { 0 } };
	int err;

	if (!t)
		return -ENOMEM;
	m->user = t;
	t->member = m;
	t->options = m->team->user;
	t->request = calloc(o->window, sizeof(*t->request));
	if (!t->request)
		return -ENOMEM;
	err = device_open_to(&t->device, o->server.host, o->server.port);
	if (!err && (t->options->way == SEQ_FAA || t->options->verify))
		err = device_need_atomics(&t->device);
	if (!err)
		err = comp_open(&t->comp, &t->device, 4 * o->window, o->events);
	if (!err)
		err = rpc_open(&t->rpc, &t->device, o->window, SEQ_MESSAGE);
	if (!err)
		err = region_open(&t->results, &t->device, o->window * sizeof(uint64_t),
				  REGION_SINK);
	if (err)
		return err;
	err = conn_open(&t->conn, &t->device, &o->server,
			&(struct conn_wish){ .service = SEQ_SERVICE,
					     .cq = t->comp.cq,
					     .sends = 2 * o->window,
					     .receives = o->window + 1,
					     .inline_data = SEQ_MESSAGE,
					     .ready = ready,
					     .arg = &t->rpc },
			&hello);
	memcpy(&t->hello, hello.octets, sizeof(t->hello));
	return err;
}

static void close_taker(struct member *m)
{
	struct taker *t = m->user;

	conn_close(&t->conn);
	rpc_close(&t->rpc);
	region_close(&t->results);
	comp_close(&t->comp);
	device_close(&t->device);
	free(t->request);
	free(t);
}

static int report(const struct seq_options *o, const struct team *t, uint64_t cpu)
{
	struct report r;

	report_open(&r, "uwarp-seq");
	report_text(&r, "mode", o->way == SEQ_FAA ? "faa" : "rpc");
	report_count(&r, "batch", o->batch);
	report_team(&r, t, "tickets");
	report_hist(&r, "", t->hist);
	report_cpu(&r, t, cpu);
	return report_close(&r, &o->common, t->hist);
}

int seq_take(const struct seq_options *o)
{
	static const struct team_ops ops = { .open = open_taker, .run = run, .close = close_taker };
	uint64_t cpu = cpu_ns();
	struct team team;
	int err = team_run(&team, &o->common, &ops, (void *)o), bad = 0;

	if (!err || err == -EBADMSG)
		bad = report(o, &team, cpu_ns() - cpu);
	team_close(&team);
	return err ? err : bad;
}
