/* SPDX-License-Identifier: BSD-3-Clause */
/* What it costs to wait for events of rdma_cm, and what a thread that waits does meanwhile. */
#include "rdma_cm/abi.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_waits.h"

#define SERVER_UID 77

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
	atomic_int tid, fetched;
	long writes;
};

static void *fetch_many(void *arg)
{
	struct many *f = arg;
	struct rdma_ucm_event_resp e;
	long before = writes_of_thread();

	f->tid = gettid();
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
		cm_until_asleep(&f.tid); /* it has looked, and waits */
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

#define ROUNDS	 300
#define ENOUGH_S 5 /* of a busy machine's time: then fewer do */

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

static time_t monotonic_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Whoever looks at the queue before it waits spares others the octet, and leaves one for what it
 * does not take. */
static void what_a_look_leaves_is_signalled(void **state)
{
	struct one f = { .fd = cm_node() };
	struct rdma_ucm_event_resp e;
	time_t until = monotonic_s() + ENOUGH_S;
	pthread_t t;

	(void)state;
	for (int i = 0; i < ROUNDS && monotonic_s() < until; i++) {
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

/* ---- yielding ---- */

/* The sanitizers' may yield. */
static bool allocator_is_libcs(void)
{
	Dl_info m;

	return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &m) && strstr(m.dli_fname, "libc.so");
}

static unsigned yields_in(void *library)
{
	return ((struct fake_waits *)dlsym(library, FAKE_WAITS_NAME))->yields;
}

/* A thread that yields until the connection is there, or gone, runs the stack. At other times a
 * yield is libc's. */
static void yielding_until_the_outcome(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t client, server;
	void *library = dlopen(getenv("UWARP_LIB"), RTLD_NOW | RTLD_NOLOAD);
	unsigned before;

	(void)state;
	if (!allocator_is_libcs())
		skip();
	cm_listener(sfd, 8012, 8);
	client = cm_routed(cfd, 8012);
	before = yields_in(library);
	sched_yield();
	assert_int_equal(yields_in(library), before);
	assert_int_equal(cm_connect(cfd, client, 1, "", 0, 0), 0);
	sched_yield();
	sched_yield();
	assert_int_equal(yields_in(library), before + 2);
	server = cm_expect(sfd, EV_REQUEST, 0).id;
	assert_int_equal(cm_accept(sfd, server, SERVER_UID, 2, ""), 0);
	cm_expect(cfd, EV_ESTABLISHED, 0);
	before = yields_in(library);
	sched_yield();
	assert_int_equal(yields_in(library), before);
	assert_int_equal(cm_connect(cfd, cm_routed(cfd, 8012), 1, "", 0, 0), 0);
	close(cfd); /* nobody waits for that one any more */
	sched_yield();
	assert_int_equal(yields_in(library), before);
	close(sfd);
	dlclose(library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fetch_that_waited_writes_nothing),
		cmocka_unit_test(what_a_look_leaves_is_signalled),
		cmocka_unit_test(yielding_until_the_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
