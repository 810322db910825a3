/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_waits.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

__attribute__((visibility("default"))) struct fake_waits fake_waits = { .fd = -1, .socket = -1 };

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool look(struct uw_engine *e, struct uw_wait *w, uint64_t limit_us)
{
	uint64_t begin = now_us();

	(void)e;
	if (!fake_waits.able)
		return false;
	fake_waits.looks++;
	fake_waits.looking++;
	if (fake_waits.signal)
		raise(fake_waits.signal);
	if (fake_waits.in_look)
		fake_waits.in_look();
	if (limit_us > fake_waits.longest_us)
		fake_waits.longest_us = limit_us;
	while (*w->events == w->seen && now_us() - begin < limit_us &&
	       now_us() - begin < fake_waits.look_us)
		sched_yield();
	fake_waits.heard += *w->events != w->seen;
	fake_waits.looking--;
	return true;
}

static enum uw_wait_how begin(struct uw_engine *e, struct uw_wait *w)
{
	(void)e;
	w->fd[0] = fake_waits.fd;
	w->fd[1] = fake_waits.socket;
	w->fd[2] = -1;
	if (fake_waits.in_begin)
		fake_waits.in_begin();
	fake_waits.begins += fake_waits.how == UW_WAIT_SLEEP;
	return fake_waits.how;
}

static void end(struct uw_engine *e)
{
	struct pollfd ring = { .fd = fake_waits.fd, .events = POLLIN };

	(void)e;
	fake_waits.unheard += poll(&ring, 1, 0) > 0;
	fake_waits.ends++;
}

static void done(struct uw_engine *e, const struct uw_wait *w)
{
	(void)e;
	(void)w;
	fake_waits.dones++;
}

static void plainly(struct uw_engine *e, bool on)
{
	(void)e;
	fake_waits.plain += on ? 1 : -1;
	fake_waits.plains += on;
}

static void yielded(struct uw_engine *e)
{
	(void)e;
	fake_waits.yields++;
	sched_yield(); /* as the real one may: that is no yield of the program's */
}

static bool is_elsewhere(struct uw_engine *e)
{
	(void)e;
	return fake_waits.elsewhere;
}

void fake_waits_fill(struct uw_api *api)
{
	api->wait_elsewhere = is_elsewhere;
	api->wait_look = look;
	api->wait_begin = begin;
	api->wait_end = end;
	api->wait_done = done;
	api->wait_plainly = plainly;
	api->wait_yield = yielded;
}
