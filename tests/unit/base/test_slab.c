/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory close together: each has its own lines, and what comes back is used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prefetch.h"
#include "base/slab.h"

#define MANY 6000u /* some megabytes: from more than one piece of the system's */

static size_t size_of(unsigned i)
{
	static const size_t size[] = { 1, 64, 65, 384, 1152, 4416, 20000 };

	return size[i % (sizeof(size) / sizeof(size[0]))];
}

static void each_has_lines_of_its_own(void **state)
{
	uint8_t **v = calloc(MANY, sizeof(*v));

	(void)state;
	assert_non_null(v);
	for (unsigned i = 0; i < MANY; i++) {
		v[i] = slab_alloc(size_of(i));
		assert_non_null(v[i]);
		assert_int_equal((uintptr_t)v[i] % UW_LINE, 0);
		memset(v[i], (int)(i % 251), UW_LINES(size_of(i)));
	}
	for (unsigned i = 0; i < MANY; i++) {
		for (size_t k = 0; k < UW_LINES(size_of(i)); k++)
			assert_int_equal(v[i][k], i % 251);
		slab_free(v[i], size_of(i));
	}
	free(v);
}

/* The sanitizer's allocator does not. */
#ifndef __SANITIZE_ADDRESS__
static void what_comes_back_is_used_again_for_its_size(void **state)
{
	void *p = slab_alloc(1000), *q;

	(void)state;
	slab_free(p, 1000);
	q = slab_alloc(500);
	assert_ptr_not_equal(p, q);
	assert_ptr_equal(slab_alloc(1001), p); /* the same lines */
	slab_free(p, 1001);
	slab_free(q, 500);
	slab_free(NULL, 1000);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_has_lines_of_its_own),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(what_comes_back_is_used_again_for_its_size),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
