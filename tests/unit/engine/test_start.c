/* SPDX-License-Identifier: BSD-3-Clause */
/* A start that fails leaves nothing behind, and the next one works. Linked with
 * --wrap=pthread_create. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "uwtest.h"

typedef void *thread_fn(void *arg);

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_fn *fn, void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_fn *fn, void *arg);

static unsigned fails; /* the next so many threads; a sanitizer's own are not counted */

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_fn *fn, void *arg)
{
	if (fails) {
		fails--;
		return EAGAIN;
	}
	return __real_pthread_create(t, a, fn, arg);
}

static unsigned entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void fail_and_start(const char *transport, int why)
{
	unsigned threads, files;
	struct uw_engine *e;

	setenv("UWARP_TRANSPORT", transport, 1);
	assert_int_equal(uw_engine_open(NULL, &e), 0);
	threads = entries("/proc/self/task");
	files = entries("/proc/self/fd");
	for (unsigned i = 0; i < 2; i++) {
		fails = 1;
		assert_int_equal(uw_engine_start(e), -why);
		assert_int_equal(fails, 0);
		assert_false(uw_engine_started(e));
		assert_int_equal(e->stack[0]->n_links, 0);
		assert_null(e->routes);
		/* one that was joined before may have been counted on its way out */
		assert_true(entries("/proc/self/task") <= threads);
		assert_int_equal(entries("/proc/self/fd"), files);
	}
	assert_int_equal(uw_engine_start(e), 0);
	assert_true(uw_engine_started(e));
	assert_int_equal(e->stack[0]->n_links, 1);
	uw_engine_close(e);
}

static void without_its_thread_the_engine_does_not_start(void **state)
{
	(void)state;
	fail_and_start("raw", EAGAIN);
}

static void nor_without_lwips(void **state)
{
	(void)state;
	fail_and_start("seq", ENOMEM);
}

static void nor_over_the_hosts_tcp(void **state)
{
	(void)state;
	setenv("UWARP_LINK", "host", 1);
	fail_and_start("socket", EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_its_thread_the_engine_does_not_start),
		cmocka_unit_test(nor_without_lwips),
		cmocka_unit_test(nor_over_the_hosts_tcp),
	};

	setenv("UWARP_LINK", "loop", 1);
	setenv("UWARP_STAT", "0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
