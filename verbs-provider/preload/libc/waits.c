/* SPDX-License-Identifier: BSD-3-Clause */
#include "waits.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "clock.h"
#include "loader/loader.h"
#include "next.h"
#include "raw.h"
#include "threads.h"
#include "uverbs/kept.h"
#include "uverbs/watch.h"
#include "waiters.h"

#define FEW 30u /* descriptors for which there is room on the stack */
/* A look ends after so long for a look at the program's descriptors, whatever comes for the stack.
 */
#define LOOK_US 1000u

_Atomic uint64_t waits_noted[WAITS_FDS / 64];
static _Atomic uint64_t nonblocking[WAITS_FDS / 64];
static _Atomic uint64_t epolls[WAITS_FDS / 64];
static _Atomic uint32_t epolls_of[WAITS_FDS];
_Atomic uint32_t waits_events;
_Atomic uint32_t waits_changes;
/* The program has closed a descriptor of the link's, which it does not know: wait plainly from now
 * on. */
static _Atomic bool link_lost;

static void set_bit(_Atomic uint64_t *set, unsigned n, bool on)
{
	const uint64_t bit = (uint64_t)1 << n % 64;

	if (on)
		atomic_fetch_or_explicit(&set[n / 64], bit, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&set[n / 64], ~bit, memory_order_relaxed);
}

void waits_note(int fd)
{
	if ((unsigned)fd >= WAITS_FDS)
		return;
	set_bit(nonblocking, (unsigned)fd, false);
	set_bit(waits_noted, (unsigned)fd, true);
}

static bool has_bit(const _Atomic uint64_t *set, unsigned n)
{
	return atomic_load_explicit(&set[n / 64], memory_order_relaxed) >> n % 64 & 1;
}

void waits_note_epoll(int fd)
{
	if (waits_has(fd) && has_bit(epolls, (unsigned)fd))
		return;
	waits_note(fd);
	if (waits_has(fd))
		set_bit(epolls, (unsigned)fd, true);
	/* who begins to wait with it counts, or is seen by waiters_none_else() */
	atomic_thread_fence(memory_order_seq_cst);
}

void waits_forget(int fd)
{
	if (!waits_has(fd))
		return;
	if (has_bit(epolls, (unsigned)fd)) {
		watch_settle(fd); /* its file may live on */
		set_bit(epolls, (unsigned)fd, false);
		atomic_fetch_add_explicit(&epolls_of[fd], 1, memory_order_relaxed);
	}
	set_bit(waits_noted, (unsigned)fd, false);
	waits_change();
}

uint32_t waits_epolls_of(int epfd)
{
	return (unsigned)epfd < WAITS_FDS
		       ? atomic_load_explicit(&epolls_of[epfd], memory_order_relaxed)
		       : 0;
}

void waits_dup(int fd, int copy)
{
	waits_forget(copy);
	if (!waits_has(fd)) {
		waiters_note_unseen(fd); /* it may be epoll's, and get a channel */
		waiters_note_unseen(copy);
		return;
	}
	if (!has_bit(epolls, (unsigned)fd)) {
		waits_note(copy);
		return;
	}
	waits_note_epoll(copy);
	waiters_note_nested();
}

bool waits_is_nonblocking(int fd)
{
	return waits_has(fd) && has_bit(nonblocking, (unsigned)fd);
}

void waits_set_nonblocking(int fd, bool on)
{
	if (!waits_has(fd))
		return;
	if (on) {
		set_bit(nonblocking, (unsigned)fd, true);
		return;
	}
	/* Its duplicates have other numbers. Of the rest the next read() finds out. */
	for (unsigned i = 0; i < WAITS_FDS / 64; i++)
		atomic_store_explicit(&nonblocking[i], 0, memory_order_relaxed);
}

/* ---- the engine ---------------------------------------------------------------------------- */

/* NULL: there is none, or none any more. With an engine, loader_helper_end() is due. */
static struct uw_engine *enter(void)
{
	struct uw_engine *e;

	if (!loader_is_open() || !loader_helper_begin())
		return NULL;
	e = loader_engine();
	if (!e)
		loader_helper_end();
	return e;
}

static bool is_elsewhere(void)
{
	struct uw_engine *e = enter();
	bool yes;

	if (!e)
		return false;
	yes = loader_api()->wait_elsewhere(e);
	loader_helper_end();
	return yes;
}

/* Only while the thread looks, with all signals blocked but for a wait of no time. */
static _Thread_local const struct waits *looking;

#define KERNEL_SIGNALS sizeof(uint64_t) /* octets of the kernel's sets of signals */

static bool handler_is_due(const sigset_t *mask)
{
	uint64_t pending = 0, blocked;

	memcpy(&blocked, mask, sizeof(blocked));
	return syscall(SYS_rt_sigpending, &pending, KERNEL_SIGNALS) || pending & ~blocked;
}

bool waits_reads(int fd, size_t len)
{
	const struct waits_reader *reader = looking ? looking->reader : NULL;

	return reader && reader->fd == fd && !reader->got && reader->room >= len &&
	       !handler_is_due(reader->mask);
}

void waits_give(const void *event, size_t len)
{
	memcpy(&looking->reader->event, event, len);
	looking->reader->got = len;
	waits_count();
}

bool waits_polls(int fd)
{
	const struct kept_wait *k = looking ? looking->kept : NULL;

	for (unsigned i = 0; k && k->epfd < 0 && i < k->n; i++) {
		if (k->fds[i].fd == fd && k->fds[i].events & POLLIN)
			return true;
	}
	return false;
}

/* False: wait plainly. */
static bool look(struct uw_wait *w, uint64_t limit_us, const struct waits *of)
{
	struct uw_engine *e = enter();
	bool can;

	if (!e)
		return false;
	looking = of;
	waiters_look(true);
	can = loader_api()->wait_look(e, w, limit_us);
	waiters_look(false);
	looking = NULL;
	loader_helper_end();
	return can;
}

static enum uw_wait_how begin(struct uw_wait *w)
{
	struct uw_engine *e = enter();
	enum uw_wait_how how;

	if (!e)
		return UW_WAIT_PLAINLY;
	how = loader_api()->wait_begin(e, w);
	loader_helper_end();
	return how;
}

/* Also where the thread is cancelled. errno is that of the wait. */
static void end(void *arg)
{
	struct uw_engine *e = enter();
	int err = errno;

	(void)arg;
	if (!e)
		return;
	loader_api()->wait_end(e);
	loader_helper_end();
	errno = err;
}

static void say_plain(bool on)
{
	struct uw_engine *e = enter();

	if (!e)
		return;
	loader_api()->wait_plainly(e, on);
	loader_helper_end();
}

static _Thread_local bool plain; /* the thread has said that it waits plainly */

static void plain_ends(void *arg)
{
	(void)arg;
	plain = false;
	say_plain(false);
}

/* A handler may have left the last wait by a jump. */
static void plain_begins(void)
{
	if (!plain)
		say_plain(true);
	plain = true;
}

static void done(const struct uw_wait *w)
{
	struct uw_engine *e = enter();

	if (!e)
		return;
	loader_api()->wait_done(e, w);
	loader_helper_end();
}

/* ---- time ---------------------------------------------------------------------------------- */

uint64_t waits_deadline(const struct timespec *timeout)
{
	if (!timeout || timeout->tv_sec > INT32_MAX)
		return WAITS_NO_END;
	if (!timeout->tv_sec && !timeout->tv_nsec)
		return 0;
	return preload_now_us() + (uint64_t)timeout->tv_sec * 1000000 +
	       ((uint64_t)timeout->tv_nsec + 999) / 1000;
}

uint64_t waits_left_us(uint64_t deadline)
{
	uint64_t now;

	if (!deadline || deadline == WAITS_NO_END)
		return deadline;
	now = preload_now_us();
	return deadline > now ? deadline - now : 0;
}

struct timespec *waits_left(uint64_t deadline, struct timespec *t)
{
	uint64_t us = waits_left_us(deadline);

	*t = (struct timespec){ .tv_sec = (time_t)(us / 1000000),
				.tv_nsec = (long)(us % 1000000 * 1000) };
	return us == WAITS_NO_END ? NULL : t;
}

/* ---- waiting ------------------------------------------------------------------------------- */

static int poll_until(struct pollfd *fds, nfds_t n, uint64_t deadline, const sigset_t *mask)
{
	struct timespec t;

	return next_fn()->ppoll(fds, n, waits_left(deadline, &t), mask);
}

/* The wait's result where ppoll() returned r. */
static int told(const struct waits *w, int r)
{
	return r > 0 && w->ask ? w->ask(w->arg, w->mask) : r;
}

static int poll_plainly(const struct waits *w)
{
	if (w->sleep)
		return w->sleep(w->arg, w->deadline, w->mask);
	return told(w, poll_until(w->fds, w->n, w->deadline, w->mask));
}

/* What this wait does not tell of goes into the pipes. */
static void sort_kept(const struct kept_wait *of)
{
	if (kept_any())
		kept_sort(of);
}

/* The kernel reported `ready` descriptors. */
static int with_kept(const struct waits *w, int ready)
{
	return ready >= 0 && w->kept && kept_any() ? kept_tell(w->kept, ready) : ready;
}

static int poll_now(const struct waits *w)
{
	sort_kept(w->kept);
	return with_kept(w,
			 w->ask ? w->ask(w->arg, w->mask) : poll_until(w->fds, w->n, 0, w->mask));
}

static int sleep_plainly(const struct waits *w)
{
	int r;

	plain_begins();
	pthread_cleanup_push(plain_ends, NULL);
	r = poll_plainly(w);
	pthread_cleanup_pop(1);
	return r;
}

ssize_t waits_read_plainly(int fd, void *buf, size_t len)
{
	bool entered = waiters_enter(-1);
	ssize_t n;

	watch_settle(-1);
	sort_kept(NULL);
	pthread_cleanup_push(waiters_leave, &entered);
	plain_begins();
	pthread_cleanup_push(plain_ends, NULL);
	n = next_fn()->read(fd, buf, len);
	pthread_cleanup_pop(1);
	pthread_cleanup_pop(1);
	return n;
}

/* Take out of the descriptors' results what is the program's; n of ppoll(). */
static int results(struct pollfd *to, const struct pollfd *from, nfds_t n)
{
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		to[i].revents = from[i].revents;
		ready += from[i].revents != 0;
	}
	return ready;
}

/* Eventfds have no type of file, as few others have. */
static bool is_eventfd(int fd)
{
	struct stat st;

	return !raw_fstat(fd, &st) && !(st.st_mode & S_IFMT);
}

/* Peers have it as well, and could have made it a blocking one. */
static void drain(int fd)
{
	uint64_t rings;
	struct iovec iov = { .iov_base = &rings, .iov_len = sizeof(rings) };

	if (is_eventfd(fd))
		syscall(SYS_preadv2, fd, &iov, 1, -1L, -1L, RWF_NOWAIT);
	else
		atomic_store_explicit(&link_lost, true, memory_order_relaxed);
}

/* An interface that went down is an error of its socket, and would end each sleep. */
static void forget_error(int fd)
{
	socklen_t n = sizeof(int);
	int error;

	if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &n))
		atomic_store_explicit(&link_lost, true, memory_order_relaxed);
}

/* The first of the link's descriptors is an eventfd, the others are sockets. poll() passes over
 * those that are -1. */
static void heed(const struct pollfd *own)
{
	if (own[0].revents)
		drain(own[0].fd);
	for (unsigned i = 1; i < UW_WAIT_FDS; i++) {
		if (own[i].revents & ~POLLIN)
			forget_error(own[i].fd);
	}
}

/* 0: it was the engine's, or the time is over. */
static int sleep_with(const struct waits *w, const struct uw_wait *how)
{
	struct pollfd fds[FEW + UW_WAIT_FDS], *own = fds + w->n;
	int r;

	memcpy(fds, w->fds, w->n * sizeof(fds[0]));
	for (unsigned i = 0; i < UW_WAIT_FDS; i++)
		own[i] = (struct pollfd){ .fd = how->fd[i], .events = POLLIN };
	pthread_cleanup_push(end, NULL);
	r = poll_until(fds, w->n + UW_WAIT_FDS, w->deadline, w->mask);
	/* Not after the end: another thread may wait by then, and its ring would be taken. */
	if (r > 0)
		heed(own);
	pthread_cleanup_pop(1);
	if (r <= 0)
		return r;
	return told(w, results(w->fds, fds, w->n));
}

/* Sleep once, in one of the ways. 0: look again. */
static int sleep_once(const struct waits *w, struct uw_wait *how)
{
	if (atomic_load_explicit(&link_lost, memory_order_relaxed))
		return poll_plainly(w);
	switch (begin(how)) {
	case UW_WAIT_PLAINLY:
		return sleep_plainly(w);
	case UW_WAIT_SLEEP:
		return sleep_with(w, how);
	case UW_WAIT_AGAIN:
		break;
	}
	return 0;
}

static uint32_t events(void)
{
	return atomic_load_explicit(&waits_events, memory_order_acquire);
}

/* The program's descriptors are asked where one may have something: after an event, and now and
 * then. A sleep asks them anyway. */
static int ask_after_look(const struct waits *w, struct uw_wait *how, uint64_t *asked_us)
{
	uint64_t now = preload_now_us();

	if (events() == how->seen && now - *asked_us < LOOK_US)
		return 0;
	how->seen = events();
	*asked_us = now;
	/* ppoll() first: epoll_pwait() lets no signal in where it does not wait */
	return told(w, poll_until(w->fds, w->n, 0, w->mask));
}

static int look_and_sleep(const struct waits *w, struct uw_wait *how)
{
	uint64_t asked_us = preload_now_us();
	int r;

	do {
		uint64_t us = waits_left_us(w->deadline);

		if (!look(how, us < LOOK_US ? us : LOOK_US, w))
			return poll_plainly(w);
		if (w->reader && w->reader->got)
			return 1;
		/* The kernel had nothing when this wait began. */
		sort_kept(w->kept);
		r = with_kept(w, 0);
		if (!r)
			r = ask_after_look(w, how, &asked_us);
		if (!r && waits_left_us(w->deadline))
			r = sleep_once(w, how);
	} while (!r && waits_left_us(w->deadline));
	return r;
}

static void restore_signals(void *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* No handler runs inside the stack: it could leave it by a jump, and keep the stack's lock for
 * ever. But for those of the thread's own faults, which blocked would kill. */
static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

/* A signal must end the wait: one whose handler ran during a look would be forgotten. So signals
 * are for ppoll() to let in. */
static int wait_masked(const struct waits *w, struct uw_wait *how)
{
	struct waits masked = *w;
	uint32_t at_first = how->seen;
	sigset_t before;
	int r;

	block_signals(&before);
	if (!w->mask)
		masked.mask = &before;
	if (w->reader) {
		w->reader->mask = &before;
		masked.sleep = NULL; /* read() lets no signals in */
	}
	pthread_cleanup_push(restore_signals, &before);
	r = look_and_sleep(&masked, how);
	how->seen = at_first;
	if (r > 0)
		done(how);
	pthread_cleanup_pop(1);
	return r;
}

/* ---- yielding ------------------------------------------------------------------------------ */

_Atomic unsigned waits_under_way;
_Thread_local bool waits_for_outcome;

/* Other allocators yield while they wait for a lock of their own. The stack allocates, so it cannot
 * be run from there. */
static bool allocator_is_libcs(void)
{
	Dl_info allocator, libc;

	return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &allocator) &&
	       dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc) &&
	       allocator.dli_fbase == libc.dli_fbase;
}

void waits_begin_outcome(void)
{
	if (!waits_for_outcome)
		waits_for_outcome = allocator_is_libcs();
}

void waits_yield(void)
{
	static _Thread_local bool inside; /* the stack yields as well */
	struct uw_engine *e;

	if (inside || !atomic_load_explicit(&waits_under_way, memory_order_relaxed))
		return;
	e = enter();
	if (!e)
		return;
	inside = true;
	loader_api()->wait_yield(e);
	inside = false;
	loader_helper_end();
}

/* ---- the ways to wait ------------------------------------------------------------------------ */

/* A wait of no time is one round of the stack, so that a program which only asks now and then is
 * served. Signals are let in, since programs ask in a loop: to block them takes two system calls
 * (doc/adr/0030). */
static int poll_round(const struct waits *w, struct uw_wait *how)
{
	look(how, 0, w);
	return poll_now(w);
}

/* First the descriptors, since an event that came while the program polled its queues would not end
 * a look. */
static int poll_driving(const struct waits *w)
{
	struct uw_wait how = { .events = &waits_events };
	int r;

	how.seen = events();
	if (!w->deadline)
		return poll_round(w, &how);
	if (is_elsewhere())
		return sleep_plainly(w);
	r = poll_now(w);
	if (r)
		return r;
	return wait_masked(w, &how);
}

int waits_poll(const struct waits *w)
{
	int epfd = w->kept ? w->kept->epfd : -1;
	bool entered = waiters_enter(epfd);
	int r;

	if (!w->reader)
		waiters_set_epoll(epfd);
	watch_settle(epfd);
	pthread_cleanup_push(waiters_leave, &entered);
	r = kept_any() ? poll_now(w) : 0;
	if (!r && (w->n > FEW || atomic_load_explicit(&link_lost, memory_order_relaxed)))
		r = poll_plainly(w);
	else if (!r)
		r = poll_driving(w);
	pthread_cleanup_pop(1);
	return r;
}
