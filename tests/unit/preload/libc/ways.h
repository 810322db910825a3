/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that wait for one completion channel, each with a time in milliseconds (-1: no end)
 * and the result of poll(). */
#ifndef UWARP_TEST_WAYS_H
#define UWARP_TEST_WAYS_H

#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

static inline uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct bed {
	int channel, epoll, ring;
};

static int by_poll(struct bed *b, int ms)
{
	struct pollfd p = { .fd = b->channel, .events = POLLIN };

	return poll(&p, 1, ms);
}

static struct timespec of_ms(int ms)
{
	return (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
}

static int by_ppoll(struct bed *b, int ms)
{
	struct pollfd p = { .fd = b->channel, .events = POLLIN };
	struct timespec t = of_ms(ms);

	return ppoll(&p, 1, ms < 0 ? NULL : &t, NULL);
}

static int by_epoll_wait(struct bed *b, int ms)
{
	struct epoll_event ev;

	return epoll_wait(b->epoll, &ev, 1, ms);
}

static int by_epoll_pwait(struct bed *b, int ms)
{
	struct epoll_event ev;

	return epoll_pwait(b->epoll, &ev, 1, ms, NULL);
}

static int by_epoll_pwait2(struct bed *b, int ms)
{
	struct timespec t = of_ms(ms);
	struct epoll_event ev;

	return epoll_pwait2(b->epoll, &ev, 1, ms < 0 ? NULL : &t, NULL);
}

static int by_select(struct bed *b, int ms)
{
	struct timeval t = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000L };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(b->channel, &in);
	return select(b->channel + 1, &in, NULL, NULL, ms < 0 ? NULL : &t);
}

static int by_pselect(struct bed *b, int ms)
{
	struct timespec t = of_ms(ms);
	fd_set in;

	FD_ZERO(&in);
	FD_SET(b->channel, &in);
	return pselect(b->channel + 1, &in, NULL, NULL, ms < 0 ? NULL : &t, NULL);
}

static const struct {
	const char *name;
	int (*wait)(struct bed *b, int ms);
} ways[] = {
	{ "poll", by_poll },
	{ "ppoll", by_ppoll },
	{ "epoll_wait", by_epoll_wait },
	{ "epoll_pwait", by_epoll_pwait },
	{ "epoll_pwait2", by_epoll_pwait2 },
	{ "select", by_select },
	{ "pselect", by_pselect },
};
#define N_WAYS (sizeof(ways) / sizeof(ways[0]))

#endif
