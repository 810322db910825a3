/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket that answers uwarp-stat, and the records of QPs that failed, over a whole stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/stat/stat.h"
#include "net.h"

#define ANSWER_MS 5000
#define COUNT(v)  (sizeof(v) / sizeof((v)[0]))

struct seen {
	struct sim s;
	char dir[64], answer[65536];
};

static void open_seen(struct seen *t)
{
	struct sim_options o = { .seed = 1 };

	strcpy(t->dir, "/tmp/uw-stat-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	sim_open(&t->s, &o);
	sim_listen(&t->s, 7);
	sim_connect(&t->s, 7);
	strcpy(t->s.e->cfg.run_dir, t->dir);
	t->s.e->cfg.stat = true;
	stat_start(t->s.e);
	assert_non_null(t->s.e->stat);
}

static void remove_dir(const char *dir)
{
	char cmd[96];

	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
}

/* The names in DIR/stat; the last in path. */
static unsigned names(const struct seen *t, char path[128])
{
	char dir[80];
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/stat", t->dir);
	d = opendir(dir);
	assert_non_null(d);
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		n++;
		snprintf(path, 128, "%.40s/stat/%.60s", t->dir, e->d_name);
	}
	closedir(d);
	return n;
}

static void close_seen(struct seen *t)
{
	char path[128];

	stat_stop(t->s.e);
	assert_int_equal(names(t, path), 0);
	t->s.e->cfg.stat = false;
	sim_close(&t->s);
	remove_dir(t->dir);
}

static int visit(const struct seen *t)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char path[128];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(names(t, path), 1);
	snprintf(un.sun_path, sizeof(un.sun_path), "%.107s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

/* All that comes until the other end hangs up. */
static size_t read_all(struct seen *t, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t n = 0;
	ssize_t k;

	do {
		assert_int_equal(poll(&p, 1, ANSWER_MS), 1);
		k = read(fd, t->answer + n, sizeof(t->answer) - 1 - n);
		n += k > 0 ? (size_t)k : 0;
	} while (k > 0);
	t->answer[n] = '\0';
	close(fd);
	return n;
}

static void ask(struct seen *t)
{
	int fd = visit(t);

	assert_int_equal(write(fd, "stat\n", 5), 5);
	assert_true(read_all(t, fd) > 0);
}

static void has(const struct seen *t, const char *text)
{
	if (!strstr(t->answer, text))
		fail_msg("no %s in %s", text, t->answer);
}

static void test_who_asks_is_told(void **state)
{
	struct seen t = { 0 };

	(void)state;
	open_seen(&t);
	ask(&t);
	has(&t, "\"format\":1,");
	has(&t, "\"state\":\"streaming\",\"role\":\"initiator\"");
	has(&t, "\"state\":\"streaming\",\"role\":\"responder\"");
	has(&t, "\"remote\":{\"address\":\"10.0.0.2\",\"port\":7}");
	has(&t, "\"counters\":{\"ip_rx_unwanted\":");
	has(&t, "\"rtt_us\":");
	has(&t, "\"n_connections\":2}\n");
	close_seen(&t);
}

static void test_only_its_user_gets_in(void **state)
{
	struct seen t = { 0 };
	char path[128];
	struct stat s;

	(void)state;
	open_seen(&t);
	assert_int_equal(names(&t, path), 1);
	assert_int_equal(stat(path, &s), 0);
	assert_true(S_ISSOCK(s.st_mode));
	assert_int_equal(s.st_mode & 07777, 0600);
	close_seen(&t);
}

/* As another user, who was given the directory and the socket. Only root can be somebody else. */
static void test_another_user_is_hung_up_on(void **state)
{
	struct seen t = { 0 };
	char path[128];
	int rc, fd;

	(void)state;
	if (getuid())
		skip();
	open_seen(&t);
	names(&t, path);
	assert_int_equal(chmod(path, 0666), 0);
	fd = visit(&t); /* as root, before: still heard */
	close(fd);
	pid_t child = fork();
	if (!child) {
		struct sockaddr_un un = { .sun_family = AF_UNIX };
		char c;

		snprintf(un.sun_path, sizeof(un.sun_path), "%.107s", path);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (chmod(t.dir, 0755))
			_exit(2);
		snprintf(path, sizeof(path), "%.60s/stat", t.dir);
		if (chmod(path, 0755) || setuid(65534) ||
		    connect(fd, (struct sockaddr *)&un, sizeof(un)))
			_exit(3);
		send(fd, "stat\n", 5, MSG_NOSIGNAL);
		_exit(recv(fd, &c, 1, 0) > 0);
	}
	assert_int_equal(waitpid(child, &rc, 0), child);
	assert_int_equal(rc, 0);
	ask(&t);
	close_seen(&t);
}

static void test_other_octets_do_nothing(void **state)
{
	static const char *const words[] = { "x", "stat", "STAT\n", "stat\r", "\0\0\0\0\0", "" };
	struct seen t = { 0 };

	(void)state;
	open_seen(&t);
	for (unsigned i = 0; i < COUNT(words); i++) {
		int fd = visit(&t);

		assert_true(send(fd, words[i], strlen(words[i]) + 1, MSG_NOSIGNAL) > 0);
		assert_int_equal(read_all(&t, fd), 0);
		ask(&t);
	}
	close_seen(&t);
}

/* More of them than there are places, and none says or reads anything. */
static void test_who_is_slow_keeps_nobody_waiting(void **state)
{
	struct seen t = { 0 };
	int fd[20];

	(void)state;
	open_seen(&t);
	for (unsigned i = 0; i < COUNT(fd); i++) {
		fd[i] = visit(&t);
		if (i % 2)
			assert_int_equal(write(fd[i], "stat\n", 5), 5);
	}
	ask(&t);
	has(&t, "\"n_connections\":2}\n");
	for (unsigned i = 0; i < COUNT(fd); i++)
		close(fd[i]);
	ask(&t);
	close_seen(&t);
}

static void test_the_names_of_dead_processes_go(void **state)
{
	struct seen t = { 0 }, u = { 0 };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char path[128];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	open_seen(&t);
	snprintf(un.sun_path, sizeof(un.sun_path), "%.40s/stat/1.2", t.dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
	assert_int_equal(names(&t, path), 2);
	fd = stat_listen(&t.s.e->cfg, 3, u.answer);
	assert_true(fd >= 0);
	assert_int_equal(access(un.sun_path, F_OK), -1);
	assert_int_equal(names(&t, path), 2);
	close(fd);
	unlink(u.answer);
	close_seen(&t);
}

static void test_a_directory_of_others_is_not_used(void **state)
{
	struct seen t = { 0 };
	char path[STAT_PATH];

	(void)state;
	open_seen(&t);
	assert_int_equal(chmod(t.dir, 0777), 0);
	assert_int_equal(stat_listen(&t.s.e->cfg, 3, path), -EPERM);
	assert_int_equal(chmod(t.dir, 0700), 0);
	memset(t.s.e->cfg.run_dir, 'x', 70);
	assert_int_equal(stat_listen(&t.s.e->cfg, 3, path), -ENAMETOOLONG);
	strcpy(t.s.e->cfg.run_dir, t.dir);
	close_seen(&t);
}

/* ---- records ------------------------------------------------------------------------------- */

static void read_file(const char *path, char *out, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, out, room - 1);

	out[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

static void test_a_failed_qp_leaves_a_record(void **state)
{
	struct seen t = { 0 };
	uint8_t octets[16] = { 0 };
	struct uw_engine *e;

	(void)state;
	open_seen(&t);
	e = t.s.e;
	snprintf(e->cfg.record, sizeof(e->cfg.record), "%s/record", t.dir);
	e->conn.hooks.failed = stat_failed;
	e->conn.hooks.failed_arg = e;
	struct uw_mr *mr = sim_mr(&t.s.a, octets, sizeof(octets), UW_ACCESS_LOCAL_WRITE);
	struct uw_sge sge = { (uintptr_t)octets, sizeof(octets), uw_mr_stag(mr) };
	const struct uw_send_wr wr = { .opcode = UW_WR_RDMA_WRITE,
				       .flags = UW_SEND_SIGNALED,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .rkey = 0x12345600,
				       .remote_addr = 4096 };
	sim_post_send(&t.s.a, &wr);
	sim_settle(&t.s);
	stat_stop(e);
	read_file(e->cfg.record, t.answer, sizeof(t.answer));
	has(&t, "failed: 10.0.0.1:");
	has(&t, "  state streaming, ");
	has(&t, "  what happened: what peer 10.0.0.1:");
	has(&t, "  what happened: peer 10.0.0.2:7 sent a Terminate: ");
	assert_int_equal(t.answer[strlen(t.answer) - 1], '\n');
	assert_int_equal(uw_mr_dereg(mr), 0);
	e->cfg.stat = false;
	sim_close(&t.s);
	remove_dir(t.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_asks_is_told),
		cmocka_unit_test(test_only_its_user_gets_in),
		cmocka_unit_test(test_another_user_is_hung_up_on),
		cmocka_unit_test(test_other_octets_do_nothing),
		cmocka_unit_test(test_who_is_slow_keeps_nobody_waiting),
		cmocka_unit_test(test_the_names_of_dead_processes_go),
		cmocka_unit_test(test_a_directory_of_others_is_not_used),
		cmocka_unit_test(test_a_failed_qp_leaves_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
