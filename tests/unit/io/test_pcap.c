/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/pcap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uwtest.h"

#define FILE_HEADER   24
#define RECORD_HEADER 16

static char dir[64], path[96], own[128];

static int make_place(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/uw-pcap-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/c.pcap", dir);
	snprintf(own, sizeof(own), "%s.%d", path, (int)getpid());
	return 0;
}

static int drop_place(void **state)
{
	(void)state;
	unlink(path);
	unlink(own);
	return rmdir(dir);
}

static long size_of(const char *name)
{
	struct stat st;

	return stat(name, &st) ? -1 : (long)st.st_size;
}

/* A frame of two buffers. */
static void write_frame(struct io_pcap *p, size_t first, size_t second)
{
	static uint8_t octets[2000];
	struct io_frame b = { .data = octets, .len = (uint32_t)second };
	struct io_frame a = { .next = &b, .data = octets, .len = (uint32_t)first };

	io_pcap_write(p, &a, 1500000);
}

static void a_frame_of_two_buffers_is_one_record(void **state)
{
	struct io_pcap *p = io_pcap_open(path);
	uint32_t head[(FILE_HEADER + RECORD_HEADER) / 4];
	FILE *f;

	(void)state;
	assert_non_null(p);
	write_frame(p, 60, 40);
	io_pcap_close(p);
	assert_int_equal(size_of(path), FILE_HEADER + RECORD_HEADER + 100);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(head, sizeof(head), 1, f), 1);
	fclose(f);
	assert_int_equal(head[0], 0xa1b2c3d4);
	assert_int_equal(head[6], 1); /* seconds */
	assert_int_equal(head[7], 500000);
	assert_int_equal(head[8], 100);
	assert_int_equal(head[9], 100);
}

static void more_than_the_buffer_holds_is_all_written(void **state)
{
	struct io_pcap *p = io_pcap_open(path);
	const unsigned n = 1000;

	(void)state;
	assert_non_null(p);
	for (unsigned i = 0; i < n; i++)
		write_frame(p, 1000, 999);
	io_pcap_close(p);
	assert_int_equal(size_of(path), FILE_HEADER + n * (RECORD_HEADER + 1999));
}

static void a_file_in_use_is_left_alone(void **state)
{
	struct io_pcap *p = io_pcap_open(path), *q;

	(void)state;
	assert_non_null(p);
	write_frame(p, 100, 0);
	q = io_pcap_open(path);
	assert_non_null(q);
	write_frame(q, 50, 0);
	io_pcap_close(q);
	io_pcap_close(p);
	assert_int_equal(size_of(path), FILE_HEADER + RECORD_HEADER + 100);
	assert_int_equal(size_of(own), FILE_HEADER + RECORD_HEADER + 50);
	unlink(own);
}

static void a_child_that_exits_writes_nothing_of_its_parents(void **state)
{
	struct io_pcap *p = io_pcap_open(path);
	int status;
	pid_t pid;

	(void)state;
	assert_non_null(p);
	write_frame(p, 100, 0);
	pid = fork();
	if (!pid)
		exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(size_of(path), FILE_HEADER);
	io_pcap_close(p);
	assert_int_equal(size_of(path), FILE_HEADER + RECORD_HEADER + 100);
}

/* The program may have kept SIGPIPE as it is, which ends it. */
static void a_reader_may_end(void **state)
{
	struct io_pcap *p;
	sigset_t waits, mask;
	char head[FILE_HEADER];
	int fd;

	(void)state;
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	p = io_pcap_open(path);
	assert_non_null(p);
	assert_int_equal(read(fd, head, sizeof(head)), FILE_HEADER);
	close(fd);
	for (unsigned i = 0; i < 1000; i++)
		write_frame(p, 1000, 500);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	for (unsigned i = 0; i < 1000; i++)
		write_frame(p, 1000, 500);
	io_pcap_close(p);
	assert_int_equal(read(fd, head, 1), 0); /* no begin without a head */
	close(fd);
	sigpending(&waits);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&waits, SIGPIPE));
	assert_false(sigismember(&mask, SIGPIPE));
	unlink(path);
}

/* One line, however much is lost. */
static void a_full_disk_is_said_once(void **state)
{
	static const char line[] = "uwarp: capture /dev/full: No space left on device: ";
	int ends[2], saved = dup(STDERR_FILENO);
	char said[512] = { 0 };
	struct io_pcap *p;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	dup2(ends[1], STDERR_FILENO);
	p = io_pcap_open("/dev/full");
	for (unsigned i = 0; p && i < 1000; i++)
		write_frame(p, 1000, 500);
	if (p)
		io_pcap_close(p);
	dup2(saved, STDERR_FILENO);
	assert_non_null(p);
	assert_true(read(ends[0], said, sizeof(said) - 1) > 0);
	assert_memory_equal(said, line, sizeof(line) - 1);
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
	close(saved);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_of_two_buffers_is_one_record),
		cmocka_unit_test(more_than_the_buffer_holds_is_all_written),
		cmocka_unit_test(a_file_in_use_is_left_alone),
		cmocka_unit_test(a_reader_may_end),
		cmocka_unit_test(a_full_disk_is_said_once),
		cmocka_unit_test(a_child_that_exits_writes_nothing_of_its_parents),
	};

	return cmocka_run_group_tests(tests, make_place, drop_place);
}
