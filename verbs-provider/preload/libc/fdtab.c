/* SPDX-License-Identifier: BSD-3-Clause */
#include "fdtab.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "base/log.h"
#include "loader/loader.h"
#include "raw.h"
#include "threads.h"
#include "waits.h"

_Atomic(fdtab_entry *) fdtab[FDTAB_CHUNKS];

/* Held for a moment: who meets it looks again before it sleeps. */
static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static int top; /* no entry at or above */
/* A vfork()ed child runs on our memory with descriptors of its own: the table is not its to change.
 */
static pid_t owner;
static unsigned forks; /* as in fd_obj */

/* This thread has the lock, or is about to take it. A signal that comes during a system call inside
 * finds it so, and its handler may fork. */
static _Thread_local volatile bool locked;

void fdtab_lock(void)
{
	locked = true;
	pthread_mutex_lock(&lock);
}

void fdtab_unlock(void)
{
	pthread_mutex_unlock(&lock);
	locked = false;
}

void fd_obj_init(struct fd_obj *o, const struct fd_class *cls)
{
	*o = (struct fd_obj){ .cls = cls, .refs = 1, .fd = -1, .wfd = -1, .fork_fd = -1 };
}

/* NULL: there is no chunk. fd is below FDTAB_MAX. */
static fdtab_entry *slot(int fd)
{
	unsigned n = (unsigned)fd;
	fdtab_entry *chunk = atomic_load_explicit(&fdtab[n / FDTAB_CHUNK], memory_order_acquire);

	return chunk ? &chunk[n % FDTAB_CHUNK] : NULL;
}

static struct fd_obj *entry(int fd)
{
	fdtab_entry *e = slot(fd);

	return e ? atomic_load_explicit(e, memory_order_relaxed) : NULL;
}

/* Under the lock. */
static void set_entry(int fd, struct fd_obj *o)
{
	atomic_store_explicit(slot(fd), o, memory_order_relaxed);
}

/* Under the lock. False: no memory. */
static bool make_chunk(int fd)
{
	_Atomic(fdtab_entry *) *at = &fdtab[(unsigned)fd / FDTAB_CHUNK];
	fdtab_entry *chunk;

	if (slot(fd))
		return true;
	chunk = calloc(FDTAB_CHUNK, sizeof(*chunk));
	/* release: pairs with the acquires in slot() and fdtab_get() */
	atomic_store_explicit(at, chunk, memory_order_release);
	return chunk;
}

static bool is_file_of(const struct fd_obj *o, int fd)
{
	struct stat st;

	return !raw_fstat(fd, &st) && st.st_dev == o->dev && st.st_ino == o->ino;
}

/* The program's end of the pipe is the same file, and the program may have put it there (dup2). */
static bool is_wfd(const struct fd_obj *o)
{
	return o->wfd >= 0 && is_file_of(o, o->wfd) &&
	       (raw_fcntl(o->wfd, F_GETFL, 0) & O_ACCMODE) != O_RDONLY;
}

static void drop_wfd(struct fd_obj *o)
{
	if (is_wfd(o))
		raw_close(o->wfd);
	o->wfd = -1;
}

void fd_obj_put(struct fd_obj *o)
{
	/* acq_rel: the last holder sees what the others did to the object. */
	if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
		return;
	drop_wfd(o);
	o->cls->free(o);
}

static bool mark_matches(const struct fd_obj *o, int fd)
{
	int want = o->cls->open_flags;

	if (!is_file_of(o, fd))
		return false;
	return !want || (raw_fcntl(fd, F_GETFL, 0) & want) == want;
}

/* Take fd out of the table; its reference goes to the caller if it was the last descriptor. */
static struct fd_obj *forget_locked(int fd)
{
	struct fd_obj *o = entry(fd);

	set_entry(fd, NULL);
	if (--o->nfds == 0) {
		o->fd = -1;
		return o;
	}
	if (o->fd == fd) {
		o->fd = -1;
		for (int i = 0; i < top && o->fd < 0; i++)
			if (entry(i) == o)
				o->fd = i;
	}
	fd_obj_put(o); /* not the last reference: another descriptor has one */
	return NULL;
}

bool fdtab_is_ours(void)
{
	return owner == getpid();
}

int fdtab_no_descriptor(int err)
{
	static _Atomic bool said;
	struct rlimit of = { 0 };

	if ((err != -EMFILE && err != -ENFILE) ||
	    atomic_exchange_explicit(&said, true, memory_order_relaxed))
		return err;
	getrlimit(RLIMIT_NOFILE, &of);
	if (err == -EMFILE)
		uw_log("no file descriptor is left of the %llu that this process may have: "
		       "raise the limit (ulimit -n)",
		       (unsigned long long)of.rlim_cur);
	else
		uw_log("this machine has no file descriptor left: raise "
		       "/proc/sys/fs/file-max");
	return err;
}

int fdtab_add(int fd, struct fd_obj *o)
{
	struct fd_obj *stale = NULL;
	struct stat st;

	if (fd < 0 || (unsigned)fd >= FDTAB_MAX)
		return -EMFILE;
	loader_watch_forks();
	fdtab_lock();
	if (!make_chunk(fd)) {
		fdtab_unlock();
		return -ENOMEM;
	}
	if (!owner)
		owner = getpid();
	if (entry(fd))
		stale = forget_locked(fd);
	if (!o->nfds && !raw_fstat(fd, &st)) {
		o->dev = st.st_dev;
		o->ino = st.st_ino;
	}
	if (!o->nfds++)
		o->fd = fd;
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
	set_entry(fd, o);
	if (fd >= top)
		top = fd + 1;
	fdtab_unlock();
	if (stale)
		fdtab_closed(stale);
	return 0;
}

struct fd_obj *fdtab_get_slow(int fd)
{
	struct fd_obj *o, *stale = NULL;

	fdtab_lock();
	o = entry(fd);
	if (o && !mark_matches(o, fd)) {
		stale = fdtab_is_ours() ? forget_locked(fd) : NULL;
		o = NULL;
	}
	if (o)
		atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
	fdtab_unlock();
	if (stale)
		fdtab_closed(stale);
	return o;
}

struct fd_obj *fdtab_peek_locked(int fd)
{
	return (unsigned)fd < FDTAB_MAX ? entry(fd) : NULL;
}

/* Does not compare the open file. */
static struct fd_obj *get_unchecked(int fd)
{
	struct fd_obj *o;

	fdtab_lock();
	o = entry(fd);
	if (o)
		atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
	fdtab_unlock();
	return o;
}

struct fd_obj *fdtab_get_to_write(int fd, const void *buf, size_t len)
{
	struct fd_obj *o = fdtab_has(fd) ? get_unchecked(fd) : NULL;

	if (LIKELY(!o))
		return NULL;
	if (o->cls->is_meant && o->cls->is_meant(o, buf, len))
		return o;
	fd_obj_put(o);
	return fdtab_get_slow(fd);
}

void fdtab_closing(int fd)
{
	struct fd_obj *o = fdtab_get(fd);

	if (LIKELY(!o))
		return;
	if (o->cls->closing && fdtab_is_ours()) {
		int was = cancel_off();

		o->cls->closing(o);
		cancel_restore(was);
	}
	fd_obj_put(o);
}

struct fd_obj *fdtab_forget(int fd)
{
	struct fd_obj *last = NULL;

	if (LIKELY((unsigned)fd >= FDTAB_MAX || !entry(fd)) || !fdtab_is_ours())
		return NULL;
	fdtab_lock();
	if (entry(fd))
		last = forget_locked(fd);
	fdtab_unlock();
	return last;
}

void fdtab_closed(struct fd_obj *o)
{
	if (!o->cls->outlives) {
		fdtab_lock();
		drop_wfd(o);
		fdtab_unlock();
	}
	if (o->cls->closed)
		o->cls->closed(o);
	fd_obj_put(o);
}

void fdtab_dup(int fd, int copy)
{
	struct fd_obj *o;

	if (copy < 0 || copy == fd)
		return;
	if (fdtab_is_ours())
		waits_dup(fd, copy);
	o = fdtab_get(fd);
	if (!o) {
		struct fd_obj *last = fdtab_forget(copy); /* dup2() over one of ours */

		if (last)
			fdtab_closed(last);
		return;
	}
	if (fdtab_is_ours())
		fdtab_add(copy, o); /* beyond the table the copy is a plain socket */
	fd_obj_put(o);
}

/* ---- pipes ------------------------------------------------------------------------------ */

/* High, not to disturb programs that count on low numbers. */
#define WFD_MIN 200

static int move_up(int fd)
{
	int high = raw_fcntl(fd, F_DUPFD_CLOEXEC, WFD_MIN);

	if (high >= 0)
		raw_close(fd);
	return high >= 0 ? high : fd;
}

/* An end of our own of the pipe that fd is an end of. It reads, too: what is written to it always
 * finds a reader, while none would be a SIGPIPE. -1: there is no /proc. */
static int open_end(int fd)
{
	char path[32];
	int end;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	end = raw_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return end >= 0 ? move_up(end) : -1;
}

int fd_obj_pipe(struct fd_obj *o)
{
	int end[2];

	if (syscall(SYS_pipe2, end, O_CLOEXEC))
		return fdtab_no_descriptor(-errno);
	o->forks = forks;
	o->wfd = open_end(end[0]);
	o->wfd_reads = o->wfd >= 0;
	if (o->wfd_reads) {
		raw_close(end[1]);
	} else {
		raw_fcntl(end[1], F_SETFL, O_NONBLOCK);
		o->wfd = move_up(end[1]);
	}
	return end[0];
}

/* The program may have closed our end: it does not know whose that was. */
static void regain_wfd(struct fd_obj *o)
{
	if (is_wfd(o))
		return;
	o->wfd = open_end(o->fd);
	o->wfd_reads = o->wfd >= 0;
}

static ssize_t write_end(const struct fd_obj *o, const void *buf, size_t len)
{
	ssize_t n = syscall(SYS_write, o->wfd, buf, len);

	return n < 0 ? -errno : n;
}

static ssize_t pipe_write(struct fd_obj *o, const void *buf, size_t len)
{
	ssize_t n;

	if (o->wfd < 0 || !is_file_of(o, o->wfd))
		regain_wfd(o);
	n = write_end(o, buf, len);
	if (n == -EBADF) { /* it is, but not to be written */
		regain_wfd(o);
		n = write_end(o, buf, len);
	}
	return n;
}

/* A forked child finds the pipes of the table and makes others for them. One whose last known
 * number was closed before is the parent's for good. */
static bool is_inherited(const struct fd_obj *o)
{
	return o->forks != forks;
}

bool fd_obj_is_programs_locked(const struct fd_obj *o)
{
	return o->fd >= 0 && !is_inherited(o) && mark_matches(o, o->fd);
}

void fd_obj_revive(struct fd_obj *o)
{
	fdtab_lock();
	if (fd_obj_is_programs_locked(o))
		regain_wfd(o);
	fdtab_unlock();
}

/* Whatever the program's end is set to, this does not block. RWF_NOWAIT on pipes is newer than
 * Debian 12's kernel; a file description of our own does not need it. */
static ssize_t pipe_read(struct fd_obj *o, void *buf, size_t len)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	ssize_t n = syscall(SYS_preadv2, o->fd, &iov, 1, -1L, -1L, RWF_NOWAIT);
	char path[32];
	int fd;

	if (n >= 0 || errno != EOPNOTSUPP)
		return n < 0 ? -errno : n;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", o->fd);
	fd = raw_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = syscall(SYS_read, fd, buf, len);
	n = n < 0 ? -errno : n;
	raw_close(fd);
	return n;
}

/* The program's end is compared where ours does not do: only with ours is a closed one harmless,
 * and a pipe that nobody empties would keep what is sent. */
ssize_t fd_obj_send_locked(struct fd_obj *o, const void *buf, size_t len)
{
	ssize_t n = -EBADF;

	waits_change();
	if (o->wfd_reads && !is_inherited(o) && is_file_of(o, o->wfd))
		n = write_end(o, buf, len);
	if (n < 0)
		n = fd_obj_is_programs_locked(o) ? pipe_write(o, buf, len) : -EBADF;
	waits_count();
	return n;
}

/* What was sent before the program's end was closed unseen can be taken out of ours. */
ssize_t fd_obj_recv_locked(struct fd_obj *o, void *buf, size_t len)
{
	ssize_t n;

	if (fd_obj_is_programs_locked(o))
		return pipe_read(o, buf, len);
	if (!o->wfd_reads || is_inherited(o) || !is_wfd(o))
		return -EBADF;
	n = syscall(SYS_read, o->wfd, buf, len);
	return n < 0 ? -errno : n;
}

ssize_t fd_obj_send(struct fd_obj *o, const void *buf, size_t len)
{
	ssize_t n;

	fdtab_lock();
	n = fd_obj_send_locked(o, buf, len);
	fdtab_unlock();
	return n;
}

ssize_t fd_obj_recv(struct fd_obj *o, void *buf, size_t len)
{
	ssize_t n;

	fdtab_lock();
	n = fd_obj_recv_locked(o, buf, len);
	fdtab_unlock();
	return n;
}

bool fdtab_is_locked_here(void)
{
	return locked;
}

void fdtab_fork_free_lock(void)
{
	pthread_mutex_init(&lock, NULL);
	locked = false;
}

void fdtab_fork_prepare(void)
{
	fdtab_lock();
}

void fdtab_fork_parent(void)
{
	fdtab_unlock();
}

static int new_file(struct fd_obj *o, bool nonblock)
{
	int fd;

	drop_wfd(o);
	fd = fd_obj_pipe(o);
	if (fd >= 0 && nonblock)
		raw_fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

/* The child's numbers keep their meaning, but over files of its own: what it signals or reads must
 * not reach the parent. */
static void remake(int fd, struct fd_obj *o)
{
	int fdfl = raw_fcntl(fd, F_GETFD, 0);

	if (o->fork_fd < 0)
		o->fork_fd = new_file(o, raw_fcntl(fd, F_GETFL, 0) & O_NONBLOCK);
	if (o->fork_fd >= 0)
		syscall(SYS_dup3, o->fork_fd, fd, fdfl & FD_CLOEXEC ? O_CLOEXEC : 0);
}

void fdtab_fork_child(void)
{
	struct fd_obj *o;
	struct stat st;

	owner = getpid();
	forks++;
	for (int fd = 0; fd < top; fd++) {
		o = entry(fd);
		if (o && o->cls->is_pipe && mark_matches(o, fd))
			remake(fd, o);
	}
	for (int fd = 0; fd < top; fd++) {
		o = entry(fd);
		if (!o || o->fork_fd < 0)
			continue;
		if (!raw_fstat(o->fork_fd, &st)) {
			o->dev = st.st_dev;
			o->ino = st.st_ino;
		}
		raw_close(o->fork_fd);
		o->fork_fd = -1;
	}
	fdtab_unlock();
	for (int fd = 0; fd < top; fd++) {
		o = entry(fd);
		if (o && o->fd == fd && o->cls->forked)
			o->cls->forked(o);
	}
}
