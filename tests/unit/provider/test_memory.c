/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains, memory regions and windows. */
#include <sched.h>

#include "fixture.h"

static void memory_regions(void **state)
{
	struct world *w = *state;
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr_iova(w->pd, buf, sizeof(buf), 0x1000,
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);

	assert_non_null(mr);
	assert_ptr_equal(fake.mr->addr, buf);
	assert_int_equal(fake.mr->len, sizeof(buf));
	assert_int_equal(fake.mr->iova, 0x1000);
	assert_int_equal(fake.mr->access, UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_READ);
	assert_int_equal(mr->lkey, 0xabcd0123);
	assert_int_equal(mr->rkey, 0xabcd0123);
	assert_ptr_equal(mr->addr, buf);
	fake.fail = -EBUSY;
	assert_int_equal(ibv_dereg_mr(mr), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	mr = ibv_reg_mr(w->pd, buf, sizeof(buf), 0);
	assert_non_null(mr);
	assert_int_equal(fake.mr->iova, (uintptr_t)buf);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	fake.fail = -EINVAL;
	errno = 0;
	assert_null(ibv_reg_mr(w->pd, buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
}

/* As the kernel: a bit that nobody knows is no access, unless it is of those that may be ignored.
 */
static void unknown_access_is_refused(void **state)
{
	static const int bad[] = { 1 << 10, 1 << 19, 1 << 30, (int)(1u << 31) };
	static const int good[] = { IBV_ACCESS_HUGETLB, IBV_ACCESS_RELAXED_ORDERING, 1 << 29,
				    UW_ACCESS_FLUSH_GLOBAL | UW_ACCESS_FLUSH_PERSISTENT };
	struct world *w = *state;
	struct ibv_mr *mr;
	char buf[64];

	for (unsigned i = 0; i < 4; i++) {
		int access = good[i];

		errno = 0;
		assert_null(ibv_reg_mr(w->pd, buf, sizeof(buf), bad[i]));
		assert_int_equal(errno, EINVAL);
		mr = ibv_reg_mr(w->pd, buf, sizeof(buf), access);
		assert_non_null(mr);
		assert_int_equal(
			ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, bad[i]),
			IBV_REREG_MR_ERR_CMD);
		assert_int_equal(
			ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access), 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

static void busy_protection_domain(void **state)
{
	struct world *w = *state;

	fake.fail = -EBUSY;
	assert_int_equal(ibv_dealloc_pd(w->pd), EBUSY);
	fake.fail = -ENOMEM;
	errno = 0;
	assert_null(ibv_alloc_pd(w->ctx));
	assert_int_equal(errno, ENOMEM);
}

static void parent_domains_hold_what_they_are_made_of(void **state)
{
	struct world *w = *state;
	struct ibv_td_init_attr none = { 0 };
	struct ibv_td *td = ibv_alloc_td(w->ctx, &none);
	struct ibv_parent_domain_init_attr attr = { .pd = w->pd, .td = td };
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char buf[8];

	assert_non_null(td);
	pd = ibv_alloc_parent_domain(w->ctx, &attr);
	assert_non_null(pd);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(w->pd), EBUSY);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	attr.pd = NULL;
	assert_null(ibv_alloc_parent_domain(w->ctx, &attr));
	assert_int_equal(errno, EINVAL);
}

static void a_region_can_be_changed(void **state)
{
	struct world *w = *state;
	char buf[64], other[128];
	struct ibv_mr *mr = ibv_reg_mr(w->pd, buf, sizeof(buf), 0);

	assert_non_null(mr);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, sizeof(other), 0),
		0);
	assert_ptr_equal(fake.mr->addr, other);
	assert_int_equal(fake.mr->len, sizeof(other));
	assert_int_equal(fake.mr->iova, (uintptr_t)other);
	assert_int_equal(fake.mr->access, 0);
	assert_ptr_equal(mr->addr, other);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		0);
	assert_int_equal(fake.mr->access, UW_ACCESS_LOCAL_WRITE);
	assert_ptr_equal(fake.mr->addr, other);
	fake.fail = -EBUSY;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void a_zero_based_region_begins_with_0(void **state)
{
	struct world *w = *state;
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(w->pd, buf, sizeof(buf), IBV_ACCESS_ZERO_BASED);

	assert_non_null(mr);
	assert_int_equal(fake.mr->iova, 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void the_null_region(void **state)
{
	struct world *w = *state;
	struct ibv_mr *mr = ibv_alloc_null_mr(w->pd);

	assert_non_null(mr);
	assert_int_equal(mr->lkey, 0xabcd0123);
	assert_ptr_equal(mr->pd, w->pd);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void advice_is_taken(void **state)
{
	struct world *w = *state;
	struct ibv_sge sge = { 0 };

	assert_int_equal(ibv_advise_mr(w->pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
				       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
			 0);
	assert_int_equal(ibv_advise_mr(w->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0), EINVAL);
	assert_int_equal(ibv_advise_mr(w->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, &sge, 1),
			 0);
}

/* The double's libibverbs may be too old for ibv_alloc_dmah(): ours are called. */
static void dma_handles(void **state)
{
	struct world *w = *state;
	struct pabi_dmah_attr a = { .comp_mask =
					    PABI_DMAH_CPU_ID | PABI_DMAH_PH | PABI_DMAH_MEM_TYPE,
				    .cpu_id = (uint32_t)sched_getcpu() };
	char buf[64];
	struct pabi_mr_attr m = { .comp_mask = PABI_MR_ADDR | PABI_MR_DMAH | PABI_MR_IOVA,
				  .addr = buf,
				  .length = sizeof(buf),
				  .iova = 0x4000 };
	struct ibv_mr *mr;

	m.dmah = uwarp_alloc_dmah(w->ctx, &a);
	assert_non_null(m.dmah);
	mr = uwarp_reg_mr_ex(w->pd, &m);
	assert_non_null(mr);
	assert_int_equal(fake.mr->iova, 0x4000);
	mr->context = w->ctx; /* as libibverbs does */
	mr->pd = w->pd;
	assert_int_equal(uwarp_dealloc_dmah(m.dmah), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	m.comp_mask = PABI_MR_ADDR;
	mr = uwarp_reg_mr_ex(w->pd, &m);
	assert_non_null(mr);
	assert_int_equal(fake.mr->iova, (uintptr_t)buf);
	mr->context = w->ctx;
	mr->pd = w->pd;
	assert_int_equal(uwarp_dealloc_dmah(m.dmah), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void dma_handles_that_cannot_be(void **state)
{
	static const struct {
		struct pabi_dmah_attr a;
		int error;
	} rows[] = {
		{ { PABI_DMAH_PH, 0, 4, 0 }, EINVAL },
		{ { PABI_DMAH_MEM_TYPE, 0, 0, 2 }, EINVAL },
		{ { 8, 0, 0, 0 }, EINVAL },
		{ { PABI_DMAH_CPU_ID, 0xffff, 0, 0 }, EPERM },
	};
	struct world *w = *state;
	char buf[64];
	struct pabi_mr_attr m = { .addr = buf, .length = sizeof(buf) };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pabi_dmah_attr a = rows[i].a;

		assert_null(uwarp_alloc_dmah(w->ctx, &a));
		assert_int_equal(errno, rows[i].error);
	}
	assert_null(uwarp_reg_mr_ex(w->pd, &m)); /* neither an address nor a file */
	assert_int_equal(errno, EINVAL);
	m.comp_mask = PABI_MR_ADDR | PABI_MR_FD;
	assert_null(uwarp_reg_mr_ex(w->pd, &m));
	assert_int_equal(errno, EINVAL);
	m.comp_mask = PABI_MR_FD | PABI_MR_FD_OFFSET | PABI_MR_IOVA;
	assert_null(uwarp_reg_mr_ex(w->pd, &m)); /* a dma-buf */
	assert_int_equal(errno, EOPNOTSUPP);
	m.comp_mask = PABI_MR_ADDR | PABI_MR_DMAH;
	m.access = IBV_ACCESS_ON_DEMAND;
	assert_null(uwarp_reg_mr_ex(w->pd, &m));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void windows_of_type_1(void **state)
{
	struct world *w = *state;
	struct ibv_qp *qp = world_qp(w, 0);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(w->pd, buf, sizeof(buf), IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(w->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 7,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)buf, 64, IBV_ACCESS_REMOTE_READ },
	};

	assert_non_null(mw);
	assert_int_equal(fake.mw->type, 1);
	assert_int_equal(mw->rkey, 0x77001200);
	assert_int_equal(ibv_bind_mw(qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, 0x77001201);
	assert_int_equal(fake.sent[0].wr.opcode, UW_WR_BIND_MW);
	assert_int_equal(fake.sent[0].wr.rkey, 0x77001201);
	assert_int_equal(fake.sent[0].wr.imm_or_inv, mr->lkey);
	assert_int_equal(fake.sent[0].wr.remote_addr, (uintptr_t)buf);
	assert_int_equal(fake.sent[0].wr.swap, 64);
	assert_int_equal(fake.sent[0].wr.compare_add, UW_ACCESS_REMOTE_READ);
	assert_int_equal(fake.sent[0].wr.flags, UW_SEND_SIGNALED);
	/* refused: the key stays */
	fake.room = 0;
	fake.full = -ENOMEM;
	assert_int_equal(ibv_bind_mw(qp, mw, &bind), ENOMEM);
	assert_int_equal(mw->rkey, 0x77001201);
	bind.bind_info.mr = NULL;
	assert_int_equal(ibv_bind_mw(qp, mw, &bind), EINVAL);
	assert_int_equal(ibv_dealloc_pd(w->pd), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void windows_of_type_2(void **state)
{
	struct world *w = *state;
	struct ibv_qp *qp = world_qp(w, 0);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(w->pd, buf, sizeof(buf), IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(w->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr inv = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = 0x77001205 };
	struct ibv_send_wr bind = { .next = &inv, .opcode = IBV_WR_BIND_MW }, *bad = NULL;

	assert_non_null(mw);
	assert_int_equal(fake.mw->type, 2);
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = 0x05; /* its lower 8 bits count; the window then has the whole key */
	bind.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ mr, (uintptr_t)buf, 64, IBV_ACCESS_REMOTE_READ };
	assert_int_equal(ibv_post_send(qp, &bind, &bad), 0);
	assert_int_equal(fake.sent[0].wr.rkey, 0x77001205);
	assert_int_equal(mw->rkey, 0x77001205);
	assert_int_equal(fake.sent[1].wr.opcode, UW_WR_LOCAL_INV);
	assert_int_equal(fake.sent[1].wr.imm_or_inv, 0x77001205);
	/* no window: refused, and what stands before it is posted */
	inv.next = &bind;
	bind.next = NULL;
	bind.bind_mw.mw = NULL;
	assert_int_equal(ibv_post_send(qp, &inv, &bad), EINVAL);
	assert_ptr_equal(bad, &bind);
	assert_int_equal(fake.nsent, 3);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(memory_regions),
		T(unknown_access_is_refused),
		T(busy_protection_domain),
		T(parent_domains_hold_what_they_are_made_of),
		T(a_region_can_be_changed),
		T(a_zero_based_region_begins_with_0),
		T(the_null_region),
		T(advice_is_taken),
		T(dma_handles),
		T(dma_handles_that_cannot_be),
		T(windows_of_type_1),
		T(windows_of_type_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
