/* SPDX-License-Identifier: BSD-3-Clause */
/* The rarer verbs, end to end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

static const struct qp_wish plain;

/* --identity roce: InfiniBand's completions (doc/adr/0014), and a P_Key. */
static bool is_roce(void)
{
	return here.ctx->device->node_type == IBV_NODE_CA;
}

/* ---- windows ----------------------------------------------------------------------------- */

/* From `from` into window memory at b->m + at under `rkey`. */
static int write_to(struct end *from, uint32_t rkey, uint64_t to)
{
	struct ibv_sge v = sge_at(from, 0, 64);
	struct ibv_send_wr wr = { .sg_list = &v,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = to;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(from->qp, &wr, &bad);
}

static void bind_2(struct end *e, struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ e->mr, (uintptr_t)e->m + 4096, 64,
							  IBV_ACCESS_REMOTE_WRITE };
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	wc = next_wc(e->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
}

/* A Send after the Writes, so that they have arrived. */
static void say(struct end *from, struct end *to)
{
	assert_int_equal(post_recv(to, NULL, 0), 0);
	assert_int_equal(post_send(from, IBV_WR_SEND, NULL, 0, NULL, 0), 0);
	expect_wc(from->cq, IBV_WC_SUCCESS);
	expect_wc(to->cq, IBV_WC_SUCCESS);
}

static void the_peer_invalidates_a_window(void **state)
{
	struct ibv_mw *mw = ibv_alloc_mw(here.pd, IBV_MW_TYPE_2);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr inv = { .opcode = IBV_WR_SEND_WITH_INV,
				   .send_flags = IBV_SEND_SIGNALED,
				   .invalidate_rkey = rkey },
			   *bad;
	struct end a, b;
	struct ibv_wc wc;

	(void)state;
	ends_connect(&here, &plain, true, &a, &b);
	bind_2(&b, mw, rkey);
	memset(a.m, 0x5a, 64);
	assert_int_equal(write_to(&a, rkey, (uintptr_t)b.m + 4096), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	assert_int_equal(post_recv(&b, NULL, 0), 0);
	assert_int_equal(ibv_post_send(a.qp, &inv, &bad), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	wc = next_wc(b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, rkey);
	assert_memory_equal(b.m + 4096, a.m, 64);
	/* bound anew it works under the new key; the old one ends the connection */
	bind_2(&b, mw, ibv_inc_rkey(rkey));
	assert_int_equal(write_to(&a, ibv_inc_rkey(rkey), (uintptr_t)b.m + 4096), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	say(&a, &b);
	assert_int_equal(write_to(&a, rkey, (uintptr_t)b.m + 4096), 0);
	/* it left; the Terminate comes back */
	expect_wc(a.cq, is_roce() ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void a_window_of_type_1(void **state)
{
	struct ibv_mw *mw = ibv_alloc_mw(here.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct end a, b;

	(void)state;
	ends_connect(&here, &plain, true, &a, &b);
	bind.bind_info =
		(struct ibv_mw_bind_info){ b.mr, (uintptr_t)b.m, 64, IBV_ACCESS_REMOTE_WRITE };
	assert_int_equal(ibv_bind_mw(b.qp, mw, &bind), 0);
	expect_wc(b.cq, IBV_WC_SUCCESS);
	memset(a.m, 0x33, 64);
	assert_int_equal(write_to(&a, mw->rkey, (uintptr_t)b.m), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	say(&a, &b);
	assert_memory_equal(b.m, a.m, 64);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	ends_close(&here, &a, &b);
}

static void a_window_beyond_its_region_is_a_bind_error(void **state)
{
	struct ibv_mw *mw = ibv_alloc_mw(here.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct end a, b;

	(void)state;
	ends_connect(&here, &plain, true, &a, &b);
	bind.bind_info = (struct ibv_mw_bind_info){ b.mr, (uintptr_t)b.m, ROOM + 1,
						    IBV_ACCESS_REMOTE_WRITE };
	assert_int_equal(ibv_bind_mw(b.qp, mw, &bind), 0);
	expect_wc(b.cq, IBV_WC_MW_BIND_ERR);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* ---- regions ----------------------------------------------------------------------------- */

/* 2 GiB, over an anonymous mapping and over a file; nothing is locked in memory. */
static void big_region(int fd)
{
	const size_t size = (size_t)2 << 30;
	const struct rlimit none = { 0, 0 };
	uint8_t *m =
		mmap(NULL, size, PROT_READ | PROT_WRITE,
		     (fd < 0 ? MAP_ANONYMOUS | MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE, fd, 0);
	struct ibv_mr *mr;
	struct end a, b;

	assert_true(m != MAP_FAILED);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	mr = ibv_reg_mr(here.pd, m, size, ALL);
	assert_non_null(mr);
	ends_connect(&here, &plain, true, &a, &b);
	memset(a.m, 0x77, 64);
	assert_int_equal(write_to(&a, mr->rkey, (uintptr_t)m + size - 64), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	say(&a, &b);
	assert_memory_equal(m + size - 64, a.m, 64);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(m, size);
}

static void a_region_of_2_gib(void **state)
{
	(void)state;
	big_region(-1);
}

static void a_region_over_a_file(void **state)
{
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), (off_t)2 << 30), 0);
	big_region(fileno(f));
	fclose(f);
}

/* On-demand memory may come and go. What is not there is an error, not the end of the program. */
static void all_memory_on_demand(void **state)
{
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	struct ibv_mr *all = ibv_reg_mr(here.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND);
	struct end a, b;

	(void)state;
	assert_true(page != MAP_FAILED);
	assert_non_null(all);
	ends_connect(&here, &plain, true, &a, &b);
	memset(a.m, 0x66, 64);
	assert_int_equal(write_to(&a, all->rkey, (uintptr_t)page + 4096 - 32), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	say(&a, &b);
	assert_memory_equal(page + 4096 - 32, a.m, 64);
	/* a hole in the middle of what is read */
	assert_int_equal(munmap(page + 4096, 4096), 0);
	{
		struct ibv_sge v = sge_at(&a, 0, 64);
		struct ibv_send_wr wr = { .sg_list = &v,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_READ,
					  .send_flags = IBV_SEND_SIGNALED },
				   *bad;

		wr.wr.rdma.remote_addr = (uintptr_t)page + 4096 - 32;
		wr.wr.rdma.rkey = all->rkey;
		assert_int_equal(ibv_post_send(a.qp, &wr, &bad), 0);
		expect_wc(a.cq, IBV_WC_REM_ACCESS_ERR);
	}
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_dereg_mr(all), 0);
	munmap(page, 4096);
}

static void a_region_of_huge_pages(void **state)
{
	const size_t size = (size_t)4 << 20;
	uint8_t *m = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_ANONYMOUS | MAP_PRIVATE | MAP_HUGETLB, -1, 0);
	struct ibv_mr *mr;
	struct end a, b;

	(void)state;
	if (m == MAP_FAILED) {
		print_message("no huge pages are set aside here\n");
		skip();
	}
	mr = ibv_reg_mr(here.pd, m, size, ALL);
	assert_non_null(mr);
	ends_connect(&here, &plain, true, &a, &b);
	memset(a.m, 0x44, 64);
	assert_int_equal(write_to(&a, mr->rkey, (uintptr_t)m + size / 2 - 32), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	say(&a, &b);
	assert_memory_equal(m + size / 2 - 32, a.m, 64);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(m, size);
}

static void a_region_that_moved(void **state)
{
	struct end a, b;
	uint8_t *other = calloc(1, 4096);
	uint32_t rkey;

	(void)state;
	ends_connect(&here, &plain, true, &a, &b);
	rkey = b.mr->rkey;
	assert_int_equal(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 4096, 0),
			 0);
	memset(a.m, 0x11, 64);
	assert_int_equal(write_to(&a, rkey, (uintptr_t)other), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	say(&a, &b);
	assert_memory_equal(other, a.m, 64);
	ends_close(&here, &a, &b);
	free(other);
}

/* 16 SGEs on a Read's sink, the null region among them. */
static void reads_scatter(void **state)
{
	const struct qp_wish w = { .sge = 16 };
	struct ibv_mr *null = ibv_alloc_null_mr(here.pd);
	struct ibv_sge v[16];
	struct end a, b;

	(void)state;
	assert_non_null(null);
	ends_connect(&here, &w, true, &a, &b);
	for (unsigned i = 0; i < ROOM; i++)
		b.m[i] = (uint8_t)(i * 7 + (i >> 8));
	for (unsigned i = 0; i < 16; i++)
		v[i] = sge_at(&a, i * 20000, 10001);
	v[5] = (struct ibv_sge){ 0, 10001, null->lkey };
	assert_int_equal(post_send(&a, IBV_WR_RDMA_READ, v, 16, &b, 3), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 16; i++)
		if (i != 5)
			assert_memory_equal(a.m + i * 20000, b.m + 3 + i * 10001, 10001);
	assert_int_equal(a.m[5 * 20000], 0);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

/* While the peer's Writes come in: afterwards not one octet more. */
static void deregistering_under_traffic(void **state)
{
	struct end a, b;
	struct ibv_sge v;
	struct ibv_mr *mr;

	(void)state;
	ends_connect(&here, &plain, true, &a, &b);
	mr = ibv_reg_mr(here.pd, b.m, ROOM, ALL);
	v = sge_at(&a, 0, ROOM);
	memset(a.m, 0x42, ROOM);
	for (unsigned i = 0; i < 16; i++) {
		struct ibv_send_wr wr = { .sg_list = &v,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_WRITE },
				   *bad;

		wr.wr.rdma.remote_addr = (uintptr_t)b.m;
		wr.wr.rdma.rkey = mr->rkey;
		assert_int_equal(ibv_post_send(a.qp, &wr, &bad), 0);
	}
	assert_int_equal(ibv_dereg_mr(mr), 0);
	memset(b.m, 0, ROOM);
	usleep(50000);
	for (unsigned i = 0; i < ROOM; i++)
		assert_int_equal(b.m[i], 0);
	ends_close(&here, &a, &b);
}

/* ---- receives that come late ------------------------------------------------------------- */

static void *post_late(void *arg)
{
	struct end *b = arg;
	struct ibv_sge v = sge_at(b, 0, 64);

	for (unsigned i = 0; i < 10; i++) {
		usleep(20000);
		v.addr = (uintptr_t)b->m + i * 64;
		assert_int_equal(post_recv(b, &v, 1), 0);
	}
	return NULL;
}

static void a_send_waits_for_its_receive(void **state)
{
	struct end a, b;
	struct ibv_sge v;
	pthread_t t;

	(void)state;
	ends_connect(&here, &plain, true, &a, &b);
	for (unsigned i = 0; i < 10; i++) {
		memset(a.m + i * 64, (int)i + 1, 64);
		v = sge_at(&a, i * 64, 64);
		assert_int_equal(post_send(&a, IBV_WR_SEND, &v, 1, NULL, 0), 0);
	}
	assert_int_equal(pthread_create(&t, NULL, post_late, &b), 0);
	for (unsigned i = 0; i < 10; i++) {
		expect_wc(a.cq, IBV_WC_SUCCESS);
		expect_wc(b.cq, IBV_WC_SUCCESS);
	}
	pthread_join(t, NULL);
	assert_memory_equal(a.m, b.m, 640);
	ends_close(&here, &a, &b);
}

/* ---- completions ------------------------------------------------------------------------- */

static void completions_are_stamped(void **state)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64, .wc_flags = IBV_CREATE_CQ_SUP_WC_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(here.ctx, &attr);
	struct qp_wish w = { .cq = ibv_cq_ex_to_cq(cq) };
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_values_ex now = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	uint64_t last = 0, at = 0, ns;
	struct end a, b;
	struct ibv_sge v;

	(void)state;
	assert_non_null(cq);
	ends_connect(&here, &w, true, &a, &b);
	v = sge_at(&a, 0, 8);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), 0);
		while (ibv_start_poll(cq, &none) == ENOENT)
			;
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		at = ibv_wc_read_completion_ts(cq);
		ibv_end_poll(cq);
		assert_true(at > last);
		last = at;
	}
	assert_int_equal(ibv_query_rt_values_ex(here.ctx, &now), 0);
	ns = (uint64_t)now.raw_clock.tv_sec * 1000000000u + (uint64_t)now.raw_clock.tv_nsec;
	assert_true(ns >= at && ns - at < 10000000000u);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* A notify comes for the fourth completion or after 300 ms, not before. */
static void notifies_are_moderated(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(here.ctx);
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 64, NULL, ch, 0), *got;
	struct ibv_modify_cq_attr attr = { IBV_CQ_ATTR_MODERATE, { 4, 60000 } };
	struct qp_wish w = { .cq = cq };
	struct end a, b;
	struct ibv_sge v;
	double from;
	void *ctx;

	(void)state;
	ends_connect(&here, &w, true, &a, &b);
	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
	v = sge_at(&a, 0, 8);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	from = seconds();
	assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), 0);
	assert_int_equal(ibv_get_cq_event(ch, &got, &ctx), 0);
	assert_true(seconds() - from >= 0.055);
	expect_wc(cq, IBV_WC_SUCCESS);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	attr.moderate.cq_period = 65535;
	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), 0);
	assert_int_equal(ibv_get_cq_event(ch, &got, &ctx), 0);
	ibv_ack_cq_events(cq, 1);
	for (unsigned i = 0; i < 4; i++)
		expect_wc(cq, IBV_WC_SUCCESS);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/* A program moves the descriptor out of the way, and makes another channel, which gets the old
 * number: events are for the first one still. */
static void a_channel_may_get_another_number(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(here.ctx), *other;
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 64, NULL, ch, 0), *got;
	struct qp_wish w = { .cq = cq };
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int number = ch->fd;
	struct end a, b;
	struct ibv_sge v;
	void *ctx;

	(void)state;
	ends_connect(&here, &w, true, &a, &b);
	fds[0].fd = ch->fd = fcntl(number, F_DUPFD_CLOEXEC, 500);
	assert_int_equal(close(number), 0);
	other = ibv_create_comp_channel(here.ctx);
	fds[1].fd = other->fd;
	assert_int_equal(other->fd, number);
	v = sge_at(&a, 0, 8);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), 0);
	assert_int_equal(poll(fds, 2, 10000), 1);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(ibv_get_cq_event(ch, &got, &ctx), 0);
	assert_ptr_equal(got, cq);
	ibv_ack_cq_events(cq, 1);
	expect_wc(cq, IBV_WC_SUCCESS);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	assert_int_equal(ibv_destroy_comp_channel(other), 0);
}

/* A QP takes its completions with it, so its channel hears nothing: a program that destroys the CQ
 * next would be woken to poll one that is no more. */
static void a_destroyed_qp_raises_no_completion_event(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(here.ctx);
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 64, NULL, ch, 0);
	struct qp_wish w = { .cq = cq };
	struct pollfd fd = { .fd = ch->fd, .events = POLLIN };
	struct end a, b;
	struct ibv_sge v;
	struct ibv_wc wc;

	(void)state;
	ends_connect(&here, &w, true, &a, &b);
	v = sge_at(&b, 0, 8);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(post_recv(&b, &v, 1), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	rdma_destroy_qp(b.id);
	expect_event(here.client, RDMA_CM_EVENT_DISCONNECTED); /* all has happened */
	expect_event(here.server, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(a.id);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(rdma_destroy_id(a.id), 0);
	assert_int_equal(rdma_destroy_id(b.id), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	assert_int_equal(ibv_dereg_mr(a.mr), 0);
	assert_int_equal(ibv_dereg_mr(b.mr), 0);
	free(a.m);
	free(b.m);
}

struct watch {
	struct ibv_cq *cq;
	atomic_bool over;
	atomic_uint seen;
};

static void *watch_cq(void *arg)
{
	struct watch *w = arg;
	struct ibv_wc wc[16];

	while (!atomic_load(&w->over))
		atomic_fetch_add(&w->seen, (unsigned)ibv_poll_cq(w->cq, 16, wc));
	return NULL;
}

/* Nor does a thread that polls meanwhile get any of them: ps-lite ends on one that is not a
 * success. */
static void a_destroyed_qp_s_receives_are_seen_by_nobody(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 4096, NULL, NULL, 0);
	struct qp_wish wish = { .cq = cq, .recv_wr = 2000 };
	struct watch w = { .cq = cq };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, watch_cq, &w), 0);
	for (unsigned life = 0; life < 20; life++) {
		struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
		struct end a, b;
		struct ibv_sge v;

		ends_connect(&here, &wish, true, &a, &b);
		v = sge_at(&b, 0, 8);
		for (unsigned i = 0; i < 2000; i++)
			assert_int_equal(post_recv(&b, &v, 1), 0);
		if (life & 1)
			assert_int_equal(ibv_modify_qp(b.qp, &reset, IBV_QP_STATE), 0);
		rdma_destroy_qp(b.id);
		expect_event(here.client, RDMA_CM_EVENT_DISCONNECTED);
		expect_event(here.server, RDMA_CM_EVENT_DISCONNECTED);
		rdma_destroy_qp(a.id);
		assert_int_equal(rdma_destroy_id(a.id), 0);
		assert_int_equal(rdma_destroy_id(b.id), 0);
		assert_int_equal(ibv_dereg_mr(a.mr), 0);
		assert_int_equal(ibv_dereg_mr(b.mr), 0);
		free(a.m);
		free(b.m);
	}
	atomic_store(&w.over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(atomic_load(&w.seen), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* An SRQ's QP in error says when it will take no receive any more. */
static void the_last_receive_is_announced(void **state)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(here.pd, &sa);
	struct qp_wish w = { .srq = srq };
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event ev;
	struct end a, b;

	(void)state;
	ends_connect(&here, &w, true, &a, &b);
	assert_int_equal(ibv_modify_qp(b.qp, &err, IBV_QP_STATE), 0);
	assert_int_equal(ibv_get_async_event(here.ctx, &ev), 0);
	assert_int_equal(ev.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	ibv_ack_async_event(&ev);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* A shared queue's receives are in its own protection domain, also where the QP has another one. */
static void receives_of_an_srq_are_of_its_domain(void **state)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 5, .max_sge = 1 } };
	struct ibv_pd *other = ibv_alloc_pd(here.ctx);
	struct ibv_srq *srq = ibv_create_srq(other, &sa);
	struct qp_wish w = { .srq = srq };
	struct ibv_mr *mr[2];
	struct ibv_recv_wr *bad;
	struct end a, b;
	struct ibv_sge v;

	(void)state;
	assert_non_null(srq);
	assert_int_equal(sa.attr.max_wr, 8); /* as many as there is room for */
	ends_connect(&here, &w, true, &a, &b);
	mr[0] = ibv_reg_mr(other, b.m, ROOM, ALL);
	mr[1] = ibv_reg_mr(here.pd, b.m, ROOM, ALL);
	v = sge_at(&a, 0, 8);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_sge to = { (uintptr_t)b.m, 8, mr[i]->lkey };
		struct ibv_recv_wr wr = { .sg_list = &to, .num_sge = 1 };

		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
		assert_int_equal(post_send(&a, IBV_WR_SEND, &v, 1, &b, 0), 0);
		expect_wc(b.cq, i ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_dereg_mr(mr[0]), 0);
	assert_int_equal(ibv_dereg_mr(mr[1]), 0);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* SQD of a connection of rdma_cm's: what was posted is sent, then the event that was asked for. */
static void the_drain_is_told(void **state)
{
	struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event ev;
	struct end a, b;
	struct ibv_sge v;

	(void)state;
	ends_connect(&here, &plain, true, &a, &b);
	v = sge_at(&a, 0, ROOM / 2);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), 0);
	assert_int_equal(ibv_modify_qp(a.qp, &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	assert_int_equal(ibv_get_async_event(here.ctx, &ev), 0);
	assert_int_equal(ev.event_type, IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(ev.element.qp, a.qp);
	ibv_ack_async_event(&ev);
	for (unsigned i = 0; i < 8; i++)
		expect_wc(a.cq, IBV_WC_SUCCESS);
	ends_close(&here, &a, &b);
}

/* What is posted stays posted, in its order. */
static void an_srq_grows_and_shrinks(void **state)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(here.pd, &sa);
	struct ibv_srq_attr attr = { .max_wr = 16 };
	struct ibv_recv_wr wr = { .wr_id = 0 }, *bad;
	struct qp_wish w = { .srq = srq };
	struct end a, b;

	(void)state;
	ends_connect(&here, &w, true, &a, &b);
	for (; wr.wr_id < 4; wr.wr_id++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	assert_int_equal(post_send(&a, IBV_WR_SEND, NULL, 0, NULL, 0), 0);
	assert_int_equal(next_wc(b.cq).wr_id, 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_in_range(attr.max_wr, 16, 32);
	for (; wr.wr_id < 16; wr.wr_id++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	attr.max_wr = 2;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	for (unsigned i = 1; i < 15; i++) {
		expect_wc(a.cq, IBV_WC_SUCCESS);
		assert_int_equal(post_send(&a, IBV_WR_SEND, NULL, 0, NULL, 0), 0);
		assert_int_equal(next_wc(b.cq).wr_id, i);
	}
	attr.max_wr = 2;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	assert_int_equal(post_send(&a, IBV_WR_SEND, NULL, 0, NULL, 0), 0);
	assert_int_equal(next_wc(b.cq).wr_id, 15);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* A child may hold what its parent is connected with, and even use it: that is flushed, and the
 * parent goes on as if nothing had been. */
static void a_child_cannot_disturb_its_parent(void **state)
{
	struct end a, b;
	int status;
	pid_t child;

	(void)state;
	ends_connect(&here, &plain, true, &a, &b);
	say(&a, &b);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct ibv_sge v = sge_at(&a, 0, 64);
		int bad = 0;

		for (unsigned i = 0; i < 8; i++) {
			bad |= post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0);
			bad |= post_recv(&b, NULL, 0);
		}
		for (unsigned i = 0; i < 8; i++) {
			bad |= next_wc(a.cq).status != IBV_WC_WR_FLUSH_ERR;
			bad |= next_wc(b.cq).status != IBV_WC_WR_FLUSH_ERR;
		}
		bad |= ibv_destroy_qp(a.qp);
		bad |= ibv_dereg_mr(b.mr);
		_exit(bad ? 1 : 0);
	}
	for (unsigned i = 0; i < 200; i++)
		say(&a, &b);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (unsigned i = 0; i < 200; i++)
		say(&b, &a);
	ends_close(&here, &a, &b);
}

/* Where iWARP has none. */
static void the_p_key_is_the_default(void **state)
{
	uint16_t key = 0;

	(void)state;
	assert_int_equal(ibv_query_pkey(here.ctx, 1, 0, &key), is_roce() ? 0 : -1);
	assert_int_equal(key, is_roce() ? 0xffff : 0);
	assert_int_equal(ibv_query_pkey(here.ctx, 1, 1, &key), -1);
}

/* librdmacm sets none of it (ends.c asks for 4). */
static void a_connected_qp_says_what_was_agreed(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;
	struct end a, b;

	(void)state;
	ends_connect(&here, &plain, true, &a, &b);
	assert_int_equal(ibv_query_port(here.ctx, 1, &port), 0);
	assert_int_equal(ibv_query_qp(a.qp, &attr, IBV_QP_PATH_MTU, &init), 0);
	assert_int_equal(attr.path_mtu, port.active_mtu);
	assert_int_equal(attr.max_rd_atomic, 4);
	assert_int_equal(attr.max_dest_rd_atomic, 4);
	ends_close(&here, &a, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_peer_invalidates_a_window),
		cmocka_unit_test(a_window_of_type_1),
		cmocka_unit_test(a_window_beyond_its_region_is_a_bind_error),
		cmocka_unit_test(a_region_of_2_gib),
		cmocka_unit_test(a_region_over_a_file),
		cmocka_unit_test(all_memory_on_demand),
		cmocka_unit_test(a_region_of_huge_pages),
		cmocka_unit_test(a_region_that_moved),
		cmocka_unit_test(reads_scatter),
		cmocka_unit_test(deregistering_under_traffic),
		cmocka_unit_test(a_send_waits_for_its_receive),
		cmocka_unit_test(completions_are_stamped),
		cmocka_unit_test(notifies_are_moderated),
		cmocka_unit_test(a_channel_may_get_another_number),
		cmocka_unit_test(a_destroyed_qp_raises_no_completion_event),
		cmocka_unit_test(a_destroyed_qp_s_receives_are_seen_by_nobody),
		cmocka_unit_test(the_last_receive_is_announced),
		cmocka_unit_test(the_drain_is_told),
		cmocka_unit_test(an_srq_grows_and_shrinks),
		cmocka_unit_test(receives_of_an_srq_are_of_its_domain),
		cmocka_unit_test(a_child_cannot_disturb_its_parent),
		cmocka_unit_test(the_p_key_is_the_default),
		cmocka_unit_test(a_connected_qp_says_what_was_agreed),
	};

	return cmocka_run_group_tests(tests, open_here, close_here);
}
