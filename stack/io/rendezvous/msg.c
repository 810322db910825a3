/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#include "msg.h"
#include "registry.h"

/* Room for more descriptors than we use: what a peer sends too much has to be closed, too. */
enum { FDS_ROOM = 8 };

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(FDS_ROOM * sizeof(int))];
};

int msg_send(int fd, const struct msg *m, int first, int second)
{
	const int pass[MSG_FDS] = { first, second };
	unsigned n = first < 0 ? 0 : second < 0 ? 1 : 2;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control c;

	if (n) {
		memset(&c, 0, sizeof(c));
		h.msg_control = c.room;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c.head.cmsg_level = SOL_SOCKET;
		c.head.cmsg_type = SCM_RIGHTS;
		c.head.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&c.head), pass, n * sizeof(int));
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*m) ? 0 : -errno;
}

static void take_fds(struct msghdr *h, struct msg_fds *fds)
{
	unsigned n = 0;

	for (struct cmsghdr *p = CMSG_FIRSTHDR(h); p; p = CMSG_NXTHDR(h, p)) {
		if (p->cmsg_level != SOL_SOCKET || p->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= p->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(p) + at, sizeof(fd));
			if (n < MSG_FDS)
				fds->fd[n++] = fd;
			else
				close(fd);
		}
	}
	fds->lost = h->msg_flags & MSG_CTRUNC;
}

int msg_receive(int fd, struct msg *m, struct msg_fds *fds)
{
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	union control c;
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = c.room,
			    .msg_controllen = sizeof(c.room) };

	*fds = (struct msg_fds){ .fd = { -1, -1 } };
	ssize_t n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/* It hung up without having read all from us. That comes first, its last words then. */
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : 0;
	take_fds(&h, fds);
	if (n == sizeof(*m) && !(h.msg_flags & MSG_TRUNC) && m->magic == MSG_MAGIC)
		return 1;
	msg_fds_close(fds);
	return 0;
}

int msg_await(int fd, uint64_t deadline_ms, struct msg *m, struct msg_fds *fds)
{
	for (;;) {
		int rc = msg_receive(fd, m, fds);

		if (rc != -EAGAIN)
			return rc;
		uint64_t now = uw_clock_ms();
		if (now >= deadline_ms)
			return -ETIMEDOUT;
		struct pollfd p = { .fd = fd, .events = POLLIN };
		poll(&p, 1, (int)(deadline_ms - now));
	}
}

void msg_fds_close(struct msg_fds *fds)
{
	for (unsigned i = 0; i < MSG_FDS; i++) {
		int fd = msg_fds_take(fds, i);

		if (fd >= 0)
			close(fd);
	}
}

int msg_fds_take(struct msg_fds *fds, unsigned i)
{
	int fd = fds->fd[i];

	fds->fd[i] = -1;
	return fd;
}
