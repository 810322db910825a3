/* SPDX-License-Identifier: BSD-3-Clause */
/* A wall clock that jumps by an hour, to and fro, every tenth of a second: preloaded, since the
 * machine's own is not a test's to set. */
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int raw(clockid_t id, struct timespec *t)
{
	return (int)syscall(SYS_clock_gettime, id, t);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = raw(id, t);

	if (!rc && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += t->tv_nsec / 100000000 % 2 ? 3600 : -3600;
	return rc;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict tv,
							void *restrict zone)
{
	struct timespec t;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*tv = (struct timeval){ t.tv_sec, t.tv_nsec / 1000 };
	return 0;
}

__attribute__((visibility("default"))) time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}
