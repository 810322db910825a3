/* SPDX-License-Identifier: BSD-3-Clause */
/* What calls.c does for every operation: no cancellation inside, and errno. */
#include <errno.h>
#include <pthread.h>

#include "fixture.h"

/* A thread that is to be cancelled gets out of each call, and ends at its own next point. */
struct victim {
	struct world *w;
	atomic_int calls; /* that came back */
};

static void call_everything(struct victim *v)
{
	struct world *w = v->w;
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_srq_init_attr sattr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_pd *pd = ibv_alloc_pd(w->ctx);
	struct ibv_cq *cq = ibv_create_cq(w->ctx, 4, NULL, w->channel, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, v, sizeof(*v), 0);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_srq *srq = ibv_create_srq(pd, &sattr);
	struct ibv_qp *qp = world_qp(w, 0);

	v->calls++;
	ibv_req_notify_cq(cq, 0);
	ibv_resize_cq(cq, 8);
	ibv_modify_qp(qp, &init,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	v->calls++;
	ibv_destroy_qp(qp);
	ibv_destroy_srq(srq);
	ibv_dealloc_mw(mw);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	v->calls++;
}

static void *cancelled(void *arg)
{
	struct victim *v = arg;

	pthread_cancel(pthread_self());
	call_everything(v);
	pthread_testcancel();
	v->calls = 100;
	return NULL;
}

static void a_cancelled_thread_leaves_calls_first(void **state)
{
	struct victim v = { .w = *state };
	pthread_t t;
	void *end;

#ifdef __SANITIZE_ADDRESS__
	skip(); /* it takes the frames that cancellation unwinds for live ones */
#endif
	fake.cancel_points = true;
	assert_int_equal(pthread_create(&t, NULL, cancelled, &v), 0);
	assert_int_equal(pthread_join(t, &end), 0);
	fake.cancel_points = false;
	assert_ptr_equal(end, PTHREAD_CANCELED);
	assert_int_equal(v.calls, 3);
}

#define ERROR_IS(call, e)                                                                          \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_int_equal(call, e);                                                         \
		assert_int_equal(errno, e);                                                        \
	} while (0)

static void what_is_returned_is_in_errno(void **state)
{
	struct world *w = *state;
	struct ibv_qp *qp = world_qp(w, 0);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 9 };
	struct ibv_port_attr port;

	ERROR_IS(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		EINVAL);
	ERROR_IS(ibv_query_port(w->ctx, 2, &port), EINVAL);
	ERROR_IS(ibv_dealloc_pd(w->pd), EBUSY);
	fake.fail = -EBUSY;
	ERROR_IS(ibv_destroy_qp(qp), EBUSY);
	fake.fail = -EINVAL;
	ERROR_IS(ibv_resize_cq(w->cq, 1), EINVAL);
	errno = 77; /* and a success leaves it alone */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(errno, 77);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_cancelled_thread_leaves_calls_first),
		T(what_is_returned_is_in_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
