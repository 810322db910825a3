/* SPDX-License-Identifier: BSD-3-Clause */
/* What is added to a CSV file. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "report.h"

struct file {
	char path[256];
};

static int file_open(void **state)
{
	static struct file f;
	const char *folder = getenv("TMPDIR");
	int fd;

	snprintf(f.path, sizeof(f.path), "%s/reportXXXXXX", folder ? folder : "/tmp");
	fd = mkstemp(f.path);
	*state = &f;
	return fd < 0 || close(fd);
}

static int file_close(void **state)
{
	return unlink(((struct file *)*state)->path);
}

static int add(const struct file *f, double rate, bool more)
{
	struct options o = { .csv = f->path, .json = true };
	struct report r;

	report_open(&r, "test");
	report_number(&r, "rate", rate);
	if (more)
		report_count(&r, "more", 2);
	report_count(&r, "last", 3);
	return report_close(&r, &o, NULL);
}

static void expect(const struct file *f, const char *text)
{
	char got[256] = { 0 };
	FILE *at = fopen(f->path, "r");

	assert_non_null(at);
	assert_true(fread(got, 1, sizeof(got) - 1, at) > 0);
	fclose(at);
	assert_string_equal(got, text);
}

static void test_a_head_and_then_rows(void **state)
{
	assert_int_equal(add(*state, 0.5, false), 0);
	assert_int_equal(add(*state, 1.5, false), 0);
	expect(*state, "program,rate,last\ntest,0.5,3\ntest,1.5,3\n");
}

/* Figures under a head that is not theirs would be taken for others. */
static void test_other_columns_are_refused(void **state)
{
	assert_int_equal(add(*state, 0.5, false), 0);
	assert_true(add(*state, 0.5, true) < 0);
	expect(*state, "program,rate,last\ntest,0.5,3\n");
}

static void test_a_figure_that_is_no_number_keeps_its_column(void **state)
{
	assert_int_equal(add(*state, NAN, false), 0);
	assert_int_equal(add(*state, INFINITY, false), 0);
	expect(*state, "program,rate,last\ntest,nan,3\ntest,nan,3\n");
}

/* ---- a full disk --------------------------------------------------------------------------- */

static void what_cannot_be_printed_fails(void **state)
{
	int saved, full = open("/dev/full", O_WRONLY);

	assert_true(full >= 0);
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	dup2(full, STDOUT_FILENO);
	assert_int_equal(add(*state, 1.5, false), -ENOSPC);
	clearerr(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(full);
	expect(*state, "program,rate,last\ntest,1.5,3\n"); /* all the same */
}

static int nothing(struct member *m)
{
	return m->user != NULL;
}

static void no_end(struct member *m)
{
	(void)m;
}

static void a_series_that_is_lost_fails(void **state)
{
	const struct team_ops ops = { .open = nothing, .run = nothing, .close = no_end };
	struct options o = { .threads = 1, .window = 1, .series = "/dev/full", .quiet = true };
	struct report r;
	struct team t;

	(void)state;
	assert_int_equal(team_run(&t, &o, &ops, NULL), 0); /* what was measured counts */
	report_open(&r, "test");
	report_team(&r, &t, "operations");
	team_close(&t);
	assert_int_equal(report_close(&r, &o, NULL), -ENOSPC);
	o.series = "/nonexistent/series";
	assert_int_equal(team_run(&t, &o, &ops, NULL), -ENOENT); /* before anything is measured */
	team_close(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_head_and_then_rows, file_open, file_close),
		cmocka_unit_test_setup_teardown(test_other_columns_are_refused, file_open,
						file_close),
		cmocka_unit_test_setup_teardown(test_a_figure_that_is_no_number_keeps_its_column,
						file_open, file_close),
		cmocka_unit_test_setup_teardown(what_cannot_be_printed_fails, file_open,
						file_close),
		cmocka_unit_test(a_series_that_is_lost_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
