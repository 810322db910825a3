/* SPDX-License-Identifier: BSD-3-Clause */
#include "mail.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/shm.h"
#include "io/switch/conduit.h"

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Nothing is behind it that takes long to give back: whoever lets go of it last frees its pages,
 * those behind its end included. */
static bool is_memory(int fd, off_t size)
{
	enum { MOST = 4 << 20 }; /* a region in huge pages */
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat s;

	return shm_fits(fd, (size_t)size) && seals & F_SEAL_GROW && !fstat(fd, &s) &&
	       s.st_size == size && s.st_blocks <= MOST / 512;
}

/* Its own, of the kind that socketpair() makes: what is written there carries our rights. Its user
 * may have been another one when it made the pair; where the kernel shows us no process (another
 * PID namespace), the user has to do. */
static bool is_wake_socket(const struct mail_box *b, int fd)
{
	struct ucred of;
	socklen_t n = sizeof(of), one = sizeof(int);
	int domain;

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &one) && domain == AF_UNIX &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &of, &n) && of.pid == b->pid &&
	       (of.pid || of.uid == b->uid);
}

static void take_memory(struct mail *m, int fd, off_t size)
{
	if (fd < 0)
		return;
	if (is_memory(fd, size)) {
		m->memory = fd;
		return;
	}
	m->alien = true;
	close(fd);
}

static void take_wake_socket(struct mail_box *b, int fd)
{
	if (fd < 0)
		return;
	if (b->wake_fd < 0 && is_wake_socket(b, fd)) {
		b->wake_fd = b->mail.wake_fd = fd;
		return;
	}
	b->mail.alien = true;
	close(fd);
}

static void sift(struct mail_box *b, struct switch_fds *fds)
{
	struct mail *m = &b->mail;

	m->lost = fds->lost;
	if (m->m.type == SWITCH_HELLO) {
		take_memory(m, switch_fds_take(fds, 0), CONDUIT_PAGE);
		take_wake_socket(b, switch_fds_take(fds, 1));
	} else if (m->m.type == SWITCH_READY) {
		take_memory(m, switch_fds_take(fds, 0), CONDUIT_REGION);
	}
	switch_fds_close(fds);
}

bool mail_receive(struct mail_box *b)
{
	struct switch_fds fds;
	int rc;

	b->mail = (struct mail){ .memory = -1, .wake_fd = -1 };
	rc = switch_receive(b->fd, &b->mail.m, &fds);
	if (rc == -EAGAIN)
		return false;
	b->mail.ended = rc != 1;
	if (rc == 1)
		sift(b, &fds);
	return true;
}

void mail_close(struct mail_box *b)
{
	close_fd(b->mail.memory);
	close_fd(b->wake_fd);
	close(b->fd);
}
