/* SPDX-License-Identifier: BSD-3-Clause */
/* libc's own definitions of the functions that this room wraps, or those of another preloaded
 * library between this one and libc. */
#ifndef UWARP_NEXT_H
#define UWARP_NEXT_H

#include <ifaddrs.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#define NEXT_LIST(X)                                                                               \
	X(int, socket, (int, int, int))                                                            \
	X(int, getifaddrs, (struct ifaddrs **))                                                    \
	X(void, freeifaddrs, (struct ifaddrs *))                                                   \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int))                                     \
	X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))   \
	X(ssize_t, recv, (int, void *, size_t, int))                                               \
	X(int, open, (const char *, int, ...))                                                     \
	X(int, open64, (const char *, int, ...))                                                   \
	X(int, openat, (int, const char *, int, ...))                                              \
	X(int, openat64, (int, const char *, int, ...))                                            \
	X(int, __open_2, (const char *, int))                                                      \
	X(int, __open64_2, (const char *, int))                                                    \
	X(int, stat, (const char *, struct stat *))                                                \
	X(int, stat64, (const char *, struct stat64 *))                                            \
	X(int, fstat, (int, struct stat *))                                                        \
	X(int, fstat64, (int, struct stat64 *))                                                    \
	X(int, access, (const char *, int))                                                        \
	X(int, ioctl, (int, unsigned long, ...))                                                   \
	X(ssize_t, write, (int, const void *, size_t))                                             \
	X(int, close, (int))                                                                       \
	X(int, dup, (int))                                                                         \
	X(int, dup2, (int, int))                                                                   \
	X(int, dup3, (int, int, int))                                                              \
	X(int, fcntl, (int, int, ...))                                                             \
	X(int, fcntl64, (int, int, ...))

struct next {
#define NEXT_FIELD(ret, name, args) ret(*name) args;
	NEXT_LIST(NEXT_FIELD)
#undef NEXT_FIELD
};

/* Resolved at the first call; afterwards one load. */
const struct next *next_fn(void);

#endif
