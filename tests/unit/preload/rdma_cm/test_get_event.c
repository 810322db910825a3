/* SPDX-License-Identifier: BSD-3-Clause */
/* What it costs to fetch events of rdma_cm. */
#include "rdma_cm/abi.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void nap(long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

#define FETCHES 8

/* Writes that the calling thread has made; -1: the kernel does not count them. */
static long writes_of_thread(void)
{
	char text[512] = "", *at;
	int fd = open("/proc/thread-self/io", O_RDONLY);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	at = strstr(text, "syscw: ");
	return at ? strtol(at + strlen("syscw: "), NULL, 10) : -1;
}

struct many {
	int fd;
	atomic_int fetched;
	long writes;
};

static void *fetch_many(void *arg)
{
	struct many *f = arg;
	struct rdma_ucm_event_resp e;
	long before = writes_of_thread();

	while (f->fetched < FETCHES && !cm_event(f->fd, &e))
		f->fetched++;
	f->writes = before < 0 ? -1 : writes_of_thread() - before;
	return NULL;
}

/* Whoever was woken takes the event: it does not ring for itself again. */
static void a_fetch_that_waited_writes_nothing(void **state)
{
	struct many f = { .fd = cm_node() };
	pthread_t t;

	(void)state;
	pthread_create(&t, NULL, fetch_many, &f);
	for (int i = 0; i < FETCHES; i++) {
		nap(20);
		assert_int_equal(
			cm_resolve(f.fd, cm_create(f.fd, RDMA_PS_TCP), INADDR_LOOPBACK, 1, 100), 0);
		while (f.fetched == i)
			nap(1);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	cm_expect_none(f.fd, 0);
	close(f.fd);
	if (f.writes < 0)
		skip();
	assert_int_equal(f.writes, 0);
}

#define ROUNDS 300

struct one {
	int fd, err;
};

static void *fetch_one(void *arg)
{
	struct one *f = arg;
	struct rdma_ucm_event_resp e;

	f->err = cm_event(f->fd, &e);
	return NULL;
}

/* Whoever looks at the queue before it waits spares others the octet, and leaves one for what it
 * does not take. */
static void what_a_look_leaves_is_signalled(void **state)
{
	struct one f = { .fd = cm_node() };
	struct rdma_ucm_event_resp e;
	pthread_t t;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t a = cm_create(f.fd, RDMA_PS_TCP), b = cm_create(f.fd, RDMA_PS_TCP);

		pthread_create(&t, NULL, fetch_one, &f);
		assert_int_equal(cm_resolve(f.fd, a, INADDR_LOOPBACK, 1, 100), 0);
		assert_int_equal(cm_resolve(f.fd, b, INADDR_LOOPBACK, 1, 100), 0);
		assert_int_equal(pthread_join(t, NULL), 0);
		assert_int_equal(f.err, 0);
		assert_true(cm_readable(f.fd, 1000));
		assert_int_equal(cm_event(f.fd, &e), 0);
		assert_false(cm_readable(f.fd, 0));
		cm_destroy(f.fd, a, NULL);
		cm_destroy(f.fd, b, NULL);
	}
	close(f.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fetch_that_waited_writes_nothing),
		cmocka_unit_test(what_a_look_leaves_is_signalled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
