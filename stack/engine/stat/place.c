/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/stat/stat.h"
#include "io/fds.h"
#include "io/run_dir.h"

#define BACKLOG 16
#define RUN_MAX 60 /* octets of the run directory's name, as in io/rendezvous */
#define DIR_MAX (RUN_MAX + 6)

/* Ours, and nobody else may write to it. */
static int own_dir(const char *path)
{
	struct stat s;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(path, &s))
		return -errno;
	return S_ISDIR(s.st_mode) && s.st_uid == geteuid() && !(s.st_mode & 022) ? 0 : -EPERM;
}

static int stat_dir(const struct uw_config *cfg, char dir[DIR_MAX])
{
	char run[RUN_MAX + 1];
	int err;

	if (!run_dir_find(cfg->run_dir, run, sizeof(run)))
		return -errno;
	err = own_dir(run);
	snprintf(dir, DIR_MAX, "%s/stat", run);
	return err ? err : own_dir(dir);
}

static bool is_dead(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool dead;

	if (fd < 0)
		return false;
	snprintf(un.sun_path, sizeof(un.sun_path), "%.107s", path);
	dead = connect(fd, (struct sockaddr *)&un, sizeof(un)) && errno == ECONNREFUSED;
	close(fd);
	return dead;
}

/* A name comes into being with a socket that listens already (below), so a socket that refuses is
 * that of a dead process. */
static void sweep(const char dir[DIR_MAX])
{
	char path[DIR_MAX + NAME_MAX + 2];
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%.*s/%s", DIR_MAX, dir, e->d_name);
		if (e->d_name[0] != '.' && strlen(path) < STAT_PATH && is_dead(path))
			unlink(path);
	}
	if (d)
		closedir(d);
}

static int listen_at(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return -errno;
	snprintf(un.sun_path, sizeof(un.sun_path), "%.107s", path);
	/* Linux gives the name the mode that the socket has. */
	if (!fchmod(fd, 0600) && !bind(fd, (struct sockaddr *)&un, sizeof(un)) &&
	    !listen(fd, BACKLOG))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int stat_listen(const struct uw_config *cfg, uint32_t random, char path[STAT_PATH])
{
	char dir[DIR_MAX], hidden[STAT_PATH];
	int err = stat_dir(cfg, dir), fd;

	if (err)
		return err;
	sweep(dir);
	snprintf(hidden, sizeof(hidden), "%s/.%d.%08x", dir, (int)getpid(), random);
	snprintf(path, STAT_PATH, "%s/%d.%08x", dir, (int)getpid(), random);
	fd = listen_at(hidden);
	if (fd < 0)
		return fd;
	if (rename(hidden, path)) {
		err = -errno;
		unlink(hidden);
		close(fd);
		return err;
	}
	fd = fds_keep(fd);
	return fd < 0 ? -EMFILE : fd;
}

bool stat_may_ask(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	       (who.uid == geteuid() || who.uid == 0);
}
