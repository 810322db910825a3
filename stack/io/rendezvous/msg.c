/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "msg.h"
#include "registry.h"

union one_fd {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

int msg_send(int fd, const struct msg *m, int pass)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	union one_fd c;

	if (pass >= 0) {
		memset(&c, 0, sizeof(c));
		h.msg_control = c.room;
		h.msg_controllen = sizeof(c.room);
		c.head.cmsg_level = SOL_SOCKET;
		c.head.cmsg_type = SCM_RIGHTS;
		c.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.head), &pass, sizeof(int));
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*m) ? 0 : -errno;
}

int msg_receive(int fd, struct msg *m, int *passed)
{
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	union one_fd c;
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = c.room,
			    .msg_controllen = sizeof(c.room) };

	*passed = -1;
	ssize_t n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n < 0)
		return 0;
	for (struct cmsghdr *p = CMSG_FIRSTHDR(&h); p; p = CMSG_NXTHDR(&h, p))
		if (p->cmsg_level == SOL_SOCKET && p->cmsg_type == SCM_RIGHTS)
			memcpy(passed, CMSG_DATA(p), sizeof(int));
	if (n == sizeof(*m) && m->magic == MSG_MAGIC)
		return 1;
	if (*passed >= 0)
		close(*passed);
	*passed = -1;
	return 0;
}

int msg_await(int fd, uint64_t deadline_ms, struct msg *m, int *passed)
{
	for (;;) {
		int rc = msg_receive(fd, m, passed);

		if (rc != -EAGAIN)
			return rc;
		uint64_t now = registry_now();
		if (now >= deadline_ms)
			return -ETIMEDOUT;
		struct pollfd p = { .fd = fd, .events = POLLIN };
		poll(&p, 1, (int)(deadline_ms - now));
	}
}

static _Atomic uint32_t *bell_page(int fd)
{
	void *page = mmap(NULL, BELL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

_Atomic uint32_t *bell_make(int *fd)
{
	_Atomic uint32_t *bell = NULL;

	*fd = memfd_create("uwarp-doorbell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return NULL;
	if (ftruncate(*fd, BELL_SIZE) == 0 &&
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		bell = bell_page(*fd);
	if (!bell) {
		close(*fd);
		*fd = -1;
	}
	return bell;
}

_Atomic uint32_t *bell_map(int fd)
{
	_Atomic uint32_t *bell = NULL;
	struct stat s;

	if (fd < 0)
		return NULL;
	/* Sealed, so that it cannot be made shorter than what we touch. */
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &s) == 0 && s.st_size >= BELL_SIZE)
		bell = bell_page(fd);
	close(fd);
	return bell;
}

void bell_unmap(_Atomic uint32_t *bell)
{
	if (bell)
		munmap((void *)(uintptr_t)bell, BELL_SIZE);
}
