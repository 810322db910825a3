/* SPDX-License-Identifier: BSD-3-Clause */
/* What a read() of a completion channel asks the kernel: a program that reads until there is
 * nothing pays for each question (doc/adr/0074), and one that reads what it has just taken in
 * itself would pay for the way through the pipe (doc/adr/0067). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "channels.h"
#include "fake_waits.h"

static struct fake_waits *fake;
static unsigned asked; /* F_GETFL, of the kernel */
static unsigned wrote;
static unsigned looked;	    /* FIONREAD: how much is in a pipe */
static _Atomic bool pauses; /* whoever has written, before it goes on */
static _Atomic bool written;

/* The preloaded library makes its system calls by this one, since the program comes first. Most
 * have fewer than six arguments: the last is what the stack has there, as for libc's. */
__attribute__((visibility("default"), no_sanitize_address)) long syscall(long n, ...)
{
	static long (*libcs)(long n, ...);
	long arg[6];
	va_list all;

	if (!libcs)
		libcs = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_start(all, n);
	for (unsigned i = 0; i < 6; i++)
		arg[i] = va_arg(all, long);
	va_end(all);
	asked += n == SYS_fcntl && arg[1] == F_GETFL;
	wrote += n == SYS_write;
	looked += n == SYS_ioctl && arg[1] == FIONREAD;
	arg[0] = libcs(n, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (n == SYS_write && pauses) {
		written = true;
		usleep(20000);
	}
	return arg[0];
}

/* How often the kernel is asked for the flags while there is nothing to read, so many times. */
static unsigned asked_by_reads(int channel, unsigned reads)
{
	struct ib_uverbs_comp_event_desc d;

	asked = 0;
	while (reads--) {
		assert_int_equal(read(channel, &d, sizeof(d)), -1);
		assert_int_equal(errno, EAGAIN);
	}
	return asked;
}

static void who_has_said_it_does_not_block_is_believed(void **state)
{
	int channel = new_channel();

	(void)state;
	assert_int_equal(fcntl(channel, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(asked_by_reads(channel, 10), 0);
	close(channel);
}

/* By a way that is not seen. */
static void otherwise_the_first_read_asks(void **state)
{
	int channel = new_channel();

	(void)state;
	assert_int_equal(syscall(SYS_fcntl, channel, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(asked_by_reads(channel, 10), 1);
	/* A duplicate may be the same file: of none is it known any more. */
	assert_int_equal(fcntl(channel, F_SETFL, 0), 0);
	assert_int_equal(syscall(SYS_fcntl, channel, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(asked_by_reads(channel, 10), 1);
	close(channel);
}

/* Another channel has its number now. */
static void what_is_known_ends_with_the_channel(void **state)
{
	int channel = new_channel(), next;

	(void)state;
	assert_int_equal(fcntl(channel, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(asked_by_reads(channel, 1), 0);
	close(channel);
	next = new_channel();
	assert_int_equal(next, channel);
	post(next);
	asked = 0;
	take(next);
	assert_int_equal(asked, 1);
	close(next);
}

static void *post_and_pause(void *arg)
{
	pauses = true;
	post(*(int *)arg);
	pauses = false;
	return NULL;
}

/* The kernel may run the reader before the writer goes on. epoll with EPOLLET tells it once. */
static void what_is_written_is_read_before_the_writer_goes_on(void **state)
{
	int channel = new_channel();
	uint64_t event = 0;
	bool was_written;
	pthread_t t;
	ssize_t n;

	(void)state;
	assert_int_equal(fcntl(channel, F_SETFL, O_NONBLOCK), 0);
	written = false;
	assert_int_equal(asked_by_reads(channel, 10), 0);
	assert_int_equal(pthread_create(&t, NULL, post_and_pause, &channel), 0);
	do {
		was_written = written;
		n = read(channel, &event, sizeof(event));
	} while (n < 0 && !was_written);
	assert_int_equal(n, sizeof(event));
	assert_int_equal(event, 1);
	pthread_join(t, NULL);
	close(channel);
}

/* ---- the thread that reads makes the event itself ------------------------------------------ */

static int mine, others; /* channels */

static int two_channels(void **state)
{
	(void)state;
	fake->able = true;
	fake->how = UW_WAIT_SLEEP;
	fake->fd = fake->socket = -1;
	fake->look_us = 1000000;
	fake->looks = fake->heard = fake->plains = 0;
	mine = new_channel();
	others = new_channel();
	wrote = looked = 0;
	return 0;
}

static int no_channels(void **state)
{
	(void)state;
	fake->able = false;
	fake->in_look = NULL;
	fake->signal = 0;
	close(mine);
	close(others);
	return 0;
}

static bool has_event(int channel)
{
	struct pollfd p = { .fd = channel, .events = POLLIN };

	return syscall(SYS_poll, &p, 1, 0) == 1;
}

static void post_mine(void)
{
	fake->in_look = NULL;
	post(mine);
}

static void it_comes_without_the_pipe(void **state)
{
	struct ib_uverbs_comp_event_desc d = { 0 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		fake->in_look = post_mine;
		assert_int_equal(read(mine, &d, sizeof(d)), sizeof(d));
		assert_int_equal(d.cq_handle, 1);
		assert_false(has_event(mine));
	}
	assert_int_equal(wrote + looked, 0);
	assert_int_equal(fake->looks, 3);
	assert_int_equal(fake->heard, 3);
}

static void post_all(void)
{
	fake->in_look = NULL;
	post(others);
	post(mine);
	post(mine);
}

static void what_else_there_is_waits_in_the_pipes(void **state)
{
	(void)state;
	fake->in_look = post_all;
	take(mine);
	assert_int_equal(wrote, 2);
	assert_true(has_event(mine));
	take(mine);
	assert_false(has_event(mine));
	take(others);
}

/* As of the kernel's channels: one event a read, and none for who has no room for it. */
static void a_read_is_one_event(void **state)
{
	uint64_t octets[4] = { 0 };

	(void)state;
	post(mine);
	post(mine);
	assert_int_equal(read(mine, octets, 4), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(read(mine, octets, sizeof(octets)), sizeof(octets[0]));
	assert_int_equal(octets[0], 1);
	assert_int_equal(octets[1], 0);
	take(mine);
	assert_int_equal(fcntl(mine, F_SETFL, O_NONBLOCK), 0);
	for (size_t len = 0; len <= sizeof(octets); len += 4) {
		assert_int_equal(read(mine, octets, len), -1);
		assert_int_equal(errno, EAGAIN);
	}
}

static void one_without_room_is_given_none_in_a_look(void **state)
{
	char octets[4];

	(void)state;
	fake->in_look = post_mine;
	assert_int_equal(read(mine, octets, sizeof(octets)), -1);
	assert_int_equal(errno, EINVAL);
	take(mine);
}

static void post_others(void)
{
	fake->in_look = NULL;
	post(others);
}

/* By a call that is not seen the number is another channel's by now. Whoever reads that one gets
 * its event and no other. */
static void post_after_a_change(void)
{
	struct ib_uverbs_comp_event_desc d = { .cq_handle = 2 };
	struct channel *c = host()->channel_hold(mine);

	assert_non_null(c);
	assert_int_equal(syscall(SYS_dup3, others, mine, O_CLOEXEC), mine);
	assert_int_equal(host()->channel_post(c, &d, sizeof(d)), 0);
	host()->channel_let_go(c);
	fake->in_look = post_others;
}

static void what_has_the_number_by_now_gets_its_own(void **state)
{
	struct ib_uverbs_comp_event_desc d = { 0 };

	(void)state;
	fake->how = UW_WAIT_AGAIN;
	fake->in_look = post_after_a_change;
	assert_int_equal(read(mine, &d, sizeof(d)), sizeof(d));
	assert_int_equal(d.cq_handle, 1);
}

static sigjmp_buf out;

static void jump(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

/* Its handler runs when the look is over, and does not return. */
static void it_is_not_lost_where_a_handler_jumps(void **state)
{
	struct sigaction a = { .sa_handler = jump };

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
	fake->signal = SIGUSR1;
	fake->in_look = post_mine;
	if (!sigsetjmp(out, 1)) {
		take(mine);
		fail();
	}
	fake->signal = 0;
	assert_true(has_event(mine));
	take(mine);
}

static void *post_from_elsewhere(void *arg)
{
	usleep(10000);
	post(mine);
	return arg;
}

static void another_threads_event_comes_through_the_pipe(void **state)
{
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, post_from_elsewhere, NULL), 0);
	take(mine);
	pthread_join(t, NULL);
	assert_int_equal(wrote, 1);
	post(mine); /* this thread reads no more */
	assert_true(has_event(mine));
}

static struct channel *cqs[2]; /* each holds its channel */

static void post_held(unsigned cq)
{
	const struct ib_uverbs_comp_event_desc d = { .cq_handle = cq + 1 };

	assert_int_equal(host()->channel_post(cqs[cq], &d, sizeof(d)), 0);
}

static void *post_first(void *arg)
{
	post_held(0);
	return arg;
}

static void post_behind_another_thread(void)
{
	pthread_t t;

	fake->in_look = NULL;
	assert_int_equal(pthread_create(&t, NULL, post_first, NULL), 0);
	pthread_join(t, NULL);
	post_held(1);
}

/* A program that sends and waits expects the Send's event before that of the answer. */
static void events_of_two_cqs_keep_their_order(void **state)
{
	struct ib_uverbs_comp_event_desc d;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		cqs[i] = host()->channel_hold(mine);
	fake->in_look = post_behind_another_thread;
	for (unsigned i = 1; i <= 2; i++) {
		assert_int_equal(read(mine, &d, sizeof(d)), sizeof(d));
		assert_int_equal(d.cq_handle, i);
	}
	for (unsigned i = 0; i < 2; i++)
		host()->channel_let_go(cqs[i]);
}

/* ---- threads that leave the stack to others ---------------------------------------------------
 */

#define SLEEPERS 4

struct sleeper {
	pthread_t thread;
	_Atomic pid_t tid;
	int fd;
	bool epoll;
};

static void *sleep_for_an_event(void *arg)
{
	struct sleeper *s = arg;
	struct ib_uverbs_comp_event_desc d;
	struct epoll_event e;
	bool woken;

	s->tid = (pid_t)syscall(SYS_gettid);
	woken = s->epoll ? epoll_wait(s->fd, &e, 1, 60000) == 1
			 : read(s->fd, &d, sizeof(d)) == sizeof(d);
	return woken ? s : NULL;
}

/* The number of the call in which the thread sleeps, by the kernel; -1: it does not, or nobody is
 * told. */
static long call_of(const struct sleeper *s)
{
	char name[64], text[32] = "";
	int fd;

	snprintf(name, sizeof(name), "/proc/self/task/%d/syscall", (int)s->tid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0 || text[0] < '0' || text[0] > '9')
		text[0] = 0;
	close(fd);
	return text[0] ? strtol(text, NULL, 10) : -1;
}

static long where_it_sleeps(struct sleeper *s)
{
	long n = -1;

	assert_int_equal(pthread_create(&s->thread, NULL, sleep_for_an_event, s), 0);
	for (unsigned i = 0; i < 2000 && (n < 0 || n == SYS_futex); i++) {
		usleep(1000);
		n = s->tid ? call_of(s) : -1;
	}
	return n;
}

static void read_sleeps_in_the_kernels(void **state)
{
	struct sleeper s = { .fd = mine };
	void *woken;
	long n;

	(void)state;
	fake->elsewhere = true;
	n = where_it_sleeps(&s);
	post(mine);
	pthread_join(s.thread, &woken);
	assert_non_null(woken);
	fake->elsewhere = false;
	if (n < 0)
		skip();
	assert_int_equal(n, SYS_read);
}

/* In ppoll() each of them would be woken by each event. */
static void many_in_epoll_sleep_in_the_kernels(void **state)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct ib_uverbs_comp_event_desc d;
	struct sleeper s[SLEEPERS];
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	unsigned unknown = 0, right = 0;
	void *woken;

	(void)state;
	fake->elsewhere = true;
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, mine, &e), 0);
	for (unsigned i = 0; i < SLEEPERS; i++) {
		s[i] = (struct sleeper){ .fd = epfd, .epoll = true };
		long n = where_it_sleeps(&s[i]);

		unknown += n < 0;
		right += n == SYS_epoll_pwait;
	}
	post(mine); /* nobody reads it, so each is told in turn */
	for (unsigned i = 0; i < SLEEPERS; i++) {
		pthread_join(s[i].thread, &woken);
		assert_non_null(woken);
	}
	fake->elsewhere = false;
	assert_int_equal(read(mine, &d, sizeof(d)), sizeof(d));
	close(epfd);
	if (unknown)
		skip();
	assert_int_equal(right, SLEEPERS);
}

/* ---- both kinds of handlers ------------------------------------------------------------------ */

static atomic_int handled;

static void count(int sig)
{
	(void)sig;
	handled++;
}

static void install(int sig, int flags)
{
	const struct sigaction a = { .sa_handler = count, .sa_flags = flags };

	assert_int_equal(sigaction(sig, &a, NULL), 0);
}

static void *restarts_then_ends(void *arg)
{
	usleep(20000);
	pthread_kill(*(pthread_t *)arg, SIGUSR2);
	while (!handled)
		usleep(1000);
	usleep(20000);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	usleep(1000000); /* what would end the read if the signal was lost */
	post(mine);
	return NULL;
}

/* Which of them ran nobody tells but the kernel. */
static void the_one_that_does_not_restart_ends_the_read(void **state)
{
	struct ib_uverbs_comp_event_desc d;
	pthread_t self = pthread_self(), t;

	(void)state;
	install(SIGUSR1, 0);
	install(SIGUSR2, SA_RESTART);
	usleep(110000); /* they have been there for a while */
	handled = 0;
	assert_int_equal(pthread_create(&t, NULL, restarts_then_ends, &self), 0);
	assert_int_equal(read(mine, &d, sizeof(d)), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(handled, 2);
	assert_int_equal(fake->plains, 1); /* the stack is served meanwhile */
	assert_int_equal(fake->plain, 0);
	pthread_join(t, NULL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	usleep(110000);
	take(mine);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, two_channels, no_channels)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_said_it_does_not_block_is_believed),
		cmocka_unit_test(otherwise_the_first_read_asks),
		cmocka_unit_test(what_is_known_ends_with_the_channel),
		cmocka_unit_test(what_is_written_is_read_before_the_writer_goes_on),
		TEST(it_comes_without_the_pipe),
		TEST(what_else_there_is_waits_in_the_pipes),
		TEST(a_read_is_one_event),
		TEST(one_without_room_is_given_none_in_a_look),
		TEST(what_has_the_number_by_now_gets_its_own),
		TEST(it_is_not_lost_where_a_handler_jumps),
		TEST(another_threads_event_comes_through_the_pipe),
		TEST(events_of_two_cqs_keep_their_order),
		TEST(read_sleeps_in_the_kernels),
		TEST(many_in_epoll_sleep_in_the_kernels),
		TEST(the_one_that_does_not_restart_ends_the_read),
	};

	if (host()->api()->engine_start(host()->engine()))
		return 1;
	fake = dlsym(dlopen(getenv("UWARP_LIB"), RTLD_NOW | RTLD_NOLOAD), FAKE_WAITS_NAME);
	return fake ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
