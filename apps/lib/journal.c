/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "journal.h"
#include "log.h"

/* A full disk is an error here, and a signal later. */
static int reserve(int fd, size_t size)
{
	errno = size ? posix_fallocate(fd, 0, (off_t)size) : 0;
	return errno;
}

int journal_map(struct journal_line **line, const char *path, uint64_t keys)
{
	int fd = -1, flags = path ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS;
	size_t size = keys * sizeof(**line);

	*line = NULL;
	if (path) {
		fd = open(path, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || ftruncate(fd, (off_t)size) || reserve(fd, size)) {
			if (fd >= 0)
				close(fd);
			return log_errno("%s", path);
		}
	}
	*line = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	if (*line == MAP_FAILED) {
		*line = NULL;
		return log_errno("no memory for a journal of %lu keys", keys);
	}
	return 0;
}

void journal_unmap(struct journal_line *line, uint64_t keys)
{
	if (line)
		munmap(line, keys * sizeof(*line));
}
