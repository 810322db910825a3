/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion and asynchronous events, and what destroying does with those not acknowledged. */
#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

static const struct uw_wc a_wc = { .wr_id = 1 };

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void completion(struct ibv_cq *cq, struct uw_cq *uw)
{
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	fake_complete(uw, &a_wc);
}

static struct ibv_cq *next_cq_event(struct world *w)
{
	struct ibv_cq *cq;
	void *ctx;

	assert_int_equal(ibv_get_cq_event(w->channel, &cq, &ctx), 0);
	return cq;
}

static void completion_event_names_its_cq(void **state)
{
	struct world *w = *state;
	struct uw_cq *uw, *first = fake.cq;
	struct ibv_cq *cq = world_cq(w, &uw);

	completion(cq, uw);
	completion(w->cq, first);
	fake_complete(uw, &a_wc); /* not armed: no event */
	assert_ptr_equal(next_cq_event(w), cq);
	assert_ptr_equal(next_cq_event(w), w->cq);
	assert_false(readable(w->channel->fd));
	ibv_ack_cq_events(cq, 1);
	ibv_ack_cq_events(w->cq, 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void cq_without_a_channel(void **state)
{
	struct world *w = *state;
	struct ibv_cq *cq = ibv_create_cq(w->ctx, 4, NULL, NULL, 0);

	assert_non_null(cq);
	completion(cq, fake.cq);
	assert_false(readable(w->channel->fd));
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void destroy_takes_back_unread_events(void **state)
{
	struct world *w = *state;
	struct uw_cq *uw, *first = fake.cq;
	struct ibv_cq *cq = world_cq(w, &uw);
	double t;

	completion(cq, uw);
	completion(w->cq, first);
	completion(cq, uw);
	t = now_s();
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_true(now_s() - t < UWARP_ACK_WAIT_MS / 1000.0);
	assert_ptr_equal(next_cq_event(w), w->cq);
	assert_false(readable(w->channel->fd));
	ibv_ack_cq_events(w->cq, 1);
}

/* fio acknowledges more than it got. */
static void too_many_acknowledgements_do_not_hang(void **state)
{
	struct world *w = *state;
	struct uw_cq *uw;
	struct ibv_cq *cq = world_cq(w, &uw);
	double t = now_s();

	completion(cq, uw);
	next_cq_event(w);
	ibv_ack_cq_events(cq, 5);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_true(now_s() - t < UWARP_ACK_WAIT_MS / 1000.0);
}

struct late {
	struct ibv_cq *cq;
	atomic_int acked;
};

static void *ack_late(void *arg)
{
	struct late *l = arg;

	usleep(200000);
	atomic_store(&l->acked, 1);
	ibv_ack_cq_events(l->cq, 1);
	return NULL;
}

static void destroy_waits_for_the_acknowledgement(void **state)
{
	struct world *w = *state;
	struct uw_cq *uw;
	struct late l = { .cq = world_cq(w, &uw) };
	pthread_t t;

	completion(l.cq, uw);
	next_cq_event(w);
	assert_int_equal(pthread_create(&t, NULL, ack_late, &l), 0);
	assert_int_equal(ibv_destroy_cq(l.cq), 0);
	assert_int_equal(atomic_load(&l.acked), 1);
	pthread_join(t, NULL);
}

/* Real devices hang here for ever. The late acknowledgement must still find its memory. */
static void destroy_does_not_wait_for_ever(void **state)
{
	struct world *w = *state;
	struct uw_cq *uw;
	struct ibv_cq *cq = world_cq(w, &uw);
	double t = now_s();

	completion(cq, uw);
	next_cq_event(w);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_true(now_s() - t > UWARP_ACK_WAIT_MS / 1000.0 - 0.5);
	ibv_ack_cq_events(cq, 1);
	free(cq);
}

/* ---- asynchronous events ---- */

static void qp_event(struct uw_qp *qp, enum uw_event ev)
{
	qp->attr.event(qp->attr.ctx, ev);
}

static void async_events_name_their_object(void **state)
{
	struct world *w = *state;
	struct uw_cq *uw_cq = fake.cq;
	struct ibv_qp *qp = world_qp(w, 0);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(w->pd, &init);
	struct ibv_async_event ev[3];

	qp_event(fake.qp, UW_EVENT_QP_FATAL);
	fake.srq->attr.event(fake.srq->attr.ctx, UW_EVENT_SRQ_LIMIT_REACHED);
	uw_cq->attr.error(uw_cq->attr.ctx);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_get_async_event(w->ctx, &ev[i]), 0);
	assert_int_equal(ev[0].event_type, IBV_EVENT_QP_FATAL);
	assert_ptr_equal(ev[0].element.qp, qp);
	assert_int_equal(ev[1].event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(ev[1].element.srq, srq);
	assert_int_equal(ev[2].event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(ev[2].element.cq, w->cq);
	for (int i = 0; i < 3; i++)
		ibv_ack_async_event(&ev[i]);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void destroy_takes_back_its_own_async_events(void **state)
{
	struct world *w = *state;
	struct ibv_qp *gone = world_qp(w, 0);
	struct uw_qp *uw_gone = fake.qp;
	struct ibv_qp *qp = world_qp(w, 0);
	struct ibv_async_event ev;
	double t;

	qp_event(fake.qp, UW_EVENT_COMM_EST);
	qp_event(uw_gone, UW_EVENT_COMM_EST);
	qp_event(fake.qp, UW_EVENT_QP_REQ_ERR);
	qp_event(uw_gone, UW_EVENT_QP_FATAL);
	qp_event(fake.qp, UW_EVENT_QP_LAST_WQE_REACHED);
	t = now_s();
	assert_int_equal(ibv_destroy_qp(gone), 0);
	assert_true(now_s() - t < UWARP_ACK_WAIT_MS / 1000.0);
	assert_int_equal(ibv_get_async_event(w->ctx, &ev), 0);
	assert_int_equal(ev.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(ev.element.qp, qp);
	ibv_ack_async_event(&ev);
	assert_int_equal(ibv_get_async_event(w->ctx, &ev), 0);
	assert_int_equal(ev.event_type, IBV_EVENT_QP_REQ_ERR);
	ibv_ack_async_event(&ev);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_false(readable(w->ctx->async_fd));
}

/* It has a copy of the QP, and the parent's pipe. */
static void a_forked_child_takes_none(void **state)
{
	struct world *w = *state;
	struct ibv_qp *qp = world_qp(w, 0);
	int status;
	pid_t child;

	qp_event(fake.qp, UW_EVENT_COMM_EST);
	child = fork();
	if (!child) {
		double t = now_s();

		_exit(!ibv_destroy_qp(qp) && now_s() - t < UWARP_ACK_WAIT_MS / 1000.0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(readable(w->ctx->async_fd));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_false(readable(w->ctx->async_fd));
}

static void unread_events_of_cq_and_srq_go_too(void **state)
{
	struct world *w = *state;
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(w->pd, &init);
	struct uw_cq *uw;
	struct ibv_cq *cq = world_cq(w, &uw);
	double t = now_s();

	fake.srq->attr.event(fake.srq->attr.ctx, UW_EVENT_SRQ_LIMIT_REACHED);
	uw->attr.error(uw->attr.ctx);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_true(now_s() - t < UWARP_ACK_WAIT_MS / 1000.0);
	assert_false(readable(w->ctx->async_fd));
}

static void flood_of_events_does_not_block(void **state)
{
	struct world *w = *state;
	struct ibv_qp *qp = world_qp(w, 0);
	struct rusage before, after;
	clock_t t = clock();

	assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
	for (int i = 0; i < 30000; i++)
		qp_event(fake.qp, UW_EVENT_COMM_EST);
	assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
	assert_true(after.ru_nvcsw - before.ru_nvcsw < 1000); /* it waited for nobody */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_false(readable(w->ctx->async_fd));
	assert_true(clock() - t < 10 * CLOCKS_PER_SEC); /* of this process */
}

/* A daemon closes all its descriptors; the numbers then mean other sockets. */
static void reused_descriptor_gets_no_event(void **state)
{
	struct world *w = *state;
	struct ibv_qp *qp = world_qp(w, 0);
	struct uwarp_context *ctx = to_uwarp_context(w->ctx);
	int theirs[2], rd = w->ctx->async_fd, wr = ctx->async.fd;
	int keep_rd = dup(rd), keep_wr = dup(wr);

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, theirs), 0);
	assert_int_equal(dup2(theirs[1], wr), wr);
	qp_event(fake.qp, UW_EVENT_QP_FATAL);
	assert_false(readable(theirs[0]));
	assert_int_equal(dup2(theirs[0], rd), rd);
	assert_int_equal(send(theirs[1], "theirs", 6, 0), 6);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_true(readable(theirs[0]));
	dup2(keep_rd, rd);
	dup2(keep_wr, wr);
	close(theirs[0]);
	close(theirs[1]);
	close(keep_rd);
	close(keep_wr);
}

/* Event loops that ask for writability too must not be woken by it all the time. */
static void the_descriptor_is_never_writable(void **state)
{
	struct world *w = *state;
	struct pollfd p = { .fd = w->ctx->async_fd, .events = POLLIN | POLLOUT };

	assert_int_equal(poll(&p, 1, 0), 0);
}

/* As by a daemon that closes what it does not know. */
static void closed_behind_our_back(void **state)
{
	struct world *w = *state;
	struct ibv_qp *qp = world_qp(w, 0);
	int was = w->ctx->async_fd, keep = dup(was);

	close(was);
	qp_event(fake.qp, UW_EVENT_COMM_EST); /* no SIGPIPE */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(dup2(keep, was), was);
	close(keep);
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/fd");

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void closing_leaves_no_descriptor(void **state)
{
	struct world *w = *state;
	unsigned before = open_descriptors();
	struct ibv_context *ctx = ibv_open_device(&w->dev->device);

	assert_non_null(ctx);
	assert_int_equal(open_descriptors(), before + 2);
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(open_descriptors(), before);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(completion_event_names_its_cq),
		T(cq_without_a_channel),
		T(destroy_takes_back_unread_events),
		T(too_many_acknowledgements_do_not_hang),
		T(destroy_waits_for_the_acknowledgement),
		T(destroy_does_not_wait_for_ever),
		T(async_events_name_their_object),
		T(destroy_takes_back_its_own_async_events),
		T(a_forked_child_takes_none),
		T(unread_events_of_cq_and_srq_go_too),
		T(flood_of_events_does_not_block),
		T(reused_descriptor_gets_no_event),
		T(the_descriptor_is_never_writable),
		T(closed_behind_our_back),
		T(closing_leaves_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
