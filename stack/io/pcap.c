/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/pcap.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "io/log.h"

#define BUFFER	 (256u * 1024)
#define PATH_LEN 4096

/* Not stdio: what a forked child inherits of its buffer would be written twice. Records go out
 * whole, so a process that is killed leaves a file that can be read. */
struct io_pcap {
	int fd; /* -1: nothing can be written any more */
	char path[PATH_LEN];
	size_t n;
	uint8_t buf[BUFFER];
};

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snaplen, linktype;
};
static_assert(sizeof(struct file_header) == 24, "pcap file header");

struct record_header {
	uint32_t sec, usec, caplen, len;
};
static_assert(sizeof(struct record_header) == 16, "pcap record header");

static void end(struct io_pcap *p)
{
	close(p->fd);
	p->fd = -1;
}

/* Nobody reads any more, which is no error, or the disk is full: what came before can be read, but
 * for the end of a record maybe. */
static void give_up(struct io_pcap *p)
{
	if (errno != EPIPE)
		log_error(UW_OK, "capture %s: %s: what comes now is not in it", p->path,
			  strerror(errno));
	end(p);
}

static void flush(struct io_pcap *p)
{
	for (size_t at = 0; at < p->n && p->fd >= 0;) {
		ssize_t n = uw_write_quietly(p->fd, p->buf + at, p->n - at);

		if (n > 0)
			at += (size_t)n;
		else if (n == 0 || errno != EINTR)
			give_up(p);
	}
	p->n = 0;
}

static void put(struct io_pcap *p, const void *what, size_t n)
{
	memcpy(p->buf + p->n, what, n);
	p->n += n;
}

/* The file with its lock, empty; -1 with errno, EWOULDBLOCK if another process writes it. */
static int open_alone(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666), err;

	if (fd < 0)
		return -1;
	if (!flock(fd, LOCK_EX | LOCK_NB) && !ftruncate(fd, 0))
		return fd;
	/* a pipe or the like takes neither, and needs neither */
	if (errno == EINVAL || errno == EOPNOTSUPP)
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* `name`: what it is called. */
static int open_ours(const char *path, char name[PATH_LEN])
{
	int fd = open_alone(path);

	if (fd >= 0 || errno != EWOULDBLOCK) {
		snprintf(name, PATH_LEN, "%s", path);
		return fd;
	}
	if (snprintf(name, PATH_LEN, "%s.%d", path, (int)getpid()) >= PATH_LEN) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open_alone(name);
}

struct io_pcap *io_pcap_open(const char *path)
{
	const struct file_header h = {
		.magic = 0xa1b2c3d4, .major = 2, .minor = 4, .snaplen = 65535 + 14, .linktype = 1
	};
	struct io_pcap *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	p->n = 0;
	p->fd = open_ours(path, p->path);
	if (p->fd < 0) {
		free(p);
		return NULL;
	}
	put(p, &h, sizeof(h));
	flush(p);
	return p;
}

void io_pcap_write(struct io_pcap *p, const struct io_frame *f, uint64_t now_us)
{
	struct record_header h = { .sec = (uint32_t)(now_us / 1000000),
				   .usec = (uint32_t)(now_us % 1000000) };

	if (p->fd < 0)
		return;
	for (const struct io_frame *b = f; b; b = b->next)
		h.len += b->len;
	h.caplen = h.len;
	if (sizeof(h) + h.len > BUFFER) /* no link has such frames */
		return;
	if (p->n + sizeof(h) + h.len > BUFFER)
		flush(p);
	put(p, &h, sizeof(h));
	for (; f; f = f->next)
		put(p, f->data, f->len);
}

void io_pcap_close(struct io_pcap *p)
{
	flush(p);
	if (p->fd >= 0)
		end(p);
	free(p);
}
