/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies from and to memory that is not there, atomic changes of it, and signals that are not ours.
 */
#include "base/guard.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uwtest.h"

#define PAGE 4096u

static uint8_t *map(int prot, unsigned pages)
{
	uint8_t *p = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void what_is_there_is_copied(void **state)
{
	static uint8_t from[3 * PAGE], to[3 * PAGE];

	(void)state;
	uw_guard_install();
	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 31);
	for (size_t n = 0; n <= sizeof(from); n = n < 300 ? n + 1 : n * 2) {
		memset(to, 0, sizeof(to));
		assert_true(uw_guarded_copy(to, from, n));
		assert_memory_equal(to, from, n);
		assert_true(n == sizeof(to) || !to[n]);
	}
}

static void unmapped_memory_fails_the_copy(void **state)
{
	static const size_t sizes[] = { 1, 8, 64, 1000, PAGE };
	uint8_t *p = map(PROT_READ | PROT_WRITE, 2), *own = map(PROT_READ | PROT_WRITE, 2);

	(void)state;
	uw_guard_install();
	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	for (unsigned i = 0; i < COUNT(sizes); i++) {
		assert_false(uw_guarded_copy(own, p + PAGE, sizes[i]));
		assert_false(uw_guarded_copy(p + PAGE, own, sizes[i]));
		/* from what is there to what is not */
		assert_int_equal(uw_guarded_copy(own, p + PAGE - 1, sizes[i]), sizes[i] == 1);
		assert_int_equal(uw_guarded_copy(p + PAGE - 1, own, sizes[i]), sizes[i] == 1);
		assert_true(uw_guarded_copy(p, own, sizes[i]));
	}
	munmap(p, PAGE);
	munmap(own, 2 * PAGE);
}

static void protected_memory_fails_the_copy(void **state)
{
	uint8_t *p = map(PROT_READ, 1), *none = map(PROT_NONE, 1), own[64] = { 1 };

	(void)state;
	uw_guard_install();
	assert_true(uw_guarded_copy(own, p, 64));
	assert_false(uw_guarded_copy(p, own, 64));
	assert_false(uw_guarded_copy(own, none, 64));
	munmap(p, PAGE);
	munmap(none, PAGE);
}

/* SIGBUS instead of SIGSEGV. */
static void a_file_that_became_shorter_fails_the_copy(void **state)
{
	int fd = memfd_create("guard", 0);
	uint8_t own[64], *p;

	(void)state;
	uw_guard_install();
	assert_int_equal(ftruncate(fd, PAGE), 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(uw_guarded_copy(own, p, 64));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_false(uw_guarded_copy(own, p, 64));
	assert_false(uw_guarded_copy(p, own, 64));
	munmap(p, PAGE);
	close(fd);
}

static void a_rope_of_pieces_fails_alike(void **state)
{
	uint8_t a[100], b[100], *p = map(PROT_READ | PROT_WRITE, 2);
	struct uw_span v[] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct uw_rope r = { .v = v, .len = 200 };

	(void)state;
	uw_guard_install();
	memset(a, 1, sizeof(a));
	memset(b, 2, sizeof(b));
	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	assert_true(uw_rope_place(r, p, 200));
	assert_int_equal(p[99], 1);
	assert_int_equal(p[100], 2);
	assert_int_equal(p[199], 2);
	assert_false(uw_rope_place(r, p + PAGE - 150, 200));
	munmap(p, PAGE);
}

/* ---- atomic changes ----------------------------------------------------------------------------
 */

static void a_word_is_exchanged_if_it_is_the_old_one(void **state)
{
	uint64_t word[3] = { 1, 7, 2 }, old = 6;

	(void)state;
	uw_guard_install();
	assert_true(uw_guarded_cas(&word[1], &old, 9));
	assert_int_equal(old, 7);
	assert_int_equal(word[1], 7);
	assert_true(uw_guarded_cas(&word[1], &old, UINT64_MAX));
	assert_int_equal(old, 7);
	assert_true(word[1] == UINT64_MAX);
	assert_int_equal(word[0] + word[2], 3);
}

static void a_word_that_is_not_there_fails(void **state)
{
	uint64_t *none = (void *)map(PROT_NONE, 1), *read_only = (void *)map(PROT_READ, 1), old;

	(void)state;
	uw_guard_install();
	for (unsigned i = 0; i < 512; i += 73) {
		old = 0;
		assert_false(uw_guarded_cas(&none[i], &old, 1));
		assert_false(uw_guarded_cas(&read_only[i], &old, 1));
		assert_int_equal(old, 0);
		assert_int_equal(read_only[i], 0);
	}
	munmap(none, PAGE);
	munmap(read_only, PAGE);
	assert_false(uw_guarded_cas(none, &old, 1));
	assert_false(uw_guarded_cas(read_only, &old, 1));
}

static void a_word_of_a_file_that_became_shorter_fails(void **state)
{
	int fd = memfd_create("guard", 0);
	uint64_t old = 0, *p;

	(void)state;
	uw_guard_install();
	assert_int_equal(ftruncate(fd, PAGE), 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(uw_guarded_cas(p, &old, 1));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_false(uw_guarded_cas(p, &old, 1));
	munmap(p, PAGE);
	close(fd);
}

static void *add_often(void *arg)
{
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t now = 0, old;

		do {
			old = now;
			if (!uw_guarded_cas(arg, &now, old + 1))
				return arg;
		} while (now != old);
	}
	return NULL;
}

static void exchanges_of_threads_are_atomic(void **state)
{
	uint64_t word = 0;
	pthread_t t[4];
	void *bad;

	(void)state;
	uw_guard_install();
	for (unsigned i = 0; i < COUNT(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, add_often, &word), 0);
	for (unsigned i = 0; i < COUNT(t); i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(word, 4000);
}

/* ---- threads -----------------------------------------------------------------------------------
 */

static void *copy_often(void *arg)
{
	uint8_t own[64];

	for (unsigned i = 0; i < 1000; i++) {
		if (uw_guarded_copy(own, arg, sizeof(own)))
			return arg;
	}
	return NULL;
}

static void threads_fault_at_the_same_time(void **state)
{
	uint8_t *p = map(PROT_NONE, 1);
	pthread_t t[4];
	void *bad;

	(void)state;
	uw_guard_install();
	for (unsigned i = 0; i < COUNT(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, copy_often, p), 0);
	for (unsigned i = 0; i < COUNT(t); i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	munmap(p, PAGE);
}

/* On a stack right below the page that is not there: a stack that overflows faults on its other
 * side. */
static void *copy_from_above(void *arg)
{
	uint8_t own[64];

	return uw_guarded_copy(own, arg, sizeof(own)) ? arg : NULL;
}

enum { STACK = 64 * PAGE };

/* What fn() returns, run by a thread on the stack at `stack`. */
static void *on_stack(uint8_t *stack, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t t;
	void *result;

	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
	assert_int_equal(pthread_create(&t, &attr, fn, arg), 0);
	pthread_join(t, &result);
	pthread_attr_destroy(&attr);
	return result;
}

static void memory_above_the_stack_fails_the_copy(void **state)
{
	uint8_t *p = map(PROT_READ | PROT_WRITE, STACK / PAGE + 1);

	(void)state;
	uw_guard_install();
	assert_int_equal(mprotect(p + STACK, PAGE, PROT_NONE), 0);
	assert_null(on_stack(p, copy_from_above, p + STACK));
	munmap(p, STACK + PAGE);
}

/* Right below the stack, too: what faults is no push. */
static void *exchange_below(void *arg)
{
	uint64_t old = 0;

	return uw_guarded_cas(arg, &old, 1) ? arg : NULL;
}

static void a_word_below_the_stack_fails(void **state)
{
	uint8_t *p = map(PROT_READ | PROT_WRITE, STACK / PAGE + 1);

	(void)state;
	uw_guard_install();
	assert_int_equal(mprotect(p, PAGE, PROT_NONE), 0);
	assert_null(on_stack(p + PAGE, exchange_below, p + PAGE / 2));
	munmap(p, STACK + PAGE);
}

/* ---- signals of others ----------------------------------------------------------------------- */

/* cmocka takes SIGSEGV for itself, and would call the child's fault a failed test. */
static void fresh(void)
{
	signal(SIGSEGV, SIG_DFL);
	uw_guard_install();
}

/* How a child ends that does this. */
static int ending(void (*what)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		fresh();
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void fault(void)
{
	*(volatile uint8_t *)map(PROT_NONE, 1) = 1;
}

static void fault_after_a_copy(void)
{
	uint8_t own;

	if (!uw_guarded_copy(&own, map(PROT_NONE, 1), 1))
		fault();
}

static void fault_after_an_exchange(void)
{
	uint64_t old = 0;

	if (!uw_guarded_cas((void *)map(PROT_NONE, 1), &old, 1))
		fault();
}

/* The value to compare with is ours. */
static void fault_in_the_old_value(void)
{
	uint64_t word = 0;

	uw_guarded_cas(&word, (void *)map(PROT_NONE, 1), 1);
}

static void killed(void)
{
	raise(SIGSEGV);
	_exit(3);
}

static void the_programs_own_faults_kill_it(void **state)
{
	(void)state;
	uw_guard_install();
	assert_int_equal(WTERMSIG(ending(fault)), SIGSEGV);
	assert_int_equal(WTERMSIG(ending(fault_after_a_copy)), SIGSEGV);
	assert_int_equal(WTERMSIG(ending(fault_after_an_exchange)), SIGSEGV);
	assert_int_equal(WTERMSIG(ending(fault_in_the_old_value)), SIGSEGV);
	assert_int_equal(WTERMSIG(ending(killed)), SIGSEGV);
}

static sigjmp_buf back;
static volatile int faults;

/* As of a program that finds out what it may read: each fault is left by a jump, the last ends it.
 */
static void leave(int sig)
{
	if (sig != SIGSEGV)
		_exit(43);
	if (++faults == 3)
		_exit(42);
	siglongjmp(back, 1);
}

static void run_with_handler(const char *self)
{
	execl(self, self, "handler", NULL);
	_exit(99);
}

static char self[4096];

static void exec_handler(void)
{
	run_with_handler(self);
}

static struct sigaction theirs;

static void to_theirs(int sig, siginfo_t *info, void *context)
{
	theirs.sa_sigaction(sig, info, context);
}

/* The program's handler passes on to ours, which was there before and is put in front again. */
static void circle(void)
{
	struct sigaction a = { .sa_sigaction = to_theirs, .sa_flags = SA_SIGINFO | SA_NODEFER };
	uint8_t own;

	sigaction(SIGSEGV, &a, &theirs);
	if (uw_guarded_copy(&own, map(PROT_NONE, 1), 1))
		_exit(1);
	uw_guard_install();
	if (uw_guarded_copy(&own, map(PROT_NONE, 1), 1))
		_exit(2);
	fault();
}

static void handlers_in_a_circle_end(void **state)
{
	(void)state;
	assert_int_equal(WTERMSIG(ending(circle)), SIGSEGV);
}

/* In a process of its own: the handler is there before ours. */
static int handler_first(void)
{
	uint8_t own;

	signal(SIGSEGV, leave);
	uw_guard_install();
	if (uw_guarded_copy(&own, map(PROT_NONE, 1), 1))
		return 1;
	sigsetjmp(back, 1);
	fault();
	return 2;
}

static void a_handler_that_was_there_hears_of_its_own(void **state)
{
	(void)state;
	if (getenv("MESON_EXE_WRAPPER")) /* an emulator cannot execute itself with our words */
		skip();
	assert_int_equal(WEXITSTATUS(ending(exec_handler)), 42);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_is_copied),
		cmocka_unit_test(unmapped_memory_fails_the_copy),
		cmocka_unit_test(protected_memory_fails_the_copy),
		cmocka_unit_test(a_file_that_became_shorter_fails_the_copy),
		cmocka_unit_test(a_rope_of_pieces_fails_alike),
		cmocka_unit_test(a_word_is_exchanged_if_it_is_the_old_one),
		cmocka_unit_test(a_word_that_is_not_there_fails),
		cmocka_unit_test(a_word_of_a_file_that_became_shorter_fails),
		cmocka_unit_test(exchanges_of_threads_are_atomic),
		cmocka_unit_test(threads_fault_at_the_same_time),
		cmocka_unit_test(memory_above_the_stack_fails_the_copy),
		cmocka_unit_test(a_word_below_the_stack_fails),
		cmocka_unit_test(the_programs_own_faults_kill_it),
		cmocka_unit_test(handlers_in_a_circle_end),
		cmocka_unit_test(a_handler_that_was_there_hears_of_its_own),
	};

	if (!UW_GUARDED)
		return 77;
	if (argc > 1 && !strcmp(argv[1], "handler"))
		return handler_first();
	snprintf(self, sizeof(self), "%s", argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
