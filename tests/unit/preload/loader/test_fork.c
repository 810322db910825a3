/* SPDX-License-Identifier: BSD-3-Clause */
/* fork(): who keeps the stack, who gets one of its own, and that neither disturbs the other. */
#include "rdma_cm/abi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Run fn(arg) in a child; its failed assertions end it with a status. */
static void in_child(void (*fn)(void *), void *arg)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		fn(arg);
		exit(0); /* runs the shim's destructor as well */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define CHILD_CHECK(x)                                                                             \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "child: line %d: %s\n", __LINE__, #x);                     \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

struct open_file {
	int fd;
	uint32_t id;
};

static void connect_to_self(int fd, uint16_t port)
{
	uint32_t client, server;

	cm_listener(fd, port, 8);
	client = cm_routed(fd, port);
	CHILD_CHECK(!cm_connect(fd, client, 1, "", 1, 1));
	server = cm_expect(fd, EV_REQUEST, 0).id;
	CHILD_CHECK(!cm_accept(fd, server, 5, 2, ""));
	cm_expect(fd, EV_ESTABLISHED, 0);
	cm_expect(fd, EV_ESTABLISHED, 0);
}

static int libraries(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4096];
	int n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, "r-xp") &&
		     (strstr(line, "preload-fake") || strstr(line, "memfd:"));
	fclose(f);
	return n;
}

/* daemon(): what was made before the link came up goes on in the child. */
static void go_on(void *arg)
{
	struct open_file *f = arg;

	CHILD_CHECK(!cm_bind(f->fd, f->id, INADDR_ANY, 8201));
	CHILD_CHECK(!cm_listen(f->fd, f->id, 4));
	connect_to_self(f->fd, 8202);
	CHILD_CHECK(libraries() == 1);
	CHILD_CHECK(!cm_destroy(f->fd, f->id, NULL));
}

static void child_of_an_idle_parent(void **state)
{
	struct rdma_ucm_event_resp e;
	struct open_file f = { .fd = cm_node() };

	(void)state;
	f.id = cm_create(f.fd, RDMA_PS_TCP);
	in_child(go_on, &f);
	/* the child's events were the child's */
	cm_expect_none(f.fd, 20);
	fcntl(f.fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(cm_event(f.fd, &e), -EAGAIN);
	assert_int_equal(cm_destroy(f.fd, f.id, NULL), 0);
	close(f.fd);
}

/* Of a parent with a running stack a child keeps the shells of its ids, and gets a stack of its
 * own for new ones. */
static void start_anew(void *arg)
{
	struct open_file *f = arg;
	int fd;

	CHILD_CHECK(cm_listen(f->fd, f->id, 4) == -EIO);
	CHILD_CHECK(!cm_readable(f->fd, 0)); /* the parent's event is the parent's */
	CHILD_CHECK(!cm_destroy(f->fd, f->id, NULL));
	connect_to_self(f->fd, 8203); /* on the inherited channel */
	CHILD_CHECK(libraries() == 2);
	fd = cm_node();
	connect_to_self(fd, 8204);
	close(fd);
	close(f->fd);
}

/* As after daemon(3): the program hears EIO, and its user why. */
static void be_told_once(void *arg)
{
	struct open_file *f = arg;
	int was = dup(STDERR_FILENO), to = memfd_create("stderr", MFD_CLOEXEC);
	char said[1024], *end;
	ssize_t n;

	CHILD_CHECK(was >= 0 && dup2(to, STDERR_FILENO) == STDERR_FILENO);
	for (int i = 0; i < 3; i++)
		CHILD_CHECK(cm_listen(f->fd, f->id, 4) == -EIO);
	CHILD_CHECK(dup2(was, STDERR_FILENO) == STDERR_FILENO);
	n = pread(to, said, sizeof(said) - 1, 0);
	CHILD_CHECK(n > 0);
	said[n] = '\0';
	end = strchr(said, '\n');
	CHILD_CHECK(end && !end[1] && strstr(said, "before rdma_bind_addr()"));
	_exit(0);
}

static void a_child_of_one_that_has_bound_says_why_it_cannot_listen(void **state)
{
	struct open_file f = { .fd = cm_node() };

	(void)state;
	f.id = cm_create(f.fd, RDMA_PS_TCP);
	assert_int_equal(cm_bind(f.fd, f.id, INADDR_ANY, 8209), 0);
	in_child(be_told_once, &f);
	assert_int_equal(cm_listen(f.fd, f.id, 4), 0);
	close(f.fd);
}

static void child_of_a_running_parent(void **state)
{
	struct open_file f = { .fd = cm_node() };
	uint32_t id;

	(void)state;
	f.id = cm_create(f.fd, RDMA_PS_TCP);
	assert_int_equal(cm_bind(f.fd, f.id, INADDR_ANY, 8205), 0);
	id = cm_create(f.fd, RDMA_PS_TCP);
	assert_int_equal(cm_resolve(f.fd, id, INADDR_LOOPBACK, 1, 10), 0);
	assert_true(cm_readable(f.fd, 5000));
	in_child(start_anew, &f);
	assert_int_equal(cm_expect(f.fd, EV_ADDR_RESOLVED, 0).id, id);
	assert_int_equal(cm_listen(f.fd, f.id, 4), 0);
	close(f.fd);
}

static void grandchild(void *arg)
{
	connect_to_self(*(int *)arg, 8206);
	CHILD_CHECK(libraries() == 3);
}

static void child_with_child(void *arg)
{
	connect_to_self(*(int *)arg, 8206);
	in_child(grandchild, arg);
	cm_create(*(int *)arg, RDMA_PS_TCP);
}

static void generations(void **state)
{
	int fd = cm_node();

	(void)state;
	cm_listener(fd, 8206, 4);
	in_child(child_with_child, &fd);
	close(fd);
}

/* ---- a thread that looks for events while another one forks --------------------------------- */

struct looker {
	struct open_file f;
	atomic_bool begins;
};

static void *look_and_wait(void *arg)
{
	struct looker *l = arg;
	struct rdma_ucm_event_resp e;

	l->begins = true;
	return cm_event(l->f.fd, &e) ? l : NULL;
}

static void hear_of_an_event(void *arg)
{
	struct looker *l = arg;
	uint32_t id = cm_create(l->f.fd, RDMA_PS_IPOIB);

	CHILD_CHECK(!cm_resolve(l->f.fd, id, INADDR_LOOPBACK, 1, 10));
	cm_expect(l->f.fd, EV_ADDR_ERROR, -EINVAL);
	_exit(0);
}

/* On one core, this thread goes on when the other one, which looks before it waits, yields. */
static void child_of_a_parent_that_looks(void **state)
{
	struct looker l = { .f.fd = cm_node() };
	cpu_set_t all, one;
	pthread_t thread;
	void *failed;

	(void)state;
	l.f.id = cm_create(l.f.fd, RDMA_PS_IPOIB);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	for (int i = 0; i < 20; i++) {
		l.begins = false;
		assert_int_equal(pthread_create(&thread, NULL, look_and_wait, &l), 0);
		while (!l.begins)
			sched_yield();
		in_child(hear_of_an_event, &l);
		assert_int_equal(cm_resolve(l.f.fd, l.f.id, INADDR_LOOPBACK, 1, 10), 0);
		assert_int_equal(pthread_join(thread, &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	close(l.f.fd);
}

/* Inherited ids that nobody destroys must not reach for the parent's endpoints at the end. */
static void just_exit(void *arg)
{
	struct open_file *f = arg;

	close(f->fd);
}

static void child_closes_and_exits(void **state)
{
	struct open_file f = { .fd = cm_node() };
	uint32_t client;

	(void)state;
	f.id = cm_listener(f.fd, 8207, 4);
	client = cm_routed(f.fd, 8207);
	in_child(just_exit, &f);
	assert_int_equal(cm_connect(f.fd, client, 1, "", 0, 0), 0); /* the listener still stands */
	cm_expect(f.fd, EV_REQUEST, 0);
	close(f.fd);
}

/* ---- _exit() ---------------------------------------------------------------------------- */

static void leave_at_once(void *arg)
{
	connect_to_self(*(int *)arg, 8208);
	_exit(0);
}

static void leave_from_a_handler(int sig)
{
	(void)sig;
	_Exit(0);
}

static void be_killed(void *arg)
{
	connect_to_self(*(int *)arg, 8208);
	signal(SIGTERM, leave_from_a_handler);
	raise(SIGTERM);
}

static void leave_without_stack(void *arg)
{
	(void)arg;
	_exit(0);
}

static void exit_with_a_child_that_could_not_exec(void *arg)
{
	connect_to_self(*(int *)arg, 8208);
	if (!vfork())
		_exit(0); /* the parent's memory, not the parent's end */
}

static int ends_of(void (*fn)(void *), void *arg)
{
	char fd[16], octets[8];
	int ends[2];
	ssize_t n;

	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	snprintf(fd, sizeof(fd), "%d", ends[1]);
	setenv("FAKE_CLOSE_FD", fd, 1);
	in_child(fn, arg);
	unsetenv("FAKE_CLOSE_FD");
	n = read(ends[0], octets, sizeof(octets));
	close(ends[0]);
	close(ends[1]);
	return n < 0 ? 0 : (int)n;
}

static void connections_end_with_the_process_however_it_ends(void **state)
{
	int fd = cm_node();

	(void)state;
	assert_int_equal(ends_of(leave_at_once, &fd), 1);
	assert_int_equal(ends_of(be_killed, &fd), 1);
	assert_int_equal(ends_of(leave_without_stack, &fd), 0);
	assert_int_equal(ends_of(exit_with_a_child_that_could_not_exec, &fd), 1);
	close(fd);
}

/* ---- a thread that goes on while its process ends ----------------------------------------- */

static int make_id(int fd)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_create_id cmd = { .uid = 1,
					  .response = (uintptr_t)&resp,
					  .ps = RDMA_PS_TCP };

	return cm_cmd(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp));
}

/* It sees the engine's end, and ends the process, since nobody else does. */
static void *go_on_to_the_end(void *arg)
{
	struct open_file *f = arg;
	struct timespec ms = { .tv_nsec = 1000000 };

	while (cm_disconnect(f->fd, f->id) != -ENODEV)
		nanosleep(&ms, NULL);
	CHILD_CHECK(!make_id(f->fd));
	_exit(0);
	return NULL;
}

/* exit() runs the destructors, the preloaded library's, too, and then flushes: that waits for ever,
 * since the pipe is full. */
static void end_slowly(void *arg)
{
	static char more[4096];
	struct open_file *f = arg;
	pthread_t thread;
	int pipes[2];

	connect_to_self(f->fd, 8207);
	f->id = cm_routed(f->fd, 8207);
	CHILD_CHECK(!pipe(pipes) && fcntl(pipes[1], F_SETFL, O_NONBLOCK) == 0);
	while (write(pipes[1], more, sizeof(more)) > 0)
		;
	CHILD_CHECK(fcntl(pipes[1], F_SETFL, 0) == 0 && dup2(pipes[1], STDOUT_FILENO) >= 0);
	printf("waits");
	CHILD_CHECK(!pthread_create(&thread, NULL, go_on_to_the_end, f));
}

static void ids_while_the_process_ends(void **state)
{
	struct open_file f = { .fd = cm_node() };

	(void)state;
	fflush(stdout);
	in_child(end_slowly, &f);
	close(f.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_of_an_idle_parent), /* first: nothing is started yet */
		cmocka_unit_test(child_of_a_running_parent),
		cmocka_unit_test(a_child_of_one_that_has_bound_says_why_it_cannot_listen),
		cmocka_unit_test(generations),
		cmocka_unit_test(child_of_a_parent_that_looks),
		cmocka_unit_test(child_closes_and_exits),
		cmocka_unit_test(connections_end_with_the_process_however_it_ends),
		cmocka_unit_test(ids_while_the_process_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
