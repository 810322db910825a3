/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "fds.h"

/* fork handlers take no argument, so the list can only be one per process. */
static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	int *fd;
	unsigned count, room;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void before_fork(void)
{
	pthread_mutex_lock(&kept.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&kept.lock);
}

static void in_child(void)
{
	for (unsigned i = 0; i < kept.count; i++)
		close(kept.fd[i]);
	kept.count = 0;
	pthread_mutex_unlock(&kept.lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static int grow(void)
{
	unsigned room = kept.room ? kept.room * 2 : 32;
	int *fd = realloc(kept.fd, room * sizeof(*fd));

	if (!fd)
		return -1;
	kept.fd = fd;
	kept.room = room;
	return 0;
}

int fds_keep(int fd)
{
	if (fd < 0)
		return -1;
	pthread_once(&kept.once, watch_forks);
	pthread_mutex_lock(&kept.lock);
	if (kept.count == kept.room && grow()) {
		close(fd);
		fd = -1;
	} else {
		kept.fd[kept.count++] = fd;
	}
	pthread_mutex_unlock(&kept.lock);
	return fd;
}

void fds_close(int fd)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&kept.lock);
	for (unsigned i = 0; i < kept.count; i++) {
		if (kept.fd[i] != fd)
			continue;
		kept.fd[i] = kept.fd[--kept.count];
		close(fd);
		break;
	}
	pthread_mutex_unlock(&kept.lock);
}
