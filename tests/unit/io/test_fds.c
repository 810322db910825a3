/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that no forked child keeps (io/fds.h). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "uwtest.h"

#include "io/fds.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int make(void)
{
	int fd = fds_keep(open("/dev/null", O_RDWR | O_CLOEXEC));

	assert_true(fd >= 0);
	return fd;
}

/* What the child finds: 0 if fd is closed there. */
static int in_a_child(int fd)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int other = open("/dev/null", O_RDWR | O_CLOEXEC); /* gets that number */

		fds_close(fd); /* and is not closed by it */
		_exit(other == fd && is_open(fd) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_child_has_none(void **state)
{
	int fd = make();

	(void)state;
	assert_int_equal(in_a_child(fd), 0);
	assert_true(is_open(fd));
	fds_close(fd);
	assert_false(is_open(fd));
	fds_close(fd);
	fds_close(-1);
	assert_int_equal(fds_keep(-1), -1);
}

static void only_what_is_kept(void **state)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	fds_close(fd);
	assert_true(is_open(fd));
	close(fd);
}

/* --- a stack that closes a descriptor while the process forks --- */

static pthread_mutex_t stack_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t locked;
static _Atomic bool forking;
static int victim = -1;

/* As the engine's: it runs behind that of fds, which was registered later. */
static void take_stack_lock(void)
{
	if (victim < 0)
		return;
	atomic_store(&forking, true);
	pthread_mutex_lock(&stack_lock);
}

static void leave_stack_lock(void)
{
	if (victim >= 0)
		pthread_mutex_unlock(&stack_lock);
}

static void *stack_thread(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&stack_lock);
	pthread_barrier_wait(&locked);
	while (!atomic_load(&forking))
		sched_yield();
	fds_close(victim); /* with the lock that the fork waits for */
	pthread_mutex_unlock(&stack_lock);
	return NULL;
}

static void no_deadlock_with_fork(void **state)
{
	pthread_t t;
	int status;

	(void)state;
	alarm(20); /* a deadlock ends the test */
	pthread_barrier_init(&locked, NULL, 2);
	for (int i = 0; i < 50; i++) {
		victim = make();
		atomic_store(&forking, false);
		assert_int_equal(pthread_create(&t, NULL, stack_thread, NULL), 0);
		pthread_barrier_wait(&locked);
		pid_t pid = fork();
		if (pid == 0) /* TSan would miss the parent's threads in _exit() */
			syscall(SYS_exit_group, is_open(victim));
		assert_int_equal(pthread_join(t, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_false(is_open(victim));
	}
	victim = -1;
	pthread_barrier_destroy(&locked);
	alarm(0);
}

/* Many threads open and close while one forks. */
static _Atomic bool stop;

static void *opens_and_closes(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		int fd = fds_keep(open("/dev/null", O_RDWR | O_CLOEXEC));

		fds_close(fd);
		/* Without a pause thousands would be due per fork of a loaded machine, each fork
		 * would copy them, and take the longer for it. */
		usleep(20);
	}
	return NULL;
}

static void nothing_is_left_open(void **state)
{
	pthread_t t[3];
	int status, before = dup(0);

	(void)state;
	alarm(20);
	close(before);
	for (unsigned i = 0; i < COUNT(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, opens_and_closes, NULL), 0);
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < COUNT(t); i++)
		pthread_join(t[i], NULL);
	int after = dup(0);
	close(after);
	assert_int_equal(after, before); /* the lowest free number is the same */
	alarm(0);
}

/* --- a program that takes our descriptors away --- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Else a loop around it would compute for ever, and look at nothing. */
static void what_cannot_be_polled_is_tried_after_a_while(void **state)
{
	struct pollfd p[] = { { .fd = make(), .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	struct rlimit was, none;
	uint64_t start = now_ms();
	bool sure;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	sure = fds_poll(p, COUNT(p), -1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_false(sure);
	assert_int_equal(p[0].revents, POLLIN);
	assert_int_equal(p[1].revents, 0);
	assert_in_range(now_ms() - start, 10, 900);
	fds_close(p[0].fd);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A poll goes on with what is closed meanwhile, and nobody can end it any more. */
static void nothing_is_waited_for_for_ever(void **state)
{
	struct pollfd p = { .fd = fds_keep(eventfd(0, EFD_CLOEXEC)), .events = POLLIN };

	(void)state;
	alarm(10);
	assert_true(fds_poll(&p, 1, -1));
	alarm(0);
	assert_int_equal(p.revents, 0);
	fds_close(p.fd);
}

static void a_signal_is_no_error(void **state)
{
	struct sigaction a = { .sa_handler = on_alarm }, was;
	const struct itimerval soon = { .it_value.tv_usec = 20000 };
	struct pollfd p = { .fd = fds_keep(eventfd(0, EFD_CLOEXEC)), .events = POLLIN };

	(void)state;
	sigaction(SIGALRM, &a, &was);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_false(fds_poll(&p, 1, -1));
	assert_int_equal(p.revents, 0);
	sigaction(SIGALRM, &was, NULL);
	fds_close(p.fd);
}

/* At its end a descriptor reads nothing, which sets no errno. */
static void another_in_the_place_of_an_eventfd_is_seen(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), null = open("/dev/null", O_RDWR);

	(void)state;
	assert_true(fds_rung(fd)); /* nobody rang */
	assert_int_equal(eventfd_write(fd, 1), 0);
	assert_true(fds_rung(fd));
	errno = EAGAIN;
	assert_int_equal(dup2(null, fd), fd);
	assert_false(fds_rung(fd));
	close(null);
	close(fd);
	assert_false(fds_rung(fd));
}

/* A pipe that nobody reads would end the process. */
static void and_is_not_written_to(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), p[2];
	uint64_t rung;

	(void)state;
	fds_ring(fd);
	assert_int_equal(read(fd, &rung, sizeof(rung)), sizeof(rung));
	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(dup2(p[1], fd), fd);
	fds_ring(fd);
	assert_true(read(p[0], &rung, sizeof(rung)) < 0 && errno == EAGAIN);
	close(p[0]);
	fds_ring(fd);
	close(p[1]);
	close(fd);
	fds_ring(fd);
}

/* io/fds.c holds its lock while it closes: a signal there finds its own thread with the lock. */
#define HANDLER_FORKS 40

static volatile sig_atomic_t handler_forks;

static void fork_in_handler(int sig)
{
	int err = errno;
	pid_t child = fork();

	(void)sig;
	if (!child)
		_exit(0);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	handler_forks++;
	errno = err;
}

static void a_handler_forks_on_top_of_a_close(void **state)
{
	const struct itimerval often = { { .tv_usec = 500 }, { .tv_usec = 500 } }, never = { 0 };
	struct sigaction forks = { .sa_handler = fork_in_handler, .sa_flags = SA_RESTART }, old;

	(void)state;
	assert_int_equal(sigaction(SIGPROF, &forks, &old), 0);
	assert_int_equal(setitimer(ITIMER_PROF, &often, NULL), 0);
	while (handler_forks < HANDLER_FORKS) /* the test's time limit ends it */
		fds_close(fds_keep(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
	assert_int_equal(setitimer(ITIMER_PROF, &never, NULL), 0);
	assert_int_equal(sigaction(SIGPROF, &old, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_has_none),
		cmocka_unit_test(only_what_is_kept),
		cmocka_unit_test(no_deadlock_with_fork),
		cmocka_unit_test(nothing_is_left_open),
		cmocka_unit_test(what_cannot_be_polled_is_tried_after_a_while),
		cmocka_unit_test(nothing_is_waited_for_for_ever),
		cmocka_unit_test(a_signal_is_no_error),
		cmocka_unit_test(another_in_the_place_of_an_eventfd_is_seen),
		cmocka_unit_test(and_is_not_written_to),
		cmocka_unit_test(a_handler_forks_on_top_of_a_close),
	};

	pthread_atfork(take_stack_lock, leave_stack_lock, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
