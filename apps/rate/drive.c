/* SPDX-License-Identifier: BSD-3-Clause */
/* The measured loop: post a list as soon as the window has room for it. */
#include <errno.h>

#include "drive.h"
#include "report.h"
#include "log.h"

#define BATCH	   32
#define WAIT_MS	   5000
#define FAULT_EACH 100u

static const enum ibv_wr_opcode opcode[] = {
	[RATE_WRITE] = IBV_WR_RDMA_WRITE,
	[RATE_READ] = IBV_WR_RDMA_READ,
	[RATE_SEND] = IBV_WR_SEND,
	[RATE_FAA] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[RATE_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

static void address(const struct driver *d, const struct sender *l, uint32_t slot,
		    struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr->wr.atomic.remote_addr = l->offer.base;
		wr->wr.atomic.rkey = l->offer.rkey;
		/* one more each time: a swap finds what the one before it left */
		wr->wr.atomic.compare_add =
			wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 1 : wr->wr_id;
		wr->wr.atomic.swap = wr->wr_id + 1;
	} else {
		wr->wr.rdma.remote_addr =
			l->offer.base + RATE_DATA + (uint64_t)slot * d->point.size;
		wr->wr.rdma.rkey = l->offer.rkey;
	}
}

/* What an operation leaves behind is its own: the octets that it sends, or none yet of those it
 * reads. */
static void mark(const struct driver *d, struct sender *l, uint64_t number)
{
	uint32_t slot = (uint32_t)(number % drive_slots(d)), size = d->point.size;
	uint8_t *p = l->local.base + (size_t)slot * size;

	if (d->options->op == RATE_READ)
		memset(p, 0, size);
	else if (d->options->op < RATE_FAA)
		rate_stamp(p, size, rate_word(l->wish.seed, slot, 0), number);
}

/* An operation that does nothing. */
static void spoil(struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr->wr.atomic.compare_add = 0;
	else
		wr->num_sge = 0;
}

/* wr_id is the operation's number: its completion tells that all before it are done, too. */
static void fill(const struct driver *d, struct sender *l, uint64_t number, struct ibv_send_wr *wr,
		 struct ibv_sge *sge)
{
	uint32_t slot = (uint32_t)(number % drive_slots(d)), size = d->point.size;
	bool can_inline = d->options->op == RATE_WRITE || d->options->op == RATE_SEND;

	*sge = region_sge(&l->local, (size_t)slot * size, size);
	*wr = (struct ibv_send_wr){
		.wr_id = number, .sg_list = sge, .num_sge = 1, .opcode = opcode[d->options->op]
	};
	if (can_inline && d->point.inline_data)
		wr->send_flags = conn_inline(&l->conn, size);
	if ((number + 1) % d->point.signal == 0) {
		wr->send_flags |= IBV_SEND_SIGNALED;
		l->posted_at[slot] = clock_ns();
	}
	address(d, l, slot, wr);
	if (d->options->fault && number % FAULT_EACH == FAULT_EACH - 1)
		spoil(wr);
}

static int post_list(struct driver *d, struct sender *l)
{
	struct ibv_send_wr wr[RATE_LIST_MAX], *bad;
	struct ibv_sge sge[RATE_LIST_MAX];
	uint32_t n = d->point.list;

	for (uint32_t i = 0; i < n; i++) {
		if (d->options->verify)
			mark(d, l, l->posted + i);
		fill(d, l, l->posted + i, &wr[i], &sge[i]);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	l->posted += n;
	d->begun += n;
	return -ibv_post_send(l->conn.qp, wr, &bad);
}

static bool room(const struct driver *d, const struct sender *l)
{
	return l->posted - l->done + d->point.list <= drive_slots(d) &&
	       member_goes_on(d->member, d->begun);
}

static struct sender *sender_of(const struct driver *d, uint32_t qp_num)
{
	for (unsigned i = 0; i < d->options->qps; i++)
		if (d->sender[i].conn.qp->qp_num == qp_num)
			return &d->sender[i];
	return NULL;
}

static int on_completion(struct driver *d, const struct ibv_wc *wc)
{
	struct sender *l = sender_of(d, wc->qp_num);

	if (wc->status || !l) {
		log_line("the connection failed: %s", ibv_wc_status_str(wc->status));
		return -ECONNRESET;
	}
	member_done(d->member, wc->wr_id + 1 - l->done,
		    clock_ns() - l->posted_at[wc->wr_id % drive_slots(d)]);
	l->done = wc->wr_id + 1;
	return 0;
}

/* Those that are done but unsignalled, at the end, are found by what is signalled behind them. */
static bool under_way(const struct driver *d)
{
	for (unsigned i = 0; i < d->options->qps; i++)
		if (d->sender[i].posted - d->sender[i].done >= d->point.signal)
			return true;
	return false;
}

static int take(struct driver *d, int wait)
{
	struct ibv_wc wc[BATCH];
	int n = comp_wait(&d->comp, wc, BATCH, wait), err = n < 0 ? n : 0;

	for (int i = 0; !err && i < n; i++)
		err = on_completion(d, &wc[i]);
	if (!n && wait)
		log_line("nothing has completed for %d s", wait / 1000);
	return err ? err : !n && wait ? -ETIMEDOUT : 0;
}

static int drive_run(struct member *m)
{
	struct driver *d = m->user;
	int err = 0;

	while (!err) {
		bool posted = false;

		for (unsigned i = 0; !err && i < d->options->qps; i++)
			for (; !err && room(d, &d->sender[i]); posted = true)
				err = post_list(d, &d->sender[i]);
		if (!err && !posted && !under_way(d))
			break;
		if (!err && under_way(d))
			err = take(d, WAIT_MS);
	}
	return err || !d->options->verify ? err : drive_check(d);
}

static int report(const struct rate_job *job, const struct team *t, uint64_t cpu)
{
	const struct rate_options *o = job->options;
	double seconds = team_seconds(t);
	struct report r;

	report_open(&r, "uwarp-rate");
	report_text(&r, "op", rate_names[o->op]);
	report_count(&r, "size", job->point.size);
	report_count(&r, "post_list", job->point.list);
	report_count(&r, "signal", job->point.signal);
	report_count(&r, "inline", job->point.inline_data);
	report_count(&r, "qps", o->qps);
	report_team(&r, t, "operations");
	report_number(&r, "gbps", (double)t->done * job->point.size * 8 / seconds / 1e9);
	report_hist(&r, "", t->hist);
	report_cpu(&r, t, cpu);
	return report_close(&r, &o->common, t->hist);
}

int rate_run(const struct rate_options *o, const struct rate_point *p)
{
	static const struct team_ops ops = { .open = drive_open,
					     .run = drive_run,
					     .close = drive_close };
	struct rate_job job = { .options = o, .point = *p };
	uint64_t cpu = cpu_ns();
	struct team team;
	int err = team_run(&team, &o->common, &ops, &job);

	if (!err)
		err = report(&job, &team, cpu_ns() - cpu);
	team_close(&team);
	return err;
}
