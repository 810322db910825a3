/* SPDX-License-Identifier: BSD-3-Clause */
/* Without a libuwarp.so there is no device, one line says why, and nothing else changes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

/* What the line names; the first argument, if there is one. */
static const char *wanted = "UWARP_LIB";

/* What fn says on stderr. */
static void listen_to(void (*fn)(void), char *said, size_t room)
{
	int ends[2], saved = dup(2);
	ssize_t n;

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	dup2(ends[1], 2);
	fn();
	dup2(saved, 2);
	n = read(ends[0], said, room - 1);
	said[n > 0 ? n : 0] = '\0';
	close(saved);
	close(ends[0]);
	close(ends[1]);
}

static void open_twice(void)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(open("/dev/infiniband/rdma_cm", O_RDWR), -1);
		assert_int_equal(errno, ENODEV);
	}
}

static void one_line(void **state)
{
	char said[4096];

	(void)state;
	listen_to(open_twice, said, sizeof(said));
	assert_int_equal(strncmp(said, "uwarp: ", 7), 0);
	assert_non_null(strstr(said, wanted));
	assert_int_equal(strstr(said, "UWARP_LIB") != NULL, !strcmp(wanted, "UWARP_LIB"));
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

/* The program does not know of the line. */
static void who_reads_stderr_may_have_ended(void **state)
{
	int ends[2], saved = dup(2), status = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	dup2(ends[1], 2);
	pid = fork();
	if (!pid) {
		open("/dev/infiniband/rdma_cm", O_RDWR);
		_exit(0);
	}
	dup2(saved, 2);
	close(saved);
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void no_device(void **state)
{
	struct nlmsghdr q = { .nlmsg_len = NLMSG_HDRLEN,
			      .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP };
	union {
		struct nlmsghdr hdr;
		uint8_t octets[8192];
	} r;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(sendto(fd, &q, sizeof(q), 0, NULL, 0), sizeof(q));
	do { /* only what the kernel has, and the end */
		n = recv(fd, &r, sizeof(r), MSG_DONTWAIT);
		assert_true(n > 0);
		assert_null(memmem(&r, (size_t)n, "uwarp0", 6));
	} while (r.hdr.nlmsg_type != NLMSG_DONE);
	close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_reads_stderr_may_have_ended), /* before the line is said */
		cmocka_unit_test(one_line),
		cmocka_unit_test(no_device),
	};

	if (argc > 1)
		wanted = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
