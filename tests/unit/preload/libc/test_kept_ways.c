/* SPDX-License-Identifier: BSD-3-Clause */
/* In whatever way another thread waits for a channel, it is woken for an event that a thread makes
 * which could keep it in memory (doc/adr/0076). */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <unistd.h>

#include <cmocka.h>

#include "kept_bed.h"

static int way; /* of another thread's wait; N_WAYS: read() */

static void *wait_in_a_way(void *arg)
{
	uint64_t event;

	*(int *)arg = way < (int)N_WAYS ? ways[way].wait(&bed, 4000)
					: read(bed.channel, &event, sizeof(event)) > 0;
	return NULL;
}

static void do_nothing(int sig)
{
	(void)sig;
}

static void in_whatever_way_another_thread_waits(void **state)
{
	pthread_t t;
	int r;

	(void)state;
	for (way = 0; way <= (int)N_WAYS; way++) {
		fake->plains = 0;
		assert_int_equal(fcntl(bed.channel, F_SETFL, way < (int)N_WAYS ? O_NONBLOCK : 0),
				 0);
		wait_for_nothing();
		assert_int_equal(pthread_create(&t, NULL, wait_in_a_way, &r), 0);
		while (!fake->plains)
			sched_yield();
		usleep(10000); /* who waits later looks himself */
		post_of(bed.channel, 5);
		pthread_join(t, NULL);
		assert_int_equal(r, 1);
		if (way < (int)N_WAYS)
			has_only(bed.channel, 5);
	}
}

/* With handlers of both kinds read() waits without the stack. */
static void in_a_plain_read_it_is_woken_as_well(void **state)
{
	struct sigaction ends = { .sa_handler = do_nothing };
	struct sigaction restarts = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };
	pthread_t t;
	int r;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &ends, NULL), 0);
	assert_int_equal(sigaction(SIGUSR2, &restarts, NULL), 0);
	usleep(120000); /* handlers are looked at so often */
	assert_int_equal(fcntl(bed.channel, F_SETFL, 0), 0);
	way = (int)N_WAYS;
	assert_int_equal(pthread_create(&t, NULL, wait_in_a_way, &r), 0);
	while (!fake->plains)
		sched_yield();
	usleep(10000);
	post_of(bed.channel, 5);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	usleep(120000);
}

static _Atomic bool waits_soon;

/* Of so many descriptors that select() itself waits. */
static void *wait_in_a_wide_select(void *arg)
{
	int many[20];
	struct timeval t = { .tv_sec = 4 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(bed.channel, &in);
	for (unsigned i = 0; i < 20; i++) {
		many[i] = eventfd(0, EFD_CLOEXEC);
		FD_SET(many[i], &in);
	}
	waits_soon = true;
	*(int *)arg = select(many[19] + 1, &in, NULL, NULL, &t);
	for (unsigned i = 0; i < 20; i++)
		close(many[i]);
	return NULL;
}

static void in_a_select_of_many_as_well(void **state)
{
	pthread_t t;
	int r = 0;

	(void)state;
	post_of(bed.channel, 5);
	wait_in_a_wide_select(&r);
	assert_int_equal(r, 1);
	has_only(bed.channel, 5);
	wait_for_nothing();
	waits_soon = false;
	assert_int_equal(pthread_create(&t, NULL, wait_in_a_wide_select, &r), 0);
	while (!waits_soon)
		sched_yield();
	usleep(10000); /* who waits later looks himself */
	post_of(bed.channel, 6);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	has_only(bed.channel, 6);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(in_whatever_way_another_thread_waits),
		TEST(in_a_plain_read_it_is_woken_as_well),
		TEST(in_a_select_of_many_as_well),
	};

	return start_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
