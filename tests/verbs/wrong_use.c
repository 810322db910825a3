/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program does wrong gets the errno or the status that the manual pages name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"

static void pair(struct end *a, struct end *b, const struct qp_wish *w)
{
	const struct qp_wish plain = { 0 };

	ends_connect(&here, w ? w : &plain, true, a, b);
}

static void a_send_before_the_qp_is_ready_is_refused(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = ibv_create_qp(here.pd, &attr);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	(void)state;
	assert_non_null(qp);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PORT), 0);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	/* in error it is taken, and flushed */
	init.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(qp, &init, IBV_QP_STATE), 0);
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	expect_wc(cq, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void bad_requests_are_refused(void **state)
{
	struct ibv_sge v[5];
	struct end a, b;
	struct ibv_send_wr wr = { .sg_list = v, .num_sge = 5, .opcode = IBV_WR_SEND }, *bad;

	(void)state;
	pair(&a, &b, NULL);
	for (unsigned i = 0; i < 5; i++)
		v[i] = sge_at(&a, 0, 8);
	assert_int_equal(ibv_post_send(a.qp, &wr, &bad), EINVAL); /* 2 asked for, 4 granted */
	assert_int_equal(post_recv(&b, v, 3), EINVAL);
	wr.num_sge = 1;
	wr.opcode = (enum ibv_wr_opcode)99;
	assert_int_equal(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_INLINE;
	v[0].length = ROOM;
	assert_int_equal(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	v[0].length = 8;
	assert_int_equal(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	/* nothing of this harmed the connection */
	assert_int_equal(post_recv(&b, v, 0), 0);
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_SEND };
	assert_int_equal(ibv_post_send(a.qp, &wr, &bad), 0);
	expect_wc(b.cq, IBV_WC_SUCCESS);
	ends_close(&here, &a, &b);
}

/* The queues take what they were made for, and more once completions were polled. */
static void full_queues_say_so(void **state)
{
	struct qp_wish w = { .send_wr = 4, .recv_wr = 4 };
	struct end a, b;
	struct ibv_sge v;

	(void)state;
	pair(&a, &b, &w);
	v = sge_at(&a, 0, 8);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(post_recv(&b, NULL, 0), 0);
		assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), 0);
	}
	assert_int_equal(post_recv(&b, NULL, 0), ENOMEM);
	assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), ENOMEM);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), 0);
	assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), ENOMEM);
	ends_close(&here, &a, &b);
}

/* ... of a receive, too: so a CQ that holds what the queues do cannot overflow. */
static void a_receive_has_its_place_until_it_is_polled(void **state)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	(void)state;
	for (unsigned shared = 0; shared < 2; shared++) {
		struct ibv_srq *srq = shared ? ibv_create_srq(here.pd, &sa) : NULL;
		struct qp_wish w = { .recv_wr = 4, .srq = srq };
		struct end a, b;

		pair(&a, &b, &w);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(srq ? ibv_post_srq_recv(srq, &wr, &bad)
					     : ibv_post_recv(b.qp, &wr, &bad),
					 0);
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(post_send(&a, IBV_WR_SEND, NULL, 0, NULL, 0), 0);
			expect_wc(a.cq, IBV_WC_SUCCESS);
		}
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(srq ? ibv_post_srq_recv(srq, &wr, &bad)
					     : ibv_post_recv(b.qp, &wr, &bad),
					 ENOMEM);
			assert_ptr_equal(bad, &wr);
			expect_wc(b.cq, IBV_WC_SUCCESS);
			assert_int_equal(srq ? ibv_post_srq_recv(srq, &wr, &bad)
					     : ibv_post_recv(b.qp, &wr, &bad),
					 0);
		}
		ends_close(&here, &a, &b);
		if (srq)
			assert_int_equal(ibv_destroy_srq(srq), 0);
	}
}

/* RESET empties the queues: as much fits as into new ones, and no completion of before comes. */
static void a_reset_qp_is_as_new(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 64, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = ibv_create_qp(here.pd, &attr);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_recv_wr rwr = { .wr_id = 1 }, *rbad;
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;

	(void)state;
	for (unsigned life = 0; life < 3; life++) {
		to.qp_state = IBV_QPS_ERR;
		assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
		for (unsigned i = 0; i < attr.cap.max_send_wr; i++)
			assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
		for (unsigned i = 0; i < attr.cap.max_recv_wr; i++)
			assert_int_equal(ibv_post_recv(qp, &rwr, &rbad), 0);
		assert_int_equal(ibv_post_send(qp, &wr, &bad), ENOMEM);
		assert_int_equal(ibv_post_recv(qp, &rwr, &rbad), ENOMEM);
		to.qp_state = IBV_QPS_RESET;
		assert_int_equal(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* What comes after a bad request in a list is not posted, what comes before it is. */
static void a_list_stops_at_its_bad_request(void **state)
{
	struct ibv_send_wr wr[3] = { 0 }, *bad;
	struct ibv_recv_wr rwr[3] = { 0 }, *rbad;
	struct ibv_sge v[5] = { 0 };
	struct end a, b;

	(void)state;
	pair(&a, &b, NULL);
	for (unsigned i = 0; i < 3; i++) {
		v[i] = sge_at(&a, 0, 8);
		wr[i] = (struct ibv_send_wr){ .wr_id = i,
					      .next = i < 2 ? &wr[i + 1] : NULL,
					      .sg_list = v,
					      .num_sge = i == 1 ? 5 : 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED };
		rwr[i] = (struct ibv_recv_wr){ .wr_id = i,
					       .next = i < 2 ? &rwr[i + 1] : NULL,
					       .sg_list = v,
					       .num_sge = i == 1 ? 3 : 1 };
	}
	for (unsigned i = 0; i < 3; i++)
		v[i] = sge_at(&b, 0, 8);
	assert_int_equal(ibv_post_recv(b.qp, rwr, &rbad), EINVAL);
	assert_ptr_equal(rbad, &rwr[1]);
	for (unsigned i = 0; i < 3; i++)
		v[i] = sge_at(&a, 0, 8);
	assert_int_equal(ibv_post_send(a.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(next_wc(a.cq).wr_id, 0);
	assert_int_equal(next_wc(b.cq).wr_id, 0);
	ends_close(&here, &a, &b);
}

static void send_fails(const struct ibv_sge *v, enum ibv_wc_status status)
{
	struct end a, b;
	struct ibv_sge sge;

	pair(&a, &b, NULL);
	sge = sge_at(&a, 0, 64);
	if (v->addr) /* relative to the region's end */
		sge.addr = (uintptr_t)a.m + ROOM + v->addr;
	if (v->lkey)
		sge.lkey = v->lkey;
	assert_int_equal(post_recv(&b, NULL, 0), 0);
	assert_int_equal(post_send(&a, IBV_WR_SEND, &sge, 1, NULL, 0), 0);
	expect_wc(a.cq, status);
	expect_wc(b.cq, IBV_WC_WR_FLUSH_ERR);
	ends_close(&here, &a, &b);
}

static void an_sge_outside_its_region_is_a_protection_error(void **state)
{
	(void)state;
	send_fails(&(struct ibv_sge){ .addr = (uint64_t)-63 }, IBV_WC_LOC_PROT_ERR);
	send_fails(&(struct ibv_sge){ .addr = 4096 }, IBV_WC_LOC_PROT_ERR);
	send_fails(&(struct ibv_sge){ .lkey = 0x12345678 }, IBV_WC_LOC_PROT_ERR);
}

static void the_peer_refuses_what_it_does_not_allow(void **state)
{
	struct end a, b;
	struct ibv_sge v;
	uint32_t good;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		pair(&a, &b, NULL);
		v = sge_at(&a, 0, 64);
		good = b.mr->rkey;
		if (i)
			b.mr->rkey ^= 0x01010101;
		assert_int_equal(post_send(&a, IBV_WR_RDMA_READ, &v, 1, &b, i ? 0 : ROOM - 63), 0);
		b.mr->rkey = good;
		expect_wc(a.cq, IBV_WC_REM_ACCESS_ERR);
		ends_close(&here, &a, &b);
	}
}

static void a_receive_that_is_too_short_is_a_length_error(void **state)
{
	struct end a, b;
	struct ibv_sge v, r;

	(void)state;
	pair(&a, &b, NULL);
	v = sge_at(&a, 0, 64);
	r = sge_at(&b, 0, 63);
	assert_int_equal(post_recv(&b, &r, 1), 0);
	assert_int_equal(post_send(&a, IBV_WR_SEND, &v, 1, NULL, 0), 0);
	expect_wc(b.cq, IBV_WC_LOC_LEN_ERR);
	ends_close(&here, &a, &b);
}

static void what_is_in_use_stays(void **state)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(here.pd, &sa);
	struct qp_wish w = { .srq = srq };
	struct ibv_mw *mw = ibv_alloc_mw(here.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct end a, b;

	(void)state;
	assert_true(srq && mw);
	pair(&a, &b, &w);
	assert_int_equal(ibv_destroy_cq(a.cq), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(here.pd), EBUSY);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ a.mr, (uintptr_t)a.m, 64, IBV_ACCESS_REMOTE_READ };
	assert_int_equal(ibv_post_send(a.qp, &wr, &bad), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(a.mr), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* Hardware would fail to pin it; here the stack would be the one to write. */
static void what_cannot_be_written_is_not_registered_for_it(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *m = mmap(NULL, 2 * page, PROT_READ, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	struct ibv_mr *mr;

	(void)state;
	assert_true(m != MAP_FAILED);
	mr = ibv_reg_mr(here.pd, m, 2 * page, IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_reg_mr(here.pd, m, 2 * page, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_int_equal(mprotect(m, page, PROT_READ | PROT_WRITE), 0);
	assert_null(ibv_reg_mr(here.pd, m, 2 * page, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	mr = ibv_reg_mr(here.pd, m, page, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mprotect(m, page, PROT_NONE), 0);
	assert_null(ibv_reg_mr(here.pd, m, page, 0));
	assert_int_equal(errno, EFAULT);
	munmap(m, 2 * page);
}

/* Nothing of a process here can be another's. */
static void contexts_are_not_imported(void **state)
{
	(void)state;
	errno = 0;
	assert_null(ibv_import_device(here.ctx->cmd_fd));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void regions_are_checked(void **state)
{
	uint8_t *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	(void)state;
	assert_int_equal(munmap(m + 4096, 4096), 0);
	errno = 0;
	assert_null(ibv_reg_mr(here.pd, m, 8192, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_reg_mr(here.pd, m, 4096, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	mr = ibv_reg_mr(here.pd, m, 4096,
			ALL | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_RELAXED_ORDERING |
				IBV_ACCESS_HUGETLB);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(m, 4096);
}

/* More than the device has. */
static void limits_are_named(void **state)
{
	struct ibv_device_attr d;
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr sa = { .attr = { .max_sge = 1 } };
	struct ibv_qp *qp;

	(void)state;
	assert_int_equal(ibv_query_device(here.ctx, &d), 0);
	assert_true(d.max_sge >= 16 && d.max_sge_rd >= 16);
	errno = 0;
	assert_null(ibv_create_cq(here.ctx, d.max_cqe + 1, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	for (unsigned i = 0; i < 5; i++) {
		attr.cap = (struct ibv_qp_cap){ 1, 1, 1, 1, 0 };
		*(uint32_t *[]){ &attr.cap.max_send_wr, &attr.cap.max_recv_wr,
				 &attr.cap.max_send_sge, &attr.cap.max_recv_sge,
				 &attr.cap.max_inline_data }[i] = 1u << 20;
		errno = 0;
		assert_null(ibv_create_qp(here.pd, &attr));
		assert_int_equal(errno, EINVAL);
	}
	/* more than was asked for is granted, and said, where it costs nothing */
	attr.cap = (struct ibv_qp_cap){ 1, 1, 1, 1, 0 };
	qp = ibv_create_qp(here.pd, &attr);
	assert_non_null(qp);
	assert_true(attr.cap.max_send_sge == 4 && attr.cap.max_inline_data == 64);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	sa.attr.max_wr = (uint32_t)d.max_srq_wr + 1;
	assert_null(ibv_create_srq(here.pd, &sa));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* A CQ that is too small: the event, the QP in error, and polling says so once it is empty. */
static void a_cq_that_overflows_is_in_error(void **state)
{
	struct qp_wish w = { .cqe = 2 };
	struct ibv_async_event ev;
	struct ibv_wc wc[4];
	struct ibv_sge v;
	struct end a, b;
	int n;

	(void)state;
	pair(&a, &b, &w);
	v = sge_at(&a, 0, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(post_send(&a, IBV_WR_RDMA_WRITE, &v, 1, &b, 0), 0);
	assert_int_equal(ibv_get_async_event(here.ctx, &ev), 0);
	assert_int_equal(ev.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(ev.element.cq, a.cq);
	ibv_ack_async_event(&ev);
	assert_int_equal(ibv_get_async_event(here.ctx, &ev), 0);
	assert_int_equal(ev.event_type, IBV_EVENT_QP_FATAL);
	ibv_ack_async_event(&ev);
	while ((n = ibv_poll_cq(a.cq, 4, wc)) > 0)
		;
	assert_true(n < 0);
	ends_close(&here, &a, &b);
}

/* ---- what is said ------------------------------------------------------------------------ */

/* From here on stderr is a file, until heard(). */
static int hear(void)
{
	int was = dup(STDERR_FILENO), fd = memfd_create("stderr", 0);

	assert_true(was >= 0 && fd >= 0);
	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
	return was;
}

/* What was written since, which must be one line. */
static const char *heard(int was)
{
	static char text[512];
	ssize_t n = pread(STDERR_FILENO, text, sizeof(text) - 1, 0);

	dup2(was, STDERR_FILENO);
	close(was);
	text[n > 0 ? n : 0] = '\0';
	assert_true(n > 0 && strchr(text, '\n') == text + n - 1);
	return text;
}

static struct ibv_ah_attr to_gid(const union ibv_gid *gid, uint8_t own)
{
	return (struct ibv_ah_attr){ .is_global = 1,
				     .port_num = 1,
				     .grh = { .dgid = *gid, .sgid_index = own, .hop_limit = 64 } };
}

static void an_index_that_names_no_gid_is_said(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = ibv_create_qp(here.pd, &attr);
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = 1,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12 };
	union ibv_gid gid;
	int was;

	(void)state;
	assert_int_equal(ibv_query_gid(here.ctx, 1, 0, &gid), 0);
	rtr.ah_attr = to_gid(&gid, 77);
	assert_int_equal(
		ibv_modify_qp(qp, &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	was = hear();
	errno = 0;
	assert_int_equal(ibv_modify_qp(qp, &rtr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_string_equal(heard(was), "uwarp: ibv_modify_qp: sgid_index 77 is no GID of uwarp0; "
					"ibv_devinfo -v lists them\n");
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ---- the rest ---------------------------------------------------------------------------- */

/* Event loops ask for both (EPOLLIN | EPOLLOUT), and a descriptor may have any number. */
static void channels_are_never_writable(void **state)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(here.ctx);
	struct rdma_event_channel *cm = rdma_create_event_channel();
	int ep = epoll_create1(EPOLL_CLOEXEC), fds[] = { channel->fd, cm->fd, here.ctx->async_fd };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev), 0);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	close(ep);
	rdma_destroy_event_channel(cm);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void a_receive_in_reset_is_refused(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp *qp = ibv_create_qp(here.pd, &attr);
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;

	(void)state;
	errno = 0;
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_before_the_qp_is_ready_is_refused),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(full_queues_say_so),
		cmocka_unit_test(a_receive_has_its_place_until_it_is_polled),
		cmocka_unit_test(a_reset_qp_is_as_new),
		cmocka_unit_test(a_list_stops_at_its_bad_request),
		cmocka_unit_test(an_sge_outside_its_region_is_a_protection_error),
		cmocka_unit_test(the_peer_refuses_what_it_does_not_allow),
		cmocka_unit_test(a_receive_that_is_too_short_is_a_length_error),
		cmocka_unit_test(what_is_in_use_stays),
		cmocka_unit_test(what_cannot_be_written_is_not_registered_for_it),
		cmocka_unit_test(contexts_are_not_imported),
		cmocka_unit_test(regions_are_checked),
		cmocka_unit_test(limits_are_named),
		cmocka_unit_test(a_cq_that_overflows_is_in_error),
		cmocka_unit_test(an_index_that_names_no_gid_is_said),
		cmocka_unit_test(channels_are_never_writable),
		cmocka_unit_test(a_receive_in_reset_is_refused),
	};

	return cmocka_run_group_tests(tests, open_here, close_here);
}
