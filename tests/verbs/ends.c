/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WC_WAIT_S 10.0

double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

size_t resident(void)
{
	unsigned long total = 0, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &total, &pages), 2);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- events ------------------------------------------------------------------------------ */

static struct rdma_cm_id *next_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_get_cm_event(ch, &ev), 0);
	if (ev->event != type)
		print_error("%s instead of %s\n", rdma_event_str(ev->event), rdma_event_str(type));
	assert_int_equal(ev->event, type);
	id = ev->id;
	assert_int_equal(rdma_ack_cm_event(ev), 0);
	return id;
}

void expect_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	next_event(ch, type);
}

/* ---- the place --------------------------------------------------------------------------- */

void place_open(struct place *p)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct ibv_context **list;

	memset(p, 0, sizeof(*p));
	list = rdma_get_devices(NULL);
	assert_non_null(list);
	p->ctx = list[0];
	rdma_free_devices(list);
	p->pd = ibv_alloc_pd(p->ctx);
	assert_non_null(p->pd);
	p->server = rdma_create_event_channel();
	p->client = rdma_create_event_channel();
	assert_true(p->server && p->client);
	assert_int_equal(rdma_create_id(p->server, &p->listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(p->listener, (struct sockaddr *)&any), 0);
	assert_int_equal(rdma_listen(p->listener, 64), 0);
	p->port = rdma_get_src_port(p->listener);
}

void place_close(struct place *p)
{
	assert_int_equal(rdma_destroy_id(p->listener), 0);
	rdma_destroy_event_channel(p->server);
	rdma_destroy_event_channel(p->client);
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
}

struct place here;

int open_here(void **state)
{
	(void)state;
	place_open(&here);
	return 0;
}

int close_here(void **state)
{
	(void)state;
	place_close(&here);
	return 0;
}

/* ---- ends -------------------------------------------------------------------------------- */

static uint32_t or (uint32_t wish, uint32_t otherwise)
{
	return wish ? wish : otherwise;
}

static void make_qp(struct place *p, const struct qp_wish *w, struct end *e)
{
	struct ibv_qp_init_attr attr = {
		.srq = w->srq,
		.cap = { .max_send_wr = or (w->send_wr, 16),
			 .max_recv_wr = or (w->recv_wr, 16),
			 .max_send_sge = or (w->sge, 2),
			 .max_recv_sge = or (w->sge, 2),
			 .max_inline_data = or (w->inl, 64) },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = w->sig_all,
	};
	uint32_t cqe = or (w->cqe, 2 * (attr.cap.max_send_wr + attr.cap.max_recv_wr));

	e->own_cq = !w->cq;
	e->cq = w->cq ? w->cq : ibv_create_cq(p->ctx, (int)cqe, NULL, NULL, 0);
	assert_non_null(e->cq);
	attr.send_cq = attr.recv_cq = e->cq;
	assert_int_equal(rdma_create_qp(e->id, p->pd, &attr), 0);
	e->qp = e->id->qp;
}

static void give_memory(struct place *p, struct end *e)
{
	e->m = calloc(1, ROOM);
	assert_non_null(e->m);
	e->mr = ibv_reg_mr(p->pd, e->m, ROOM, ALL);
	assert_non_null(e->mr);
}

void ends_connect(struct place *p, const struct qp_wish *w, bool memory, struct end *a,
		  struct end *b)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = p->port };
	struct rdma_conn_param param = { .responder_resources = 4,
					 .initiator_depth = 4,
					 .rnr_retry_count = w->rnr_retry };

	memset(a, 0, sizeof(*a));
	memset(b, 0, sizeof(*b));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(rdma_create_id(p->client, &a->id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(a->id, NULL, (struct sockaddr *)&to, 5000), 0);
	expect_event(p->client, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(a->id, 5000), 0);
	expect_event(p->client, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(p, w, a);
	assert_int_equal(rdma_connect(a->id, &param), 0);
	b->id = next_event(p->server, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(p, w, b);
	assert_int_equal(rdma_accept(b->id, &param), 0);
	expect_event(p->server, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->client, RDMA_CM_EVENT_ESTABLISHED);
	if (memory) {
		give_memory(p, a);
		give_memory(p, b);
	}
}

static void end_close(struct end *e)
{
	rdma_destroy_qp(e->id);
	assert_int_equal(rdma_destroy_id(e->id), 0);
	if (e->own_cq)
		assert_int_equal(ibv_destroy_cq(e->cq), 0);
	if (e->mr)
		assert_int_equal(ibv_dereg_mr(e->mr), 0);
	free(e->m);
}

void ends_close(struct place *p, struct end *a, struct end *b)
{
	/* An error may have ended the connection: the event is the same. */
	rdma_disconnect(a->id);
	expect_event(p->server, RDMA_CM_EVENT_DISCONNECTED);
	expect_event(p->client, RDMA_CM_EVENT_DISCONNECTED);
	end_close(a);
	end_close(b);
}

/* ---- requests ---------------------------------------------------------------------------- */

struct ibv_sge sge_at(struct end *e, size_t at, uint32_t n)
{
	return (struct ibv_sge){ (uintptr_t)e->m + at, n, e->mr->lkey };
}

int post_send(struct end *e, enum ibv_wr_opcode op, struct ibv_sge *v, int n, struct end *to,
	      size_t to_at)
{
	struct ibv_send_wr wr = { .sg_list = v,
				  .num_sge = n,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (to) {
		wr.wr.rdma.remote_addr = (uintptr_t)to->m + to_at;
		wr.wr.rdma.rkey = to->mr->rkey;
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

int post_recv(struct end *e, struct ibv_sge *v, int n)
{
	struct ibv_recv_wr wr = { .sg_list = v, .num_sge = n }, *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

struct ibv_wc next_wc(struct ibv_cq *cq)
{
	double until = seconds() + WC_WAIT_S;
	struct ibv_wc wc = { 0 };
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		assert_true(seconds() < until);
	assert_int_equal(n, 1);
	return wc;
}

void expect_wc(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc = next_wc(cq);

	if (wc.status != status)
		print_error("%s instead of %s\n", ibv_wc_status_str(wc.status),
			    ibv_wc_status_str(status));
	assert_int_equal(wc.status, status);
}
