/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libc functions that take a path. A path of one of our device nodes is answered here; one that
 * lies in /sys/class/infiniband or /dev/infiniband leads into the folder of sysfs/tree.h. For all
 * other paths a wrapper costs a few comparisons and calls libc's function.
 *
 * Programs built for a glibc before 2.33 call __xstat() and its like where later ones call stat().
 */
/* Both would rename the functions that are defined here. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "next.h"
#include "nodes.h"
#include "raw.h"
#include "sysfs/paths.h"
#include "threads.h"

#define EXPORT __attribute__((visibility("default")))

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);
char *__realpath_chk(const char *path, char *out, size_t room);
ssize_t __readlink_chk(const char *path, char *out, size_t len, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t len, size_t room);

static long result(long r)
{
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

/* Opening the rdma_cm node loads the stack. */
static int open_ours(const char *path, int flags)
{
	int was = cancel_off();
	int fd = node_open(path, flags);

	cancel_restore(was);
	return (int)result(fd);
}

static mode_t mode_arg(int flags, va_list ap)
{
	bool has_mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;

	return has_mode ? va_arg(ap, mode_t) : 0;
}

/* ---- opening ---------------------------------------------------------------------------- */

#define WRAP_OPEN(name)                                                                            \
	EXPORT int name(const char *path, int flags, ...)                                          \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		va_list ap;                                                                        \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(ap, flags);                                                               \
		mode = mode_arg(flags, ap);                                                        \
		va_end(ap);                                                                        \
		if (UNLIKELY(node_is(path)))                                                       \
			return open_ours(path, flags);                                             \
		return next_fn()->name(path_to_open(path, buf), flags, mode);                      \
	}

#define WRAP_OPENAT(name)                                                                          \
	EXPORT int name(int dir, const char *path, int flags, ...)                                 \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		va_list ap;                                                                        \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(ap, flags);                                                               \
		mode = mode_arg(flags, ap);                                                        \
		va_end(ap);                                                                        \
		if (UNLIKELY(node_is_at(dir, path)))                                               \
			return open_ours(path, flags);                                             \
		return next_fn()->name(dir, path_to_open(path, buf), flags, mode);                 \
	}

/* What open() becomes in programs built with _FORTIFY_SOURCE. */
#define WRAP_OPEN_2(name)                                                                          \
	EXPORT int name(const char *path, int flags)                                               \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
                                                                                                   \
		if (UNLIKELY(node_is(path)))                                                       \
			return open_ours(path, flags);                                             \
		return next_fn()->name(path_to_open(path, buf), flags);                            \
	}

#define WRAP_OPENAT_2(name)                                                                        \
	EXPORT int name(int dir, const char *path, int flags)                                      \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
                                                                                                   \
		if (UNLIKELY(node_is_at(dir, path)))                                               \
			return open_ours(path, flags);                                             \
		return next_fn()->name(dir, path_to_open(path, buf), flags);                       \
	}

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)
WRAP_OPEN_2(__open_2)
WRAP_OPEN_2(__open64_2)
WRAP_OPENAT_2(__openat_2)
WRAP_OPENAT_2(__openat64_2)

/* A device node is not for stdio: nobody reads one as a stream. */
#define WRAP_FOPEN(name)                                                                           \
	EXPORT FILE *name(const char *path, const char *mode)                                      \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
                                                                                                   \
		return next_fn()->name(path_to_open(path, buf), mode);                             \
	}

WRAP_FOPEN(fopen)
WRAP_FOPEN(fopen64)

/* ---- directories ------------------------------------------------------------------------ */

EXPORT DIR *opendir(const char *path)
{
	char buf[PATH_MAX];

	return next_fn()->opendir(path_to_tree(path, buf));
}

#define WRAP_SCANDIR(name, type)                                                                   \
	EXPORT int name(const char *path, struct type ***list, int (*pick)(const struct type *),   \
			int (*order)(const struct type **, const struct type **))                  \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
                                                                                                   \
		return next_fn()->name(path_to_tree(path, buf), list, pick, order);                \
	}

WRAP_SCANDIR(scandir, dirent)
WRAP_SCANDIR(scandir64, dirent64)

/* The results name the paths that the program asked for. */
#define WRAP_GLOB(name, type)                                                                      \
	EXPORT int name(const char *pattern, int flags, int (*error)(const char *, int), type *g)  \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
		const char *ours = path_to_tree(pattern, buf);                                     \
		int r = next_fn()->name(ours, flags, error, g);                                    \
                                                                                                   \
		for (size_t i = 0; !r && ours != pattern && i < g->gl_pathc; i++)                  \
			path_from_tree(g->gl_pathv[(flags & GLOB_DOOFFS ? g->gl_offs : 0) + i]);   \
		return r;                                                                          \
	}

WRAP_GLOB(glob, glob_t)
WRAP_GLOB(glob64, glob64_t)

/* ---- stat and access -------------------------------------------------------------------- */

static bool is_nothing(const char *path, int flags)
{
	/* libc's headers promise that a path is not NULL, but programs do ask that way (Rust's
	 * standard library). So that the compiler keeps the check: */
	__asm__("" : "+r"(path));
	return path && !*path && (flags & AT_EMPTY_PATH);
}

/* fstatat(), and with other arguments all its relatives. */
static int stat_at(int dir, const char *path, struct stat *st, int flags)
{
	char buf[PATH_MAX];

	if (UNLIKELY(is_nothing(path, flags)) && dir >= 0)
		return fstat(dir, st);
	if (UNLIKELY(node_is_at(dir, path))) {
		node_stat(st);
		return 0;
	}
	return next_fn()->fstatat(dir, path_to_tree(path, buf), st, flags);
}

/* struct stat and struct stat64 are one on 64-bit machines (asserted in raw.h). */
#define WRAP_STAT(name, type, flags)                                                               \
	EXPORT int name(const char *path, struct type *st)                                         \
	{                                                                                          \
		return stat_at(AT_FDCWD, path, (struct stat *)st, flags);                          \
	}
#define WRAP_XSTAT(name, type, flags)                                                              \
	EXPORT int name(int version, const char *path, struct type *st)                            \
	{                                                                                          \
		(void)version; /* 64-bit machines have one only */                                 \
		return stat_at(AT_FDCWD, path, (struct stat *)st, flags);                          \
	}
#define WRAP_STATAT(name, type)                                                                    \
	EXPORT int name(int dir, const char *path, struct type *st, int flags)                     \
	{                                                                                          \
		return stat_at(dir, path, (struct stat *)st, flags);                               \
	}
#define WRAP_XSTATAT(name, type)                                                                   \
	EXPORT int name(int version, int dir, const char *path, struct type *st, int flags)        \
	{                                                                                          \
		(void)version;                                                                     \
		return stat_at(dir, path, (struct stat *)st, flags);                               \
	}

WRAP_STAT(stat, stat, 0)
WRAP_STAT(stat64, stat64, 0)
WRAP_STAT(lstat, stat, AT_SYMLINK_NOFOLLOW)
WRAP_STAT(lstat64, stat64, AT_SYMLINK_NOFOLLOW)
WRAP_STATAT(fstatat, stat)
WRAP_STATAT(fstatat64, stat64)
WRAP_XSTAT(__xstat, stat, 0)
WRAP_XSTAT(__xstat64, stat64, 0)
WRAP_XSTAT(__lxstat, stat, AT_SYMLINK_NOFOLLOW)
WRAP_XSTAT(__lxstat64, stat64, AT_SYMLINK_NOFOLLOW)
WRAP_XSTATAT(__fxstatat, stat)
WRAP_XSTATAT(__fxstatat64, stat64)

static void node_statx(struct statx *x)
{
	struct stat st;

	node_stat(&st);
	memset(x, 0, sizeof(*x));
	x->stx_mask = STATX_BASIC_STATS;
	x->stx_mode = (uint16_t)st.st_mode;
	x->stx_nlink = (uint32_t)st.st_nlink;
	x->stx_blksize = (uint32_t)st.st_blksize;
	x->stx_rdev_major = major(st.st_rdev);
	x->stx_rdev_minor = minor(st.st_rdev);
}

EXPORT int statx(int dir, const char *path, int flags, unsigned mask, struct statx *x)
{
	char buf[PATH_MAX];

	if (UNLIKELY(node_is_at(dir, path) || (is_nothing(path, flags) && fd_is_node(dir)))) {
		node_statx(x);
		return 0;
	}
	return next_fn()->statx(dir, path_to_tree(path, buf), flags, mask, x);
}

static int access_node(int mode)
{
	return (int)result(mode & X_OK ? -EACCES : 0);
}

#define WRAP_ACCESS(name)                                                                          \
	EXPORT int name(const char *path, int mode)                                                \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
                                                                                                   \
		if (UNLIKELY(node_is(path)))                                                       \
			return access_node(mode);                                                  \
		return next_fn()->name(path_to_tree(path, buf), mode);                             \
	}

WRAP_ACCESS(access)
WRAP_ACCESS(eaccess)

EXPORT int euidaccess(const char *path, int mode)
{
	return eaccess(path, mode);
}

EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	char buf[PATH_MAX];

	if (UNLIKELY(node_is_at(dir, path)))
		return access_node(mode);
	return next_fn()->faccessat(dir, path_to_tree(path, buf), mode, flags);
}

/* ---- links ------------------------------------------------------------------------------ */

EXPORT ssize_t readlink(const char *path, char *out, size_t len)
{
	char buf[PATH_MAX];

	if (UNLIKELY(node_is(path)))
		return result(-EINVAL); /* as of anything that is no link */
	return next_fn()->readlink(path_to_tree(path, buf), out, len);
}

EXPORT ssize_t readlinkat(int dir, const char *path, char *out, size_t len)
{
	char buf[PATH_MAX];

	if (UNLIKELY(node_is_at(dir, path)))
		return result(-EINVAL);
	return next_fn()->readlinkat(dir, path_to_tree(path, buf), out, len);
}

/* libc has checked `room` when it was compiled, and checks it at run time. */
EXPORT ssize_t __readlink_chk(const char *path, char *out, size_t len, size_t room)
{
	if (len > room)
		abort();
	return readlink(path, out, len);
}

EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t len, size_t room)
{
	if (len > room)
		abort();
	return readlinkat(dir, path, out, len);
}

EXPORT char *realpath(const char *path, char *out)
{
	char buf[PATH_MAX], *real;

	if (UNLIKELY(node_is(path))) {
		real = out ? strcpy(out, path) : strdup(path);
		return real;
	}
	real = next_fn()->realpath(path_to_tree(path, buf), out);
	if (real)
		path_from_tree(real);
	return real;
}

EXPORT char *__realpath_chk(const char *path, char *out, size_t room)
{
	if (room < PATH_MAX)
		abort();
	return realpath(path, out);
}

EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

/* ---- the rest that ls, cp and shells call ----------------------------------------------- */

EXPORT int chdir(const char *path)
{
	char buf[PATH_MAX];

	return next_fn()->chdir(path_to_tree(path, buf));
}

EXPORT char *getcwd(char *out, size_t room)
{
	char *cwd = next_fn()->getcwd(out, room);

	if (cwd)
		path_from_tree(cwd);
	return cwd;
}

#define WRAP_GETXATTR(name)                                                                        \
	EXPORT ssize_t name(const char *path, const char *attr, void *value, size_t room)          \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
                                                                                                   \
		if (UNLIKELY(node_is(path)))                                                       \
			return result(-ENODATA);                                                   \
		return next_fn()->name(path_to_tree(path, buf), attr, value, room);                \
	}

WRAP_GETXATTR(getxattr)
WRAP_GETXATTR(lgetxattr)

/* ls since coreutils 9.6 asks for all attributes at once. */
#define WRAP_LISTXATTR(name)                                                                       \
	EXPORT ssize_t name(const char *path, char *list, size_t room)                             \
	{                                                                                          \
		char buf[PATH_MAX];                                                                \
                                                                                                   \
		if (UNLIKELY(node_is(path)))                                                       \
			return 0;                                                                  \
		return next_fn()->name(path_to_tree(path, buf), list, room);                       \
	}

WRAP_LISTXATTR(listxattr)
WRAP_LISTXATTR(llistxattr)
