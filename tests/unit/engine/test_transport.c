/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/transport.h"
#include "uwtest.h"

static char said[512];

/* The configuration with that UWARP_TRANSPORT; what it says on stderr. */
static int config_of(const char *name, struct uw_config *c)
{
	int fd[2], keep = dup(STDERR_FILENO), err;
	ssize_t n;

	assert_int_equal(pipe(fd), 0);
	dup2(fd[1], STDERR_FILENO);
	close(fd[1]);
	setenv("UWARP_TRANSPORT", name, 1);
	err = uw_config_from_env(c);
	unsetenv("UWARP_TRANSPORT");
	dup2(keep, STDERR_FILENO); /* the pipe has no writer any more */
	close(keep);
	n = read(fd[0], said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = 0;
	close(fd[0]);
	return err;
}

static void raw_is_the_default(void **state)
{
	struct uw_config c;

	(void)state;
	assert_int_equal(config_of("", &c), 0);
	assert_string_equal(said, "");
	assert_ptr_equal(transport_find(c.transport)->ops, &llp_raw);
	assert_int_equal(config_of("raw", &c), 0);
	assert_ptr_equal(transport_find(c.transport)->ops, &llp_raw);
}

static void each_name_is_its_own(void **state)
{
	struct uw_config c;

	(void)state;
	assert_int_equal(config_of("seq", &c), 0);
	assert_ptr_equal(transport_find(c.transport)->ops, &llp_seq);
}

static void the_engine_opens_with_what_was_chosen(void **state)
{
	struct uw_engine *e;
	struct uw_config c;

	(void)state;
	assert_int_equal(config_of("raw", &c), 0);
	assert_int_equal(uw_engine_open(&c, &e), 0);
	assert_ptr_equal(e->stack[0]->llp, &llp_raw);
	uw_engine_close(e);
}

static void an_unknown_name_is_refused_and_the_known_ones_are_named(void **state)
{
	struct uw_config c;

	(void)state;
	assert_int_equal(config_of("udp", &c), -EINVAL);
	assert_non_null(
		strstr(said, "UWARP_TRANSPORT=udp: no such transport; there is: raw, seq, socket"));
	assert_int_equal(config_of("a-name-that-fits-nowhere", &c), -EINVAL);
	assert_non_null(strstr(said, "UWARP_TRANSPORT"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_is_the_default),
		cmocka_unit_test(each_name_is_its_own),
		cmocka_unit_test(the_engine_opens_with_what_was_chosen),
		cmocka_unit_test(an_unknown_name_is_refused_and_the_known_ones_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
