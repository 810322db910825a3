/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal handlers that leave a wait by a jump, as they may: poll() and the like are
 * async-signal-safe. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "channels.h"
#include "fake_waits.h"
#include "ways.h"

#define LONG_MS 10000

static struct fake_waits *fake;
static sigjmp_buf away;

static void jump(int sig)
{
	(void)sig;
	siglongjmp(away, 1);
}

static struct bed first, second;

static void open_bed(struct bed *b)
{
	struct epoll_event ev = { .events = EPOLLIN };

	*b = (struct bed){ .channel = new_channel(), .epoll = epoll_create1(EPOLL_CLOEXEC) };
	assert_int_equal(epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->channel, &ev), 0);
	assert_int_equal(by_epoll_wait(b, 0), 0);
}

static void close_bed(struct bed *b)
{
	close(b->channel);
	close(b->epoll);
}

/* The stack's lock is held in a look: a signal that comes meanwhile is handled behind it. */
static void nobody_jumps_out_of_a_look(void **state)
{
	struct sigaction a = { .sa_handler = jump };
	struct epoll_event ev = { .events = EPOLLIN };
	struct bed b = { .channel = new_channel(), .epoll = epoll_create1(EPOLL_CLOEXEC) };

	(void)state;
	fake->looks = 0;
	assert_int_equal(epoll_ctl(b.epoll, EPOLL_CTL_ADD, b.channel, &ev), 0);
	assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
	fake->able = true;
	fake->signal = SIGUSR1;
	for (volatile size_t i = 0; i < N_WAYS; i++) {
		if (!sigsetjmp(away, 1)) {
			ways[i].wait(&b, LONG_MS);
			fail_msg("%s: the signal was lost", ways[i].name);
		}
		assert_int_equal(fake->looks, i + 1);
		assert_int_equal(fake->looking, 0);
	}
	fake->signal = 0;
	post(b.channel);
	assert_int_equal(ways[0].wait(&b, 0), 1); /* and goes on */
	take(b.channel);
	close(b.epoll);
	close(b.channel);
}

static void *kill_after_a_moment(void *arg)
{
	const struct timespec moment = { .tv_nsec = 20000000 };

	while (!fake->plain)
		nanosleep(&moment, NULL);
	nanosleep(&moment, NULL);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

/* Who waits_soon out of a plain wait is one thread all the same, and none after its next wait. */
static void a_plain_wait_is_counted_once(void **state)
{
	struct sigaction a = { .sa_handler = jump };
	struct bed b = { .channel = new_channel() };
	pthread_t self = pthread_self(), killer;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
	fake->able = fake->elsewhere = true;
	for (volatile unsigned i = 0; i < 3; i++) {
		if (!sigsetjmp(away, 1)) {
			pthread_create(&killer, NULL, kill_after_a_moment, &self);
			ways[0].wait(&b, LONG_MS);
			fail_msg("the signal was lost");
		}
		pthread_join(killer, NULL);
		assert_int_equal(fake->plain, 1);
	}
	post(b.channel);
	assert_int_equal(ways[0].wait(&b, LONG_MS), 1);
	assert_int_equal(fake->plain, 0);
	take(b.channel);
	close(b.channel);
	fake->elsewhere = false;
}

static int woken;
static _Atomic bool waits_soon;

/* Leaves a wait for the first by a jump, and waits for the second. */
static void *jump_and_wait(void *arg)
{
	pthread_t self = pthread_self(), killer;

	if (!sigsetjmp(away, 1)) {
		pthread_create(&killer, NULL, kill_after_a_moment, &self);
		by_epoll_wait(&first, LONG_MS);
	} else {
		waits_soon = true;
		woken = by_epoll_wait(&second, 4000);
	}
	return arg;
}

/* An event of the second wakes t. */
static void wakes(pthread_t t)
{
	while (!waits_soon)
		sched_yield();
	usleep(20000); /* who waits later looks himself */
	post(second.channel);
	pthread_join(t, NULL);
	assert_int_equal(woken, 1);
	waits_soon = false;
	woken = 0;
}

static void *wait_in_poll(void *arg)
{
	waits_soon = true;
	woken = by_poll(&second, 4000);
	return arg;
}

static void poll_in_handler(int sig)
{
	(void)sig;
	by_poll(&first, 0);
}

/* Two waits, one inside of the other, are counted as two that begin and end. */
static void who_waits_is_woken_after_a_wait_in_a_handler(void **state)
{
	struct sigaction a = { .sa_handler = poll_in_handler };
	pthread_t self = pthread_self(), t;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
	open_bed(&first);
	fake->able = fake->elsewhere = true;
	assert_int_equal(pthread_create(&t, NULL, kill_after_a_moment, &self), 0);
	assert_int_equal(by_epoll_wait(&first, LONG_MS), -1);
	assert_int_equal(errno, EINTR);
	pthread_join(t, NULL);
	open_bed(&second);
	assert_int_equal(pthread_create(&t, NULL, wait_in_poll, NULL), 0);
	wakes(t);
	fake->elsewhere = false;
	close_bed(&first);
	close_bed(&second);
}

/* Another thread hands its events over, whatever wait it was that the jump left. */
static void who_waits_after_a_jump_is_woken(void **state)
{
	struct sigaction a = { .sa_handler = jump };
	pthread_t t;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
	open_bed(&first);
	open_bed(&second);
	fake->able = fake->elsewhere = true;
	assert_int_equal(pthread_create(&t, NULL, jump_and_wait, NULL), 0);
	wakes(t);
	fake->elsewhere = false;
	close_bed(&first);
	close_bed(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: a thread that left a wait by a jump gains nothing any more */
		cmocka_unit_test(who_waits_is_woken_after_a_wait_in_a_handler),
		cmocka_unit_test(who_waits_after_a_jump_is_woken),
		cmocka_unit_test(nobody_jumps_out_of_a_look),
		cmocka_unit_test(a_plain_wait_is_counted_once),
	};

	if (host()->api()->engine_start(host()->engine()))
		return 1;
	fake = dlsym(dlopen(getenv("UWARP_LIB"), RTLD_NOW | RTLD_NOLOAD), FAKE_WAITS_NAME);
	return fake ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
