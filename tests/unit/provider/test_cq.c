/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues, plain and extended. */
#include <string.h>
#include <unistd.h>

#include "fixture.h"

static const struct uw_wc sample = {
	.wr_id = 0x1122334455667788,
	.status = UW_WC_SUCCESS,
	.opcode = UW_WC_RECV,
	.vendor_err = 3,
	.byte_len = 4096,
	.imm_or_inv = 0x44332211,
	.qp_num = 77,
	.src_qp = 5,
	.wc_flags = UW_WC_WITH_IMM,
	.slid = 9,
	.sl = 2,
	.dlid_path_bits = 1,
};

static void arguments_are_checked(void **state)
{
	static const struct {
		int cqe, vector;
	} bad[] = { { 0, 0 }, { -1, 0 }, { 16, 1 }, { 16, -1 } };
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		errno = 0;
		assert_null(ibv_create_cq(w->ctx, bad[i].cqe, NULL, NULL, bad[i].vector));
		assert_int_equal(errno, EINVAL);
	}
	fake.fail = -ENOMEM;
	errno = 0;
	assert_null(ibv_create_cq(w->ctx, 16, NULL, NULL, 0));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(fake.live, 2);
}

static void poll_hands_completions_through(void **state)
{
	struct world *w = *state;
	struct uw_wc second = sample;
	struct ibv_wc wc[4];

	assert_int_equal(w->cq->cqe, 32);
	assert_int_equal(fake.cq->attr.depth, 32);
	assert_int_equal(ibv_poll_cq(w->cq, 4, wc), 0);
	second.status = UW_WC_REM_ACCESS_ERR;
	fake_complete(fake.cq, &sample);
	fake_complete(fake.cq, &second);
	assert_int_equal(ibv_poll_cq(w->cq, 4, wc), 2);
	assert_true(wc[0].wr_id == sample.wr_id);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[0].opcode, IBV_WC_RECV);
	assert_int_equal(wc[0].vendor_err, 3);
	assert_int_equal(wc[0].byte_len, 4096);
	assert_int_equal(wc[0].imm_data, 0x44332211);
	assert_int_equal(wc[0].qp_num, 77);
	assert_int_equal(wc[0].src_qp, 5);
	assert_int_equal(wc[0].wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc[0].slid, 9);
	assert_int_equal(wc[0].sl, 2);
	assert_int_equal(wc[0].dlid_path_bits, 1);
	assert_int_equal(wc[1].status, IBV_WC_REM_ACCESS_ERR);
	fake.fail = -EIO;
	assert_true(ibv_poll_cq(w->cq, 4, wc) < 0);
}

static void resize(void **state)
{
	struct world *w = *state;

	assert_int_equal(ibv_resize_cq(w->cq, 0), EINVAL);
	fake.fail = -EINVAL;
	assert_int_equal(ibv_resize_cq(w->cq, 64), EINVAL);
	assert_int_equal(w->cq->cqe, 32);
	assert_int_equal(ibv_resize_cq(w->cq, 64), 0);
	assert_int_equal(w->cq->cqe, 64);
	assert_int_equal(fake.cq->attr.depth, 64);
}

static void arming(void **state)
{
	struct world *w = *state;

	assert_int_equal(ibv_req_notify_cq(w->cq, 1), 0);
	assert_true(fake.cq->armed && fake.cq->solicited_only);
	assert_int_equal(ibv_req_notify_cq(w->cq, 0), 0);
	assert_true(fake.cq->armed && !fake.cq->solicited_only);
}

/* Until its end, whatever number the channel gets. */
static void a_cq_holds_its_channel(void **state)
{
	struct world *w = *state;
	int number = w->channel->fd;

	assert_int_equal(fake_host.held, 1);
	fake.fail = -ENOMEM;
	assert_null(ibv_create_cq(w->ctx, 16, NULL, w->channel, 0));
	assert_int_equal(fake_host.held, 1);
	w->channel->fd = number + 1; /* no channel */
	errno = 0;
	assert_null(ibv_create_cq(w->ctx, 16, NULL, w->channel, 0));
	assert_int_equal(errno, EBADF);
	assert_int_equal(fake_host.held, 1);
	w->channel->fd = number;
}

static void busy_cq_stays(void **state)
{
	struct world *w = *state;
	struct ibv_wc wc;

	fake.fail = -EBUSY;
	assert_int_equal(ibv_destroy_cq(w->cq), EBUSY);
	assert_int_equal(ibv_poll_cq(w->cq, 1, &wc), 0);
}

/* ---- extended ---- */

static struct ibv_cq_ex *make_ex(struct world *w, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8,
		.wc_flags = wc_flags,
		.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
		.flags = flags,
	};

	errno = 0;
	return ibv_create_cq_ex(w->ctx, &attr);
}

static void iterator_reads_everything(void **state)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *cq = make_ex(*state, IBV_WC_STANDARD_FLAGS, 0);
	struct uw_wc second = sample;

	assert_non_null(cq);
	second.wr_id = 2;
	second.status = UW_WC_WR_FLUSH_ERR;
	fake_complete(fake.cq, &sample);
	fake_complete(fake.cq, &second);
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	assert_true(cq->wr_id == sample.wr_id);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 3);
	assert_int_equal(ibv_wc_read_byte_len(cq), 4096);
	assert_int_equal(ibv_wc_read_imm_data(cq), 0x44332211);
	assert_int_equal(ibv_wc_read_invalidated_rkey(cq), 0x44332211);
	assert_int_equal(ibv_wc_read_qp_num(cq), 77);
	assert_int_equal(ibv_wc_read_src_qp(cq), 5);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_slid(cq), 9);
	assert_int_equal(ibv_wc_read_sl(cq), 2);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 1);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_true(cq->wr_id == 2);
	assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* Were the lock kept by a failed start_poll, the next one would hang. */
static void failed_start_needs_no_end(void **state)
{
	struct ibv_poll_cq_attr none = { 0 }, odd = { .comp_mask = 1 };
	struct ibv_cq_ex *cq = make_ex(*state, 0, 0);

	assert_non_null(cq);
	assert_int_equal(ibv_start_poll(cq, &odd), EINVAL);
	assert_int_equal(ibv_start_poll(cq, &none), ENOENT);
	fake.fail = -EIO;
	assert_int_equal(ibv_start_poll(cq, &none), EIO);
	fake_complete(fake.cq, &sample);
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

struct second_poller {
	struct ibv_cq_ex *cq;
	atomic_int started;
};

static void *poll_in_thread(void *arg)
{
	struct second_poller *p = arg;
	struct ibv_poll_cq_attr none = { 0 };

	if (ibv_start_poll(p->cq, &none))
		return NULL;
	atomic_store(&p->started, 1);
	ibv_end_poll(p->cq);
	return NULL;
}

static void second_poller_waits(void **state)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct second_poller p = { .cq = make_ex(*state, 0, 0) };
	pthread_t t;

	assert_non_null(p.cq);
	fake_complete(fake.cq, &sample);
	fake_complete(fake.cq, &sample);
	assert_int_equal(ibv_start_poll(p.cq, &none), 0);
	assert_int_equal(pthread_create(&t, NULL, poll_in_thread, &p), 0);
	usleep(50000);
	assert_int_equal(atomic_load(&p.started), 0);
	ibv_end_poll(p.cq);
	pthread_join(t, NULL);
	assert_int_equal(atomic_load(&p.started), 1);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(p.cq)), 0);
}

static void single_threaded_takes_no_lock(void **state)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *cq = make_ex(*state, 0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);

	assert_non_null(cq);
	fake_complete(fake.cq, &sample);
	fake_complete(fake.cq, &sample);
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void completions_have_their_time(void **state)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *cq = make_ex(*state,
				       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
				       0);

	assert_non_null(cq);
	assert_true(fake.cq->attr.stamps);
	fake_complete(fake.cq, &sample);
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	assert_int_equal(ibv_wc_read_completion_ts(cq), 1000);
	assert_true(ibv_wc_read_completion_wallclock_ns(cq) > 1000000000ull * 86400 * 365);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* What a completion here never has reads as not being there. */
static void every_field_may_be_asked_for(void **state)
{
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_wc_tm_info info = { 1, 1 };
	struct ibv_cq_ex *cq = make_ex(*state, IBV_CREATE_CQ_SUP_WC_FLAGS, 0);

	assert_non_null(cq);
	fake_complete(fake.cq, &sample);
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	assert_int_equal(ibv_wc_read_cvlan(cq), 0);
	assert_int_equal(ibv_wc_read_flow_tag(cq), 0);
	ibv_wc_read_tm_info(cq, &info);
	assert_int_equal(info.tag, 0);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void overruns_may_be_ignored(void **state)
{
	struct ibv_cq_ex *cq = make_ex(*state, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);

	assert_non_null(cq);
	assert_true(fake.cq->attr.ignore_overrun);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void what_is_not_offered_is_refused(void **state)
{
	assert_null(make_ex(*state, 1ull << 40, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make_ex(*state, 0, 1u << 20));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void moderation(void **state)
{
	struct world *w = *state;
	struct ibv_modify_cq_attr attr = { IBV_CQ_ATTR_MODERATE, { 16, 200 } };

	assert_int_equal(ibv_modify_cq(w->cq, &attr), 0);
	assert_int_equal(fake.cq->mod_count, 16);
	assert_int_equal(fake.cq->mod_us, 200);
	attr.attr_mask = 0;
	assert_int_equal(ibv_modify_cq(w->cq, &attr), EINVAL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(arguments_are_checked),
		T(poll_hands_completions_through),
		T(resize),
		T(arming),
		T(a_cq_holds_its_channel),
		T(busy_cq_stays),
		T(iterator_reads_everything),
		T(failed_start_needs_no_end),
		T(second_poller_waits),
		T(single_threaded_takes_no_lock),
		T(completions_have_their_time),
		T(every_field_may_be_asked_for),
		T(overruns_may_be_ignored),
		T(what_is_not_offered_is_refused),
		T(moderation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
