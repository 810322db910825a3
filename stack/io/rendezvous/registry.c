/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#include "io/fds.h"
#include "registry.h"
#include "io/log.h"

/* How long a lock may be held by somebody who only looks. */
#define LOOK_MS 100

/* How long a process may take from its lock on ctl to its control socket. */
#define LOCKED_MS 3000

enum { PATH_LEN = sizeof(((struct sockaddr_un *)0)->sun_path), BACKLOG = 64 };

static void pause_ms(unsigned ms)
{
	struct timespec t = { .tv_nsec = (long)ms * 1000000 };

	nanosleep(&t, NULL);
}

/* --- locked files --- */

static bool same_file(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

/* Open (and make) the file and take its lock: a descriptor, or -errno; -EWOULDBLOCK: taken. */
static int lock_once(const char *path, int flags)
{
	for (;;) {
		int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			int err = errno;

			close(fd);
			return -err;
		}
		if (same_file(fd, path))
			return fd;
		close(fd); /* swept away between open and flock */
	}
}

static int lock_file(const char *path)
{
	int fd;

	for (unsigned waited = 0;; waited += 5) {
		fd = lock_once(path, O_CREAT);
		if (fd != -EWOULDBLOCK || waited >= LOOK_MS)
			return fd;
		pause_ms(5);
	}
}

static void write_text(int fd, const char *text)
{
	if (ftruncate(fd, 0) || pwrite(fd, text, strlen(text), 0) < 0)
		return; /* only messages and 127.0.0.1 suffer, and say so themselves */
}

/* --- the directory --- */

static uw_status check_dir(const char *dir)
{
	struct stat s;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return log_error(UW_E_NO_LINK, "cannot make the run directory %s: %s", dir,
				 strerror(errno));
	if (lstat(dir, &s) || !S_ISDIR(s.st_mode))
		return log_error(UW_E_NO_LINK, "the run directory %s is not a directory", dir);
	if (s.st_uid != geteuid())
		return log_error(UW_E_PERM,
				 "the run directory %s belongs to user %u: choose another", dir,
				 (unsigned)s.st_uid);
	if (s.st_mode & 022)
		return log_error(UW_E_PERM,
				 "others may write to the run directory %s: chmod it to 0700", dir);
	return UW_OK;
}

static uw_status open_dir(struct registry *r, const char *dir)
{
	static const char *const below[] = { "", "/ctl", "/port" };
	char path[PATH_LEN];

	if (!dir || !*dir)
		return log_error(UW_E_INVAL, "no run directory is set for the memif link");
	if (strlen(dir) > REGISTRY_DIR_MAX)
		return log_error(UW_E_INVAL, "the name of the run directory %s is longer than %d",
				 dir, REGISTRY_DIR_MAX);
	if (strpbrk(dir, ",[]'\""))
		return log_error(UW_E_INVAL, "the run directory %s must not contain any of ,[]'\"",
				 dir);
	for (unsigned i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, below[i]);
		uw_status st = check_dir(path);
		if (st)
			return st;
	}
	strcpy(r->dir, dir);
	return UW_OK;
}

/* --- sweeping --- */

/* Behind every name that ends in `suffix`: if nobody holds its lock, its process is dead. */
static void sweep_dir(const struct registry *r, const char *below, const char *suffix)
{
	char path[PATH_LEN + NAME_MAX];
	struct dirent *e;

	snprintf(path, sizeof(path), "%s/%s", r->dir, below);
	DIR *d = opendir(path);
	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name), tail = strlen(suffix);

		if (e->d_name[0] == '.' || len < tail || strcmp(e->d_name + len - tail, suffix))
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", r->dir, below, e->d_name);
		int fd = lock_once(path, 0);
		if (fd < 0)
			continue;
		if (tail) {
			path[strlen(path) - tail] = '\0';
			unlink(path);
			strcat(path, suffix);
		}
		unlink(path);
		close(fd);
	}
	if (d)
		closedir(d);
}

void registry_sweep(struct registry *r)
{
	sweep_dir(r, "ctl", ".lock");
	sweep_dir(r, "port", "");
}

/* --- the address --- */

static void ctl_path(const struct registry *r, uint32_t addr, const char *suffix, char *out)
{
	snprintf(out, PATH_LEN, "%s/ctl/%s%s", r->dir, log_addr(addr), suffix);
}

/* A socket connected to addr's control socket, or -errno. */
static int dial(const struct registry *r, uint32_t addr)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	ctl_path(r, addr, "", un.sun_path);
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	int err = errno;
	close(fd);
	return -err;
}

/* Does anybody serve the address? Its process in *pid, 0 if that cannot be told. */
static bool served(const struct registry *r, uint32_t addr, pid_t *pid)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);
	int fd = dial(r, addr);

	*pid = 0;
	if (fd < 0)
		return fd == -EAGAIN; /* a full backlog is somebody's */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0)
		*pid = who.pid;
	close(fd);
	return true;
}

static uw_status complain_in_use(const struct registry *r, uint32_t addr)
{
	char path[PATH_LEN], text[24] = "";
	pid_t pid;

	if (!served(r, addr, &pid)) {
		ctl_path(r, addr, ".lock", path);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			if (read(fd, text, sizeof(text) - 1) > 0)
				pid = (pid_t)strtol(text, NULL, 10);
			close(fd);
		}
	}
	if (pid)
		return log_error(UW_E_ADDR_IN_USE,
				 "address %s is in use by process %d: choose another",
				 log_addr(addr), (int)pid);
	return log_error(UW_E_ADDR_IN_USE,
			 "address %s is in use by another process: choose another", log_addr(addr));
}

static uw_status bind_control(struct registry *r)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	pid_t pid;

	ctl_path(r, r->addr, "", un.sun_path);
	if (fd < 0)
		return log_error(UW_E_NO_LINK, "no control socket: %s", strerror(errno));
	int rc = bind(fd, (struct sockaddr *)&un, sizeof(un));
	if (rc && errno == EADDRINUSE) {
		/* Ours by its lock, yet one that was started with the same lock may serve it. */
		if (served(r, r->addr, &pid)) {
			close(fd);
			return UW_E_ADDR_IN_USE;
		}
		unlink(un.sun_path);
		rc = bind(fd, (struct sockaddr *)&un, sizeof(un));
	}
	if (rc || listen(fd, BACKLOG)) {
		uw_status st = log_error(UW_E_NO_LINK, "cannot listen on %s: %s", un.sun_path,
					 strerror(errno));
		close(fd);
		return st;
	}
	r->listen_fd = fds_keep(fd);
	return r->listen_fd < 0 ? UW_E_NOMEM : UW_OK;
}

/* The process that holds an flock on the file, 0: cannot be told. Lines of /proc/locks are like
 * "3: FLOCK  ADVISORY  WRITE 1234 00:1c:5678 0 EOF". */
static pid_t flock_holder(int fd)
{
	unsigned long long inode;
	pid_t found = 0;
	char line[256];
	struct stat s;
	int pid;

	FILE *f = fstat(fd, &s) == 0 ? fopen("/proc/locks", "re") : NULL;
	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %*x:%*x:%llu", &pid, &inode) == 2 &&
		    inode == s.st_ino)
			found = pid;
	if (f)
		fclose(f);
	return found;
}

static uw_status complain_locked(const char *path, int fd)
{
	pid_t pid = flock_holder(fd);

	if (pid > 0)
		return log_error(UW_E_TIMEOUT,
				 "process %d has kept %s locked for %d ms: is it stopped? "
				 "Continue it or end it",
				 (int)pid, path, LOCKED_MS);
	return log_error(UW_E_TIMEOUT, "another process has kept %s locked for %d ms: end it", path,
			 LOCKED_MS);
}

static uw_status lock_dir(const char *path, int fd)
{
	uint64_t end = uw_clock_ms() + LOCKED_MS;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return UW_OK; /* this file system has no locks */
		if (uw_clock_ms() >= end)
			return complain_locked(path, fd);
		pause_ms(2);
	}
	return UW_OK;
}

/* One at a time, or two that share a lock might each take the other's socket for a stale one. */
static uw_status listen_control(struct registry *r)
{
	char path[PATH_LEN];
	uw_status st = UW_OK;

	snprintf(path, sizeof(path), "%s/ctl", r->dir);
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		st = lock_dir(path, dir);
	if (!st)
		st = bind_control(r);
	if (dir >= 0)
		close(dir);
	return st;
}

/* ADDR_IN_USE is not said: there may be another address. */
static uw_status take_lock(struct registry *r, uint32_t addr, int addr_fd, bool patient)
{
	char path[PATH_LEN], text[24];

	ctl_path(r, addr, ".lock", path);
	r->addr = addr;
	if (addr_fd >= 0 && same_file(addr_fd, path) && flock(addr_fd, LOCK_EX | LOCK_NB) == 0)
		return UW_OK;
	int fd = patient ? lock_file(path) : lock_once(path, O_CREAT);
	if (fd == -EWOULDBLOCK)
		return UW_E_ADDR_IN_USE;
	if (fd < 0)
		return log_error(UW_E_NO_LINK, "cannot take the address %s in %s: %s",
				 log_addr(addr), r->dir, strerror(-fd));
	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	write_text(fd, text);
	r->lock_fd = fds_keep(fd);
	return r->lock_fd < 0 ? UW_E_NOMEM : UW_OK;
}

static uw_status take_addr(struct registry *r, uint32_t addr, int addr_fd, bool patient)
{
	uw_status st = take_lock(r, addr, addr_fd, patient);

	if (!st)
		st = listen_control(r);
	if (st && r->lock_fd >= 0) {
		fds_close(r->lock_fd);
		r->lock_fd = -1;
	}
	return st;
}

/* 127.0.0.2 and up: 127.0.0.1 is everybody's name for whoever listens. */
static uw_status take_any_addr(struct registry *r)
{
	uw_status st = UW_E_ADDR_IN_USE;

	for (uint32_t host = 2; host < 255 && st == UW_E_ADDR_IN_USE; host++)
		st = take_addr(r, htonl(INADDR_LOOPBACK - 1 + host), -1, false);
	if (st == UW_E_ADDR_IN_USE)
		return log_error(st, "no address of 127.0.0.2 to 127.0.0.254 is free");
	return st;
}

static uw_status open_addr(struct registry *r, const struct registry_config *cfg)
{
	uw_status st;

	if (!cfg->addr)
		return take_any_addr(r);
	st = take_addr(r, cfg->addr, cfg->addr_fd, true);
	if (st != UW_E_ADDR_IN_USE)
		return st;
	/* The parent has it, or another child of the one that started us. */
	return cfg->addr_auto ? take_any_addr(r) : complain_in_use(r, cfg->addr);
}

uw_status registry_open(struct registry *r, const struct registry_config *cfg)
{
	memset(r, 0, sizeof(*r));
	r->lock_fd = r->listen_fd = -1;
	pthread_mutex_init(&r->claims_lock, NULL);
	uw_status st = open_dir(r, cfg->dir);
	if (st)
		return st;
	registry_sweep(r);
	return open_addr(r, cfg);
}

unsigned registry_list(const struct registry *r, uint32_t *addr, unsigned max)
{
	char path[PATH_LEN];
	struct in_addr in;
	struct dirent *e;
	unsigned n = 0;

	snprintf(path, sizeof(path), "%s/ctl", r->dir);
	DIR *d = opendir(path);
	while (d && n < max && (e = readdir(d))) {
		/* not the lock files beside the sockets */
		if (inet_pton(AF_INET, e->d_name, &in) == 1)
			addr[n++] = in.s_addr;
	}
	if (d)
		closedir(d);
	return n;
}

uw_status registry_connect(struct registry *r, uint32_t addr, uint64_t deadline_ms, int *fd)
{
	for (;;) {
		int rc = dial(r, addr);

		if (rc >= 0) {
			*fd = fds_keep(rc);
			return *fd < 0 ? UW_E_NOMEM : UW_OK;
		}
		if (rc == -EMFILE || rc == -ENFILE)
			return UW_E_NO_FDS;
		if (rc != -EAGAIN) /* EAGAIN: more knock than it has let in yet */
			return UW_E_UNREACHABLE;
		if (uw_clock_ms() >= deadline_ms)
			return UW_E_TIMEOUT;
		pause_ms(1);
	}
}

/* --- ports --- */

struct registry_claim {
	struct registry_claim *next;
	uint16_t port;
	unsigned count;
	int fd;
};

static void port_path(const struct registry *r, uint16_t port, char *out)
{
	snprintf(out, PATH_LEN, "%s/port/%u", r->dir, ntohs(port));
}

static struct registry_claim **find_claim(struct registry *r, uint16_t port)
{
	struct registry_claim **c = &r->claims;

	while (*c && (*c)->port != port)
		c = &(*c)->next;
	return c;
}

static uw_status new_claim(struct registry *r, uint16_t port)
{
	char path[PATH_LEN], text[32];
	struct registry_claim *c = calloc(1, sizeof(*c));

	if (!c)
		return UW_E_NOMEM;
	port_path(r, port, path);
	int fd = lock_file(path);
	if (fd < 0) {
		free(c);
		if (fd == -EWOULDBLOCK)
			return UW_E_ADDR_IN_USE;
		if (fd == -EMFILE || fd == -ENFILE)
			return log_error(UW_E_NO_FDS, "%s: no file descriptor is left (ulimit -n)",
					 path);
		return log_error(UW_E_NO_LINK, "%s: %s", path, strerror(-fd));
	}
	snprintf(text, sizeof(text), "%s\n", log_addr(r->addr));
	write_text(fd, text);
	*c = (struct registry_claim){ .next = r->claims, .port = port, .count = 1 };
	c->fd = fds_keep(fd);
	r->claims = c;
	return UW_OK;
}

uw_status registry_claim(struct registry *r, uint16_t port)
{
	uw_status st = UW_OK;

	pthread_mutex_lock(&r->claims_lock);
	struct registry_claim *c = *find_claim(r, port);
	if (c)
		c->count++;
	else
		st = new_claim(r, port);
	pthread_mutex_unlock(&r->claims_lock);
	return st;
}

static void drop_claim(struct registry *r, struct registry_claim **at)
{
	struct registry_claim *c = *at;
	char path[PATH_LEN];

	*at = c->next;
	port_path(r, c->port, path);
	unlink(path);
	fds_close(c->fd);
	free(c);
}

void registry_release(struct registry *r, uint16_t port)
{
	pthread_mutex_lock(&r->claims_lock);
	struct registry_claim **c = find_claim(r, port);
	if (*c && --(*c)->count == 0)
		drop_claim(r, c);
	pthread_mutex_unlock(&r->claims_lock);
}

uw_status registry_owner(struct registry *r, uint16_t port, uint32_t *addr)
{
	char path[PATH_LEN], text[32];
	struct in_addr in = { 0 };

	pthread_mutex_lock(&r->claims_lock);
	bool ours = *find_claim(r, port);
	pthread_mutex_unlock(&r->claims_lock);
	*addr = r->addr;
	if (ours)
		return UW_OK;
	port_path(r, port, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return UW_E_REFUSED;
	/* A lock that can be had is nobody's; otherwise its holder is about to write. */
	for (unsigned i = 0; i < LOOK_MS && flock(fd, LOCK_SH | LOCK_NB); i++) {
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

		if (n > 0) {
			text[n] = '\0';
			text[strcspn(text, "\n")] = '\0';
			if (inet_pton(AF_INET, text, &in) == 1)
				break;
		}
		pause_ms(1);
	}
	close(fd);
	*addr = in.s_addr;
	return in.s_addr ? UW_OK : UW_E_REFUSED;
}

void registry_close(struct registry *r)
{
	char path[PATH_LEN];

	if (!r->dir[0])
		return;
	while (r->claims)
		drop_claim(r, &r->claims);
	if (r->listen_fd >= 0) {
		ctl_path(r, r->addr, "", path);
		unlink(path);
		fds_close(r->listen_fd);
		/* Also when the one that started us holds it: it need not know when we end. */
		ctl_path(r, r->addr, ".lock", path);
		unlink(path);
	} else if (r->lock_fd >= 0) {
		ctl_path(r, r->addr, ".lock", path);
		unlink(path);
	}
	fds_close(r->lock_fd);
	r->listen_fd = r->lock_fd = -1;
	registry_sweep(r);
	pthread_mutex_destroy(&r->claims_lock);
}
