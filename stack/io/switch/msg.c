/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/msg.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

union control {
	char octets[CMSG_SPACE(SWITCH_FDS * sizeof(int))];
	struct cmsghdr align;
};

struct switch_msg switch_msg_of(enum switch_msg_type type)
{
	return (struct switch_msg){ .magic = SWITCH_MAGIC,
				    .version = SWITCH_VERSION,
				    .type = (uint8_t)type };
}

int switch_send(int fd, const struct switch_msg *m, const int *fds, unsigned n)
{
	union control c = { 0 };
	struct iovec v = { (void *)(uintptr_t)m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };

	if (n) {
		h.msg_control = c.octets;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		struct cmsghdr *head = CMSG_FIRSTHDR(&h);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(head), fds, n * sizeof(int));
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *h, struct switch_fds *fds)
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t octets = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (unsigned i = 0; i < octets / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < SWITCH_FDS)
				fds->fd[n++] = fd;
			else
				close(fd);
		}
	}
	fds->lost = h->msg_flags & MSG_CTRUNC && n < SWITCH_FDS;
}

int switch_receive(int fd, struct switch_msg *m, struct switch_fds *fds)
{
	union control c;
	struct iovec v = { m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = c.octets,
			    .msg_controllen = sizeof(c.octets) };
	ssize_t got;

	for (unsigned i = 0; i < SWITCH_FDS; i++)
		fds->fd[i] = -1;
	fds->lost = false;
	got = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/* It hung up without having read all from us. Its last words come after that. */
	if (got < 0 && errno == ECONNRESET)
		got = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (got <= 0)
		return 0;
	take_fds(&h, fds);
	if (got == sizeof(*m) && !(h.msg_flags & MSG_TRUNC) && m->magic == SWITCH_MAGIC)
		return 1;
	switch_fds_close(fds);
	return 0;
}

int switch_await(int fd, unsigned ms, struct switch_msg *m, struct switch_fds *fds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int rc = -EAGAIN;

	while (rc == -EAGAIN) {
		if (poll(&p, 1, (int)ms) == 0)
			return -ETIMEDOUT;
		rc = switch_receive(fd, m, fds);
	}
	return rc;
}

int switch_fds_take(struct switch_fds *fds, unsigned i)
{
	int fd = fds->fd[i];

	fds->fd[i] = -1;
	return fd;
}

void switch_fds_close(struct switch_fds *fds)
{
	for (unsigned i = 0; i < SWITCH_FDS; i++) {
		if (fds->fd[i] >= 0)
			close(fds->fd[i]);
		fds->fd[i] = -1;
	}
}

int switch_connect(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const void *)&a, sizeof(a)))
		return fd;
	err = errno;
	close(fd);
	return -err;
}
