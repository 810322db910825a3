/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: made and found by their number, destroyed without a trace. */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "verbs/verbs.h"
#include "world.h"

#define WRS 8u

struct bench {
	struct world *w;
	struct verbs v;
	struct uw_pd *pd;
	struct uw_cq *scq, *rcq;
	struct uw_srq *srq;
	unsigned notified;
	unsigned events[32];
};

static void on_notify(void *ctx)
{
	((struct bench *)ctx)->notified++;
}

static void on_event(void *ctx, enum uw_event ev)
{
	((struct bench *)ctx)->events[ev]++;
}

static struct bench *open_bench(unsigned n_stacks)
{
	struct bench *b = calloc(1, sizeof(*b));
	const struct uw_cq_attr ca = { .depth = 64, .notify = on_notify, .ctx = b };
	struct uw_srq_attr sa = { .max_wr = 16, .max_sge = 1 };

	assert_non_null(b);
	b->w = world_open(n_stacks);
	assert_status(verbs_init(&b->v, &b->w->d), UW_OK);
	b->w->d.hooks.find_qp = verbs_find_qp;
	b->w->d.hooks.find_qp_arg = &b->v;
	assert_int_equal(verbs_make_pd(&b->v, &b->pd), 0);
	assert_int_equal(verbs_make_cq(&b->v, &ca, &b->scq), 0);
	assert_int_equal(verbs_make_cq(&b->v, &ca, &b->rcq), 0);
	assert_int_equal(uw_srq_create(b->pd, &sa, &b->srq), 0);
	return b;
}

static void close_bench(struct bench *b)
{
	assert_int_equal(b->v.qps.used, 0);
	assert_int_equal(uw_srq_destroy(b->srq), 0);
	assert_int_equal(uw_cq_destroy(b->scq), 0);
	assert_int_equal(uw_cq_destroy(b->rcq), 0);
	assert_int_equal(uw_pd_dealloc(b->pd), 0);
	verbs_free(&b->v);
	world_close(b->w);
	free(b);
}

static struct uw_qp *make_qp(struct bench *b, struct uw_srq *srq)
{
	struct uw_qp_attr a = { .send_cq = b->scq,
				.recv_cq = b->rcq,
				.srq = srq,
				.max_send_wr = WRS,
				.max_recv_wr = WRS,
				.event = on_event,
				.ctx = b };
	struct uw_qp *qp = NULL;

	assert_int_equal(uw_qp_create(b->pd, &a, &qp), 0);
	return qp;
}

/* Its stream is up. */
static struct conn *stream_of(struct bench *b, struct uw_qp *qp, unsigned stack)
{
	struct conn *c = conn_create(world_stack(b->w, stack), CONN_INITIATOR);
	const struct mpa_agreed agreed = { .rev = 2, .crc = true };
	const struct qp_stream s = { .agreed = &agreed, .initiator = true };

	assert_non_null(c);
	c->l = c->stack->links[0];
	conn_qp_move(&qp->c, c->stack);
	c->llp = fake_llp_conn(c);
	assert_status(qp_start(&qp->c.qp, &s), UW_OK);
	conn_enter(c, CONN_STARTING);
	conn_enter(c, CONN_STREAMING);
	c->qp = &qp->c;
	qp->c.conn = c;
	return c;
}

static void post_recv(struct uw_qp *qp, unsigned n)
{
	const struct uw_recv_wr wr = { .wr_id = 7 };
	unsigned done;

	while (n--)
		assert_int_equal(uw_post_recv(qp, &wr, 1, &done), 0);
}

static void post_write(struct uw_qp *qp)
{
	uint64_t data = 5;
	const struct uw_sge sge = { (uintptr_t)&data, 8, 0 };
	const struct uw_send_wr wr = { .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = UW_WR_RDMA_WRITE,
				       .flags = UW_SEND_INLINE | UW_SEND_SIGNALED };
	unsigned done;

	assert_int_equal(uw_post_send(qp, &wr, 1, &done), 0);
}

/* ---- making ------------------------------------------------------------------------------------
 */

static void it_is_found_by_its_number(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_qp *qp = make_qp(b, NULL), *other = make_qp(b, b->srq);

	(void)state;
	assert_int_not_equal(uw_qp_num(qp), uw_qp_num(other));
	assert_ptr_equal(verbs_find_qp(&b->v, uw_qp_num(qp)), &qp->c);
	assert_ptr_equal(verbs_find_qp(&b->v, uw_qp_num(other)), &other->c);
	assert_int_equal(uw_qp_state(qp), UW_QPS_RESET);
	assert_int_equal(uw_cq_destroy(b->scq), -EBUSY);
	assert_int_equal(uw_cq_destroy(b->rcq), -EBUSY);
	assert_int_equal(uw_srq_destroy(b->srq), -EBUSY);
	assert_int_equal(uw_pd_dealloc(b->pd), -EBUSY);
	assert_int_equal(atomic_load(&b->w->d.n_qps), 2);
	assert_int_equal(uw_qp_destroy(qp), 0);
	assert_int_equal(uw_qp_destroy(other), 0);
	assert_int_equal(atomic_load(&b->w->d.n_qps), 0);
	close_bench(b);
}

/* As the device's attributes say; one that did not come is not counted. */
static void there_are_no_more_than_so_many(void **state)
{
	struct bench *b = open_bench(1);
	const struct uw_cq_attr ca = { .depth = 1 };
	struct uw_srq_attr sa = { .max_wr = 1 };
	struct uw_srq *srq;
	struct uw_pd *pd;
	struct uw_cq *cq;

	(void)state;
	b->v.n_pds += VERBS_PDS_MAX - 1;
	b->v.n_cqs += VERBS_CQS_MAX - 2;
	b->v.n_srqs += VERBS_SRQS_MAX - 1;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(verbs_make_pd(&b->v, &pd), -ENOMEM);
		assert_int_equal(verbs_make_cq(&b->v, &ca, &cq), -ENOMEM);
		assert_int_equal(uw_srq_create(b->pd, &sa, &srq), -ENOMEM);
	}
	assert_int_equal(uw_srq_destroy(b->srq), 0);
	assert_int_equal(uw_srq_create(b->pd, &sa, &b->srq), 0);
	assert_int_equal(uw_cq_destroy(b->rcq), 0);
	assert_int_equal(verbs_make_cq(&b->v, &ca, &b->rcq), 0);
	close_bench(b);
	b = open_bench(1); /* all were given back */
	assert_int_equal(b->v.n_pds + b->v.n_cqs + b->v.n_srqs, 4);
	close_bench(b);
}

static void its_number_is_random(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_qp *v[16];
	unsigned in_a_row = 0;

	(void)state;
	for (unsigned i = 0; i < COUNT(v); i++) {
		v[i] = make_qp(b, NULL);
		in_a_row += i && uw_qp_num(v[i]) == uw_qp_num(v[i - 1]) + 1;
	}
	assert_int_equal(in_a_row, 0);
	for (unsigned i = 0; i < COUNT(v); i++)
		assert_int_equal(uw_qp_destroy(v[i]), 0);
	close_bench(b);
}

static void what_cannot_be_is_refused(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_qp_attr good = { .send_cq = b->scq, .recv_cq = b->rcq }, bad[5];
	struct uw_qp *qp;

	(void)state;
	for (unsigned i = 0; i < COUNT(bad); i++)
		bad[i] = good;
	bad[0].send_cq = NULL;
	bad[1].recv_cq = NULL;
	bad[2].max_send_wr = (1u << 15) + 1;
	bad[3].max_recv_sge = 33;
	bad[4].max_inline = 1025;
	for (unsigned i = 0; i < COUNT(bad); i++)
		assert_int_equal(uw_qp_create(b->pd, &bad[i], &qp), -EINVAL);
	assert_int_equal(b->v.qps.used, 0);
	assert_int_equal(atomic_load(&b->scq->users), 0);
	close_bench(b);
}

static struct bench *bench; /* for what is called without a context */
static unsigned looks;

/* Links are flushed just before locks are let go: what is found now, any thread finds. */
static void all_are_whole(void)
{
	const struct bench *b = bench;

	looks++;
	for (uint32_t i = 0; i < b->v.qps.n; i++) {
		const struct uw_qp *qp = b->v.qps.v[i].what;

		if (!qp)
			continue;
		assert_ptr_equal(qp->scq, b->scq);
		assert_ptr_equal(qp->rcq, b->rcq);
		assert_ptr_equal(qp->c.qp.scq, &b->scq->cq);
		assert_ptr_equal(conn_qp_stack(&qp->c), world_stack(b->w, 0));
	}
}

/* Whoever finds a QP by its number finds its CQs as well: a fork, or the stack, which looks at them
 * all since a CQ overflowed. */
static void half_of_one_is_never_found(void **state)
{
	struct bench *b = bench = open_bench(1);
	struct uw_qp *v[8];

	(void)state;
	looks = 0;
	fake_llp.on_flush = all_are_whole;
	for (unsigned i = 0; i < COUNT(v); i++)
		v[i] = make_qp(b, i % 2 ? b->srq : NULL);
	for (unsigned i = 0; i < COUNT(v); i++)
		assert_int_equal(uw_qp_destroy(v[i]), 0);
	assert_true(looks >= 2 * COUNT(v));
	close_bench(b);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* Its completions are gone with it, so nobody is told that they came. */
static void destroyed_it_tells_nobody(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_qp *qp = make_qp(b, NULL), *other = make_qp(b, NULL);
	struct uw_wc wc;

	(void)state;
	stream_of(b, qp, 0)->llp->room = 0;
	stream_of(b, other, 0);
	post_recv(qp, 4);
	post_recv(other, 1);
	post_write(qp);
	assert_int_equal(uw_cq_arm(b->scq, false), 0);
	assert_int_equal(uw_cq_arm(b->rcq, false), 0);
	assert_int_equal(uw_qp_destroy(qp), 0);
	assert_int_equal(b->notified, 0);
	assert_int_equal(uw_cq_poll(b->scq, 1, &wc), 0);
	assert_int_equal(uw_cq_poll(b->rcq, 1, &wc), 0);
	/* the channel hears of the next one all the same */
	assert_int_equal(uw_qp_modify(other, UW_QPS_ERR), 0);
	assert_int_equal(b->notified, 1);
	assert_int_equal(uw_cq_poll(b->rcq, 1, &wc), 1);
	assert_int_equal(wc.status, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.qp_num, uw_qp_num(other));
	assert_int_equal(uw_qp_destroy(other), 0);
	close_bench(b);
}

/* ... even if they would not have fitted. */
static void destroyed_it_fills_no_cq(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_cq_attr ca = { .depth = 1, .notify = on_notify, .ctx = b };
	struct uw_cq *big = b->rcq;
	struct uw_wc wc;
	struct uw_qp *qp;

	(void)state;
	assert_int_equal(verbs_make_cq(&b->v, &ca, &b->rcq), 0);
	qp = make_qp(b, NULL);
	stream_of(b, qp, 0);
	post_recv(qp, WRS);
	assert_int_equal(uw_qp_destroy(qp), 0);
	assert_false(atomic_load(&b->rcq->failed));
	assert_int_equal(uw_cq_poll(b->rcq, 1, &wc), 0);
	assert_int_equal(uw_cq_destroy(big), 0);
	close_bench(b);
}

static unsigned late; /* calls about QPs that were being freed */

static void on_ring(struct ring_entry *r)
{
	late += atomic_load(&bench->w->d.n_qps) < 4;
	conn_qp_posted(r);
}

/* QPs that wait for receives of the SRQ. */
static void let_wait(struct bench *b, struct uw_qp **v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		v[i] = make_qp(b, b->srq);
		stream_of(b, v[i], 0);
		assert_true(rnr_wait(&v[i]->c));
	}
}

/* The receives were posted, and their poster has not come to see to the ring. Whoever is woken
 * wakes the next; the third is woken while all rings are being emptied. */
static void post_for_all(struct bench *b)
{
	struct sched *s = &world_stack(b->w, 0)->sched;
	const struct uw_recv_wr wr = { .wr_id = 1 };
	unsigned done;

	atomic_store(&s->lock, 2); /* by another thread */
	assert_int_equal(uw_srq_post_recv(b->srq, &wr, 1, &done), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_status(rq_post(&b->srq->r.rq, &wr), UW_OK);
	atomic_store(&s->lock, SCHED_FREE);
}

static void destroyed_it_is_on_no_ring(void **state)
{
	struct bench *b = bench = open_bench(3);
	struct uw_qp *v[4];

	(void)state;
	late = 0;
	let_wait(b, v, COUNT(v));
	v[2]->c.ring.fn = on_ring;
	post_for_all(b);
	assert_true(atomic_load(&v[0]->c.ring.queued));
	assert_int_equal(uw_qp_destroy(v[2]), 0);
	assert_int_equal(late, 0);
	assert_true(sched_ring_empty(&world_stack(b->w, 0)->sched));
	for (unsigned i = 0; i < COUNT(v); i++) {
		if (i != 2)
			assert_int_equal(uw_qp_destroy(v[i]), 0);
	}
	assert_null(b->srq->r.first);
	close_bench(b);
}

static void fail_on_ring(struct ring_entry *r)
{
	conn_qp_down((struct conn_qp *)r, UW_E_MPA_CRC);
}

/* Another QP has its turn while the rings are emptied for the one that is destroyed: its completion
 * is told. */
static void destroyed_it_hides_no_completion_of_another(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_qp *v[4];
	struct uw_wc wc;

	(void)state;
	let_wait(b, v, COUNT(v));
	v[3]->c.conn->llp->room = 0;
	post_write(v[3]);
	v[3]->c.ring.fn = fail_on_ring;
	post_for_all(b);
	assert_int_equal(uw_cq_arm(b->scq, false), 0);
	assert_int_equal(uw_qp_destroy(v[2]), 0);
	assert_int_equal(b->notified, 1);
	assert_int_equal(uw_cq_poll(b->scq, 1, &wc), 1);
	assert_int_equal(wc.qp_num, uw_qp_num(v[3]));
	for (unsigned i = 0; i < COUNT(v); i++) {
		if (i != 2)
			assert_int_equal(uw_qp_destroy(v[i]), 0);
	}
	close_bench(b);
}

static void a_reset_forgets_what_was_posted(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_qp *qp = make_qp(b, NULL);
	struct conn *c = stream_of(b, qp, 0);
	struct uw_wc wc;

	(void)state;
	post_recv(qp, WRS);
	assert_int_equal(uw_qp_modify(qp, UW_QPS_RESET), 0);
	assert_int_equal(c->state, CONN_ENDED);
	assert_null(qp->c.conn);
	assert_int_equal(uw_cq_poll(b->rcq, 1, &wc), 0);
	assert_int_equal(uw_qp_modify(qp, UW_QPS_INIT), 0);
	post_recv(qp, WRS); /* all places are free again */
	assert_int_equal(uw_qp_destroy(qp), 0);
	close_bench(b);
}

/* ---- an error ------------------------------------------------------------------------------ */

/* Has this thread spent so much of a CPU? Then it is past all but a loop. */
#define SPINS_NS 5000000

static void *post_one(void *arg)
{
	post_recv(arg, 1);
	return NULL;
}

static void wait_until_it_spins(pthread_t t)
{
	struct timespec used = { 0 };
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(t, &clock), 0);
	while (!used.tv_sec && used.tv_nsec < SPINS_NS) {
		sched_yield();
		assert_int_equal(clock_gettime(clock, &used), 0);
	}
}

/* The QP fails while another thread is about to store a receive: who of the two comes second sees
 * to it. The queue's lock stands for the moment in which that thread loses its CPU. */
static void a_receive_posted_meanwhile_is_flushed(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_qp *qp = make_qp(b, NULL);
	struct uw_wc wc;
	pthread_t t;

	(void)state;
	stream_of(b, qp, 0);
	spin_lock(&qp->c.rq_lock);
	assert_int_equal(pthread_create(&t, NULL, post_one, qp), 0);
	wait_until_it_spins(t);
	assert_int_equal(uw_qp_modify(qp, UW_QPS_ERR), 0);
	assert_int_equal(uw_cq_poll(b->rcq, 1, &wc), 0);
	spin_unlock(&qp->c.rq_lock);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(uw_cq_poll(b->rcq, 1, &wc), 1);
	assert_int_equal(wc.status, UW_WC_WR_FLUSH_ERR);
	assert_int_equal(uw_qp_destroy(qp), 0);
	close_bench(b);
}

/* InfiniBand's "last WQE reached", whenever an SRQ's QP comes to error, and once: with a
 * connection, without one, and also if its stream has failed before. A QP that is destroyed says
 * nothing. */
static void an_srqs_qp_in_error_says_so_once(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_qp *qp[3] = { make_qp(b, b->srq), make_qp(b, b->srq), make_qp(b, b->srq) };
	struct uw_qp *own = make_qp(b, NULL), *unused = make_qp(b, b->srq);
	const unsigned *n = &b->events[UW_EVENT_QP_LAST_WQE_REACHED];

	(void)state;
	stream_of(b, qp[0], 0);
	stream_of(b, qp[1], 0);
	qp_fail(&qp[1]->c.qp, UW_E_MPA_CRC);
	assert_int_equal(*n, 1);
	for (unsigned i = 0; i < COUNT(qp); i++) {
		assert_int_equal(uw_qp_modify(qp[i], UW_QPS_ERR), 0);
		assert_int_equal(uw_qp_modify(qp[i], UW_QPS_ERR), 0);
		assert_int_equal(*n, i ? i + 1 : 2);
	}
	assert_int_equal(uw_qp_modify(own, UW_QPS_ERR), 0);
	for (unsigned i = 0; i < COUNT(qp); i++)
		assert_int_equal(uw_qp_destroy(qp[i]), 0);
	assert_int_equal(uw_qp_destroy(own), 0);
	assert_int_equal(uw_qp_destroy(unused), 0);
	assert_int_equal(*n, 3);
	close_bench(b);
}

/* ---- fork --------------------------------------------------------------------------------- */

/* In the child: whoever had the locks of queues does not exist there. */
static void a_child_inherits_no_lock_of_a_queue(void **state)
{
	struct bench *b = open_bench(1);
	struct uw_qp *qp = make_qp(b, NULL);
	const struct sched_ops *ops = world_stack(b->w, 0)->sched.ops;
	const struct uw_recv_wr wr = { .wr_id = 1 };
	struct spin *v[] = { &b->scq->lock,    &b->scq->pushes, &b->srq->lock,
			     &b->srq->r.takes, &qp->c.sq_lock,	&qp->c.rq_lock };
	unsigned done;

	(void)state;
	for (unsigned i = 0; i < COUNT(v); i++)
		spin_lock(v[i]);
	sched_lock_all(&world_stack(b->w, 0)->sched);
	verbs_after_fork(&b->v);
	sched_after_fork(&world_stack(b->w, 0)->sched, ops);
	for (unsigned i = 0; i < COUNT(v); i++) {
		assert_false(atomic_flag_test_and_set(&v[i]->held));
		spin_unlock(v[i]);
	}
	assert_int_equal(uw_qp_state(qp), UW_QPS_ERR);
	assert_int_equal(uw_srq_post_recv(b->srq, &wr, 1, &done), 0);
	post_recv(qp, 1);
	assert_int_equal(b->notified, 0);
	assert_int_equal(uw_qp_destroy(qp), 0);
	close_bench(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_found_by_its_number),
		cmocka_unit_test(there_are_no_more_than_so_many),
		cmocka_unit_test(its_number_is_random),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(half_of_one_is_never_found),
		cmocka_unit_test(destroyed_it_tells_nobody),
		cmocka_unit_test(destroyed_it_fills_no_cq),
		cmocka_unit_test(destroyed_it_is_on_no_ring),
		cmocka_unit_test(destroyed_it_hides_no_completion_of_another),
		cmocka_unit_test(a_reset_forgets_what_was_posted),
		cmocka_unit_test(a_receive_posted_meanwhile_is_flushed),
		cmocka_unit_test(an_srqs_qp_in_error_says_so_once),
		cmocka_unit_test(a_child_inherits_no_lock_of_a_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
