/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every part of the preloaded shim shares: the names of the device it answers for, its own
 * system calls and its helper threads.
 *
 * The shim answers, inside the process, three requests that libibverbs and librdmacm make of a
 * kernel: RDMA netlink (netlink.c), the uverbs node (uverbs.c, channel.c) and the rdma_cm node
 * (ucma_*.c). interpose.c catches the libc calls (ifaddrs.c the list of interfaces), fdtab.c knows
 * which descriptors are ours, host.c loads libuwarp.so.
 */
#ifndef UWARP_SHIM_H
#define UWARP_SHIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(long) == 8, "raw_fstat() relies on the 64-bit struct stat");

/* The device. The number of the uverbs node lies beyond what kernels hand out (1024 at most), so a
 * real node never has its name. */
#define SHIM_DEV_NAME	 "uwarp0"
#define SHIM_DEV_INDEX	 30071u
#define SHIM_UVERBS_NODE "uverbs30071"
#define SHIM_UCMA_NODE	 "rdma_cm"
#define SHIM_NODE_DIR	 "/dev/infiniband/"

#define SHIM_LIKELY(x)	 __builtin_expect(!!(x), 1)
#define SHIM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * The shim's own I/O. libc's functions would come back to the wrappers of this library (or of one
 * preloaded before it), and some are cancellation points, which nothing may be that runs in a
 * callback under the stack lock.
 */
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

/* Run fn(arg) in a detached thread that takes no signals. 0 or a negative errno. */
int shim_spawn(void *(*fn)(void *), void *arg);

/*
 * The calls that the shim answers are cancellation points; what it does in them (locks, the stack,
 * the dynamic loader) must not be cut short. shim_enter() holds cancellation off and
 * shim_leave() lets it happen again as the caller had it; in between only what stands between
 * shim_allow_cancel() and shim_forbid_cancel() can be cancelled.
 */
int shim_enter(void);
void shim_leave(int was);
int shim_allow_cancel(void);
void shim_forbid_cancel(int was);

/* Have fork() leave the child in order. Cheap after the first call. */
void shim_watch_forks(void);

#endif
