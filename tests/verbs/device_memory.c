/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the device's own: what a peer writes there and reads, and what is refused. */
#include <errno.h>
#include <string.h>

#include "ends.h"

#define SIZE	4096u
#define REMOTE	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ZERO_AT (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)

static const struct qp_wish plain;

static struct ibv_dm *alloc(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(here.ctx, &attr);
}

static int post(struct end *e, enum ibv_wr_opcode op, struct ibv_sge *v, uint64_t to, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.sg_list = v, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = to;
	wr.wr.rdma.rkey = rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

static void a_peer_writes_reads_and_adds(void **state)
{
	struct ibv_dm *dm = alloc(SIZE);
	struct ibv_mr *mr;
	struct end a, b;
	struct ibv_sge v;
	uint8_t got[64];

	(void)state;
	assert_non_null(dm);
	mr = ibv_reg_dm_mr(here.pd, dm, 0, SIZE, ZERO_AT | REMOTE);
	assert_non_null(mr);
	assert_ptr_equal(mr->pd, here.pd);
	ends_connect(&here, &plain, true, &a, &b);
	memset(a.m, 0x5a, 64);
	v = sge_at(&a, 0, 64);
	assert_int_equal(post(&a, IBV_WR_RDMA_WRITE, &v, 128, mr->rkey), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	v = sge_at(&a, 1024, 64);
	assert_int_equal(post(&a, IBV_WR_RDMA_READ, &v, 128, mr->rkey), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(a.m + 1024, a.m, 64);
	v = sge_at(&a, 2048, 8);
	assert_int_equal(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, &v, 128, mr->rkey), 0);
	expect_wc(a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(a.m + 2048, a.m, 8);
	assert_int_equal(dm->memcpy_from_dm(got, dm, 128, 64), 0);
	assert_memory_equal(got + 8, a.m, 56);
	assert_memory_not_equal(got, a.m, 8);
	ends_close(&here, &a, &b);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void it_is_aligned_and_has_an_end(void **state)
{
	struct ibv_dm *dm = alloc(100);
	uint8_t octets[128] = { 0 };

	(void)state;
	assert_non_null(dm);
	assert_int_equal(dm->memcpy_to_dm(dm, 96, octets, 4), 0);
	assert_int_equal(dm->memcpy_to_dm(dm, 3, octets, 4), EFAULT);
	assert_int_equal(dm->memcpy_to_dm(dm, 4, octets, 3), EFAULT);
	assert_int_equal(dm->memcpy_to_dm(dm, 100, octets, 4), EFAULT);
	assert_int_equal(dm->memcpy_to_dm(dm, UINT64_MAX - 3, octets, 8), EFAULT);
	assert_int_equal(dm->memcpy_from_dm(octets, dm, 0, 104), EFAULT);
	assert_null(ibv_reg_dm_mr(here.pd, dm, 0, 104, ZERO_AT));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_dm_mr(here.pd, dm, 0, 100, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void there_is_so_much_of_it(void **state)
{
	struct ibv_device_attr_ex attr;
	struct ibv_dm *all, *none;

	(void)state;
	assert_int_equal(ibv_query_device_ex(here.ctx, NULL, &attr), 0);
	assert_int_not_equal(attr.max_dm_size, 0);
	assert_null(alloc(attr.max_dm_size + 1));
	assert_int_equal(errno, ENOMEM);
	all = alloc(attr.max_dm_size);
	assert_non_null(all);
	assert_null(alloc(4));
	none = alloc(0);
	assert_non_null(none);
	assert_int_equal(ibv_free_dm(none), 0);
	assert_int_equal(ibv_free_dm(all), 0);
	all = alloc(attr.max_dm_size);
	assert_non_null(all);
	assert_int_equal(ibv_free_dm(all), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_writes_reads_and_adds),
		cmocka_unit_test(it_is_aligned_and_has_an_end),
		cmocka_unit_test(there_is_so_much_of_it),
	};

	return cmocka_run_group_tests(tests, open_here, close_here);
}
