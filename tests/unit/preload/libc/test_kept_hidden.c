/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion events in memory and epoll's changes that wait (doc/adr/0076), where others may hear
 * of them than who meets the eye: epolls around epolls, sleepers of before, numbers of other files.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
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

#define DATA	77u
#define WAIT_MS 2000
#define ASLEEP	50000 /* us until a thread sleeps */

static struct fake_waits *fake;
static int channel, mine; /* a channel, and an epoll that watches it */
static int other, theirs; /* ... of another thread */
static sigjmp_buf out;

static int ctl_of(int epfd, int op, int fd, uint64_t data)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = data };

	return epoll_ctl(epfd, op, fd, &ev);
}

static int waits(int epfd, int ms)
{
	struct epoll_event ev;

	return epoll_wait(epfd, &ev, 1, ms);
}

static int new_nonblocking(void)
{
	int fd = new_channel();

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static int setup(void **state)
{
	(void)state;
	fake->able = true;
	fake->how = UW_WAIT_PLAINLY;
	fake->fd = fake->socket = -1;
	channel = new_nonblocking();
	mine = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(ctl_of(mine, EPOLL_CTL_ADD, channel, DATA), 0);
	other = new_nonblocking();
	theirs = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(waits(mine, 0), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(channel);
	close(mine);
	close(other);
	close(theirs);
	return 0;
}

static void *wait_in_theirs(void *result)
{
	*(int *)result = waits(theirs, WAIT_MS);
	return NULL;
}

static pthread_t asleep_in_theirs(int *result)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, wait_in_theirs, result), 0);
	usleep(ASLEEP);
	return t;
}

static void reads(int fd, uint64_t cq)
{
	uint64_t event = 0;

	assert_int_equal(read(fd, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event, cq);
}

/* ---- who hears of it --------------------------------------------------------------------------
 */

/* A channel with an event, or the epoll that watches it, is put where a thread sleeps. */
static void put_where_one_sleeps(int fd)
{
	pthread_t t;
	int r = -1;

	assert_int_equal(ctl_of(theirs, EPOLL_CTL_ADD, other, 0), 0);
	t = asleep_in_theirs(&r);
	post_of(channel, 5);
	if (fd == channel)
		assert_int_equal(ctl_of(mine, EPOLL_CTL_DEL, channel, 0), 0);
	assert_int_equal(ctl_of(theirs, EPOLL_CTL_ADD, fd, 0), 0);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	reads(channel, 5);
}

static void a_channel_goes_with_its_event_to_who_sleeps(void **state)
{
	(void)state;
	put_where_one_sleeps(channel);
}

static void an_epoll_goes_with_its_event_to_who_sleeps(void **state)
{
	(void)state;
	put_where_one_sleeps(mine);
}

static void who_slept_there_before_any_channel_is_woken(void **state)
{
	pthread_t t;
	int r = -1;

	(void)state;
	t = asleep_in_theirs(&r);
	assert_int_equal(ctl_of(theirs, EPOLL_CTL_ADD, other, 0), 0);
	assert_int_equal(waits(theirs, 0), 0);
	post_of(other, 5);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	reads(other, 5);
}

static void a_second_epoll_counts_after_a_third_was_closed(void **state)
{
	int third = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	assert_int_equal(ctl_of(third, EPOLL_CTL_ADD, other, 0), 0);
	close(third);
	assert_int_equal(ctl_of(theirs, EPOLL_CTL_ADD, channel, 0), 0);
	assert_int_equal(waits(theirs, 0), 0);
	post_of(channel, 5);
	assert_int_equal(waits(mine, 0), 1);
	reads(channel, 5);
}

static void an_epoll_that_was_inside_before_it_had_a_channel_tells(void **state)
{
	int around = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	assert_int_equal(ctl_of(around, EPOLL_CTL_ADD, theirs, 0), 0);
	assert_int_equal(ctl_of(theirs, EPOLL_CTL_ADD, other, 0), 0);
	assert_int_equal(waits(theirs, 0), 0);
	post_of(other, 5);
	assert_int_equal(waits(around, 0), 1);
	reads(other, 5);
	assert_int_equal(waits(theirs, 0), 0);
	post_of(other, 6);
	assert_int_equal(waits(around, WAIT_MS), 1);
	reads(other, 6);
	close(around);
}

static void a_duplicate_of_before_it_had_a_channel_tells(void **state)
{
	int copy = fcntl(theirs, F_DUPFD_CLOEXEC, 0);

	(void)state;
	assert_int_equal(ctl_of(theirs, EPOLL_CTL_ADD, other, 0), 0);
	assert_int_equal(waits(theirs, 0), 0);
	post_of(other, 5);
	assert_int_equal(waits(copy, 0), 1);
	reads(other, 5);
	close(copy);
}

static void jump(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

static void *jump_and_wait(void *result)
{
	if (!sigsetjmp(out, 1))
		waits(theirs, -1);
	*(int *)result = waits(mine, WAIT_MS);
	return NULL;
}

static void who_left_a_wait_by_a_jump_is_woken_in_the_next(void **state)
{
	const struct sigaction a = { .sa_handler = jump };
	pthread_t t;
	int r = -1;

	(void)state;
	assert_int_equal(ctl_of(theirs, EPOLL_CTL_ADD, other, 0), 0);
	assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
	assert_int_equal(pthread_create(&t, NULL, jump_and_wait, &r), 0);
	usleep(ASLEEP);
	pthread_kill(t, SIGUSR1);
	usleep(ASLEEP);
	post_of(channel, 5);
	pthread_join(t, NULL);
	assert_int_equal(r, 1);
	reads(channel, 5);
}

/* ---- what the pipe has ------------------------------------------------------------------------
 */

#define PAGE  4096
#define MORE  20u
#define READS 20000u

static void what_had_no_room_in_the_pipe_is_read(void **state)
{
	const unsigned n = PAGE / sizeof(uint64_t) + MORE;
	unsigned got = 0;
	uint64_t event;

	(void)state;
	assert_int_equal(fcntl(other, F_SETPIPE_SZ, PAGE), PAGE);
	for (unsigned i = 0; i < n; i++)
		post_of(other, 5);
	for (unsigned i = 0; i < READS && got < n; i++) {
		if (read(other, &event, sizeof(event)) == sizeof(event))
			got++;
		else if (got >= n - MORE)
			usleep(100);
	}
	assert_int_equal(got, n);
}

/* ---- whose numbers ----------------------------------------------------------------------------
 */

/* By a call that is not seen the number is another file's. */
static int replace(int fd)
{
	uint64_t nine = 9;
	int file = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	assert_int_equal(syscall(SYS_dup3, file, fd, O_CLOEXEC), fd);
	assert_int_equal(write(file, &nine, sizeof(nine)), sizeof(nine));
	return file;
}

static void a_duplicates_number_that_is_another_files_reads_that(void **state)
{
	int copy = fcntl(channel, F_DUPFD_CLOEXEC, 0), file;
	uint64_t event;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(read(copy, &event, sizeof(event)), -1);
	file = replace(copy);
	reads(copy, 9);
	close(file);
	close(copy);
}

static void another_file_does_not_read_the_event(void **state)
{
	int file;

	(void)state;
	post_of(channel, 5);
	file = replace(channel);
	usleep(2000);
	reads(channel, 9);
	close(file);
}

static void another_file_is_watched(void **state)
{
	int file;

	(void)state;
	assert_int_equal(ctl_of(mine, EPOLL_CTL_DEL, channel, 0), 0);
	file = replace(channel);
	usleep(2000);
	assert_int_equal(ctl_of(mine, EPOLL_CTL_ADD, channel, 0), 0);
	assert_int_equal(waits(mine, 0), 1);
	close(file);
}

/* ---- children ---------------------------------------------------------------------------------
 */

static void *post_elsewhere(void *arg)
{
	post_of(channel, 5);
	return arg;
}

static void in_pipe(void)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, post_elsewhere, NULL), 0);
	pthread_join(t, NULL);
}

static void a_vforked_child_leaves_it_to_the_parent(void **state)
{
	int status;
	pid_t child;

	(void)state;
	in_pipe();
	assert_int_equal(ctl_of(mine, EPOLL_CTL_DEL, channel, 0), 0);
	child = vfork();
	if (!child) {
		close(mine);
		dup2(2, other);
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_int_equal(waits(mine, 0), 0);
}

static void a_forked_child_is_told_nothing_that_is_not_watched(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	in_pipe();
	assert_int_equal(ctl_of(mine, EPOLL_CTL_DEL, channel, 0), 0);
	child = fork();
	if (!child)
		_exit(waits(mine, 0));
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void a_read_of_too_little_sees_it(void **state)
{
	uint32_t half;

	(void)state;
	post_of(channel, 5);
	assert_int_equal(read(channel, &half, sizeof(half)), -1);
	assert_int_equal(errno, EINVAL);
	reads(channel, 5);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_channel_goes_with_its_event_to_who_sleeps),
		TEST(who_slept_there_before_any_channel_is_woken),
		TEST(a_second_epoll_counts_after_a_third_was_closed),
		TEST(an_epoll_that_was_inside_before_it_had_a_channel_tells),
		TEST(what_had_no_room_in_the_pipe_is_read),
		TEST(a_duplicates_number_that_is_another_files_reads_that),
		TEST(another_file_does_not_read_the_event),
		TEST(another_file_is_watched),
		TEST(a_vforked_child_leaves_it_to_the_parent),
		TEST(a_forked_child_is_told_nothing_that_is_not_watched),
		TEST(a_read_of_too_little_sees_it),
		TEST(a_duplicate_of_before_it_had_a_channel_tells),
		TEST(who_left_a_wait_by_a_jump_is_woken_in_the_next),
		/* from then on epolls may be inside of each other */
		TEST(an_epoll_goes_with_its_event_to_who_sleeps),
	};

	if (host()->api()->engine_start(host()->engine()))
		return 1;
	fake = dlsym(dlopen(getenv("UWARP_LIB"), RTLD_NOW | RTLD_NOLOAD), FAKE_WAITS_NAME);
	return fake ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
