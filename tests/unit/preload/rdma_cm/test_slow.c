/* SPDX-License-Identifier: BSD-3-Clause */
/* The rdma_cm node: commands that take long, beside others. */
#include "rdma_cm/abi.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long elapsed_ms(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - from->tv_sec) * 1000 + (now.tv_nsec - from->tv_nsec) / 1000000;
}

/* A destination that does not answer holds up neither its caller, nor other ids, nor DESTROY; and
 * after that nothing is heard of it. */
static void slow_resolve(void **state)
{
	int fd = cm_node();
	uint32_t slow = cm_create(fd, RDMA_PS_TCP), quick = cm_create(fd, RDMA_PS_TCP), reported;
	struct timespec start;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(cm_resolve(fd, slow, 0xc0000203, 1, 600), 0);
	assert_int_equal(cm_bind(fd, slow, INADDR_ANY, 0), -EINVAL);
	assert_int_equal(cm_resolve(fd, quick, INADDR_LOOPBACK, 1, 600), 0);
	assert_int_equal(cm_expect(fd, EV_ADDR_RESOLVED, 0).id, quick);
	assert_true(elapsed_ms(&start) < 400);
	assert_int_equal(cm_destroy(fd, slow, &reported), 0);
	assert_true(elapsed_ms(&start) < 400);
	assert_int_equal(reported, 0);
	cm_expect_none(fd, 800);
	close(fd);
}

/* The same when the channel goes first, which destroys its ids. */
static void close_during_a_resolve(void **state)
{
	int fd = cm_node();
	struct timespec start;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cm_resolve(fd, cm_create(fd, RDMA_PS_TCP), 0xc0000201, 1, 500), 0);
	close(fd);
	assert_true(elapsed_ms(&start) < 400);
	nanosleep(&(struct timespec){ .tv_nsec = 700000000 }, NULL); /* the helper ends meanwhile */
}

/* A peer that is known takes neither waiting nor a helper: the event is there when the command
 * returns. */
static void quick_resolve(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)state;
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 1, 600), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(cm_expect(fd, EV_ADDR_RESOLVED, 0).id, id);
	close(fd);
}

/* Who looks for the same address waits with the one that does, but for no longer than it said. */
static void each_has_a_time_of_its_own(void **state)
{
	int fd = cm_node();
	uint32_t patient = cm_create(fd, RDMA_PS_TCP), hasty = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(cm_resolve(fd, patient, 0xc0000201, 2, 600), 0);
	assert_int_equal(cm_resolve(fd, hasty, 0xc0000201, 2, 20), 0);
	assert_int_equal(cm_expect(fd, EV_ADDR_ERROR, -ETIMEDOUT).id, hasty);
	assert_int_equal(cm_expect(fd, EV_ADDR_ERROR, -ETIMEDOUT).id, patient);
	close(fd);
}

struct leaver {
	int fd;
	uint32_t id;
	_Atomic int tid;
};

static void *disconnect(void *arg)
{
	struct leaver *l = arg;

	atomic_store(&l->tid, (int)syscall(SYS_gettid));
	assert_int_equal(cm_disconnect(l->fd, l->id), 0);
	return NULL;
}

/* DESTROY waits for a command that is under way, which waits for no outcome any more. */
static void an_id_is_destroyed_while_it_is_disconnected(void **state)
{
	int sfd = cm_node();
	struct leaver l = { .fd = cm_node() };
	pthread_t t;

	(void)state;
	cm_listener(sfd, 8201, 1);
	l.id = cm_routed(l.fd, 8201);
	assert_int_equal(cm_connect(l.fd, l.id, 1, "", 0, 0), 0);
	cm_expect(sfd, EV_REQUEST, 0);
	pthread_create(&t, NULL, disconnect, &l);
	cm_until_asleep(&l.tid);
	assert_int_equal(cm_destroy(l.fd, l.id, NULL), 0);
	pthread_join(t, NULL);
	close(l.fd);
	close(sfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_resolve),
		cmocka_unit_test(close_during_a_resolve),
		cmocka_unit_test(quick_resolve),
		cmocka_unit_test(each_has_a_time_of_its_own),
		cmocka_unit_test(an_id_is_destroyed_while_it_is_disconnected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
