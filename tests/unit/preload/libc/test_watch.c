/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of epoll's watches that stay in memory until the thread's next wait (doc/adr/0076): to
 * the program all is as if the kernel had them at once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kept_bed.h"

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

/* What was different before a wait, and is as before again after it. */
static void there_and_back_over_a_wait_is_two_changes(void **state)
{
	(void)state;
	assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLOUT, DATA), 0);
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLIN, DATA), 0);
	wait_for_nothing();
	assert_int_equal(watched_by_kernel(bed.epoll, bed.channel) & (EPOLLIN | EPOLLOUT), EPOLLIN);
}

static void a_duplicates_are_done_at_once(void **state)
{
	int copy = fcntl(bed.channel, F_DUPFD_CLOEXEC, 0);

	(void)state;
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_ADD, copy, EPOLLIN, 3), 0);
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(ctl(EPOLL_CTL_DEL, copy, 0, 0), 0);
	assert_int_equal(watched_by_kernel(bed.epoll, copy), 0);
	close(copy);
}

static void of_another_file_of_the_number_they_are_the_kernels(void **state)
{
	int other = eventfd(1, EFD_CLOEXEC);

	(void)state;
	usleep(2000); /* the number is looked at once in a millisecond */
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	usleep(2000);
	assert_int_equal(syscall(SYS_dup3, other, bed.channel, O_CLOEXEC),
			 bed.channel); /* unseen */
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
	is_told(DATA);
	close(other);
}

static void a_forked_child_has_none(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	assert_int_equal(ctl(EPOLL_CTL_MOD, bed.channel, EPOLLOUT, 3), 0);
	child = fork();
	if (!child) /* its channel is another file */
		_exit(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0) == -1 && errno == ENOENT &&
				      !ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, 4)
			      ? 0
			      : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	wait_for_nothing();
	assert_int_equal(watched_by_kernel(bed.epoll, bed.channel) & (EPOLLIN | EPOLLOUT),
			 EPOLLOUT);
}

static void errors_are_the_kernels(void **state)
{
	(void)state;
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, 3), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(ctl(99, bed.channel, EPOLLIN, 3), -1);
	assert_int_equal(errno, EINVAL);
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
	/* the kernel gets what is due of the inner one */
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_int_equal(epoll_wait(outer, &ev, 1, 0), 0);
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
	has_only(bed.channel, 5);
	wait_for_nothing();
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_int_equal(epoll_wait(outer, &ev, 1, 0), 0);
	assert_false(is_watched());
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
	wait_for_nothing();
	waited_on = outer;
	start_waiter(&t, &r);
	post_of(bed.channel, 5);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	has_only(bed.channel, 5);
	close(outer);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_is_undone_spares_the_kernel),
		TEST(what_is_different_the_kernel_gets_before_a_wait),
		TEST(there_and_back_over_a_wait_is_two_changes),
		TEST(a_duplicates_are_done_at_once),
		TEST(of_another_file_of_the_number_they_are_the_kernels),
		TEST(a_forked_child_has_none),
		TEST(errors_are_the_kernels),
		TEST(flags_go_to_the_kernel_at_once),
		TEST(a_close_leaves_nothing_behind),
		TEST(a_dup_over_it_leaves_nothing_behind),
		TEST(where_another_thread_waits_they_are_done_at_once),
		TEST(another_threads_are_done_at_once),
		/* from then on epolls may be inside of each other */
		TEST(an_epoll_around_it_tells_as_well),
	};

	return start_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
