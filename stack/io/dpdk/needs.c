/* SPDX-License-Identifier: BSD-3-Clause */
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "io/log.h"

/* What it takes. Where there are fewer it does not say so, or ends the process. */
#define DESCRIPTORS 5

static bool descriptors_are_free(void)
{
	int fd[DESCRIPTORS];
	unsigned n = 0, got;

	while (n < DESCRIPTORS && (fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	got = n;
	while (n)
		close(fd[--n]);
	return got == DESCRIPTORS;
}

/* 0 or an errno, as all that follow. */
static int try_epoll(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC), one = eventfd(0, EFD_CLOEXEC), err = 0;

	if (set < 0 || one < 0 || epoll_ctl(set, EPOLL_CTL_ADD, one, &e) ||
	    epoll_wait(set, &e, 1, 0) < 0)
		err = errno;
	if (set >= 0)
		close(set);
	if (one >= 0)
		close(one);
	return err;
}

static int try_timers(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int try_reading_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ? errno : 0;
}

static int try_setting_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ||
			       sched_setaffinity(0, sizeof(cpus), &cpus)
		       ? errno
		       : 0;
}

static const struct {
	const char *what;
	int (*attempt)(void);
} calls[] = {
	{ "epoll", try_epoll },
	{ "timerfd_create", try_timers },
	{ "sched_getaffinity", try_reading_cpus },
	{ "sched_setaffinity", try_setting_cpus },
};

/* It looks for the CPUs there, and finds none in a container without /sys. */
static bool cpus_are_described(void)
{
	char path[80];
	cpu_set_t cpus;
	int n = 0;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return false;
	while (n < CPU_SETSIZE && !CPU_ISSET(n, &cpus))
		n++;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/core_id", n);
	return !access(path, F_OK);
}

uw_status eal_needs_check(void)
{
	if (!descriptors_are_free())
		return log_error(UW_E_NO_LINK, "DPDK needs %d more open files: raise ulimit -n",
				 DESCRIPTORS);
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int err = calls[i].attempt();

		if (err && err != EINTR)
			return log_error(UW_E_NO_LINK,
					 "DPDK needs %s, and the kernel refuses it to this process "
					 "(seccomp?): %s",
					 calls[i].what, strerror(err));
	}
	if (!cpus_are_described())
		return log_error(UW_E_NO_LINK, "DPDK needs /sys/devices/system/cpu, which is not "
					       "here: mount -t sysfs sysfs /sys");
	return UW_OK;
}
