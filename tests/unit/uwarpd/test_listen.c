/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of a uwarpd, in a directory that another user may write to. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "listen.h"
#include "uwtest.h"

static char folder[80], path[96], away[96], victim[96];

/* Whoever owns the directory is quick: before the mode of the name is changed, the name is a link.
 */
int chmod(const char *name, mode_t mode)
{
	assert_int_equal(rename(name, away), 0);
	assert_int_equal(symlink(victim, name), 0);
	return fchmodat(AT_FDCWD, name, mode, 0);
}

static mode_t mode_of(const char *name)
{
	struct stat s;

	assert_int_equal(lstat(name, &s), 0);
	return s.st_mode;
}

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%.50s/uwarp-listen.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/sock", folder);
	snprintf(away, sizeof(away), "%s/away", folder);
	snprintf(victim, sizeof(victim), "%s/victim", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(away);
	unlink(victim);
	return rmdir(folder);
}

static void its_mode_is_its_own_from_the_start(void **state)
{
	struct options o = { .path = path, .user = "nobody", .mode = 0666 };
	mode_t mask = umask(0077);
	bool inherited = true;
	int other = open(victim, O_CREAT | O_WRONLY | O_CLOEXEC, 0600), fd;

	(void)state;
	assert_true(other >= 0);
	close(other);
	fd = listen_open(&o, &inherited);
	assert_true(fd >= 0);
	assert_false(inherited);
	assert_int_equal(mode_of(victim), S_IFREG | 0600);
	assert_int_equal(mode_of(path), S_IFSOCK | 0666);
	assert_int_equal(umask(mask), 0077);
	close(fd);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(its_mode_is_its_own_from_the_start, set_up, tear_down),
};

UWTEST_MAIN(tests)
