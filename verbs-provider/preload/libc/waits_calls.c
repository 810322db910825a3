/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libc functions in which programs wait for completion events. For descriptors that have
 * nothing to do with them a wrapper costs a look at a bit and calls libc's function.
 */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include "clock.h"
#include "fdtab.h"
#include "next.h"
#include "raw.h"
#include "uverbs/channel.h"
#include "uverbs/kept.h"
#include "uverbs/watch.h"
#include "waiters.h"
#include "waits.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- read ---------------------------------------------------------------------------------- */

/* The program's end of a channel is for reading alone. For both are epoll descriptors, and a socket
 * that has its number by now, which may have a time of its own (SO_RCVTIMEO). Whatever else has the
 * number and is for reading alone: a wait until there is something to read and the kernel's read()
 * are right for it. What the kernel says of O_NONBLOCK is noted, so that the next read() need not
 * ask. */
static bool is_blocking(int fd)
{
	int flags = raw_fcntl(fd, F_GETFL, 0);

	if (flags >= 0 && flags & O_NONBLOCK)
		waits_set_nonblocking(fd, true);
	return flags >= 0 && !(flags & O_NONBLOCK) && (flags & O_ACCMODE) == O_RDONLY;
}

/* The kernel's, which libc has no type for. */
struct action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

#define LIBC_SIGNALS 32 /* 32 and 33 are libc's own */

/* Handlers of a thread's own faults tell nothing: these signals interrupt no wait. */
static bool is_of_a_wait(int sig)
{
	return sig != LIBC_SIGNALS && sig != LIBC_SIGNALS + 1 && sig != SIGSEGV && sig != SIGBUS &&
	       sig != SIGFPE && sig != SIGILL && sig != SIGSYS && sig != SIGTRAP;
}

enum { NO_HANDLER, ENDS_READ = 1, RESTARTS_READ = 2, BOTH_KINDS };

/* The kinds of handlers that there are for signals that interrupt a wait. */
static unsigned kinds_of_handlers(void)
{
	unsigned kinds = NO_HANDLER;
	struct action a;

	for (int sig = 1; sig < _NSIG; sig++) {
		if (is_of_a_wait(sig) &&
		    !syscall(SYS_rt_sigaction, sig, NULL, &a, sizeof(a.mask)) &&
		    a.handler != SIG_DFL && a.handler != SIG_IGN)
			kinds |= a.flags & SA_RESTART ? RESTARTS_READ : ENDS_READ;
	}
	return kinds;
}

#define KINDS_US 100000u

/* A signal has interrupted poll(), which is never restarted. It would have ended read() if its
 * handler was installed without SA_RESTART; which signal it was nobody tells. So where both kinds
 * are there the kernel has to wait. To ask takes a system call for each signal: now and then only.
 */
static bool kernel_must_wait(void)
{
	static _Atomic uint64_t asked_us;
	static _Atomic bool must;
	uint64_t now = preload_now_us();

	if (now - atomic_load_explicit(&asked_us, memory_order_relaxed) >= KINDS_US) {
		atomic_store_explicit(&must, kinds_of_handlers() == BOTH_KINDS,
				      memory_order_relaxed);
		atomic_store_explicit(&asked_us, now, memory_order_relaxed);
	}
	return atomic_load_explicit(&must, memory_order_relaxed);
}

/* A thread that leaves the stack to others is woken alone, and has its event at once. */
static int sleep_in_read(void *arg, uint64_t deadline, const sigset_t *mask)
{
	struct waits_reader *r = arg;
	ssize_t n;

	(void)deadline;
	(void)mask;
	r->by_kernel = true;
	n = next_fn()->read(r->fd, &r->event, sizeof(r->event));
	r->got = n > 0 ? (size_t)n : 0;
	return n < 0 ? -1 : 1;
}

/* False: an error, a signal that has ended the read for example. */
static bool wait_to_read(struct waits_reader *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	const struct waits w = { .fds = &p,
				 .n = 1,
				 .deadline = WAITS_NO_END,
				 .sleep = r->room == WAITS_EVENT ? sleep_in_read : NULL,
				 .arg = r,
				 .reader = r };

	if (waits_poll(&w) >= 0)
		return true;
	return !r->by_kernel && (errno != EINTR || kinds_of_handlers() != ENDS_READ);
}

static ssize_t read_now(int fd, void *buf, size_t len)
{
	ssize_t n = next_fn()->read(fd, buf, len);

	if (n < 0 && errno == EAGAIN) {
		channel_found_empty(fd);
		errno = EAGAIN;
	}
	return n;
}

static ssize_t read_driving(int fd, void *buf, size_t len)
{
	struct waits_reader r = { .fd = fd, .room = len };

	if (waits_is_nonblocking(fd) || !is_blocking(fd))
		return read_now(fd, buf, len);
	if (kernel_must_wait())
		return waits_read_plainly(fd, buf, len);
	/* If a handler of the other kind is just new, this waits without the stack once. */
	if (!wait_to_read(&r))
		return -1;
	if (!r.got)
		return next_fn()->read(fd, buf, len);
	memcpy(buf, &r.event, r.got);
	return (ssize_t)r.got;
}

/* As the kernel: there must be an event, which stays. */
static ssize_t read_too_little(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool blocks = !(raw_fcntl(fd, F_GETFL, 0) & O_NONBLOCK);
	int r;

	if (kept_any())
		kept_sort(NULL);
	r = blocks ? poll(&p, 1, -1) : next_fn()->poll(&p, 1, 0);
	if (r >= 0)
		errno = r ? EINVAL : EAGAIN;
	return -1;
}

/* A read of a kernel's channel is one event, whatever the room, while a pipe gives octets; and it
 * is never at its end. */
static ssize_t read_channel(struct channel *c, int fd, void *buf, size_t len)
{
	ssize_t n;

	if (len < WAITS_EVENT)
		return read_too_little(fd);
	n = read_driving(fd, buf, WAITS_EVENT);
	if (n)
		return n;
	channel_revive(c);
	return read_driving(fd, buf, WAITS_EVENT);
}

static void let_go(void *c)
{
	channel_let_go(c);
}

#define EMPTY_US 200u

/* The calling thread's last channel that was known to be empty. As long as nothing changes
 * (waits_changes) it is, and who asks in a loop takes no lock from the thread that has one to tell.
 */
static _Thread_local struct {
	int fd;
	uint32_t changes;
	uint64_t until_us;
} empty = { .fd = -1 };

static bool is_still_empty(int fd, uint32_t changes)
{
	return empty.fd == fd && empty.changes == changes && preload_now_us() < empty.until_us;
}

/* Programs read a channel until there is no event, and some ask again and again. 0: ask the kernel.
 */
static ssize_t read_kept(int fd, void *buf)
{
	uint32_t changes = atomic_load_explicit(&waits_changes, memory_order_acquire);
	bool nonblocking = waits_is_nonblocking(fd);
	uint64_t event;

	if (!nonblocking && !kept_any())
		return 0;
	if (nonblocking && is_still_empty(fd, changes)) {
		errno = EAGAIN;
		return -1;
	}
	switch (channel_take(fd, &event)) {
	case CHANNEL_EVENT:
		memcpy(buf, &event, sizeof(event));
		return sizeof(event);
	case CHANNEL_EMPTY:
		empty.fd = fd;
		empty.changes = changes;
		empty.until_us = preload_now_us() + EMPTY_US;
		errno = EAGAIN;
		return nonblocking ? -1 : 0;
	case CHANNEL_ASK:
		break;
	}
	return 0;
}

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
	struct channel *c;
	ssize_t n = 0;

	if (LIKELY(!waits_has(fd)))
		return next_fn()->read(fd, buf, len);
	if (len >= WAITS_EVENT)
		n = read_kept(fd, buf);
	if (!n && len == WAITS_EVENT)
		n = read_driving(fd, buf, len);
	if (n)
		return n;
	c = channel_hold(fd);
	if (!c)
		return len == WAITS_EVENT ? n : read_driving(fd, buf, len);
	pthread_cleanup_push(let_go, c);
	n = read_channel(c, fd, buf, len);
	pthread_cleanup_pop(1);
	return n;
}

/* ---- sched_yield --------------------------------------------------------------------------- */

/* A program that makes connections and yields until all are there has nothing else to do, and has
 * the core that they need. */
EXPORT int sched_yield(void)
{
	if (UNLIKELY(waits_for_outcome))
		waits_yield();
	return (int)syscall(SYS_sched_yield);
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

static uint64_t deadline_of_ms(int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	return waits_deadline(ms < 0 ? NULL : &t);
}

/* Wrong ones are the kernel's to refuse. */
static bool is_time(const struct timespec *t)
{
	return !t || (t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000);
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int ms)
{
	const struct kept_wait kept = { .epfd = -1, .fds = fds, .n = (unsigned)n };
	struct waits w = { .fds = fds, .n = n, .kept = &kept };

	if (LIKELY(!any_channel(fds, n)))
		return next_fn()->poll(fds, n, ms);
	w.deadline = deadline_of_ms(ms);
	return waits_poll(&w);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	const struct kept_wait kept = { .epfd = -1, .fds = fds, .n = (unsigned)n };
	struct waits w = { .fds = fds, .n = n, .mask = mask, .kept = &kept };

	if (LIKELY(!any_channel(fds, n)) || !is_time(timeout))
		return next_fn()->ppoll(fds, n, timeout, mask);
	w.deadline = waits_deadline(timeout);
	return waits_poll(&w);
}

/* ---- epoll --------------------------------------------------------------------------------- */

/* Who sleeps in an epoll descriptor may hear of what another one tells. */
static void nest(void)
{
	waiters_note_nested();
	watch_settle(-1);
	if (kept_any())
		kept_sort(NULL);
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int r;

	if (LIKELY(!waits_has(fd))) {
		if (op == EPOLL_CTL_ADD)
			waiters_note_unseen(fd); /* it may be epoll's, and get a channel */
		return next_fn()->epoll_ctl(epfd, op, fd, event);
	}
	if (!channel_epoll_ctl(epfd, op, fd, event, &r)) {
		nest(); /* fd is an epoll descriptor */
		r = next_fn()->epoll_ctl(epfd, op, fd, event) ? -errno : 0;
	}
	if (!r && op != EPOLL_CTL_DEL)
		waits_note_epoll(epfd);
	if (r)
		errno = -r;
	return r ? -1 : 0;
}

/* A number that this library has not seen closed. */
static int new_epoll(int epfd)
{
	if (UNLIKELY(waits_has(epfd)) && fdtab_is_ours())
		waits_forget(epfd);
	if (fdtab_is_ours())
		waiters_note_new(epfd);
	return epfd;
}

EXPORT int epoll_create(int size)
{
	return new_epoll(next_fn()->epoll_create(size));
}

EXPORT int epoll_create1(int flags)
{
	return new_epoll(next_fn()->epoll_create1(flags));
}

struct epoll_call {
	int epfd, n;
	struct epoll_event *events;
	bool exactly; /* not to the millisecond above */
};

static int ask_epoll(void *arg, const sigset_t *mask)
{
	const struct epoll_call *c = arg;

	return next_fn()->epoll_pwait(c->epfd, c->events, c->n, 0, mask);
}

/* Of many threads that sleep so one is woken for an event; of those in ppoll() all would be. */
static int sleep_in_epoll(void *arg, uint64_t deadline, const sigset_t *mask)
{
	const struct epoll_call *c = arg;
	uint64_t us = waits_left_us(deadline), ms = us / 1000 + (us % 1000 != 0);
	int wait = deadline == WAITS_NO_END ? -1 : ms > INT_MAX ? INT_MAX : (int)ms;

	return next_fn()->epoll_pwait(c->epfd, c->events, c->n, wait, mask);
}

/* Wait until epoll has something. It has nothing if another thread took that. */
static int epoll_until(struct epoll_call *c, uint64_t deadline, const sigset_t *mask)
{
	struct pollfd p = { .fd = c->epfd, .events = POLLIN };
	const struct kept_wait kept = { .epfd = c->epfd, .events = c->events, .n = (unsigned)c->n };
	const struct waits w = { .fds = &p,
				 .n = 1,
				 .deadline = deadline,
				 .mask = mask,
				 .ask = ask_epoll,
				 .sleep = c->exactly ? NULL : sleep_in_epoll,
				 .arg = c,
				 .kept = &kept };
	int r;

	do {
		r = waits_poll(&w);
	} while (!r && waits_left_us(deadline));
	return r;
}

/* It may get a channel while the thread waits. */
static bool is_plain_epoll(int epfd)
{
	return LIKELY(!waits_has(epfd)) && (LIKELY(waiters_pass(epfd)) || !waits_has(epfd));
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
	if (is_plain_epoll(epfd) || n <= 0)
		return next_fn()->epoll_pwait(epfd, events, n, ms, mask);
	struct epoll_call c = { .epfd = epfd, .n = n, .events = events };

	return epoll_until(&c, deadline_of_ms(ms), mask);
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int n, int ms)
{
	if (is_plain_epoll(epfd))
		return next_fn()->epoll_wait(epfd, events, n, ms);
	return epoll_pwait(epfd, events, n, ms, NULL);
}

/* Newer than the oldest glibc that this is built for. */
int epoll_pwait2(int epfd, struct epoll_event *events, int n, const struct timespec *timeout,
		 const sigset_t *mask);

EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int n, const struct timespec *timeout,
			const sigset_t *mask)
{
	if (is_plain_epoll(epfd))
		return next_fn()->epoll_pwait2(epfd, events, n, timeout, mask);
	if (n <= 0 || !is_time(timeout)) {
		errno = EINVAL;
		return -1;
	}
	struct epoll_call c = { .epfd = epfd, .n = n, .events = events, .exactly = timeout };

	return epoll_until(&c, waits_deadline(timeout), mask);
}

/* ---- select -------------------------------------------------------------------------------- */

#define SELECT_FDS 16

/* The sets of one call; each may be NULL. Programs may have longer ones than fd_set. */
struct sets {
	int n;
	fd_set *in, *out, *except;
};

static unsigned long word_of(const fd_set *set, int i)
{
	return set ? (unsigned long)set->fds_bits[i] : 0;
}

#define WORD_BITS (int)__NFDBITS

static bool any_channel_in(const struct sets *s)
{
	if (!s->in || s->n > WAITS_FDS)
		return false;
	for (int i = 0; i * WORD_BITS < s->n; i++) {
		if (s->in->fds_bits[i] &
		    (long)atomic_load_explicit(&waits_noted[i], memory_order_relaxed))
			return true;
	}
	return false;
}

/* How many there are; -1: too many. */
static int pollfds_of(const struct sets *s, struct pollfd *fds)
{
	int n = 0;

	for (int i = 0; i < s->n; i++) {
		unsigned long bit = 1ul << i % WORD_BITS;
		int word = i / WORD_BITS;
		short events = (short)((word_of(s->in, word) & bit ? POLLIN : 0) |
				       (word_of(s->out, word) & bit ? POLLOUT : 0) |
				       (word_of(s->except, word) & bit ? POLLPRI : 0));

		if (events && n == SELECT_FDS)
			return -1;
		if (events)
			fds[n++] = (struct pollfd){ .fd = i, .events = events };
	}
	return n;
}

static void clear(fd_set *set, int n)
{
	for (int i = 0; set && i * WORD_BITS < n; i++)
		set->fds_bits[i] = 0;
}

static int select_plainly(const struct sets *s, uint64_t deadline, const sigset_t *mask)
{
	bool entered = waiters_enter(-1);
	struct timespec t;
	int r;

	watch_settle(-1);
	if (kept_any())
		kept_sort(NULL);
	pthread_cleanup_push(waiters_leave, &entered);
	r = next_fn()->pselect(s->n, s->in, s->out, s->except, waits_left(deadline, &t), mask);
	pthread_cleanup_pop(1);
	return r;
}

/* Wait until one of the descriptors has something, then ask select(). What poll() tells beyond that
 * (an end of file of a descriptor that is in `except` alone) would make it ask again and again: the
 * rest of such a wait is plain. */
static int select_until(const struct sets *s, uint64_t deadline, const sigset_t *mask)
{
	struct pollfd fds[SELECT_FDS];
	struct waits w = { .fds = fds, .deadline = deadline, .mask = mask };
	int n = pollfds_of(s, fds), r;

	if (n < 0)
		return select_plainly(s, deadline, mask);
	w.n = (nfds_t)n;
	r = waits_poll(&w);
	if (r > 0)
		return select_plainly(s, deadline, mask);
	if (!r) {
		clear(s->in, s->n);
		clear(s->out, s->n);
		clear(s->except, s->n);
	}
	return r;
}

EXPORT int pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
		   const sigset_t *mask)
{
	const struct sets s = { n, in, out, except };

	if (LIKELY(!any_channel_in(&s)) || !is_time(timeout))
		return next_fn()->pselect(n, in, out, except, timeout, mask);
	return select_until(&s, waits_deadline(timeout), mask);
}

/* As Linux does, it leaves in *timeout what is left of it. */
EXPORT int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	const struct sets s = { n, in, out, except };
	struct timespec t;
	uint64_t deadline;
	int r;

	if (LIKELY(!any_channel_in(&s)) ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return next_fn()->select(n, in, out, except, timeout);
	if (timeout)
		t = (struct timespec){ .tv_sec = timeout->tv_sec + timeout->tv_usec / 1000000,
				       .tv_nsec = timeout->tv_usec % 1000000 * 1000 };
	deadline = waits_deadline(timeout ? &t : NULL);
	r = select_until(&s, deadline, NULL);
	if (timeout && waits_left(deadline, &t))
		*timeout = (struct timeval){ .tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000 };
	return r;
}

/* ---- what _FORTIFY_SOURCE makes of these ---------------------------------------------------- */

ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t room);

EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	return len > room ? next_fn()->__read_chk(fd, buf, len, room) : read(fd, buf, len);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t room)
{
	return room / sizeof(*fds) < n ? next_fn()->__poll_chk(fds, n, ms, room) : poll(fds, n, ms);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask, size_t room)
{
	return room / sizeof(*fds) < n ? next_fn()->__ppoll_chk(fds, n, timeout, mask, room)
				       : ppoll(fds, n, timeout, mask);
}
