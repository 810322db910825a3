/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threaded parts on the real clock: RX thread, program threads that post and poll, the post
 * ring, the doorbell. Made to be run under TSan as well; no timing is asserted.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "net.h"

#define ALL    (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define ROUNDS 2000u
#define SIZE   256u
/* A turn costs a time slice where threads are many and cores are few and busy. */
#define TURNS (threads == UW_THREADS_ADAPTIVE ? ROUNDS : ROUNDS / 10)
/* Beside a thread that never gives its core up, a turn costs several. */
#define TURNS_BESIDE_A_HOG (TURNS / 10)

struct live {
	struct sim s;
	uint8_t *a, *b;
	struct uw_mr *ma, *mb;
	unsigned turns; /* of a ping-pong */
};

static enum uw_threads threads; /* the model under test */

/* Connect on the virtual clock, then let the threads go on the real one. */
static struct live *connect_with_threads(uint32_t depth)
{
	struct live *l = calloc(1, sizeof(*l));

	l->turns = TURNS;
	sim_open(&l->s, &(struct sim_options){
				.depth = depth, .cq_depth = 2 * ROUNDS, .threads = threads });
	sim_connect(&l->s, 7471);
	l->a = calloc(1, 1 << 20);
	l->b = calloc(1, 1 << 20);
	l->ma = sim_mr(&l->s.a, l->a, 1 << 20, ALL);
	l->mb = sim_mr(&l->s.b, l->b, 1 << 20, ALL);
	sim_threads_start(&l->s);
	return l;
}

static void disconnect(struct live *l)
{
	sim_threads_stop(&l->s);
	assert_int_equal(uw_mr_dereg(l->ma), 0);
	assert_int_equal(uw_mr_dereg(l->mb), 0);
	sim_close(&l->s);
	free(l->a);
	free(l->b);
	free(l);
}

static struct uw_wc poll_one(struct uw_cq *cq)
{
	struct uw_wc wc;
	int n;

	do {
		n = uw_cq_poll(cq, 1, &wc);
		assert_true(n >= 0);
	} while (!n);
	return wc;
}

static void send_one(struct sim_side *side, uint8_t *p, uint32_t n, struct uw_mr *mr)
{
	struct uw_sge sge = { (uintptr_t)p, n, uw_mr_stag(mr) };
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};

	sim_post_send(side, &wr);
}

static void *echo(void *arg)
{
	struct live *l = arg;

	for (unsigned i = 0; i < l->turns; i++) {
		struct uw_wc wc = poll_one(l->s.b.rcq);

		assert_int_equal(wc.status, UW_WC_SUCCESS);
		sim_post_recv(&l->s.b, i, l->b, SIZE, l->mb);
		send_one(&l->s.b, l->b, SIZE, l->mb);
		poll_one(l->s.b.scq);
	}
	return NULL;
}

static void ping_pong(struct live *l)
{
	pthread_t t;

	sim_post_recv(&l->s.b, 0, l->b, SIZE, l->mb);
	pthread_create(&t, NULL, echo, l);
	for (unsigned i = 0; i < l->turns; i++) {
		uint8_t *got = l->a + 4096;

		memset(l->a, (int)(i & 0xff), SIZE);
		sim_post_recv(&l->s.a, i, got, SIZE, l->ma);
		send_one(&l->s.a, l->a, SIZE, l->ma);
		assert_int_equal(poll_one(l->s.a.scq).status, UW_WC_SUCCESS);
		assert_int_equal(poll_one(l->s.a.rcq).status, UW_WC_SUCCESS);
		assert_memory_equal(got, l->a, SIZE);
	}
	pthread_join(t, NULL);
}

static void test_ping_pong(void **state)
{
	struct live *l = connect_with_threads(64);

	(void)state;
	ping_pong(l);
	disconnect(l);
}

static _Atomic bool hog_stop;

static void *hog(void *arg)
{
	while (!atomic_load_explicit(&hog_stop, memory_order_relaxed))
		;
	return arg;
}

/* One core, and somebody who never gives it up: who polls sleeps instead of yielding a time slice
 * each time, and nothing is lost. */
static void test_ping_pong_beside_a_hog(void **state)
{
	cpu_set_t all, one;
	struct live *l;
	pthread_t t;
	int cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	l = connect_with_threads(64);
	l->turns = TURNS_BESIDE_A_HOG;
	assert_int_equal(pthread_create(&t, NULL, hog, NULL), 0);
	ping_pong(l);
	atomic_store(&hog_stop, true);
	pthread_join(t, NULL);
	assert_true(l->s.e->stack[0]->sched.stats.app_sleeps > 0);
	disconnect(l);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* The receiver posts each receive only after its Send may long be there: none is lost. */
static void *late_poster(void *arg)
{
	struct live *l = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (i % 64 == 0)
			sched_yield();
		sim_post_recv(&l->s.b, i, l->b + i % 64 * SIZE, SIZE, l->mb);
		assert_int_equal(poll_one(l->s.b.rcq).wr_id, i);
	}
	return NULL;
}

static void test_receives_posted_late(void **state)
{
	struct live *l = connect_with_threads(64);
	pthread_t t;

	(void)state;
	pthread_create(&t, NULL, late_poster, l);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (i >= 32)
			assert_int_equal(poll_one(l->s.a.scq).status, UW_WC_SUCCESS);
		send_one(&l->s.a, l->a, SIZE, l->ma);
	}
	pthread_join(t, NULL);
	assert_true(l->s.e->stack[0]->sched.stats.rnr_waits > 0);
	disconnect(l);
}

/* Two threads post to one QP while a third polls: nothing is lost or doubled. */
static void *poster(void *arg)
{
	struct live *l = arg;
	struct uw_sge sge = { (uintptr_t)l->a, 64, uw_mr_stag(l->ma) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_RDMA_WRITE,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)l->b,
				 .rkey = uw_mr_stag(l->mb) };
	unsigned done;

	for (unsigned i = 0; i < ROUNDS; i++) {
		wr.wr_id = i;
		while (uw_post_send(l->s.a.qp, &wr, 1, &done))
			sched_yield(); /* full: the poller makes room */
	}
	return NULL;
}

static void test_two_posters(void **state)
{
	struct live *l = connect_with_threads(32);
	unsigned *seen = calloc(ROUNDS, sizeof(*seen));
	pthread_t t[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, poster, l);
	for (unsigned i = 0; i < 2 * ROUNDS; i++) {
		struct uw_wc wc = poll_one(l->s.a.scq);

		assert_int_equal(wc.status, UW_WC_SUCCESS);
		seen[wc.wr_id]++;
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_int_equal(seen[i], 2);
	free(seen);
	disconnect(l);
}

/* A program that waits without calling: the RX thread alone brings the data. */
static void test_memory_is_written_without_polling(void **state)
{
	struct live *l = connect_with_threads(32);
	_Atomic uint8_t *flag = (_Atomic uint8_t *)(l->b + 100);
	struct uw_sge sge = { (uintptr_t)l->a, 1, uw_mr_stag(l->ma) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_RDMA_WRITE,
				 .flags = UW_SEND_INLINE,
				 .remote_addr = (uintptr_t)flag,
				 .rkey = uw_mr_stag(l->mb) };
	struct timespec t = { .tv_nsec = 100000 };

	(void)state;
	for (unsigned i = 1; i <= 50; i++) {
		unsigned tries = 0;
		bool there = false;

		l->a[0] = (uint8_t)i;
		sim_post_send(&l->s.a, &wr);
		while (!there && tries++ < 100000) {
			nanosleep(&t, NULL);
			/* The stack lock orders this look with the placement. */
			sched_lock(&l->s.e->stack[0]->sched);
			there = *flag == i;
			sched_unlock(&l->s.e->stack[0]->sched);
		}
		assert_true(there);
	}
	disconnect(l);
}

/* Asleep on a notify: whoever's turn it is then brings the data. */
static void on_notify(void *ctx)
{
	sem_post(ctx);
}

static void test_asleep_until_a_notify(void **state)
{
	struct live *l = connect_with_threads(32);
	struct uw_cq *cq = l->s.b.rcq;
	struct uw_wc wc;
	sem_t bell;

	(void)state;
	sem_init(&bell, 0, 0);
	sched_lock(&l->s.e->stack[0]->sched);
	cq->notify = on_notify;
	cq->ctx = &bell;
	cq->cq.notify = on_notify;
	cq->cq.ctx = &bell;
	sched_unlock(&l->s.e->stack[0]->sched);
	for (unsigned i = 0; i < 50; i++) {
		sim_post_recv(&l->s.b, i, l->b, SIZE, l->mb);
		while (uw_cq_poll(cq, 1, &wc))
			;
		assert_int_equal(uw_cq_arm(cq, false), 0);
		send_one(&l->s.a, l->a, SIZE, l->ma);
		sem_wait(&bell);
		assert_int_equal(poll_one(l->s.a.scq).status, UW_WC_SUCCESS);
		assert_int_equal(poll_one(cq).wr_id, i);
	}
	disconnect(l);
	sem_destroy(&bell);
}

/* Each model leaves to whom it says what it says. */
static void test_who_works(void **state)
{
	struct live *l = connect_with_threads(64);
	uint64_t inlined = l->s.e->stack[0]->sched.stats.post_inline;
	const struct uw_stats *st = &l->s.e->stack[0]->sched.stats;

	(void)state;
	ping_pong(l);
	sched_lock(&l->s.e->stack[0]->sched);
	switch (threads) {
	case UW_THREADS_C1:
		assert_int_equal(st->post_inline, inlined);
		assert_int_equal(st->drive_app, 0);
		assert_true(st->post_ring > 0);
		break;
	case UW_THREADS_C2:
		assert_true(st->drive_app > 0);
		break;
	case UW_THREADS_C3:
		assert_true(st->post_inline > inlined);
		assert_int_equal(st->drive_app, 0);
		break;
	case UW_THREADS_ADAPTIVE:
		assert_true(st->drive_app > 0 && st->post_inline > inlined);
		break;
	}
	sched_unlock(&l->s.e->stack[0]->sched);
	disconnect(l);
}

/* A signal handler that calls exit() may have interrupted whoever has the lock. */
static void test_an_end_in_the_middle_of_a_call(void **state)
{
	struct live *l = connect_with_threads(16);

	(void)state;
	sched_lock(&l->s.e->stack[0]->sched);
	uw_engine_close(l->s.e);
	assert_true(uw_engine_started(l->s.e));
	sched_unlock(&l->s.e->stack[0]->sched);
	disconnect(l);
}

/* 0: there is no such thread yet. */
static pid_t rx_thread(void)
{
	char path[64], name[16];
	struct dirent *e;
	pid_t found = 0;
	DIR *d = opendir("/proc/self/task");

	while (d && !found && (e = readdir(d))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f) && !strcmp(name, "uwarp-rx\n"))
			found = atoi(e->d_name);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return found;
}

/* Has it the CPUs of the process, and, above 0, this priority of a real-time class? */
static bool rx_thread_has(const cpu_set_t *cpus, int priority)
{
	struct sched_param p = { 0 };
	pid_t tid = rx_thread();
	cpu_set_t own;

	return tid && !sched_getaffinity(tid, sizeof(own), &own) && CPU_EQUAL(&own, cpus) &&
	       !sched_getparam(tid, &p) && p.sched_priority == priority;
}

/* The thread that brings the stack up is bound to a CPU, and in a real-time class if it may be. */
static void *bring_up_bound(void *arg)
{
	cpu_set_t *all = arg, one;
	struct sched_param p = { .sched_priority = 1 };
	int cpu = 0;

	while (!CPU_ISSET(cpu, all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	bool real_time = !sched_setscheduler(0, SCHED_FIFO, &p);
	struct live *l = connect_with_threads(16);
	for (unsigned i = 0; i < 10000 && !rx_thread_has(all, real_time ? 2 : 0); i++)
		usleep(1000);
	assert_true(rx_thread_has(all, real_time ? 2 : 0));
	disconnect(l);
	return NULL;
}

/* Bound with it the RX thread would share that one CPU with a program that spins on memory; in its
 * class, but not above it, it would get no CPU at all. */
static void test_a_bound_thread_does_not_bind_the_rx_thread(void **state)
{
	cpu_set_t all;
	pthread_t t;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(pthread_create(&t, NULL, bring_up_bound, &all), 0);
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "adaptive", "c1", "c2", "c3" };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ping_pong),
		cmocka_unit_test(test_two_posters),
		cmocka_unit_test(test_receives_posted_late),
		cmocka_unit_test(test_memory_is_written_without_polling),
		cmocka_unit_test(test_asleep_until_a_notify),
		cmocka_unit_test(test_who_works),
	};
	const struct CMUnitTest once[] = {
		cmocka_unit_test(test_ping_pong_beside_a_hog),
		cmocka_unit_test(test_an_end_in_the_middle_of_a_call),
		cmocka_unit_test(test_a_bound_thread_does_not_bind_the_rx_thread),
	};
	int failed = 0;

	if (argc > 1) /* one test alone, for looking closely */
		cmocka_set_test_filter(argv[1]);
	failed += cmocka_run_group_tests(once, NULL, NULL);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		threads = (enum uw_threads)i;
		failed += cmocka_run_group_tests_name(names[i], tests, NULL, NULL);
	}
	return failed;
}
