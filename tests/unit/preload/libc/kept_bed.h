/* SPDX-License-Identifier: BSD-3-Clause */
/* A completion channel that does not block, in an epoll on which the thread waited last. */
#ifndef UWARP_TEST_KEPT_BED_H
#define UWARP_TEST_KEPT_BED_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "channels.h"
#include "fake_waits.h"
#include "ways.h"

#define DATA 77u

static struct fake_waits *fake;
static struct bed bed;
static int waited_on; /* the epoll of another thread's wait */

static inline int ctl(int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = { .events = events, .data.u64 = data };

	return epoll_ctl(bed.epoll, op, fd, &ev);
}

static inline void set_nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

/* The thread's last wait was on this epoll. */
static inline void wait_for_nothing(void)
{
	struct epoll_event ev;

	assert_int_equal(epoll_wait(bed.epoll, &ev, 1, 0), 0);
}

static inline int setup(void **state)
{
	(void)state;
	fake->able = true;
	fake->look_us = 0;
	fake->elsewhere = false;
	fake->how = UW_WAIT_PLAINLY;
	fake->in_look = fake->in_begin = NULL;
	fake->fd = fake->socket = -1;
	fake->plains = 0;
	bed.channel = new_channel();
	set_nonblocking(bed.channel);
	waited_on = bed.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(ctl(EPOLL_CTL_ADD, bed.channel, EPOLLIN, DATA), 0);
	wait_for_nothing();
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	close(bed.channel);
	close(bed.epoll);
	return 0;
}

static inline int in_pipe(int channel)
{
	int octets = 0;

	assert_int_equal(syscall(SYS_ioctl, channel, FIONREAD, &octets), 0);
	return octets / (int)sizeof(struct ib_uverbs_comp_event_desc);
}

static inline void is_told(uint64_t data)
{
	struct epoll_event ev[2] = { 0 };

	assert_int_equal(epoll_wait(bed.epoll, ev, 2, 0), 1);
	assert_int_equal(ev[0].events, EPOLLIN);
	assert_int_equal(ev[0].data.u64, data);
}

static inline void is_empty(int channel)
{
	uint64_t event;

	/* the first answer may be the library's, the second is the kernel's */
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(read(channel, &event, sizeof(event)), -1);
		assert_int_equal(errno, EAGAIN);
	}
}

static inline void has_only(int channel, uint64_t cq)
{
	uint64_t event[2] = { 0 };

	assert_int_equal(read(channel, event, sizeof(event)), sizeof(event[0]));
	assert_int_equal(event[0], cq);
	is_empty(channel);
}

/* What the kernel watches: the lines "tfd: N events: ..." of the epoll descriptor. */
static inline int watched_by_kernel(int epfd, int fd)
{
	char path[64], line[256];
	unsigned events;
	int tfd, found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epfd);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "tfd: %d events: %x", &tfd, &events) == 2 && tfd == fd)
			found = (int)events;
	}
	fclose(f);
	return found;
}

static inline bool is_watched(void)
{
	return watched_by_kernel(bed.epoll, bed.channel) != 0;
}

static inline void *wait_elsewhere(void *arg)
{
	struct epoll_event ev = { 0 };

	*(int *)arg = epoll_wait(waited_on, &ev, 1, 4000);
	return NULL;
}

static inline void start_waiter(pthread_t *t, int *result)
{
	assert_int_equal(pthread_create(t, NULL, wait_elsewhere, result), 0);
	while (!fake->plains)
		sched_yield();
	usleep(10000);
}

/* False: the fake stack is not there. */
static inline bool start_fake(void)
{
	if (host()->api()->engine_start(host()->engine()))
		return false;
	fake = dlsym(dlopen(getenv("UWARP_LIB"), RTLD_NOW | RTLD_NOLOAD), FAKE_WAITS_NAME);
	return fake;
}

#endif
