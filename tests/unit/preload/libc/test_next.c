/* SPDX-License-Identifier: BSD-3-Clause */
/* The next definitions of what is wrapped, where libc does not export all of them (glibc
 * before 2.33 has no fstat). */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "libc/next.h"

static void what_libc_has_not_is_a_system_call(void **state)
{
	struct next t = { 0 };
	struct stat want, st;
	struct stat64 st64;

	(void)state;
	next_fill(&t);
	assert_int_equal(stat("/proc/self", &want), 0);
	assert_int_equal(t.fstatat(AT_FDCWD, "/proc/self", &st, 0), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	assert_int_equal(st.st_mode, want.st_mode);
	assert_int_equal(t.fstat(0, &st), 0);
	assert_int_equal(t.fstat64(0, &st64), 0);
	assert_int_equal(st.st_ino, st64.st_ino);
	assert_int_equal(t.fstat(-1, &st), -1);
	assert_int_equal(errno, EBADF);
}

static int mine(int fd, struct stat *st)
{
	(void)fd;
	(void)st;
	return 7;
}

static void what_libc_has_stays(void **state)
{
	struct next t = { .fstat = mine };

	(void)state;
	next_fill(&t);
	assert_ptr_equal(t.fstat, mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_libc_has_not_is_a_system_call),
		cmocka_unit_test(what_libc_has_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
