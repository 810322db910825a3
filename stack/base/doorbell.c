/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/doorbell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 0: not a file that an eventfd can be. They all share one inode with the kernel's other
 * descriptors without a file, to which eight octets mean nothing. */
static uint64_t inode_of(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !(st.st_mode & S_IFMT) ? st.st_ino : 0;
}

struct io_ring doorbell_ring_of(_Atomic uint32_t *word, int fd)
{
	return (struct io_ring){ .word = word, .fd = fd, .ino = fd < 0 ? 0 : inode_of(fd) };
}

int doorbell_eventfd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

uint32_t doorbell_swap(_Atomic uint32_t *word)
{
	uint32_t was = atomic_load_explicit(word, memory_order_relaxed), rung;

	if (was != IO_ASLEEP && was != IO_ASLEEP_FD)
		return IO_AWAKE;
	rung = IO_RUNG + (uint32_t)sched_getcpu();
	/* Of several that see it asleep, the one that swaps wakes. */
	was = atomic_exchange_explicit(word, rung, memory_order_relaxed);
	return was == IO_ASLEEP || was == IO_ASLEEP_FD ? was : IO_AWAKE;
}

/* It must not block by what a peer did by mistake. A peer that means it can fill the counter and
 * take O_NONBLOCK off between the look and the write: the flag is of the open file that both have,
 * and an eventfd knows no write that never waits (RWF_NOWAIT is for its reads alone). Such a peer
 * is of our user and could stop us anyhow; a uwarpd, whose clients are not, takes sockets
 * (adr/0056). */
static void ring_eventfd(const struct io_ring *r)
{
	const uint64_t one = 1;
	int flags = fcntl(r->fd, F_GETFL);

	if (flags >= 0 && flags & O_NONBLOCK && inode_of(r->fd) == r->ino)
		syscall(SYS_write, r->fd, &one, sizeof(one));
}

/* No socket or pipe: the kernel takes a write to these for a sign that the writer is about to
 * sleep, and runs the woken thread on the writer's core. */
void doorbell_wake(const struct io_ring *r, uint32_t was)
{
	if (was == IO_ASLEEP)
		syscall(SYS_futex, r->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	else if (was == IO_ASLEEP_FD && r->ino)
		ring_eventfd(r);
}
