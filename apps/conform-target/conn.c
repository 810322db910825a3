/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "target.h"

#define RECVS_DEFAULT	  16u
#define RECV_SIZE_DEFAULT 4096u
#define DRAIN_MS	  100u
#define SEND_SLOT	  RECV_SIZE_MAX

void conn_fail(struct conn *c, const char *what)
{
	if (c->ending)
		return;
	perror(what);
	c->ending = true;
	rdma_disconnect(c->id);
}

/* ---- queues ------------------------------------------------------------------------------ */

static int post_recv(struct conn *c, unsigned slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)c->recv_buf + (size_t)slot * c->recv_size,
			       .length = c->recv_size,
			       .lkey = c->recv_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = WR_ID(WR_RECV, slot), .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(c->id->qp, &wr, &bad);

	if (!err)
		c->posted++;
	return err;
}

int conn_post_recvs(struct conn *c, unsigned n)
{
	int err = 0;

	for (unsigned i = 0; !err && i < n; i++)
		err = post_recv(c, i % RECVS_MAX);
	return err;
}

int conn_send(struct conn *c, const void *data, size_t n)
{
	unsigned slot = c->next_send++ % SENDS_MAX;
	uint8_t *p = c->send_buf + (size_t)slot * SEND_SLOT;
	struct ibv_sge sge = { .addr = (uintptr_t)p,
			       .length = (uint32_t)n,
			       .lkey = c->send_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = WR_ID(WR_SEND, slot),
				  .sg_list = &sge,
				  .num_sge = n ? 1 : 0,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	memcpy(p, data, n);
	return ibv_post_send(c->id->qp, &wr, &bad);
}

static void read_wish(struct conn *c, const struct wish_wire *w)
{
	c->recvs = RECVS_DEFAULT;
	c->recv_size = RECV_SIZE_DEFAULT;
	c->ird = c->ord = WIRE_DEFAULT;
	if (!w)
		return;
	c->flags = w->flags;
	if (get16(w->recvs) <= RECVS_MAX)
		c->recvs = get16(w->recvs);
	if (get32(w->recv_size) && get32(w->recv_size) <= RECV_SIZE_MAX)
		c->recv_size = get32(w->recv_size);
	c->ird = get16(w->ird);
	c->ord = get16(w->ord);
	usleep(get16(w->delay_ms) * 1000u);
}

static int open_buffers(struct conn *c)
{
	size_t recv_all = (size_t)RECVS_MAX * c->recv_size;
	size_t send_all = (size_t)SENDS_MAX * SEND_SLOT;

	c->recv_buf = malloc(recv_all);
	c->send_buf = malloc(send_all);
	if (!c->recv_buf || !c->send_buf)
		return -1;
	c->recv_mr = ibv_reg_mr(c->mem->pd, c->recv_buf, recv_all, IBV_ACCESS_LOCAL_WRITE);
	c->send_mr = ibv_reg_mr(c->mem->pd, c->send_buf, send_all, IBV_ACCESS_LOCAL_WRITE);
	return c->recv_mr && c->send_mr ? 0 : -1;
}

static int open_qp(struct conn *c)
{
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = SENDS_MAX,
						  .max_recv_wr = RECVS_MAX,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_ATOMIC };

	c->channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->channel)
		return -1;
	c->cq = ibv_create_cq(c->id->verbs, SENDS_MAX + RECVS_MAX, NULL, c->channel, 0);
	if (!c->cq || ibv_req_notify_cq(c->cq, 0))
		return -1;
	init.send_cq = init.recv_cq = c->cq;
	if (rdma_create_qp(c->id, c->mem->pd, &init))
		return -1;
	if (c->mem->atomics && ibv_modify_qp(c->id->qp, &attr, IBV_QP_ACCESS_FLAGS))
		fprintf(stderr, "uwarp-conform-target: this QP may not take atomics\n");
	return 0;
}

int conn_open(struct conn *c, struct rdma_cm_id *id, struct memory *mem, const struct wish_wire *w)
{
	memset(c, 0, sizeof(*c));
	c->id = id;
	c->mem = mem;
	read_wish(c, w);
	if (open_buffers(c) || open_qp(c) || conn_post_recvs(c, c->recvs)) {
		perror("uwarp-conform-target: connection");
		return -1;
	}
	return 0;
}

/* ---- life -------------------------------------------------------------------------------- */

void conn_advertise(const struct conn *c, const struct outcome *prior, struct advert_wire *a)
{
	memset(a, 0, sizeof(*a));
	memcpy(a->magic, WIRE_MAGIC, sizeof(a->magic));
	a->version = WIRE_VERSION;
	put32(a->recv_size, c->recv_size);
	put16(a->recvs, c->recvs);
	put16(a->ird, c->ird);
	put16(a->ord, c->ord);
	a->prior = prior->prior;
	a->prior_status = prior->status;
	a->prior_event = prior->event;
	put16(a->prior_flushed, prior->flushed);
	put16(a->prior_done, prior->done);
	memory_advertise(c->mem, a);
}

static struct rdma_conn_param param_of(const struct conn *c, const struct advert_wire *a)
{
	return (struct rdma_conn_param){ .private_data = a,
					 .private_data_len = sizeof(*a),
					 .responder_resources = (uint8_t)c->ird,
					 .initiator_depth = (uint8_t)c->ord };
}

static uint16_t granted(uint16_t wish, uint8_t asked)
{
	return wish == WIRE_DEFAULT ? asked : wish > 255 ? 255 : wish;
}

int conn_accept(struct conn *c, const struct rdma_conn_param *asked, const struct outcome *prior)
{
	struct rdma_conn_param p;
	struct advert_wire a;

	c->ird = granted(c->ird, asked->responder_resources);
	c->ord = granted(c->ord, asked->initiator_depth);
	conn_advertise(c, prior, &a);
	if (!(c->flags & WISH_KEEP))
		memory_fill(c->mem);
	p = param_of(c, &a);
	return rdma_accept(c->id, &p);
}

int conn_connect(struct conn *c, const struct outcome *prior)
{
	struct rdma_conn_param p;
	struct advert_wire a;

	c->initiator = true;
	c->ird = c->ord = 4;
	conn_advertise(c, prior, &a);
	memory_fill(c->mem);
	p = param_of(c, &a);
	return rdma_connect(c->id, &p);
}

void conn_established(struct conn *c)
{
	static const char hello[] = "hello from uwarp-conform-target";

	if (c->hello_sent || !(c->initiator || (c->flags & WISH_HELLO)))
		return;
	c->hello_sent = true;
	if (conn_send(c, hello, sizeof(hello)))
		conn_fail(c, "uwarp-conform-target: hello");
}

void conn_close(struct conn *c)
{
	if (c->cq)
		conn_completions(c);
	if (c->id && c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	if (c->recv_mr)
		ibv_dereg_mr(c->recv_mr);
	if (c->send_mr)
		ibv_dereg_mr(c->send_mr);
	free(c->recv_buf);
	free(c->send_buf);
	if (c->id)
		rdma_destroy_id(c->id);
	memset(c, 0, sizeof(*c));
}

/* ---- completions ------------------------------------------------------------------------- */

static void received(struct conn *c, const struct ibv_wc *wc)
{
	unsigned slot = (uint32_t)wc->wr_id;
	const uint8_t *p = c->recv_buf + (size_t)slot * c->recv_size;
	struct command_wire w;
	int err = 0;

	/* With immediate data there may be nothing to send back. */
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		uint8_t imm[12] = "imm ";

		memcpy(imm + 4, &wc->imm_data, 4);
		put32(imm + 8, wc->byte_len);
		err = conn_send(c, imm, sizeof(imm));
	} else if (wc->byte_len >= sizeof(w) && !memcmp(p, WIRE_MAGIC, 4)) {
		memcpy(&w, p, sizeof(w));
		command_run(c, &w);
	} else {
		err = conn_send(c, p, wc->byte_len);
	}
	if (!err && !(c->flags & WISH_NO_MORE))
		err = post_recv(c, slot);
	if (err)
		conn_fail(c, "uwarp-conform-target: answer");
}

static void failed(struct conn *c, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		c->out.flushed++;
	else if (!c->out.status)
		c->out.status = (uint8_t)wc->status;
	if (c->ending)
		return;
	c->ending = true;
	rdma_disconnect(c->id);
}

static void completed(struct conn *c, const struct ibv_wc *wc)
{
	unsigned kind = (unsigned)(wc->wr_id >> 32);

	if (kind == WR_RECV)
		c->posted--;
	if (wc->status)
		failed(c, wc);
	else
		c->out.done++;
	if (kind == WR_COMMAND)
		command_completion(c, wc);
	else if (kind == WR_RECV && !wc->status && !c->ending)
		received(c, wc);
}

void conn_completions(struct conn *c)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = ibv_poll_cq(c->cq, 16, wc)) > 0) {
		for (int i = 0; i < n; i++)
			completed(c, &wc[i]);
	}
}

void conn_drain(struct conn *c)
{
	c->ending = true;
	rdma_disconnect(c->id);
	for (unsigned i = 0; c->cq && c->posted && i < DRAIN_MS; i++) {
		conn_completions(c);
		if (c->posted)
			usleep(1000);
	}
}

void conn_event(struct conn *c, const struct ibv_async_event *ev)
{
	if (!c->out.event)
		c->out.event = (uint8_t)(1 + ev->event_type);
}
