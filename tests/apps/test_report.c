/* SPDX-License-Identifier: BSD-3-Clause */
/* What is added to a CSV file. */
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_head_and_then_rows, file_open, file_close),
		cmocka_unit_test_setup_teardown(test_other_columns_are_refused, file_open,
						file_close),
		cmocka_unit_test_setup_teardown(test_a_figure_that_is_no_number_keeps_its_column,
						file_open, file_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
