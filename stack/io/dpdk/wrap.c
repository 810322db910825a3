/* SPDX-License-Identifier: BSD-3-Clause */
#define ALLOW_EXPERIMENTAL_API /* rte_intr_fd_get, until DPDK 24.11 */
#include <errno.h>
#include <linux/if_packet.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

#include <rte_interrupts.h>

#include "eal.h"
#include "wrap.h"

/* --- unmapping behind the stack locks --- */

int __real_munmap(void *addr, size_t len);
int __wrap_munmap(void *addr, size_t len);

static _Atomic(const struct wrap_barrier *) barrier;

void wrap_unmap_after(const struct wrap_barrier *b)
{
	/* Pairs with the acquire in __wrap_munmap: it is filled in before it is seen. */
	atomic_store_explicit(&barrier, b, memory_order_release);
}

/*
 * When a peer dies, memif's control socket ends and the interrupt thread clears the port's
 * connected flag, then unmaps the rings, then forgets the region, while rx and tx may be copying
 * from and into them. They run under a stack lock and look at the flag first. So once each of
 * these locks was ours for a moment, whoever was inside has left, and whoever comes later sees the
 * flag and does not enter.
 */
int __wrap_munmap(void *addr, size_t len)
{
	const struct wrap_barrier *b = atomic_load_explicit(&barrier, memory_order_acquire);

	if (b && rte_thread_is_intr())
		b->pass(b->arg);
	return __real_munmap(addr, len);
}

/* --- a caller that hangs up at once --- */

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

static bool is_memif(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

/*
 * If the first message to a new caller fails, memif closes the socket and frees what belongs to
 * it but leaves its callback registered, on which the interrupt thread aborts the process. So
 * the message is said to be sent; that the caller is gone is then read from the socket, which
 * memif does handle.
 */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t n = __real_sendmsg(fd, msg, flags | MSG_NOSIGNAL);

	if (n >= 0 || (errno != EPIPE && errno != ECONNRESET) || !rte_thread_is_intr() ||
	    !is_memif(fd))
		return n;
	n = 0;
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		n += (ssize_t)msg->msg_iov[i].iov_len;
	return n;
}

/* --- listeners that nobody closes --- */

int __real_rte_intr_callback_register(const struct rte_intr_handle *h, rte_intr_callback_fn fn,
				      void *arg);
int __wrap_rte_intr_callback_register(const struct rte_intr_handle *h, rte_intr_callback_fn fn,
				      void *arg);

static struct wrap_listener seen;

int __wrap_rte_intr_callback_register(const struct rte_intr_handle *h, rte_intr_callback_fn fn,
				      void *arg)
{
	int listens = 0;
	socklen_t len = sizeof(listens);

	if (rte_thread_is_intr() &&
	    getsockopt(rte_intr_fd_get(h), SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 &&
	    listens)
		seen = (struct wrap_listener){ .handle = h, .fn = fn, .arg = arg };
	return __real_rte_intr_callback_register(h, fn, arg);
}

struct wrap_listener wrap_take_listener(void)
{
	struct wrap_listener w = seen;

	seen = (struct wrap_listener){ 0 };
	return w;
}

void wrap_close_listener(struct wrap_listener *w)
{
	if (!w->handle)
		return;
	int fd = rte_intr_fd_get(w->handle);

	/* Still registered means still polled: then the descriptor must stay. */
	if (rte_intr_callback_unregister(w->handle, w->fn, w->arg) > 0)
		close(fd);
	*w = (struct wrap_listener){ 0 };
}

/* --- packet sockets that keep to themselves --- */

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

static struct {
	bool shared;
	int id; /* of the group, -1: it is still to be made */
} fanout;

void wrap_packet_sockets(unsigned n)
{
	fanout.shared = n > 1;
	fanout.id = -1;
}

/* Which of them a frame goes to follows from its addresses and ports alone: with DPDK's choice one
 * whose ring is full would hand its frames to another, and their order would be lost. */
static int join_group(int fd)
{
	int arg = PACKET_FANOUT_HASH << 16;
	socklen_t len = sizeof(arg);

	arg |= fanout.id < 0 ? PACKET_FANOUT_FLAG_UNIQUEID << 16 : fanout.id;
	if (__real_setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, sizeof(arg)))
		return -1;
	if (fanout.id < 0 && getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, &len))
		return -1;
	fanout.id = arg & 0xffff;
	return 0;
}

/*
 * DPDK puts the sockets of a port into a fan-out group, even a single one, and numbers the groups
 * by process and interface so that two may get the same number: then the second does not open,
 * or takes half of the first one's frames. A single one needs no group, and for several the kernel
 * has a number that nobody else has.
 */
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == SOL_PACKET && name == PACKET_FANOUT)
		return fanout.shared ? join_group(fd) : 0;
	return __real_setsockopt(fd, level, name, value, len);
}

/* --- no trace in the program --- */

int __wrap_eal_create_runtime_dir(void);
void __wrap_openlog(const char *ident, int option, int facility);
int __real_nanosleep(const struct timespec *req, struct timespec *rem);
int __wrap_nanosleep(const struct timespec *req, struct timespec *rem);

/* Without shared configuration nothing is kept there, and a /tmp/dpdk of another user would be
 * in the way. */
int __wrap_eal_create_runtime_dir(void)
{
	return 0;
}

/* The program's own syslog identity is not ours to change. */
void __wrap_openlog(const char *ident, int option, int facility)
{
	(void)ident;
	(void)option;
	(void)facility;
}

/* The EAL measures the TSC against the clock for 100 ms and rounds to 10 MHz; 10 ms give the
 * same number, and every program would wait for them. */
int __wrap_nanosleep(const struct timespec *req, struct timespec *rem)
{
	static const struct timespec enough = { .tv_nsec = 10 * 1000 * 1000 };

	if (eal_starting() && (req->tv_sec > 0 || req->tv_nsec > enough.tv_nsec))
		req = &enough;
	return __real_nanosleep(req, rem);
}

/* --- descriptors end at exec --- */

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_accept(int fd, struct sockaddr *addr, socklen_t *len);
int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags);
int __wrap_epoll_create(int size);
int __wrap_pipe(int fd[2]);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);

int __wrap_socket(int domain, int type, int protocol)
{
	return __real_socket(domain, type | SOCK_CLOEXEC, protocol);
}

int __wrap_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return accept4(fd, addr, len, SOCK_CLOEXEC);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return __real_memfd_create(name, flags | MFD_CLOEXEC);
}

int __wrap_eventfd(unsigned value, int flags)
{
	return __real_eventfd(value, flags | EFD_CLOEXEC);
}

int __wrap_epoll_create(int size)
{
	(void)size;
	return epoll_create1(EPOLL_CLOEXEC);
}

int __wrap_pipe(int fd[2])
{
	return pipe2(fd, O_CLOEXEC);
}

int __wrap_timerfd_create(int clock, int flags)
{
	return __real_timerfd_create(clock, flags | TFD_CLOEXEC);
}
