/* SPDX-License-Identifier: BSD-3-Clause */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "io/switch/msg.h"

enum { FIRST_FD = 3, BACKLOG = 128 };

/* ---- systemd ------------------------------------------------------------------------------- */

static int inherited_socket(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	int listens = 0, type = 0;
	socklen_t len = sizeof(int);

	if (!pid || !n || strtol(pid, NULL, 10) != getpid() || strtol(n, NULL, 10) < 1)
		return -1;
	if (getsockopt(FIRST_FD, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) || !listens ||
	    getsockopt(FIRST_FD, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_SEQPACKET)
		return -1;
	fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
	fcntl(FIRST_FD, F_SETFL, fcntl(FIRST_FD, F_GETFL) | O_NONBLOCK);
	return FIRST_FD;
}

void listen_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(a.sun_path))
		return;
	memcpy(a.sun_path, path, len);
	if (*path == '@') /* an abstract one */
		a.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	len += offsetof(struct sockaddr_un, sun_path);
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const void *)&a, (socklen_t)len);
	close(fd);
}

/* ---- our own ------------------------------------------------------------------------------- */

/* The directory, which is the user's whom we become, so that the socket can be removed at the end.
 */
static bool make_directory(const struct options *o)
{
	const struct passwd *user = geteuid() == 0 ? getpwnam(o->user) : NULL;
	char copy[SWITCH_PATH_MAX];
	const char *dir;

	snprintf(copy, sizeof(copy), "%s", o->path);
	dir = dirname(copy);
	if (mkdir(dir, 0755))
		return errno == EEXIST;
	return !user || !chown(dir, user->pw_uid, user->pw_gid) || errno == EINVAL;
}

/* False: somebody listens there. */
static bool remove_stale(const char *path)
{
	int fd = switch_connect(path);

	if (fd >= 0) {
		close(fd);
		return false;
	}
	if (fd == -ECONNREFUSED)
		unlink(path);
	return fd != -EAGAIN;
}

/* Linux gives the name the mode that the socket has, less the mask. To change it by its name
 * afterwards would not do: the directory is another user's, who could put a link to any file there,
 * and we are root. */
static int bind_at(int fd, const char *path, mode_t mode)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	mode_t mask;
	int rc;

	if (fchmod(fd, mode))
		return -1;
	strcpy(a.sun_path, path);
	mask = umask(0);
	rc = bind(fd, (const void *)&a, sizeof(a));
	umask(mask);
	return rc;
}

static int listen_at(const struct options *o)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd >= 0 && !bind_at(fd, o->path, o->mode) && !listen(fd, BACKLOG))
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

int listen_open(const struct options *o, bool *inherited)
{
	int fd = inherited_socket();

	*inherited = fd >= 0;
	if (*inherited && o->socket_given)
		uw_log("--mode and --path do nothing: SocketMode= and ListenSequentialPacket= of "
		       "uwarpd.socket say who may join and where, since the socket is systemd's");
	if (*inherited)
		return fd;
	if (strlen(o->path) >= SWITCH_PATH_MAX) {
		uw_log("--path %s: too long for a socket", o->path);
		return -1;
	}
	if (!make_directory(o)) {
		uw_log("--path %s: the directory cannot be made: %s", o->path, strerror(errno));
		return -1;
	}
	if (!remove_stale(o->path)) {
		uw_log("--path %s: another uwarpd listens there", o->path);
		return -1;
	}
	fd = listen_at(o);
	if (fd < 0)
		uw_log("--path %s: %s", o->path, strerror(errno));
	return fd;
}
