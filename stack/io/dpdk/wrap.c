/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/if_packet.h>
#include <stdarg.h>
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
 * same number, and every program would wait for them. It waits for its threads by sleeping for 1 us
 * again and again: in a real-time class, which a program gives to the threads that it makes, that
 * is over before another thread of the class has had the CPU, for ever where they have but one. */
int __wrap_nanosleep(const struct timespec *req, struct timespec *rem)
{
	static const struct timespec enough = { .tv_nsec = 10 * 1000 * 1000 },
				     least = { .tv_nsec = 50 * 1000 };

	if (eal_starting() && (req->tv_sec > 0 || req->tv_nsec > enough.tv_nsec))
		req = &enough;
	else if (eal_starting() && req->tv_nsec < least.tv_nsec)
		req = &least;
	return __real_nanosleep(req, rem);
}

int __real_epoll_wait(int fd, struct epoll_event *v, int n, int ms);
int __wrap_epoll_wait(int fd, struct epoll_event *v, int n, int ms);

/* The program may close descriptors that it does not know (closefrom). DPDK's interrupt thread
 * hears of that when its wait is interrupted (SIGSTOP and SIGCONT), goes on to watch others of its
 * descriptors, and aborts the process if it cannot. There is nothing left for it to do. */
int __wrap_epoll_wait(int fd, struct epoll_event *v, int n, int ms)
{
	int r = __real_epoll_wait(fd, v, n, ms);

	if (r < 0 && errno != EINTR && rte_thread_is_intr()) {
		for (;;)
			pause();
	}
	return r;
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
