/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tester asks the target to do of its own accord. */
#include <stdio.h>

#include "target.h"

static const enum ibv_wr_opcode verb_of[CMD_COUNT] = {
	[CMD_SEND] = IBV_WR_SEND,
	[CMD_WRITE] = IBV_WR_RDMA_WRITE,
	[CMD_READ] = IBV_WR_RDMA_READ,
	[CMD_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[CMD_CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[CMD_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[CMD_SEND_INV] = IBV_WR_SEND_WITH_INV,
};

static void describe(const struct command_wire *w, struct ibv_send_wr *wr)
{
	wr->opcode = verb_of[w->op];
	if (w->op == CMD_FETCH_ADD || w->op == CMD_CMP_SWAP) {
		wr->wr.atomic.remote_addr = get64(w->to);
		wr->wr.atomic.rkey = get32(w->stag);
		wr->wr.atomic.compare_add = get64(w->arg);
		wr->wr.atomic.swap = get64(w->arg2);
		return;
	}
	wr->wr.rdma.remote_addr = get64(w->to);
	wr->wr.rdma.rkey = get32(w->stag);
	if (w->op == CMD_SEND_INV)
		wr->invalidate_rkey = get32(w->stag);
	else
		wr->imm_data = htobe32((uint32_t)get64(w->arg));
}

static int post(struct conn *c, const struct command_wire *w)
{
	struct ibv_sge sge = { .addr = (uintptr_t)c->mem->work,
			       .length = c->job.length,
			       .lkey = c->mem->work_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = WR_ID(WR_COMMAND, w->op),
				  .sg_list = &sge,
				  .num_sge = sge.length ? 1 : 0,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (w->flags & CMD_SOLICITED)
		wr.send_flags |= IBV_SEND_SOLICITED;
	describe(w, &wr);
	return ibv_post_send(c->id->qp, &wr, &bad);
}

static void tell(struct conn *c)
{
	const struct job *j = &c->job;
	struct done_wire d = { .op = j->op, .status = j->status };
	uint64_t value;

	if (j->flags & CMD_QUIET)
		return;
	memcpy(d.magic, WIRE_DONE, sizeof(d.magic));
	put16(d.count, j->count);
	put32(d.sum, sum_of(c->mem->work, j->length));
	memcpy(&value, c->mem->work, sizeof(value));
	put64(d.value, value);
	if (!c->ending && conn_send(c, &d, sizeof(d)))
		conn_fail(c, "uwarp-conform-target: done");
}

void command_completion(struct conn *c, const struct ibv_wc *wc)
{
	struct job *j = &c->job;

	if (wc->status && !j->status)
		j->status = (uint8_t)wc->status;
	if (j->left && !--j->left)
		tell(c);
}

static void start(struct conn *c, const struct command_wire *w)
{
	struct job *j = &c->job;
	unsigned n = get16(w->count);
	int err = 0;

	*j = (struct job){ .op = w->op, .flags = w->flags, .length = get32(w->length) };
	if (w->op == CMD_FETCH_ADD || w->op == CMD_CMP_SWAP)
		j->length = 8;
	if (j->length > WORK_SIZE)
		j->length = WORK_SIZE;
	for (unsigned i = 0; !err && i < n; i++) {
		err = post(c, w);
		if (!err)
			j->count = ++j->left;
	}
	if (!j->count) { /* the RNIC cannot */
		j->status = IBV_WC_LOC_QP_OP_ERR;
		tell(c);
	}
}

static void report(struct conn *c)
{
	static const struct outcome none;
	struct advert_wire a;

	conn_advertise(c, &none, &a);
	if (conn_send(c, &a, sizeof(a)))
		conn_fail(c, "uwarp-conform-target: report");
}

void command_run(struct conn *c, const struct command_wire *w)
{
	if (w->op == CMD_DISCONNECT) {
		c->ending = true;
		rdma_disconnect(c->id);
	} else if (w->op == CMD_REPORT) {
		report(c);
	} else if (w->op == CMD_RECVS) {
		if (conn_post_recvs(c, get16(w->count)))
			conn_fail(c, "uwarp-conform-target: ibv_post_recv");
	} else if (w->op && w->op < CMD_COUNT) {
		start(c, w);
	} else {
		fprintf(stderr, "uwarp-conform-target: unknown command %u\n", w->op);
	}
}
