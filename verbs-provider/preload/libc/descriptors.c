/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libc functions that take a descriptor, or make one of netlink's. For a descriptor that is not
 * ours a wrapper costs one look-up in an array and calls libc's function.
 */
/* Both would rename the functions that are defined here. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/netlink.h>

#include "fdtab.h"
#include "loader/loader.h"
#include "netlink/netlink.h"
#include "next.h"
#include "nodes.h"
#include "raw.h"
#include "threads.h"
#include "uverbs/watch.h"
#include "waits.h"

#define EXPORT __attribute__((visibility("default")))

static long result(long r)
{
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

/* ---- calls on descriptors --------------------------------------------------------------- */

bool fd_is_node(int fd)
{
	struct fd_obj *o = fdtab_get(fd);
	bool yes = o && o->cls->is_cdev;

	if (o)
		fd_obj_put(o);
	return yes;
}

#define WRAP_FSTAT(name, type)                                                                     \
	EXPORT int name(int fd, struct type *st)                                                   \
	{                                                                                          \
		if (UNLIKELY(fd_is_node(fd))) {                                                    \
			node_stat((struct stat *)st);                                              \
			return 0;                                                                  \
		}                                                                                  \
		return next_fn()->name(fd, st);                                                    \
	}

WRAP_FSTAT(fstat, stat)
WRAP_FSTAT(fstat64, stat64)

/* What programs built for a glibc before 2.33 call. */
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);

EXPORT int __fxstat(int version, int fd, struct stat *st)
{
	(void)version; /* 64-bit machines have one only */
	return fstat(fd, st);
}

EXPORT int __fxstat64(int version, int fd, struct stat64 *st)
{
	(void)version;
	return fstat64(fd, st);
}

EXPORT int socket(int domain, int type, int protocol)
{
	if (UNLIKELY(domain == AF_NETLINK && protocol == NETLINK_RDMA))
		return (int)result(netlink_open(type));
	return next_fn()->socket(domain, type, protocol);
}

static void put_obj(void *o)
{
	fd_obj_put(o);
}

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	struct fd_obj *o = fdtab_get_to_write(fd, buf, len);
	ssize_t n;
	int was;

	if (LIKELY(!o))
		return next_fn()->write(fd, buf, len);
	was = cancel_off();
	pthread_cleanup_push(put_obj, o); /* RDMA_USER_CM_CMD_GET_EVENT waits cancellably */
	n = o->cls->write ? o->cls->write(o, fd, buf, len) : -EINVAL;
	pthread_cleanup_pop(1);
	cancel_restore(was);
	return result(n);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct fd_obj *o = fdtab_get(fd);
	va_list ap;
	void *arg;
	int r, was;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (LIKELY(!o))
		return next_fn()->ioctl(fd, request, arg);
	if (!o->cls->ioctl) {
		r = next_fn()->ioctl(fd, request, arg);
		if (!r && request == FIONBIO)
			waits_set_nonblocking(fd, *(const int *)arg);
		fd_obj_put(o);
		return r;
	}
	was = cancel_off();
	r = o->cls->ioctl(o, request, arg);
	fd_obj_put(o);
	cancel_restore(was);
	return (int)result(r);
}

static ssize_t send_ours(struct fd_obj *o, int fd, const struct msghdr *m)
{
	int was = cancel_off();
	ssize_t n = o->cls->sendmsg ? o->cls->sendmsg(o, fd, m) : -EINVAL;

	fd_obj_put(o);
	cancel_restore(was);
	return result(n);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct fd_obj *o = fdtab_get(fd);

	if (LIKELY(!o))
		return next_fn()->sendmsg(fd, m, flags);
	return send_ours(o, fd, m);
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		      socklen_t tolen)
{
	struct fd_obj *o = fdtab_get(fd);
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (LIKELY(!o))
		return next_fn()->sendto(fd, buf, len, flags, to, tolen);
	return send_ours(o, fd, &m);
}

/* First the object, then the number: a thread that waits on the object can tell the one from a
 * number that was never ours. */
EXPORT int close(int fd)
{
	struct fd_obj *last;

	if (UNLIKELY(waits_has(fd)) && fdtab_is_ours())
		waits_forget(fd);
	fdtab_closing(fd);
	last = fdtab_forget(fd);
	if (UNLIKELY(last != NULL)) {
		int was = cancel_off();

		fdtab_closed(last);
		cancel_restore(was);
	}
	return next_fn()->close(fd);
}

/* ---- duplicates ------------------------------------------------------------------------- */

EXPORT int dup(int fd)
{
	int copy = next_fn()->dup(fd);

	fdtab_dup(fd, copy);
	return copy;
}

/* What is due of epoll's watches cannot be done any more when `copy` is another file. */
static void before_dup_over(int copy)
{
	if (UNLIKELY(waits_has(copy)) && fdtab_is_ours())
		watch_settle(-1);
}

EXPORT int dup2(int fd, int copy)
{
	int r;

	before_dup_over(copy);
	r = next_fn()->dup2(fd, copy);
	fdtab_dup(fd, r);
	return r;
}

EXPORT int dup3(int fd, int copy, int flags)
{
	int r;

	before_dup_over(copy);
	r = next_fn()->dup3(fd, copy, flags);
	fdtab_dup(fd, r);
	return r;
}

/* Every argument that fcntl() takes is an int or a pointer: as wide as a pointer covers all. */
#define WRAP_FCNTL(name)                                                                           \
	EXPORT int name(int fd, int cmd, ...)                                                      \
	{                                                                                          \
		va_list ap;                                                                        \
		void *arg;                                                                         \
		int r;                                                                             \
                                                                                                   \
		va_start(ap, cmd);                                                                 \
		arg = va_arg(ap, void *);                                                          \
		va_end(ap);                                                                        \
		r = next_fn()->name(fd, cmd, arg);                                                 \
		if (UNLIKELY(cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC))                            \
			fdtab_dup(fd, r);                                                          \
		else if (UNLIKELY(cmd == F_SETFL && !r))                                           \
			waits_set_nonblocking(fd, (long)arg &O_NONBLOCK);                          \
		return r;                                                                          \
	}

WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)

/* ---- the end ---------------------------------------------------------------------------- */

#define WRAP_EXIT(name)                                                                            \
	EXPORT void name(int status)                                                               \
	{                                                                                          \
		loader_exiting();                                                                  \
		for (;;)                                                                           \
			syscall(SYS_exit_group, status);                                           \
	}

WRAP_EXIT(_exit)
WRAP_EXIT(_Exit)
