/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels beside plain pipes, on which the same is done in the same order: epoll,
 * poll() and read() tell the same of both (doc/adr/0076). And with several threads no event is
 * lost. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include <cmocka.h>

#include "channels.h"
#include "fake_waits.h"
#include "ways.h"

#define N      4u
#define EPOLLS 2u
#define STEPS  20000u
#define SEEDS  6u

static struct fake_waits *fake;
static uint64_t rng;
static unsigned step;

static unsigned below(unsigned n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)(rng >> 33) % n;
}

/* Of each pair the first is the channel, the second is the pipe. */
static struct pair {
	int fd[2], pipe_in;
} pairs[N];
static int epolls[EPOLLS][2];
static uint64_t value;
static bool with_flags; /* those by which epoll tells less than there is */

static void fail_step(const char *what, int ours, int kernels)
{
	printf("step %u: %s: %d of the channel, %d of the pipe\n", step, what, ours, kernels);
	fail();
}

static void open_pair(struct pair *p)
{
	int end[2];

	p->fd[0] = new_channel();
	assert_int_equal(fcntl(p->fd[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(pipe2(end, O_NONBLOCK | O_CLOEXEC), 0);
	p->fd[1] = end[0];
	p->pipe_in = end[1];
}

static void close_pair(struct pair *p)
{
	close(p->fd[0]);
	close(p->fd[1]);
	close(p->pipe_in);
}

static void open_epoll(int e[2])
{
	for (unsigned i = 0; i < 2; i++)
		e[i] = epoll_create1(EPOLL_CLOEXEC);
}

static void do_post(void)
{
	struct pair *p = &pairs[below(N)];

	value++;
	post_of(p->fd[0], value);
	assert_int_equal(write(p->pipe_in, &value, sizeof(value)), sizeof(value));
}

static void do_read(void)
{
	struct pair *p = &pairs[below(N)];
	uint64_t got[2] = { 0, 0 };
	ssize_t n[2];
	int err[2];

	for (unsigned i = 0; i < 2; i++) {
		errno = 0;
		n[i] = read(p->fd[i], &got[i], sizeof(got[i]));
		err[i] = errno;
	}
	if (n[0] != n[1] || err[0] != err[1])
		fail_step("read()", (int)n[0], (int)n[1]);
	if (got[0] != got[1])
		fail_step("what was read", (int)got[0], (int)got[1]);
}

static uint32_t some_events(void)
{
	static const uint32_t plain[] = {
		EPOLLIN, EPOLLIN, EPOLLIN, EPOLLIN | EPOLLRDHUP, EPOLLOUT, 0, EPOLLIN | EPOLLOUT
	};
	static const uint32_t flags[] = { 0, 0, EPOLLET, EPOLLONESHOT };
	uint32_t events = plain[below(7)];

	return with_flags ? events | flags[below(4)] : events;
}

static void do_ctl(void)
{
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL };
	unsigned e = below(8) ? 0 : below(EPOLLS), k = below(N);
	struct epoll_event ev = { .events = some_events(), .data.u64 = value * N + k };
	int op = ops[below(3)], r[2], err[2];

	for (unsigned i = 0; i < 2; i++) {
		errno = 0;
		r[i] = epoll_ctl(epolls[e][i], op, pairs[k].fd[i], &ev);
		err[i] = errno;
	}
	if (r[0] != r[1] || err[0] != err[1])
		fail_step("epoll_ctl()", r[0] ? err[0] : 0, r[1] ? err[1] : 0);
}

/* As event loops do it between two waits. */
static void do_turns(void)
{
	unsigned turns = below(4);

	for (unsigned i = 0; i < turns; i++)
		do_ctl();
}

static int by_data(const void *a, const void *b)
{
	const struct epoll_event *x = a, *y = b;

	return x->data.u64 < y->data.u64 ? -1 : x->data.u64 > y->data.u64;
}

static void do_wait(void)
{
	unsigned e = below(8) ? 0 : below(EPOLLS);
	struct epoll_event ev[2][N];
	int n = with_flags || below(2) ? (int)N : 1, r[2];

	memset(ev, 0, sizeof(ev));
	for (unsigned i = 0; i < 2; i++)
		r[i] = epoll_wait(epolls[e][i], ev[i], n, 0);
	if (r[0] != r[1])
		fail_step("epoll_wait()", r[0], r[1]);
	if (n < (int)N)
		return; /* whose turn it is differs */
	for (unsigned i = 0; i < 2; i++)
		qsort(ev[i], (size_t)r[i], sizeof(ev[i][0]), by_data);
	for (int i = 0; i < r[0]; i++) {
		if (ev[0][i].data.u64 != ev[1][i].data.u64)
			fail_step("data of epoll", (int)ev[0][i].data.u64, (int)ev[1][i].data.u64);
		if (ev[0][i].events != ev[1][i].events)
			fail_step("events of epoll", (int)ev[0][i].events, (int)ev[1][i].events);
	}
}

static void do_poll(void)
{
	struct pollfd p[2][N];
	int r[2];

	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < N; k++)
			p[i][k] = (struct pollfd){ .fd = pairs[k].fd[i],
						   .events = k == step % N ? POLLOUT : POLLIN };
		r[i] = poll(p[i], N, 0);
	}
	if (r[0] != r[1])
		fail_step("poll()", r[0], r[1]);
	for (unsigned k = 0; k < N; k++) {
		if (p[0][k].revents != p[1][k].revents)
			fail_step("revents", p[0][k].revents, p[1][k].revents);
	}
}

static void do_close(void)
{
	struct pair *p = &pairs[below(N)];
	unsigned e = below(EPOLLS);

	if (below(2)) {
		close_pair(p);
		open_pair(p);
	} else {
		close(epolls[e][0]);
		close(epolls[e][1]);
		open_epoll(epolls[e]);
	}
}

static void one_step(void)
{
	unsigned what = below(100);

	if (what < 25)
		do_post();
	else if (what < 50)
		do_read();
	else if (what < 60)
		do_turns();
	else if (what < 92)
		do_wait();
	else if (what < 98)
		do_poll();
	else if (!below(5))
		do_close();
}

static void both_tell_the_same(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		rng = 0x9e3779b97f4a7c15u * seed;
		with_flags = seed % 2;
		for (unsigned i = 0; i < N; i++)
			open_pair(&pairs[i]);
		for (unsigned i = 0; i < EPOLLS; i++)
			open_epoll(epolls[i]);
		for (step = 0; step < STEPS; step++)
			one_step();
		for (unsigned i = 0; i < N; i++)
			close_pair(&pairs[i]);
		for (unsigned i = 0; i < EPOLLS; i++) {
			close(epolls[i][0]);
			close(epolls[i][1]);
		}
	}
}

/* ---- several threads --------------------------------------------------------------------------
 */

#define THREADS 3u
#define EACH	4000u

static struct {
	int epfd, channel[N];
	_Atomic unsigned posted, taken;
} shared;

/* The channels are read until there is nothing, by whoever is told. */
static void take_all(int channel)
{
	uint64_t event;

	while (read(channel, &event, sizeof(event)) == sizeof(event))
		shared.taken++;
}

static void put_back(int channel, uint64_t data)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = data };

	if (epoll_ctl(shared.epfd, EPOLL_CTL_DEL, channel, NULL))
		return; /* another thread did */
	epoll_ctl(shared.epfd, EPOLL_CTL_ADD, channel, &ev);
}

static void *loop(void *arg)
{
	unsigned mine = 0, seed = (unsigned)(uintptr_t)arg + 1;
	uint64_t end = now_ms() + 20000;
	struct epoll_event ev[2];
	int n;

	while (shared.taken < THREADS * EACH && now_ms() < end) {
		if (mine < EACH && rand_r(&seed) % 4) {
			post_of(shared.channel[mine % N], 1);
			mine++;
			shared.posted++;
		}
		n = epoll_wait(shared.epfd, ev, 2, (int)(rand_r(&seed) % 2));
		for (int i = 0; i < n; i++) {
			take_all(shared.channel[ev[i].data.u64]);
			put_back(shared.channel[ev[i].data.u64], ev[i].data.u64);
		}
	}
	return NULL;
}

static void no_event_of_several_threads_is_lost(void **state)
{
	pthread_t t[THREADS];
	struct epoll_event ev = { .events = EPOLLIN };

	(void)state;
	shared.epfd = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < N; i++) {
		shared.channel[i] = new_channel();
		assert_int_equal(fcntl(shared.channel[i], F_SETFL, O_NONBLOCK), 0);
		ev.data.u64 = i;
		assert_int_equal(epoll_ctl(shared.epfd, EPOLL_CTL_ADD, shared.channel[i], &ev), 0);
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, loop, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(shared.posted, THREADS * EACH);
	assert_int_equal(shared.taken, THREADS * EACH);
	for (unsigned i = 0; i < N; i++)
		close(shared.channel[i]);
	close(shared.epfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_tell_the_same),
		cmocka_unit_test(no_event_of_several_threads_is_lost),
	};

	if (host()->api()->engine_start(host()->engine()))
		return 1;
	fake = dlsym(dlopen(getenv("UWARP_LIB"), RTLD_NOW | RTLD_NOLOAD), FAKE_WAITS_NAME);
	if (!fake)
		return 1;
	fake->able = true;
	fake->fd = fake->socket = -1;
	fake->how = UW_WAIT_PLAINLY;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
