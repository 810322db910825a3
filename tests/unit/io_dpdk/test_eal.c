/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK comes into the process without changing it. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include "node.h"

static int setup(void **state)
{
	*state = board_new();
	return 0;
}

static int teardown(void **state)
{
	board_free(*state);
	return 0;
}

static void open_it(void *arg)
{
	node_open_ok(arg, 2);
}

static bool exists(const char *path)
{
	struct stat s;

	return stat(path, &s) == 0;
}

static void status_field(const char *task, const char *field, char *out, size_t size)
{
	char path[300], line[256];

	out[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	FILE *f = fopen(path, "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			snprintf(out, size, "%s", line + strlen(field));
	fclose(f);
	CHECK(out[0]);
}

/* Every thread but ours blocks all that can be blocked and may run where we may. */
static unsigned check_threads(const char *cpus)
{
	DIR *d = opendir("/proc/self/task");
	char me[16], text[128];
	struct dirent *e;
	unsigned threads = 0;

	snprintf(me, sizeof(me), "%d", (int)getpid());
	CHECK(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		threads++;
		status_field(e->d_name, "Cpus_allowed_list:", text, sizeof(text));
		CHECK(strcmp(text, cpus) == 0);
		if (strcmp(e->d_name, me) == 0)
			continue;
		status_field(e->d_name, "SigBlk:", text, sizeof(text));
		/* glibc keeps 32 and 33 to itself */
		CHECK((strtoull(text, NULL, 16) | 0x180040100) == 0xffffffffffffffff);
	}
	closedir(d);
	return threads;
}

enum { FDS = 256 };

static void note_fds(bool open_before[FDS])
{
	for (int fd = 0; fd < FDS; fd++)
		open_before[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void check_cloexec(const bool open_before[FDS])
{
	for (int fd = 0; fd < FDS; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (!open_before[fd] && flags >= 0 && !(flags & FD_CLOEXEC)) {
			char path[64], target[128] = "";

			snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
			CHECK(readlink(path, target, sizeof(target) - 1) >= 0);
			fprintf(stderr, "descriptor %d stays open over exec: %s\n", fd, target);
			CHECK(flags & FD_CLOEXEC);
		}
	}
}

static int guest(struct node *n, int arg)
{
	bool dpdk_dirs = exists("/var/run/dpdk"), tmp_dir = exists("/tmp/dpdk");
	sigset_t mask, after;
	cpu_set_t set, set_after;
	char said[512], cpus[128], me[16];
	bool open_before[FDS];

	(void)arg;
	note_fds(open_before);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sched_getaffinity(0, sizeof(set), &set);
	snprintf(me, sizeof(me), "%d", (int)getpid());
	status_field(me, "Cpus_allowed_list:", cpus, sizeof(cpus));
	uint64_t start = ms_now();
	capture_stderr(open_it, n, said, sizeof(said));
	uint64_t took = ms_now() - start;

	CHECK(said[0] == '\0');
	CHECK(took < 2000);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	CHECK(memcmp(&mask, &after, 8) == 0);
	sched_getaffinity(0, sizeof(set_after), &set_after);
	CHECK(CPU_EQUAL(&set, &set_after));
	CHECK(check_threads(cpus) == 3); /* ours, the EAL's interrupt thread, the control thread */
	CHECK(exists("/var/run/dpdk") == dpdk_dirs && exists("/tmp/dpdk") == tmp_dir);
	atomic_fetch_add(&n->board->count[0], 1);
	while (atomic_load(&n->board->count[0]) < 2)
		ms_sleep(1);
	CHECK(board_wait(n->board, 1) && node_resolve(n, 3) == UW_OK); /* with a memif port, too */
	check_cloexec(open_before);
	node_close(n);
	CHECK(check_threads(cpus) == 2);
	n->board->word[0] = took;
	return 0;
}

static int host_of_guest(struct node *n, int arg)
{
	(void)arg;
	node_open_ok(n, 3);
	board_step(n->board, 1);
	atomic_fetch_add(&n->board->count[0], 1);
	CHECK(node_wait_down(n, 2, WAIT_MS));
	node_close(n);
	return 0;
}

static void the_process_is_left_as_it_was(void **state)
{
	struct board *b = *state;
	pid_t a = spawn(b, guest, 0), c = spawn(b, host_of_guest, 0);

	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(reap(c, WAIT_MS), 0);
	print_message("link opened in %u ms\n", (unsigned)b->word[0]);
	assert_int_equal(files_left(b), 0);
}

static int unprivileged(struct node *n, int me)
{
	unsigned peer = me == 2 ? 3 : 2;

	if (geteuid() == 0)
		CHECK(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
	node_open_ok(n, (unsigned)me);
	atomic_fetch_add(&n->board->count[0], 1);
	while (atomic_load(&n->board->count[0]) < 2)
		ms_sleep(1);
	CHECK(node_resolve(n, peer) == UW_OK);
	CHECK(node_send(n, peer, 9014, 1, 1));
	CHECK(node_receive(n, peer, WAIT_MS) == 1);
	node_close(n);
	return 0;
}

static void nobody_may_use_it(void **state)
{
	struct board *b = *state;

	if (geteuid() == 0)
		assert_int_equal(chown(b->dir, 65534, 65534), 0);
	pid_t a = spawn(b, unprivileged, 2), c = spawn(b, unprivileged, 3);
	assert_int_equal(reap(a, WAIT_MS), 0);
	assert_int_equal(reap(c, WAIT_MS), 0);
	assert_int_equal(files_left(b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_process_is_left_as_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_may_use_it, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
