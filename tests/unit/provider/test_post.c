/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting, through linked lists and through the ibv_wr_* interface. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define N	160u
#define AT_ONCE 64u /* BATCH of post.c */

#define OPS_HERE                                                                                   \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |       \
	 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |                          \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                            \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

struct lists {
	struct ibv_send_wr send[N];
	struct ibv_recv_wr recv[N];
	struct ibv_sge sge[N];
};

static void make_lists(struct lists *l)
{
	memset(l, 0, sizeof(*l));
	for (unsigned i = 0; i < N; i++) {
		l->sge[i] =
			(struct ibv_sge){ .addr = 0x1000 + i, .length = 10 + i, .lkey = 20 + i };
		l->send[i] = (struct ibv_send_wr){
			.wr_id = 100 + i,
			.next = i + 1 < N ? &l->send[i + 1] : NULL,
			.sg_list = &l->sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
		};
		l->recv[i] = (struct ibv_recv_wr){
			.wr_id = 200 + i,
			.next = i + 1 < N ? &l->recv[i + 1] : NULL,
			.sg_list = &l->sge[i],
			.num_sge = 1,
		};
	}
}

static struct ibv_qp *ready_qp(void *world, uint64_t send_ops)
{
	struct ibv_qp *qp = world_qp(world, send_ops);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	assert_int_equal(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	return qp;
}

/* InfiniBand volume 1, §10.3.1: in RESET a receive is an immediate error. */
static void no_receives_in_reset(void **state)
{
	struct ibv_qp *qp = world_qp(*state, 0), *ready = ready_qp(*state, 0);
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;

	errno = 0;
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_post_recv(ready, &wr, &bad), 0);
	assert_int_equal(ibv_modify_qp(ready, &reset, IBV_QP_STATE), 0);
	assert_int_equal(ibv_post_recv(ready, &wr, &bad), EINVAL);
	assert_int_equal(fake.nrecvd, 1);
	assert_int_equal(ibv_destroy_qp(ready), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void every_field_arrives(void **state)
{
	struct ibv_qp *qp = ready_qp(*state, 0);
	struct ibv_sge sge = { .addr = 1, .length = 2, .lkey = 3 };
	struct ibv_send_wr *bad = NULL, atomic = {
		.wr_id = 9,
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = { .remote_addr = 11, .compare_add = 12, .swap = 13, .rkey = 14 },
	};
	struct ibv_send_wr write = {
		.wr_id = 8,
		.next = &atomic,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE,
		.imm_data = 0x01020304,
		.wr.rdma = { .remote_addr = 5, .rkey = 6 },
	};
	const struct uw_send_wr *w = &fake.sent[0].wr, *a = &fake.sent[1].wr;

	assert_int_equal(ibv_post_send(qp, &write, &bad), 0);
	assert_null(bad);
	assert_int_equal(fake.doorbells, 1);
	assert_int_equal(w->wr_id, 8);
	assert_int_equal(w->num_sge, 1);
	assert_int_equal(fake.sent[0].sge[0].addr, 1);
	assert_int_equal(fake.sent[0].sge[0].length, 2);
	assert_int_equal(fake.sent[0].sge[0].lkey, 3);
	assert_int_equal(w->opcode, UW_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(w->flags, UW_SEND_SIGNALED | UW_SEND_SOLICITED | UW_SEND_FENCE);
	assert_int_equal(w->imm_or_inv, 0x01020304);
	assert_int_equal(w->remote_addr, 5);
	assert_int_equal(w->rkey, 6);
	assert_int_equal(w->compare_add, 0);
	assert_int_equal(a->opcode, UW_WR_ATOMIC_CMP_AND_SWP);
	assert_int_equal(a->remote_addr, 11);
	assert_int_equal(a->compare_add, 12);
	assert_int_equal(a->swap, 13);
	assert_int_equal(a->rkey, 14);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void one_doorbell_for_sixty_four(void **state)
{
	struct ibv_qp *qp = ready_qp(*state, 0);
	struct ibv_send_wr *bad_send = NULL;
	struct ibv_recv_wr *bad_recv = NULL;
	struct lists l;

	make_lists(&l);
	assert_int_equal(ibv_post_send(qp, l.send, &bad_send), 0);
	assert_null(bad_send);
	assert_int_equal(fake.doorbells, 3);
	assert_int_equal(fake.call_n[0], AT_ONCE);
	assert_int_equal(fake.call_n[1], AT_ONCE);
	assert_int_equal(fake.call_n[2], N - 2 * AT_ONCE);
	assert_int_equal(fake.nsent, N);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(fake.sent[i].wr.wr_id, 100 + i);
		assert_int_equal(fake.sent[i].sge[0].addr, 0x1000 + i);
	}
	fake.doorbells = 0;
	assert_int_equal(ibv_post_recv(qp, l.recv, &bad_recv), 0);
	assert_null(bad_recv);
	assert_int_equal(fake.doorbells, 3);
	assert_int_equal(fake.nrecvd, N);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(fake.recvd[i].wr_id, 200 + i);
		assert_ptr_equal(fake.recvd[i].sg_list, &l.sge[i]);
		assert_int_equal(fake.recvd[i].num_sge, 1);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* The refused request is named, those before it are posted and those behind it are not. */
static void bad_wr_is_the_first_refused(void **state)
{
	static const unsigned rooms[] = { 0, 1, 5, 63, 64, 65, 127, 128, 159 };
	struct ibv_qp *qp = ready_qp(*state, 0);
	struct lists l;

	make_lists(&l);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		struct ibv_send_wr *bad_send = NULL;
		struct ibv_recv_wr *bad_recv = NULL;

		fake.nsent = fake.nrecvd = fake.doorbells = 0;
		fake.room = rooms[i];
		fake.full = -ENOMEM;
		assert_int_equal(ibv_post_send(qp, l.send, &bad_send), ENOMEM);
		assert_int_equal(errno, ENOMEM);
		assert_ptr_equal(bad_send, &l.send[rooms[i]]);
		assert_int_equal(fake.nsent, rooms[i]);
		assert_int_equal(fake.doorbells, rooms[i] / AT_ONCE + 1);
		fake.room = rooms[i];
		fake.full = -EINVAL;
		assert_int_equal(ibv_post_recv(qp, l.recv, &bad_recv), EINVAL);
		assert_int_equal(errno, EINVAL);
		assert_ptr_equal(bad_recv, &l.recv[rooms[i]]);
		assert_int_equal(fake.nrecvd, rooms[i]);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void shared_receive_queue(void **state)
{
	struct world *w = *state;
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 64, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(w->pd, &init);
	struct ibv_recv_wr *bad = NULL;
	struct lists l;

	assert_non_null(srq);
	make_lists(&l);
	assert_int_equal(ibv_post_srq_recv(srq, l.recv, &bad), 0);
	assert_int_equal(fake.doorbells, 3);
	assert_int_equal(fake.nrecvd, N);
	fake.room = 80;
	assert_int_equal(ibv_post_srq_recv(srq, l.recv, &bad), ENOMEM);
	assert_ptr_equal(bad, &l.recv[80]);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* ---- ibv_wr_* ---- */

static struct ibv_qp_ex *make_ex(void **state)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(world_qp(*state, OPS_HERE));

	assert_non_null(qpx);
	return qpx;
}

static void only_if_asked_for(void **state)
{
	struct ibv_qp *qp = ready_qp(*state, 0);

	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static struct ibv_qp *qp_with(struct world *w, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = w->pd,
		.send_ops_flags = ops,
	};

	errno = 0;
	return ibv_create_qp_ex(w->ctx, &attr);
}

static void unknown_operations_are_refused(void **state)
{
	static const uint64_t ops[] = { IBV_QP_EX_WITH_TSO,
					IBV_QP_EX_WITH_SEND | PABI_WITH_ATOMIC_WRITE << 1 };

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		assert_null(qp_with(*state, ops[i]));
		assert_int_equal(errno, EOPNOTSUPP);
	}
}

/* The release of libibverbs that this runs with; 0: its file's name does not say. */
static unsigned release_here(void)
{
	char path[PATH_MAX];
	Dl_info info;

	assert_int_not_equal(dladdr((void *)ibv_open_device, &info), 0);
	assert_non_null(realpath(info.dli_fname, path));
	return pabi_release_of(strrchr(path, '/'));
}

static void flush_is_refused_where_the_release_lacks_it(void **state)
{
	bool has = pabi_wr_ops(release_here()) & PABI_WITH_FLUSH;
	struct ibv_qp *qp = qp_with(*state, IBV_QP_EX_WITH_SEND | PABI_WITH_FLUSH);

	assert_true(has == !!qp);
	assert_true(has || errno == EOPNOTSUPP);
	if (qp)
		assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void batch_is_posted_at_once(void **state)
{
	struct ibv_qp_ex *q = make_ex(state);
	struct ibv_sge list[2] = { { 1, 2, 3 }, { 4, 5, 6 } };

	ibv_wr_start(q);
	q->wr_id = 1;
	q->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(q);
	ibv_wr_set_sge(q, 7, 8, 9);
	q->wr_id = 2;
	q->wr_flags = IBV_SEND_FENCE;
	ibv_wr_rdma_write(q, 10, 11);
	ibv_wr_set_sge_list(q, 2, list);
	q->wr_id = 3;
	ibv_wr_rdma_read(q, 12, 13);
	q->wr_id = 4;
	ibv_wr_send_inv(q, 14);
	assert_int_equal(fake.doorbells, 0);
	assert_int_equal(ibv_wr_complete(q), 0);
	assert_int_equal(fake.doorbells, 1);
	assert_int_equal(fake.nsent, 4);

	assert_int_equal(fake.sent[0].wr.opcode, UW_WR_SEND);
	assert_int_equal(fake.sent[0].wr.wr_id, 1);
	assert_int_equal(fake.sent[0].wr.flags, UW_SEND_SIGNALED);
	assert_int_equal(fake.sent[0].sge[0].lkey, 7);
	assert_int_equal(fake.sent[0].sge[0].addr, 8);
	assert_int_equal(fake.sent[0].sge[0].length, 9);
	assert_int_equal(fake.sent[1].wr.opcode, UW_WR_RDMA_WRITE);
	assert_int_equal(fake.sent[1].wr.flags, UW_SEND_FENCE);
	assert_int_equal(fake.sent[1].wr.rkey, 10);
	assert_int_equal(fake.sent[1].wr.remote_addr, 11);
	assert_int_equal(fake.sent[1].wr.num_sge, 2);
	assert_int_equal(fake.sent[1].sge[1].lkey, 6);
	assert_int_equal(fake.sent[2].wr.opcode, UW_WR_RDMA_READ);
	assert_int_equal(fake.sent[2].wr.rkey, 12);
	assert_int_equal(fake.sent[2].wr.remote_addr, 13);
	assert_int_equal(fake.sent[2].wr.num_sge, 0);
	assert_int_equal(fake.sent[3].wr.opcode, UW_WR_SEND_WITH_INV);
	assert_int_equal(fake.sent[3].wr.imm_or_inv, 14);
	assert_int_equal(ibv_destroy_qp(&q->qp_base), 0);
}

static void immediate_data_and_atomics(void **state)
{
	struct ibv_qp_ex *q = make_ex(state);
	const struct uw_send_wr *imm = &fake.sent[0].wr, *write = &fake.sent[1].wr,
				*swap = &fake.sent[2].wr, *add = &fake.sent[3].wr;

	ibv_wr_start(q);
	ibv_wr_send_imm(q, 1);
	ibv_wr_rdma_write_imm(q, 2, 3, 4);
	ibv_wr_atomic_cmp_swp(q, 5, 6, 7, 8);
	ibv_wr_set_sge(q, 1, 2, 8);
	ibv_wr_atomic_fetch_add(q, 9, 10, 11);
	ibv_wr_set_sge(q, 1, 2, 8);
	assert_int_equal(ibv_wr_complete(q), 0);
	assert_int_equal(fake.nsent, 4);
	assert_int_equal(imm->opcode, UW_WR_SEND_WITH_IMM);
	assert_int_equal(imm->imm_or_inv, 1);
	assert_int_equal(write->opcode, UW_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(write->rkey, 2);
	assert_int_equal(write->remote_addr, 3);
	assert_int_equal(write->imm_or_inv, 4);
	assert_int_equal(swap->opcode, UW_WR_ATOMIC_CMP_AND_SWP);
	assert_int_equal(swap->rkey, 5);
	assert_int_equal(swap->remote_addr, 6);
	assert_int_equal(swap->compare_add, 7);
	assert_int_equal(swap->swap, 8);
	assert_int_equal(swap->num_sge, 1);
	assert_int_equal(add->opcode, UW_WR_ATOMIC_FETCH_AND_ADD);
	assert_int_equal(add->rkey, 9);
	assert_int_equal(add->remote_addr, 10);
	assert_int_equal(add->compare_add, 11);
	assert_int_equal(ibv_destroy_qp(&q->qp_base), 0);
}

/* The library of this test is rdma-core 44, whose struct ibv_qp_ex has the one and not the other.
 */
static void the_later_operations(void **state)
{
	struct ibv_qp_ex *q = ibv_qp_to_qp_ex(ready_qp(*state, OPS_HERE | PABI_WITH_ATOMIC_WRITE));
	const struct uw_send_wr *wr = &fake.sent[0].wr;
	struct ibv_send_wr plain = { .opcode = (enum ibv_wr_opcode)UW_WR_FLUSH }, *bad;
	void (*atomic_write)(struct ibv_qp_ex *, uint32_t, uint64_t, const void *);

	memcpy(&atomic_write, (char *)q + PABI_QP_MASK_V36, sizeof(atomic_write));
	ibv_wr_start(q);
	q->wr_id = 17;
	atomic_write(q, 5, 64, "abcdefgh");
	assert_int_equal(ibv_wr_complete(q), 0);
	assert_int_equal(wr->opcode, UW_WR_ATOMIC_WRITE);
	assert_int_equal(wr->wr_id, 17);
	assert_int_equal(wr->rkey, 5);
	assert_int_equal(wr->remote_addr, 64);
	assert_memory_equal(&wr->compare_add, "abcdefgh", 8);
	assert_int_equal(ibv_post_send(&q->qp_base, &plain, &bad), EINVAL);
	assert_int_equal(ibv_destroy_qp(&q->qp_base), 0);
}

static void set_ex(struct verbs_qp *v, unsigned release)
{
	const struct pabi_wr wr = { .atomic_write = (void *)(uintptr_t)0x1111111111111110,
				    .flush = (void *)(uintptr_t)0x2222222222222220 };

	memset(v, 0, sizeof(*v));
	pabi_qp_set_ex(v, release, &wr);
}

static uint64_t at(const struct verbs_qp *v, size_t place)
{
	uint64_t x;

	memcpy(&x, (const char *)v + place, sizeof(x));
	return x;
}

static void each_release_has_them_elsewhere(void **state)
{
	const uint64_t aw = 0x1111111111111110, flush = 0x2222222222222220, mask = VERBS_QP_EX;
	struct verbs_qp v;

	(void)state;
	set_ex(&v, 0);
	assert_true(at(&v, PABI_QP_MASK_V36) == mask && at(&v, PABI_QP_MASK_V44) == mask &&
		    at(&v, PABI_QP_MASK_V45) == mask);
	set_ex(&v, 43);
	assert_true(at(&v, PABI_QP_MASK_V36) == mask && !at(&v, PABI_QP_MASK_V44));
	set_ex(&v, 44);
	assert_true(at(&v, PABI_QP_MASK_V36) == aw && at(&v, PABI_QP_MASK_V44) == mask);
	set_ex(&v, 65);
	assert_true(at(&v, PABI_QP_MASK_V36) == aw && at(&v, PABI_QP_MASK_V44) == flush &&
		    at(&v, PABI_QP_MASK_V45) == mask);
	assert_int_equal(pabi_wr_ops(0), 0);
	assert_int_equal(pabi_wr_ops(44), PABI_WITH_ATOMIC_WRITE);
	assert_int_equal(pabi_wr_ops(45), PABI_WITH_ATOMIC_WRITE | PABI_WITH_FLUSH);
}

static void the_release_is_in_the_name_of_the_file(void **state)
{
	(void)state;
	assert_int_equal(pabi_release_of("/libibverbs.so.1.14.44.0"), 44);
	assert_int_equal(pabi_release_of("/libibverbs-1de1263b.so.1.14.48.0"), 48);
	assert_int_equal(pabi_release_of("/libibverbs.so.1"), 0);
	assert_int_equal(pabi_release_of("/libibverbs.so"), 0);
	assert_int_equal(pabi_release_of("/libibverbs.so.1.14.48.0~old"), 0);
}

static void inline_data_is_copied_when_set(void **state)
{
	struct ibv_qp_ex *q = make_ex(state);
	char one[] = "first", a[] = "sec", b[] = "ond";
	struct ibv_data_buf list[2] = { { a, 3 }, { b, 3 } };

	ibv_wr_start(q);
	ibv_wr_send(q);
	ibv_wr_set_inline_data(q, one, 5);
	ibv_wr_rdma_write(q, 1, 2);
	ibv_wr_set_inline_data_list(q, 2, list);
	memset(one, 'x', sizeof(one));
	memset(a, 'x', sizeof(a));
	memset(b, 'x', sizeof(b));
	assert_int_equal(ibv_wr_complete(q), 0);
	assert_int_equal(fake.nsent, 2);
	assert_true(fake.sent[0].wr.flags & UW_SEND_INLINE);
	assert_int_equal(fake.sent[0].sge[0].length, 5);
	assert_memory_equal(fake.sent[0].octets, "first", 5);
	assert_true(fake.sent[1].wr.flags & UW_SEND_INLINE);
	assert_int_equal(fake.sent[1].sge[0].length, 6);
	assert_memory_equal(fake.sent[1].octets, "second", 6);
	assert_int_equal(ibv_destroy_qp(&q->qp_base), 0);
}

static void mistakes_refuse_the_whole_batch(void **state)
{
	struct ibv_qp_ex *q = make_ex(state);
	struct ibv_sge many[8] = { { 0 } };
	char big[FAKE_MAX_INLINE + 1] = { 0 };

	ibv_wr_start(q);
	ibv_wr_send(q);
	ibv_wr_set_sge(q, 1, 2, 3);
	ibv_wr_send(q);
	ibv_wr_set_sge_list(q, 8, many);
	assert_int_equal(ibv_wr_complete(q), EINVAL);
	assert_int_equal(fake.doorbells, 0);

	ibv_wr_start(q);
	ibv_wr_send(q);
	ibv_wr_set_inline_data(q, big, sizeof(big));
	assert_int_equal(ibv_wr_complete(q), EINVAL);
	assert_int_equal(fake.doorbells, 0);

	ibv_wr_start(q); /* 6 asked for, 8 granted */
	for (int i = 0; i < 11; i++) {
		ibv_wr_send(q);
		ibv_wr_set_sge(q, 1, 2, 3);
	}
	assert_int_equal(ibv_wr_complete(q), ENOMEM);
	assert_int_equal(fake.doorbells, 0);

	ibv_wr_start(q); /* and the next batch is clean */
	ibv_wr_send(q);
	assert_int_equal(ibv_wr_complete(q), 0);
	assert_int_equal(fake.nsent, 1);
	assert_int_equal(fake.sent[0].wr.num_sge, 0);
	assert_int_equal(ibv_destroy_qp(&q->qp_base), 0);
}

static void aborted_batch_vanishes(void **state)
{
	struct ibv_qp_ex *q = make_ex(state);

	ibv_wr_start(q);
	ibv_wr_send(q);
	ibv_wr_abort(q);
	ibv_wr_start(q);
	assert_int_equal(ibv_wr_complete(q), 0);
	assert_int_equal(fake.doorbells, 0);
	fake.room = 0;
	fake.full = -EINVAL;
	ibv_wr_start(q);
	ibv_wr_send(q);
	assert_int_equal(ibv_wr_complete(q), EINVAL);
	assert_int_equal(ibv_destroy_qp(&q->qp_base), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(no_receives_in_reset),
		T(every_field_arrives),
		T(one_doorbell_for_sixty_four),
		T(bad_wr_is_the_first_refused),
		T(shared_receive_queue),
		T(only_if_asked_for),
		T(unknown_operations_are_refused),
		T(flush_is_refused_where_the_release_lacks_it),
		T(batch_is_posted_at_once),
		T(immediate_data_and_atomics),
		T(the_later_operations),
		T(each_release_has_them_elsewhere),
		T(the_release_is_in_the_name_of_the_file),
		T(inline_data_is_copied_when_set),
		T(mistakes_refuse_the_whole_batch),
		T(aborted_batch_vanishes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
