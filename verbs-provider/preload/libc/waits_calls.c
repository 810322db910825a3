/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libc functions in which programs wait for completion events. For descriptors that have
 * nothing to do with them a wrapper costs a look at a bit and calls libc's function.
 */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fdtab.h"
#include "next.h"
#include "raw.h"
#include "waits.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- read ---------------------------------------------------------------------------------- */

static bool is_blocking_channel(int fd)
{
	int flags = raw_fcntl(fd, F_GETFL, 0);
	struct fd_obj *o;
	bool yes;

	if (flags < 0 || flags & O_NONBLOCK)
		return false;
	o = fdtab_get(fd);
	yes = o && o->cls->is_channel;
	if (o)
		fd_obj_put(o);
	return yes;
}

/* The kernel's, which libc has no type for. */
struct action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

#define LIBC_SIGNALS 32 /* 32 and 33 are libc's own */

/* A signal has interrupted poll(), which is never restarted. Would it have ended read()? Only if
 * its handler was installed without SA_RESTART; which signal it was nobody tells. */
static bool read_is_interrupted(void)
{
	struct action a;
	bool ends = false, restarts = false;

	for (int sig = 1; sig < _NSIG; sig++) {
		if (sig == LIBC_SIGNALS || sig == LIBC_SIGNALS + 1 ||
		    syscall(SYS_rt_sigaction, sig, NULL, &a, sizeof(a.mask)) ||
		    a.handler == SIG_DFL || a.handler == SIG_IGN)
			continue;
		if (a.flags & SA_RESTART)
			restarts = true;
		else
			ends = true;
	}
	return ends && !restarts;
}

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const struct waits w = { .fds = &p, .n = 1 };

	if (LIKELY(!waits_has(fd)) || !is_blocking_channel(fd))
		return next_fn()->read(fd, buf, len);
	if (waits_poll(&w) < 0 && errno == EINTR && read_is_interrupted())
		return -1;
	/* Where signals of both kinds are handled, this waits without the stack once. */
	return next_fn()->read(fd, buf, len);
}

/* ---- poll ---------------------------------------------------------------------------------- */

static bool any_channel(const struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++) {
		if (waits_has(fds[i].fd))
			return true;
	}
	return false;
}

static struct timespec of_ms(int ms)
{
	return (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec t = of_ms(ms);
	const struct waits w = { .fds = fds, .n = n, .timeout = ms < 0 ? NULL : &t };

	return UNLIKELY(any_channel(fds, n)) ? waits_poll(&w) : next_fn()->poll(fds, n, ms);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	const struct waits w = { .fds = fds, .n = n, .timeout = timeout, .mask = mask };

	return UNLIKELY(any_channel(fds, n)) ? waits_poll(&w)
					     : next_fn()->ppoll(fds, n, timeout, mask);
}

/* ---- epoll --------------------------------------------------------------------------------- */

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int r = next_fn()->epoll_ctl(epfd, op, fd, event);

	if (UNLIKELY(!r && op != EPOLL_CTL_DEL && waits_has(fd)))
		waits_note(epfd);
	return r;
}

/* Wait until epoll has something, then ask it. */
EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
	struct pollfd p = { .fd = epfd, .events = POLLIN };
	struct timespec t = of_ms(ms);
	const struct waits w = { .fds = &p, .n = 1, .timeout = ms < 0 ? NULL : &t, .mask = mask };
	int r;

	if (LIKELY(!waits_has(epfd)) || n <= 0)
		return next_fn()->epoll_pwait(epfd, events, n, ms, mask);
	do {
		r = waits_poll(&w);
		if (r > 0)
			r = next_fn()->epoll_pwait(epfd, events, n, 0, mask);
	} while (!r && ms < 0); /* another thread took it */
	return r;
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int n, int ms)
{
	if (LIKELY(!waits_has(epfd)))
		return next_fn()->epoll_wait(epfd, events, n, ms);
	return epoll_pwait(epfd, events, n, ms, NULL);
}
