/* SPDX-License-Identifier: BSD-3-Clause */
#include "shim_double.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include <linux/netlink.h>

#include "engine_fake.h"

#include "libc/next.h"
#include "libc/raw.h"
#include "libc/threads.h"
#include "libc/waits.h"

static struct feed *feed; /* this run's */

/* ---- descriptors ------------------------------------------------------------------------- */

static fdtab_entry chunk[FDTAB_CHUNK];
_Atomic(fdtab_entry *) fdtab[FDTAB_CHUNKS] = { chunk };

static struct {
	unsigned records; /* in its socket */
	bool open;
} fds[DOUBLE_FDS];

/* Nobody waits here. */
_Atomic unsigned waits_under_way;

void waits_note(int fd)
{
	(void)fd;
}

bool waits_reads(int fd, size_t len)
{
	(void)fd;
	(void)len;
	return false;
}

void waits_give(const void *event, size_t len)
{
	(void)event;
	(void)len;
}

_Atomic uint32_t waits_events, waits_changes;

uint32_t waits_epolls_of(int epfd)
{
	(void)epfd;
	return 0;
}

bool waits_polls(int fd)
{
	(void)fd;
	return false;
}

void waits_begin_outcome(void)
{
}

static int new_fd(void)
{
	for (int i = 0; i < DOUBLE_FDS; i++) {
		if (fds[i].open)
			continue;
		fds[i].open = true;
		fds[i].records = 0;
		return DOUBLE_FD + i;
	}
	return -EMFILE;
}

static unsigned *records_of(const struct fd_obj *o)
{
	return o->fd < DOUBLE_FD ? NULL : &fds[o->fd - DOUBLE_FD].records;
}

struct fd_obj *double_obj(int fd)
{
	return chunk[fd];
}

int double_some_fd(struct feed *f)
{
	unsigned at = feed_below(f, DOUBLE_FDS);

	for (unsigned i = 0; i < DOUBLE_FDS; i++)
		if (chunk[DOUBLE_FD + (at + i) % DOUBLE_FDS])
			return DOUBLE_FD + (int)((at + i) % DOUBLE_FDS);
	return -1;
}

void double_close(int fd)
{
	struct fd_obj *o = chunk[fd];

	if (o->cls->closing)
		o->cls->closing(o);
	chunk[fd] = NULL;
	fds[fd - DOUBLE_FD].open = false;
	o->fd = -1;
	if (o->cls->closed)
		o->cls->closed(o);
	fd_obj_put(o);
}

void double_read(int fd)
{
	unsigned *records = &fds[fd - DOUBLE_FD].records;

	*records -= *records != 0;
}

void fd_obj_init(struct fd_obj *o, const struct fd_class *cls)
{
	*o = (struct fd_obj){ .cls = cls, .refs = 1, .fd = -1, .wfd = -1, .fork_fd = -1 };
}

void fd_obj_put(struct fd_obj *o)
{
	CHECK(atomic_load(&o->refs));
	if (atomic_fetch_sub(&o->refs, 1) == 1)
		o->cls->free(o);
}

int fdtab_no_descriptor(int err)
{
	return err;
}

int fdtab_add(int fd, struct fd_obj *o)
{
	if (feed_rarely(feed, 32))
		return -EMFILE;
	CHECK(fd >= DOUBLE_FD && !chunk[fd]);
	o->fd = fd;
	o->nfds = 1;
	atomic_fetch_add(&o->refs, 1);
	chunk[fd] = o;
	return 0;
}

struct fd_obj *fdtab_get_slow(int fd)
{
	struct fd_obj *o = chunk[fd];

	if (o)
		atomic_fetch_add(&o->refs, 1);
	return o;
}

struct fd_obj *fdtab_peek_locked(int fd)
{
	return fd >= 0 && fd < DOUBLE_FDS ? chunk[fd] : NULL;
}

bool fdtab_is_locked_here(void)
{
	return false;
}

int fd_obj_pipe(struct fd_obj *o)
{
	o->wfd = feed_rarely(feed, 32) ? -EMFILE : new_fd();
	return o->wfd;
}

void fd_obj_revive(struct fd_obj *o)
{
	(void)o;
}

void fdtab_lock(void)
{
}

void fdtab_unlock(void)
{
}

bool fd_obj_is_programs_locked(const struct fd_obj *o)
{
	return o->nfds;
}

ssize_t fd_obj_send_locked(struct fd_obj *o, const void *buf, size_t len)
{
	unsigned *records = records_of(o);

	free(fuzz_copy(buf, len));
	if (!records)
		return -EBADF;
	if (*records == DOUBLE_FULL)
		return -EAGAIN;
	++*records;
	return (ssize_t)len;
}

ssize_t fd_obj_recv_locked(struct fd_obj *o, void *buf, size_t len)
{
	unsigned *records = records_of(o);
	size_t n = len < 16 ? len : 16; /* a record of a channel has 8 */

	if (!records)
		return -EBADF;
	if (!*records)
		return -EAGAIN;
	--*records;
	feed_fill(feed, buf, n);
	return (ssize_t)n;
}

ssize_t fd_obj_send(struct fd_obj *o, const void *buf, size_t len)
{
	return fd_obj_send_locked(o, buf, len);
}

ssize_t fd_obj_recv(struct fd_obj *o, void *buf, size_t len)
{
	return fd_obj_recv_locked(o, buf, len);
}

/* ---- the kernel -------------------------------------------------------------------------- */

static long no(int err)
{
	errno = err;
	return -1;
}

/* Netlink messages whose lengths may be right. */
static long kernel_says(void *buf, size_t room)
{
	size_t n = feed_length(feed, room < 2048 ? (uint32_t)room : 2048);

	feed_fill(feed, buf, n);
	if (n >= sizeof(struct nlmsghdr) && !feed_rarely(feed, 4)) {
		struct nlmsghdr h = { .nlmsg_len = (uint32_t)n,
				      .nlmsg_type = feed_rarely(feed, 2) ? NLMSG_DONE : 0x1400 };

		memcpy(buf, &h, sizeof(h));
	}
	return n ? (long)n : no(EAGAIN);
}

static long get_name(va_list ap)
{
	(void)va_arg(ap, long);
	struct sockaddr_nl *a = va_arg(ap, struct sockaddr_nl *);

	if (feed_rarely(feed, 16))
		return no(ENOBUFS);
	*a = (struct sockaddr_nl){ .nl_family = AF_NETLINK, .nl_pid = feed_u8(feed) };
	return 0;
}

static long send_to(va_list ap)
{
	(void)va_arg(ap, long);
	const void *buf = va_arg(ap, const void *);
	size_t n = va_arg(ap, size_t);

	free(fuzz_copy(buf, n)); /* all of it can be read */
	return feed_rarely(feed, 16) ? no(ENOBUFS) : (long)n;
}

static long receive(va_list ap)
{
	(void)va_arg(ap, long);
	void *buf = va_arg(ap, void *);

	return kernel_says(buf, va_arg(ap, size_t));
}

static long new_descriptor(void)
{
	int fd = feed_rarely(feed, 8) ? -EMFILE : new_fd();

	return fd < 0 ? no(-fd) : fd;
}

/* What stands in for syscall() in the shim's sources. */
long fuzz_syscall(long nr, ...);
long fuzz_syscall(long nr, ...)
{
	long ret = 0, fd;
	va_list ap;

	va_start(ap, nr);
	switch (nr) {
	case SYS_socket:
	case SYS_openat:
		ret = new_descriptor();
		break;
	case SYS_close:
		fd = va_arg(ap, long) & 0xffffffff;
		CHECK(fd >= DOUBLE_FD && fd < DOUBLE_FD + DOUBLE_FDS);
		fds[fd - DOUBLE_FD].open = false;
		break;
	case SYS_sendto:
		ret = send_to(ap);
		break;
	case SYS_recvfrom:
		ret = receive(ap);
		break;
	case SYS_getsockname:
		ret = get_name(ap);
		break;
	case SYS_fcntl:
		ret = feed_bool(feed) ? O_NONBLOCK : 0;
		break;
	case SYS_bind:
	case SYS_setsockopt:
	case SYS_gettid:
	case SYS_tgkill:
		break;
	default:
		ret = no(ENOSYS);
		break;
	}
	va_end(ap);
	return ret;
}

/* Programs read from their sockets, so there is room now. */
int fuzz_poll(struct pollfd *p, nfds_t n, int ms);
int fuzz_poll(struct pollfd *p, nfds_t n, int ms)
{
	(void)ms;
	if (!n) /* a wait for ever: a signal ends it */
		return (int)no(EINTR);
	CHECK(n == 1 && p->fd >= DOUBLE_FD);
	double_read(p->fd);
	return 1;
}

static ssize_t next_read(int fd, void *buf, size_t len)
{
	CHECK(fd >= DOUBLE_FD && len);
	*(uint8_t *)buf = 0;
	if (fds[fd - DOUBLE_FD].records) {
		fds[fd - DOUBLE_FD].records--;
		return 1;
	}
	return no(feed_bool(feed) ? EAGAIN : EINTR);
}

const struct next *next_fn(void)
{
	static const struct next fns = { .read = next_read };

	return &fns;
}

/* ---- helpers ----------------------------------------------------------------------------- */

static struct {
	void *(*fn)(void *);
	void *arg;
} helpers[16];
static unsigned helpers_n;

int helper_start(void *(*fn)(void *), void *arg)
{
	if (helpers_n == COUNT(helpers) || feed_rarely(feed, 16))
		return -EAGAIN;
	helpers[helpers_n].fn = fn;
	helpers[helpers_n++].arg = arg;
	return 0;
}

void double_run_helpers(void)
{
	while (helpers_n) {
		void *(*fn)(void *) = helpers[0].fn;
		void *arg = helpers[0].arg;

		memmove(helpers, helpers + 1, --helpers_n * sizeof(helpers[0]));
		fn(arg);
	}
}

int fuzz_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int fuzz_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	(void)c;
	pthread_mutex_unlock(m);
	if (helpers_n)
		double_run_helpers();
	else
		CHECK(fuzz_stack_settle()); /* else nobody would ever wake it */
	pthread_mutex_lock(m);
	return 0;
}

int fuzz_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t);
int fuzz_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
	(void)t;
	if (!helpers_n)
		return ETIMEDOUT;
	return fuzz_cond_wait(c, m);
}

int cancel_allow(void)
{
	return 0;
}

void cancel_forbid(int was)
{
	(void)was;
}

/* ---- life -------------------------------------------------------------------------------- */

void double_begin(struct feed *f)
{
	feed = f;
}

void double_end(void)
{
	for (int i = 0; i < DOUBLE_FDS; i++)
		if (chunk[DOUBLE_FD + i])
			double_close(DOUBLE_FD + i);
	double_run_helpers();
	for (int i = 0; i < DOUBLE_FDS; i++)
		CHECK(!fds[i].open);
}
