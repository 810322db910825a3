/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion events that are kept in memory for the thread that made them (doc/adr/0076): to the
 * program all is as if they went through the channel's pipe. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kept_bed.h"

static void post_mine(void)
{
	fake->in_look = NULL;
	post_of(bed.channel, 5);
}

static int other_channel;

static void post_of_other(void)
{
	fake->in_look = NULL;
	post_of(other_channel, 6);
}

static void one_of_a_look_for_others_goes_into_the_pipe(void **state)
{
	struct epoll_event ev;

	(void)state;
	other_channel = new_channel();
	fake->in_look = post_of_other;
	assert_int_equal(epoll_wait(bed.epoll, &ev, 1, 20), 0);
	assert_int_equal(in_pipe(other_channel), 1);
	close(other_channel);
}

/* A look ends with the event that it brings. */
static void one_of_a_look_ends_it(void **state)
{
	struct epoll_event ev;
	unsigned before = fake->heard;

	(void)state;
	fake->in_look = post_mine;
	fake->look_us = 1000000;
	assert_int_equal(epoll_wait(bed.epoll, &ev, 1, -1), 1);
	assert_int_equal(fake->heard, before + 1);
	has_only(bed.channel, 5);
}

static void post_before_the_sleep(void)
{
	fake->in_begin = NULL;
	post_of(bed.channel, 5);
}

/* Nobody looks for it before the thread sleeps. */
static void one_that_comes_behind_the_look_ends_the_sleep(void **state)
{
	static const enum uw_wait_how hows[] = { UW_WAIT_PLAINLY, UW_WAIT_SLEEP };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < N_WAYS; k++) {
			fake->how = hows[i];
			fake->in_begin = post_before_the_sleep;
			assert_int_equal(ways[k].wait(&bed, 4000), 1);
			has_only(bed.channel, 5);
		}
	}
}

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
		assert_int_equal(in_pipe(bed.channel), 0);
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

static void who_reads_unseen_gets_it_after_the_second_poll(void **state)
{
	struct pollfd p = { .fd = bed.channel, .events = POLLIN };
	uint64_t event = 0;

	(void)state;
	fake->in_look = post_mine;
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(syscall(SYS_read, bed.channel, &event, sizeof(event)), -1);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLIN);
	assert_int_equal(syscall(SYS_read, bed.channel, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event, 5);
}

static void a_poll_of_the_epoll_tells_as_well(void **state)
{
	struct pollfd p = { .fd = bed.epoll, .events = POLLIN };

	(void)state;
	post_of(bed.channel, 5);
	assert_int_equal(poll(&p, 1, 0), 1);
	is_told(DATA);
	has_only(bed.channel, 5);
}

/* The kernel's poll() and epoll tell nothing of it either. */
static void whose_number_is_closed_unseen_tells_nothing(void **state)
{
	struct ib_uverbs_comp_event_desc d = { .cq_handle = 5 };
	struct channel *c = host()->channel_hold(bed.channel);

	(void)state;
	usleep(2000); /* the number is looked at once in a millisecond */
	syscall(SYS_close, bed.channel);
	host()->channel_post(c, &d, sizeof(d));
	wait_for_nothing();
	host()->channel_let_go(c);
}

static void a_wait_that_leaves_the_stack_to_others_tells_at_once(void **state)
{
	(void)state;
	fake->elsewhere = true;
	for (unsigned i = 0; i < N_WAYS; i++) {
		post_of(bed.channel, 5);
		assert_int_equal(ways[i].wait(&bed, 4000), 1);
		has_only(bed.channel, 5);
		wait_for_nothing();
	}
}

static void a_poll_of_many_tells_at_once(void **state)
{
	struct pollfd p[40];

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		p[i] = (struct pollfd){ .fd = i ? -1 : bed.channel, .events = POLLIN };
	post_of(bed.channel, 5);
	assert_int_equal(poll(p, 40, 4000), 1);
	has_only(bed.channel, 5);
}

static void a_read_of_another_channel_waits(void **state)
{
	uint64_t event = 0;

	(void)state;
	other_channel = new_channel(); /* blocks */
	assert_int_equal(epoll_wait(bed.epoll, &(struct epoll_event){ 0 }, 1, 0), 0);
	post_of(bed.channel, 5);
	fake->in_look = post_of_other;
	assert_int_equal(read(other_channel, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event, 6);
	has_only(bed.channel, 5);
	close(other_channel);
}

static void a_read_without_room_leaves_it(void **state)
{
	uint32_t little = 7;

	(void)state;
	post_of(bed.channel, 5);
	assert_int_equal(read(bed.channel, &little, sizeof(little)), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(little, 7);
	has_only(bed.channel, 5);
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

/* What found no room in the pipe a helper writes into it, as the program reads. */
static void what_found_no_room_comes_behind_the_rest(bool one_more)
{
	uint64_t event, cq, got = 0, posted;
	unsigned again = 0;

	posted = (uint64_t)fcntl(bed.channel, F_SETPIPE_SZ, 4096) / sizeof(event) + 3;
	for (cq = 1; cq <= posted; cq++)
		post_of(bed.channel, cq);
	while (got < posted && again < 4000) {
		if (read(bed.channel, &event, sizeof(event)) == sizeof(event)) {
			assert_int_equal(event, ++got);
		} else {
			assert_int_equal(errno, EAGAIN);
			if (!again++ && one_more)
				post_of(bed.channel, ++posted);
			usleep(1000);
		}
	}
	assert_int_equal(got, posted);
	is_empty(bed.channel);
}

static void what_found_no_room_is_read_behind_the_rest(void **state)
{
	(void)state;
	what_found_no_room_comes_behind_the_rest(false);
	what_found_no_room_comes_behind_the_rest(true);
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
	assert_int_equal(epoll_wait(waited_on, &ev, 1, 0), 1);
	assert_int_equal(in_pipe(bed.channel), 0); /* and so does this one */
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

static void a_channel_in_two_epolls_is_the_kernels_after_a_third_is_closed(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int second = epoll_create1(EPOLL_CLOEXEC), third = epoll_create1(EPOLL_CLOEXEC);
	int other = new_channel();

	(void)state;
	assert_int_equal(epoll_ctl(third, EPOLL_CTL_ADD, other, &ev), 0);
	close(third);
	assert_int_equal(epoll_ctl(second, EPOLL_CTL_ADD, bed.channel, &ev), 0);
	assert_int_equal(epoll_wait(second, &ev, 1, 0), 0);
	post_of(bed.channel, 5);
	is_told(DATA);
	has_only(bed.channel, 5);
	close(second);
	close(other);
}

static void a_close_of_another_epoll_changes_nothing(void **state)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int third = epoll_create1(EPOLL_CLOEXEC), other = new_channel();

	(void)state;
	assert_int_equal(epoll_ctl(third, EPOLL_CTL_ADD, other, &ev), 0);
	close(third);
	post_of(bed.channel, 5);
	assert_int_equal(in_pipe(bed.channel), 0);
	is_told(DATA);
	has_only(bed.channel, 5);
	close(other);
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
	/* which is for a new watch alone */
	assert_int_equal(ctl(EPOLL_CTL_DEL, bed.channel, 0, 0), 0);
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN | EPOLLEXCLUSIVE, DATA), 0);
	wait_for_nothing();
	post_of(bed.channel, 5);
	assert_int_equal(in_pipe(bed.channel), 1);
	has_only(bed.channel, 5);
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

static void nor_is_it_lost_with_a_number_that_is_not_known(void **state)
{
	struct channel *c = host()->channel_hold(bed.channel);
	int copy = (int)syscall(SYS_dup, bed.channel);
	uint64_t event = 0;

	(void)state;
	post_of(bed.channel, 5);
	close(bed.channel);
	is_told(DATA);
	assert_int_equal(read(copy, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event, 5);
	syscall(SYS_close, copy);
	host()->channel_let_go(c);
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

static void an_error_of_the_wait_is_told(void **state)
{
	struct epoll_event ev[2] = { 0 };
	int old = bed.epoll;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		post_of(bed.channel, 5);
		syscall(SYS_close, bed.epoll); /* unseen */
		assert_int_equal(epoll_wait(bed.epoll, ev + 1, 1, 0), -1);
		assert_int_equal(errno, EBADF);
		bed.epoll = i ? epoll_create(1) : epoll_create1(EPOLL_CLOEXEC);
		assert_int_equal(bed.epoll, old);
		wait_for_nothing(); /* another one */
		has_only(bed.channel, 5);
		close(bed.channel);
		bed.channel = new_channel();
		set_nonblocking(bed.channel);
		assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
		wait_for_nothing();
	}
}

static void another_epoll_by_dup2_is_told_nothing(void **state)
{
	int other = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	post_of(bed.channel, 5);
	assert_int_equal(dup2(other, bed.epoll), bed.epoll);
	wait_for_nothing();
	has_only(bed.channel, 5);
	close(other);
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

/* A duplicate's number is compared with nothing: what it has is the kernel's to say. */
static void a_duplicate_is_read_out_of_the_pipe(void **state)
{
	int copy = fcntl(bed.channel, F_DUPFD_CLOEXEC, 0);
	int other = eventfd(9, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t got = 0;

	(void)state;
	wait_for_nothing();
	assert_int_equal(read(copy, &got, sizeof(got)), -1); /* notes that it does not block */
	post_of(bed.channel, 5);
	has_only(copy, 5);
	post_of(bed.channel, 6);
	assert_int_equal(syscall(SYS_dup3, other, copy, O_CLOEXEC), copy); /* unseen */
	assert_int_equal(read(copy, &got, sizeof(got)), sizeof(got));
	assert_int_equal(got, 9);
	has_only(bed.channel, 6);
	close(copy);
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

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_of_a_look_ends_it),
		TEST(one_of_a_look_for_others_goes_into_the_pipe),
		TEST(one_that_comes_behind_the_look_ends_the_sleep),
		TEST(one_of_a_look_is_told_by_epoll),
		TEST(one_of_a_look_is_told_by_poll),
		TEST(one_that_is_made_between_two_waits_is_told_by_the_next),
		TEST(who_reads_unseen_gets_it_after_the_second_wait),
		TEST(who_reads_unseen_gets_it_after_the_second_poll),
		TEST(a_poll_of_the_epoll_tells_as_well),
		TEST(whose_number_is_closed_unseen_tells_nothing),
		TEST(a_wait_that_leaves_the_stack_to_others_tells_at_once),
		TEST(a_poll_of_many_tells_at_once),
		TEST(a_read_of_another_channel_waits),
		TEST(a_read_without_room_leaves_it),
		TEST(it_is_read_without_a_wait),
		TEST(every_other_wait_finds_it_in_the_pipe),
		TEST(behind_an_older_one_it_goes_into_the_pipe),
		TEST(what_found_no_room_is_read_behind_the_rest),
		TEST(one_of_another_thread_goes_into_the_pipe),
		TEST(where_another_thread_waits_it_wakes_that_one),
		TEST(a_thread_that_waits_later_is_told_as_well),
		TEST(a_thread_with_another_epoll_is_not_woken),
		TEST(a_channel_that_left_one_of_two_epolls_is_the_kernels),
		TEST(a_channel_in_two_epolls_is_the_kernels_after_a_third_is_closed),
		TEST(a_close_of_another_epoll_changes_nothing),
		TEST(flags_by_which_epoll_tells_less_are_the_kernels),
		TEST(a_channel_in_two_epolls_is_the_kernels),
		TEST(new_data_are_told),
		TEST(without_interest_it_is_not_told),
		TEST(one_of_a_closed_channel_is_not_told),
		TEST(a_channel_that_is_closed_and_lives_on_tells_by_its_other_number),
		TEST(nor_is_it_lost_with_a_number_that_is_not_known),
		TEST(another_epoll_of_the_number_is_told_nothing),
		TEST(another_epoll_by_dup2_is_told_nothing),
		TEST(an_error_of_the_wait_is_told),
		TEST(with_little_room_others_do_not_starve_it),
		TEST(of_an_unseen_change_of_the_number_nothing_comes),
		TEST(a_duplicate_is_read_out_of_the_pipe),
		TEST(a_forked_child_has_none),
		TEST(it_goes_with_its_cq),
		/* from then on an epoll may have two numbers */
		TEST(a_duplicate_of_the_epoll_tells_as_well),
	};

	return start_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
