/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that processes share (io/shm.h). */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "uwtest.h"

#include "io/shm.h"

#define SIZE ((size_t)64 << 10)

/* The kernel counts it as a file (ulimit -f), and sends SIGXFSZ for an octet too many. */
static void no_larger_than_a_file_may_be(void **state)
{
	struct rlimit before, most;
	void *p;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	most = before;
	most.rlim_cur = SIZE - 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &most), 0);
	errno = 0;
	p = shm_make("test", SIZE, SHM_READ_ONLY, &fd);
	assert_int_equal(errno, EFBIG);
	assert_null(p);
	assert_int_equal(fd, -1);

	most.rlim_cur = SIZE;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &most), 0);
	p = shm_make("test", SIZE, SHM_READ_ONLY, &fd);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(p);
	assert_true(shm_fits(fd, SIZE));
	shm_unmap(p, SIZE);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_larger_than_a_file_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
