/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libc functions that take a path. For every path but those of our nodes a wrapper costs one
 * comparison and calls libc's function.
 */
/* Both would rename the functions that are defined here. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "next.h"
#include "nodes.h"
#include "raw.h"
#include "threads.h"

#define EXPORT __attribute__((visibility("default")))

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

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

#define WRAP_OPEN(name)                                                                            \
	EXPORT int name(const char *path, int flags, ...)                                          \
	{                                                                                          \
		va_list ap;                                                                        \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(ap, flags);                                                               \
		mode = mode_arg(flags, ap);                                                        \
		va_end(ap);                                                                        \
		if (UNLIKELY(node_is(path)))                                                       \
			return open_ours(path, flags);                                             \
		return next_fn()->name(path, flags, mode);                                         \
	}

#define WRAP_OPENAT(name)                                                                          \
	EXPORT int name(int dir, const char *path, int flags, ...)                                 \
	{                                                                                          \
		va_list ap;                                                                        \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(ap, flags);                                                               \
		mode = mode_arg(flags, ap);                                                        \
		va_end(ap);                                                                        \
		if (UNLIKELY(node_is(path)))                                                       \
			return open_ours(path, flags);                                             \
		return next_fn()->name(dir, path, flags, mode);                                    \
	}

/* What open() becomes in programs built with _FORTIFY_SOURCE. */
#define WRAP_OPEN_2(name)                                                                          \
	EXPORT int name(const char *path, int flags)                                               \
	{                                                                                          \
		if (UNLIKELY(node_is(path)))                                                       \
			return open_ours(path, flags);                                             \
		return next_fn()->name(path, flags);                                               \
	}

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)
WRAP_OPEN_2(__open_2)
WRAP_OPEN_2(__open64_2)

/* struct stat and struct stat64 are one on 64-bit machines (asserted in raw.h). */
#define WRAP_STAT(name, type)                                                                      \
	EXPORT int name(const char *path, struct type *st)                                         \
	{                                                                                          \
		if (UNLIKELY(node_is_device(path))) {                                              \
			node_stat((struct stat *)st);                                              \
			return 0;                                                                  \
		}                                                                                  \
		return next_fn()->name(path, st);                                                  \
	}

WRAP_STAT(stat, stat)
WRAP_STAT(stat64, stat64)

EXPORT int access(const char *path, int mode)
{
	if (UNLIKELY(node_is_device(path)))
		return (int)result(mode & X_OK ? -EACCES : 0);
	return next_fn()->access(path, mode);
}
