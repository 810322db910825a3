/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls for use inside this library.
 *
 * The libc functions of the same names would call the wrappers of this library, or of another
 * preloaded one. Some are cancellation points too, which are not allowed in a callback of the
 * stack, since the callback holds the stack lock.
 */
#ifndef UWARP_RAW_H
#define UWARP_RAW_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(long) == 8, "raw_fstat() relies on the 64-bit struct stat");

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline int raw_open(const char *path, int flags)
{
	return (int)syscall(SYS_openat, -100 /* AT_FDCWD */, path, flags);
}

static inline int raw_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

static inline int raw_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

static inline int raw_fcntl(int fd, int cmd, long arg)
{
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

static inline int raw_socket(int domain, int type, int protocol)
{
	return (int)syscall(SYS_socket, domain, type, protocol);
}

static inline ssize_t raw_sendto(int fd, const void *buf, size_t len, int flags,
				 const struct sockaddr *to, socklen_t tolen)
{
	return syscall(SYS_sendto, fd, buf, len, flags, to, tolen);
}

static inline ssize_t raw_recv(int fd, void *buf, size_t len, int flags)
{
	return syscall(SYS_recvfrom, fd, buf, len, flags, NULL, NULL);
}

#endif
