/* SPDX-License-Identifier: BSD-3-Clause */
/* What a read() of a completion channel asks the kernel: a program that reads until there is
 * nothing pays for each question (doc/adr/0074). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "channels.h"

static unsigned asked; /* F_GETFL, of the kernel */

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
	return libcs(n, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_said_it_does_not_block_is_believed),
		cmocka_unit_test(otherwise_the_first_read_asks),
		cmocka_unit_test(what_is_known_ends_with_the_channel),
	};

	if (host()->api()->engine_start(host()->engine()))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
