/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion events that are kept in memory for the thread that made them, and changes of epoll
 * that wait for its next wait (doc/adr/0076): to the program all is as if the kernel did it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include <cmocka.h>

#include "channels.h"
#include "fake_waits.h"
#include "ways.h"

#define DATA 77u

static struct fake_waits *fake;
static struct bed bed;
static int waited_on; /* the epoll of another thread's wait */

static int ctl(int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = { .events = events, .data.u64 = data };

	return epoll_ctl(bed.epoll, op, fd, &ev);
}

static void set_nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

/* The thread's last wait was on this epoll. */
static void wait_for_nothing(void)
{
	struct epoll_event ev;

	assert_int_equal(epoll_wait(bed.epoll, &ev, 1, 0), 0);
}

static int setup(void **state)
{
	(void)state;
	fake->able = true;
	fake->look_us = 0;
	fake->elsewhere = false;
	fake->how = UW_WAIT_PLAINLY;
	fake->in_look = NULL;
	fake->fd = fake->socket = -1;
	fake->plains = 0;
	bed.channel = new_channel();
	set_nonblocking(bed.channel);
	waited_on = bed.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
	wait_for_nothing();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(bed.channel);
	close(bed.epoll);
	return 0;
}

static int in_pipe(int channel)
{
	int octets = 0;

	assert_int_equal(syscall(SYS_ioctl, channel, FIONREAD, &octets), 0);
	return octets / (int)sizeof(struct ib_uverbs_comp_event_desc);
}

static void is_told(uint64_t data)
{
	struct epoll_event ev[2] = { 0 };

	assert_int_equal(epoll_wait(bed.epoll, ev, 2, 0), 1);
	assert_int_equal(ev[0].events, EPOLLIN);
	assert_int_equal(ev[0].data.u64, data);
}

static void is_empty(int channel)
{
	uint64_t event;

	/* the first answer may be the library's, the second is the kernel's */
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(read(channel, &event, sizeof(event)), -1);
		assert_int_equal(errno, EAGAIN);
	}
}

static void has_only(int channel, uint64_t cq)
{
	uint64_t event[2] = { 0 };

	assert_int_equal(read(channel, event, sizeof(event)), sizeof(event[0]));
	assert_int_equal(event[0], cq);
	is_empty(channel);
}

static void post_mine(void)
{
	fake->in_look = NULL;
	post_of(bed.channel, 5);
}

/* What the kernel watches: the lines "tfd: N events: ..." of the epoll descriptor. */
static int watched_by_kernel(int epfd, int fd)
{
	char path[64], line[256];
	unsigned events;
	int tfd, found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epfd);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "tfd: %d events: %x", &tfd, &events) == 2 && tfd == fd)
			found = (int)events;
	}
	fclose(f);
	return found;
}

static bool is_watched(void)
{
	return watched_by_kernel(bed.epoll, bed.channel) != 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void one_of_a_look_is_told_by_epoll(void **state)
{
	struct epoll_event ev = { 0 };

	(void)state;
	fake->in_look = post_mine;
	assert_int_equal(epoll_wait(bed.epoll, &ev, 1, -1), 1);
	assert_int_equal(ev.events, EPOLLIN);
	assert_int_equal(ev.data.u64, DATA);
	assert_int_equal(in_pipe(bed.channel), 0);
	has_only(bed.channel, 5);
	wait_for_nothing();
}

static void one_of_a_look_is_told_by_poll(void **state)
{
	struct pollfd p[2] = { { .fd = -1, .events = POLLIN, .revents = 1 },
			       { .fd = bed.channel, .events = POLLIN } };

	(void)state;
	fake->in_look = post_mine;
	assert_int_equal(poll(p, 2, -1), 1);
	assert_int_equal(p[0].revents, 0);
	assert_int_equal(p[1].revents, POLLIN);
	assert_int_equal(in_pipe(bed.channel), 0);
	assert_int_equal(poll(p, 2, 0), 1); /* until it is read */
	has_only(bed.channel, 5);
	assert_int_equal(poll(p, 2, 0), 0);
}

static void one_that_is_made_between_two_waits_is_told_by_the_next(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		post_of(bed.channel, 5 + i);
		assert_int_equal(in_pipe(bed.channel), 0);
		is_told(DATA);
		is_told(DATA); /* until it is read */
		has_only(bed.channel, 5 + i);
		wait_for_nothing();
	}
}

/* readv() is not this library's. */
static void who_reads_unseen_gets_it_after_the_second_wait(void **state)
{
	uint64_t event = 0;

	(void)state;
	post_of(bed.channel, 5);
	is_told(DATA);
	assert_int_equal(syscall(SYS_read, bed.channel, &event, sizeof(event)), -1);
	assert_int_equal(errno, EAGAIN);
	is_told(DATA);
	assert_int_equal(syscall(SYS_read, bed.channel, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event, 5);
	wait_for_nothing();
}

static void it_is_read_without_a_wait(void **state)
{
	(void)state;
	post_of(bed.channel, 5);
	has_only(bed.channel, 5);
}

static void every_other_wait_finds_it_in_the_pipe(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_WAYS; i++) {
		wait_for_nothing();
		post_of(bed.channel, 5);
		assert_int_equal(in_pipe(bed.channel), 0);
		assert_int_equal(ways[i].wait(&bed, 0), 1);
		has_only(bed.channel, 5);
	}
}

static void behind_an_older_one_it_goes_into_the_pipe(void **state)
{
	uint64_t event;

	(void)state;
	post_of(bed.channel, 5);
	post_of(bed.channel, 6);
	assert_int_equal(in_pipe(bed.channel), 2);
	is_told(DATA);
	for (uint64_t cq = 5; cq <= 6; cq++) {
		assert_int_equal(read(bed.channel, &event, sizeof(event)), sizeof(event));
		assert_int_equal(event, cq);
	}
	is_empty(bed.channel);
	post_of(bed.channel, 7); /* the pipe is empty again */
	assert_int_equal(in_pipe(bed.channel), 0);
	has_only(bed.channel, 7);
}

static void *post_from_elsewhere(void *arg)
{
	post_of(bed.channel, 5);
	return arg;
}

static void one_of_another_thread_goes_into_the_pipe(void **state)
{
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, post_from_elsewhere, NULL), 0);
	pthread_join(t, NULL);
	assert_int_equal(in_pipe(bed.channel), 1);
	has_only(bed.channel, 5);
}

static void *wait_elsewhere(void *arg)
{
	struct epoll_event ev = { 0 };

	*(int *)arg = epoll_wait(waited_on, &ev, 1, 4000);
	return NULL;
}

static void start_waiter(pthread_t *t, int *result)
{
	assert_int_equal(pthread_create(t, NULL, wait_elsewhere, result), 0);
	while (!fake->plains)
		sched_yield();
	usleep(10000);
}

static void where_another_thread_waits_it_wakes_that_one(void **state)
{
	pthread_t t;
	int r = 0;

	(void)state;
	start_waiter(&t, &r);
	post_of(bed.channel, 5);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	assert_int_equal(in_pipe(bed.channel), 1);
}

static void a_thread_that_waits_later_is_told_as_well(void **state)
{
	pthread_t t;
	int r = 0;

	(void)state;
	post_of(bed.channel, 5);
	assert_int_equal(pthread_create(&t, NULL, wait_elsewhere, &r), 0);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	has_only(bed.channel, 5);
}

static void a_thread_with_another_epoll_is_not_woken(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int other = new_channel(), r = 0;
	pthread_t t;

	(void)state;
	waited_on = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(epoll_ctl(waited_on, EPOLL_CTL_ADD, other, &ev), 0);
	start_waiter(&t, &r);
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_true(is_watched());
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
	post_of(bed.channel, 5);
	assert_int_equal(in_pipe(bed.channel), 0);
	post_of(other, 6);
	assert_int_equal(in_pipe(other), 1);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	assert_int_equal(in_pipe(bed.channel), 0); /* the other thread left it alone */
	is_told(DATA);
	has_only(bed.channel, 5);
	close(waited_on);
	close(other);
}

static void a_channel_that_left_one_of_two_epolls_is_the_kernels(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = 6 };
	int second = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	post_of(bed.channel, 5);
	assert_int_equal(epoll_ctl(second, EPOLL_CTL_ADD, bed.channel, &ev), 0);
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_int_equal(epoll_wait(second, &ev, 1, 0), 1);
	assert_int_equal(ev.data.u64, 6);
	has_only(bed.channel, 5);
	close(second);
}

/* Once an epoll is inside of another, each may be what a thread waits for. */
static void an_epoll_around_it_tells_as_well(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = 6 };
	int outer = epoll_create1(EPOLL_CLOEXEC), r = 0;
	pthread_t t;

	(void)state;
	assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, bed.epoll, &ev), 0);
	post_of(bed.channel, 5);
	assert_int_equal(epoll_wait(outer, &ev, 1, 0), 1);
	assert_int_equal(ev.data.u64, 6);
	has_only(bed.channel, 5);
	wait_for_nothing();
	waited_on = outer;
	start_waiter(&t, &r);
	post_of(bed.channel, 5);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	has_only(bed.channel, 5);
	close(outer);
}

static void flags_by_which_epoll_tells_less_are_the_kernels(void **state)
{
	static const uint32_t flags[] = { EPOLLET, EPOLLONESHOT };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLIN | flags[i], DATA), 0);
		wait_for_nothing();
		post_of(bed.channel, 5);
		assert_int_equal(in_pipe(bed.channel), 1);
		is_told(DATA);
		wait_for_nothing();
		has_only(bed.channel, 5);
	}
}

static void a_channel_in_two_epolls_is_the_kernels(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int second = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	assert_int_equal(epoll_ctl(second, EPOLL_CTL_ADD, bed.channel, &ev), 0);
	wait_for_nothing();
	post_of(bed.channel, 5);
	assert_int_equal(in_pipe(bed.channel), 1);
	has_only(bed.channel, 5);
	close(second);
}

static void new_data_are_told(void **state)
{
	(void)state;
	post_of(bed.channel, 5);
	assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLIN | EPOLLRDHUP, 78), 0);
	is_told(78);
	has_only(bed.channel, 5);
}

static void without_interest_it_is_not_told(void **state)
{
	(void)state;
	post_of(bed.channel, 5);
	assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLOUT, DATA), 0);
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, 78), 0);
	is_told(78);
	has_only(bed.channel, 5);
}

static void one_of_a_closed_channel_is_not_told(void **state)
{
	(void)state;
	post_of(bed.channel, 5);
	close(bed.channel);
	wait_for_nothing();
}

static void a_channel_that_is_closed_and_lives_on_tells_by_its_other_number(void **state)
{
	int copy = fcntl(bed.channel, F_DUPFD_CLOEXEC, 0);

	(void)state;
	wait_for_nothing();
	post_of(bed.channel, 5);
	close(bed.channel);
	is_told(DATA); /* the kernel's epoll watches the file */
	has_only(copy, 5);
	close(copy);
}

static void another_epoll_of_the_number_is_told_nothing(void **state)
{
	int old = bed.epoll;

	(void)state;
	post_of(bed.channel, 5);
	close(bed.epoll);
	bed.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(bed.epoll, old);
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, 79), 0);
	is_told(79);
	/* closed by a call that is not seen */
	syscall(SYS_close, bed.epoll);
	bed.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(bed.epoll, old);
	wait_for_nothing();
	has_only(bed.channel, 5);
}

static void a_duplicate_of_the_epoll_tells_as_well(void **state)
{
	int copy = dup(bed.epoll);
	struct epoll_event ev = { 0 };

	(void)state;
	wait_for_nothing();
	post_of(bed.channel, 5);
	assert_int_equal(epoll_wait(copy, &ev, 1, 1000), 1);
	assert_int_equal(ev.data.u64, DATA);
	has_only(bed.channel, 5);
	close(copy);
}

static void with_little_room_others_do_not_starve_it(void **state)
{
	struct epoll_event ev = { 0 };
	int ready = eventfd(1, EFD_CLOEXEC);
	bool told = false;

	(void)state;
	assert_int_equal(ctl(EPOLL_CTL_ADD, ready, EPOLLIN, 1), 0);
	assert_int_equal(epoll_wait(bed.epoll, &ev, 1, 0), 1);
	post_of(bed.channel, 5);
	for (unsigned i = 0; i < 4 && !told; i++) {
		assert_int_equal(epoll_wait(bed.epoll, &ev, 1, 0), 1);
		told = ev.data.u64 == DATA;
	}
	assert_true(told);
	has_only(bed.channel, 5);
	close(ready);
}

static void of_an_unseen_change_of_the_number_nothing_comes(void **state)
{
	uint64_t one = 1;
	int other = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	(void)state;
	wait_for_nothing();
	assert_int_equal(syscall(SYS_dup3, other, bed.channel, O_CLOEXEC), bed.channel);
	assert_int_equal(read(bed.channel, &one, sizeof(one)), -1);
	assert_int_equal(errno, EAGAIN);
	wait_for_nothing();
	one = 9;
	assert_int_equal(write(other, &one, sizeof(one)), sizeof(one));
	assert_int_equal(read(bed.channel, &one, sizeof(one)), sizeof(one));
	assert_int_equal(one, 9);
	close(other);
}

static void a_forked_child_has_none(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	post_of(bed.channel, 5);
	child = fork();
	if (!child) {
		uint64_t event;

		_exit(read(bed.channel, &event, sizeof(event)) == -1 && errno == EAGAIN ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	is_told(DATA);
	has_only(bed.channel, 5);
}

static void it_goes_with_its_cq(void **state)
{
	struct channel *c = host()->channel_hold(bed.channel);

	(void)state;
	post_of(bed.channel, 5);
	assert_int_equal(host()->channel_drop(c, 6), 0);
	assert_int_equal(host()->channel_drop(c, 5), 1);
	host()->channel_let_go(c);
	wait_for_nothing();
	is_empty(bed.channel);
}

/* ---- changes of epoll -------------------------------------------------------------------------
 */

static void what_is_undone_spares_the_kernel(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
		assert_true(is_watched());
		assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLOUT, 3), 0);
		assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLIN | EPOLLOUT, 3), 0);
		assert_int_equal(watched_by_kernel(bed.epoll, bed.channel) & EPOLLOUT, 0);
		assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
		assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
		post_of(bed.channel, 5);
		is_told(DATA);
		has_only(bed.channel, 5);
		wait_for_nothing();
	}
}

static void what_is_different_the_kernel_gets_before_a_wait(void **state)
{
	struct pollfd p = { .fd = bed.epoll, .events = POLLIN };

	(void)state;
	assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLOUT, 3), 0);
	wait_for_nothing();
	assert_int_equal(watched_by_kernel(bed.epoll, bed.channel) & (EPOLLIN | EPOLLOUT),
			 EPOLLOUT);
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_true(is_watched());
	assert_int_equal(poll(&p, 1, 0), 0); /* any wait */
	assert_false(is_watched());
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, 4), 0);
	assert_true(is_watched());
}

static void errors_are_the_kernels(void **state)
{
	(void)state;
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, 3), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLIN, 3), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(epoll_ctl(bed.epoll, EPOLL_CTL_ADD, bed.channel, NULL), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(ctl(99, bed.channel, EPOLLIN, 3), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
	assert_int_equal(epoll_ctl(bed.channel, EPOLL_CTL_DEL, bed.channel, NULL), -1);
	assert_int_equal(errno, EINVAL);
	wait_for_nothing();
	assert_true(is_watched());
}

static void flags_go_to_the_kernel_at_once(void **state)
{
	(void)state;
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN | EPOLLONESHOT, 3), 0);
	assert_int_equal(watched_by_kernel(bed.epoll, bed.channel) & EPOLLONESHOT, EPOLLONESHOT);
	post_of(bed.channel, 5);
	is_told(3);
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLIN, 4), 0);
	is_told(4);
	has_only(bed.channel, 5);
}

static void a_close_leaves_nothing_behind(void **state)
{
	int copy = fcntl(bed.channel, F_DUPFD_CLOEXEC, 0);

	(void)state;
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_true(is_watched());
	close(bed.channel);
	assert_false(is_watched());
	close(copy);
}

static void a_dup_over_it_leaves_nothing_behind(void **state)
{
	int copy = fcntl(bed.channel, F_DUPFD_CLOEXEC, 0);
	int other = eventfd(0, EFD_CLOEXEC);

	(void)state;
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_int_equal(dup2(other, bed.channel), bed.channel);
	assert_false(is_watched());
	close(other);
	close(copy);
}

static void where_another_thread_waits_they_are_done_at_once(void **state)
{
	pthread_t t;
	int r = 0;

	(void)state;
	start_waiter(&t, &r);
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_false(is_watched());
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
	assert_true(is_watched());
	post_of(bed.channel, 5);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	has_only(bed.channel, 5);
}

static void *ctl_elsewhere(void *arg)
{
	*(int *)arg = ctl(EPOLL_CTL_DEL, bed.channel, 0, 0);
	return NULL;
}

static void another_threads_are_done_at_once(void **state)
{
	pthread_t t;
	int r = -1;

	(void)state;
	assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLIN, 3), 0);
	assert_int_equal(pthread_create(&t, NULL, ctl_elsewhere, &r), 0);
	pthread_join(t, NULL);
	assert_int_equal(r, 0);
	assert_false(is_watched());
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_of_a_look_is_told_by_epoll),
		TEST(one_of_a_look_is_told_by_poll),
		TEST(one_that_is_made_between_two_waits_is_told_by_the_next),
		TEST(who_reads_unseen_gets_it_after_the_second_wait),
		TEST(it_is_read_without_a_wait),
		TEST(every_other_wait_finds_it_in_the_pipe),
		TEST(behind_an_older_one_it_goes_into_the_pipe),
		TEST(one_of_another_thread_goes_into_the_pipe),
		TEST(where_another_thread_waits_it_wakes_that_one),
		TEST(a_thread_that_waits_later_is_told_as_well),
		TEST(a_thread_with_another_epoll_is_not_woken),
		TEST(a_channel_that_left_one_of_two_epolls_is_the_kernels),
		TEST(flags_by_which_epoll_tells_less_are_the_kernels),
		TEST(a_channel_in_two_epolls_is_the_kernels),
		TEST(new_data_are_told),
		TEST(without_interest_it_is_not_told),
		TEST(one_of_a_closed_channel_is_not_told),
		TEST(a_channel_that_is_closed_and_lives_on_tells_by_its_other_number),
		TEST(another_epoll_of_the_number_is_told_nothing),
		TEST(with_little_room_others_do_not_starve_it),
		TEST(of_an_unseen_change_of_the_number_nothing_comes),
		TEST(a_forked_child_has_none),
		TEST(it_goes_with_its_cq),
		TEST(what_is_undone_spares_the_kernel),
		TEST(what_is_different_the_kernel_gets_before_a_wait),
		TEST(errors_are_the_kernels),
		TEST(flags_go_to_the_kernel_at_once),
		TEST(a_close_leaves_nothing_behind),
		TEST(a_dup_over_it_leaves_nothing_behind),
		TEST(where_another_thread_waits_they_are_done_at_once),
		TEST(another_threads_are_done_at_once),
		/* from then on epolls may be inside of each other */
		TEST(a_duplicate_of_the_epoll_tells_as_well),
		TEST(an_epoll_around_it_tells_as_well),
	};

	if (host()->api()->engine_start(host()->engine()))
		return 1;
	fake = dlsym(dlopen(getenv("UWARP_LIB"), RTLD_NOW | RTLD_NOLOAD), FAKE_WAITS_NAME);
	return fake ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
