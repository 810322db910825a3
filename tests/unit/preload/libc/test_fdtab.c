/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors: whatever a program does with numbers, the shim answers for its own files only. */
#include "rdma_cm/abi.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHOLE_DESTROY (sizeof(struct rdma_ucm_cmd_hdr) + sizeof(struct rdma_ucm_destroy_id))

extern char **environ;

/* Only the shim fills in the response: a command that fell through to a socket does not. */
static void check_alive(int fd, uint32_t id)
{
	uint32_t reported = 1234;

	assert_int_equal(cm_destroy(fd, id, &reported), 0);
	assert_in_range(reported, 0, 10);
}

static void raw_close(int fd)
{
	assert_int_equal(syscall(SYS_close, fd), 0);
}

/* closefrom() and the like: the number comes back as something else. */
static void number_reused_behind_our_back(void **state)
{
	struct stat st;
	char text[8] = "";
	int fd = cm_node(), ends[2];
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(cm_bind(fd, id, INADDR_ANY, 8101), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	raw_close(fd);
	assert_int_equal(syscall(SYS_dup, ends[1]), fd);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(read(ends[0], text, sizeof(text)), 4);
	assert_string_equal(text, "text");
	assert_int_equal(close(fd), 0);
	close(ends[0]);
	close(ends[1]);

	fd = cm_node(); /* what was bound there is free again */
	id = cm_create(fd, RDMA_PS_TCP);
	assert_int_equal(cm_bind(fd, id, INADDR_ANY, 8101), 0);
	close(fd);
}

/* Comparing the open file costs as much as the command: one that is whole, and for an id of the
 * channel, is no other file's. Anything else is. */
static void whole_command_is_not_compared(void **state)
{
	char octets[64];
	int fd = cm_node(), ends[2];
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	raw_close(fd);
	assert_int_equal(syscall(SYS_dup, ends[1]), fd);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	check_alive(fd, id);
	assert_int_equal(read(ends[0], octets, sizeof(octets)), -1);
	assert_int_equal(errno, EAGAIN);
	cm_destroy(fd, id, NULL); /* there is no such id any more */
	assert_int_equal(read(ends[0], octets, sizeof(octets)), WHOLE_DESTROY);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* An event for a channel that is gone must not end up in the file that has its number now. */
static void late_event_hits_nobody(void **state)
{
	char octet;
	int fd = cm_node(), ends[2];
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(cm_resolve(fd, id, 0xc0000203, 1, 100), 0);
	raw_close(fd);
	assert_int_equal(syscall(SYS_dup, ends[1]), fd);
	usleep(200000);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(read(ends[0], &octet, 1), -1);
	assert_int_equal(errno, EAGAIN);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void duplicates(void **state)
{
	int fd = cm_node(), copies[3];
	uint32_t id = cm_create(fd, RDMA_PS_IPOIB);
	struct stat st;

	(void)state;
	copies[0] = dup(fd);
	copies[1] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	copies[2] = dup2(fd, 200);
	assert_int_equal(close(fd), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fstat(copies[i], &st), 0);
		assert_true(S_ISCHR(st.st_mode));
		assert_int_equal(cm_resolve(copies[i], id, INADDR_LOOPBACK, 1, 10), 0);
		cm_expect(copies[(i + 1) % 3], EV_ADDR_ERROR, -EINVAL);
	}
	assert_int_equal(close(copies[2]), 0);
	assert_int_equal(close(copies[0]), 0);
	check_alive(copies[1], id); /* the last one still works */
	assert_int_equal(close(copies[1]), 0);
	assert_int_equal(write(copies[1], "x", 1), -1);
	assert_int_equal(errno, EBADF);
}

static void overwritten_by_dup2(void **state)
{
	int fd = cm_node(), null = open("/dev/null", O_WRONLY);
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(cm_bind(fd, id, INADDR_ANY, 8102), 0);
	assert_int_equal(dup2(null, fd), fd);
	assert_int_equal(write(fd, "anything", 8), 8);
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(null), 0);
	fd = cm_node();
	id = cm_create(fd, RDMA_PS_TCP);
	assert_int_equal(cm_bind(fd, id, INADDR_ANY, 8102), 0); /* the old listener is gone */
	close(fd);
}

/* A uverbs node is a /dev/null; another /dev/null under its number is not a uverbs node. */
static void null_is_not_uverbs(void **state)
{
	int fd = open("/dev/infiniband/uverbs30071", O_RDWR | O_CLOEXEC), null;
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(write(fd, "text", 4), -1);
	assert_int_equal(errno, EINVAL);
	raw_close(fd);
	null = open("/dev/null", O_RDWR);
	assert_int_equal(null, fd);
	assert_int_equal(write(null, "text", 4), 4);
	close(null);
}

/* A vfork()ed child shares our memory but not our descriptors: what it closes are its own. */
static void vforked_child_closes(void **state)
{
	int fd = cm_node(), status;
	uint32_t id = cm_create(fd, RDMA_PS_UDP);
	pid_t pid = vfork();

	(void)state;
	if (!pid) {
		close(fd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	check_alive(fd, id);
	close(fd);
}

static void spawned_child_inherits_nothing(void **state)
{
	char *argv[] = { (char *)"true", NULL };
	int fd = cm_node(), status;
	uint32_t id = cm_create(fd, RDMA_PS_UDP);
	pid_t pid;

	(void)state;
	assert_int_equal(posix_spawnp(&pid, "true", NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	check_alive(fd, id);
	close(fd);
}

static void other_paths_are_the_kernels(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(open("/dev/infiniband/uverbs30072", O_RDWR), -1);
	assert_int_equal(stat("/dev/infiniband/rdma_cm2", &st), -1);
	assert_int_equal(stat("/dev/infiniband/uverbs30071", &st), 0);
	assert_int_equal(access("/dev/infiniband/uverbs30071", X_OK), -1);
	assert_int_equal(errno, EACCES);
	fd = openat(AT_FDCWD, "/dev/infiniband/rdma_cm", O_RDWR | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
}

static void beyond_the_table(void **state)
{
	int fd = cm_node(), high;
	uint32_t id = cm_create(fd, RDMA_PS_UDP);

	(void)state;
	assert_int_equal(write(1 << 20, "x", 1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(close(-1), -1);
	high = fcntl(fd, F_DUPFD, 1000); /* a number near the soft limit */
	assert_true(high >= 1000);
	check_alive(high, id);
	close(high);
	close(fd);
}

/* Servers with very many connections have such. */
static void above_sixty_five_thousand(void **state)
{
	struct rlimit old, more;
	int fd, high;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	more = old;
	more.rlim_cur = old.rlim_max;
	if (more.rlim_max < 70002 || setrlimit(RLIMIT_NOFILE, &more))
		skip();
	fd = cm_node();
	high = fcntl(fd, F_DUPFD_CLOEXEC, 70000);
	assert_int_equal(high, 70000);
	close(fd);
	check_alive(high, cm_create(high, RDMA_PS_UDP));
	close(high);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number_reused_behind_our_back),
		cmocka_unit_test(whole_command_is_not_compared),
		cmocka_unit_test(late_event_hits_nobody),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(overwritten_by_dup2),
		cmocka_unit_test(null_is_not_uverbs),
		cmocka_unit_test(vforked_child_closes),
		cmocka_unit_test(spawned_child_inherits_nothing),
		cmocka_unit_test(other_paths_are_the_kernels),
		cmocka_unit_test(beyond_the_table),
		cmocka_unit_test(above_sixty_five_thousand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
