/* SPDX-License-Identifier: BSD-3-Clause */
/* Pointers to the next definitions of the functions that this room wraps: those of libc, or of
 * another preloaded library between this one and libc. */
#ifndef UWARP_NEXT_H
#define UWARP_NEXT_H

#include <dirent.h>
#include <glob.h>
#include <ifaddrs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#define NEXT_LIST(X)                                                                               \
	X(int, socket, (int, int, int))                                                            \
	X(int, getifaddrs, (struct ifaddrs **))                                                    \
	X(void, freeifaddrs, (struct ifaddrs *))                                                   \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int))                                     \
	X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))   \
	X(ssize_t, read, (int, void *, size_t))                                                    \
	X(int, poll, (struct pollfd *, nfds_t, int))                                               \
	X(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))        \
	X(int, epoll_create, (int))                                                                \
	X(int, epoll_create1, (int))                                                               \
	X(int, epoll_ctl, (int, int, int, struct epoll_event *))                                   \
	X(int, epoll_wait, (int, struct epoll_event *, int, int))                                  \
	X(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *))               \
	X(int, epoll_pwait2,                                                                       \
	  (int, struct epoll_event *, int, const struct timespec *, const sigset_t *))             \
	X(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *))                      \
	X(int, pselect,                                                                            \
	  (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *))          \
	X(ssize_t, __read_chk, (int, void *, size_t, size_t))                                      \
	X(int, __poll_chk, (struct pollfd *, nfds_t, int, size_t))                                 \
	X(int, __ppoll_chk,                                                                        \
	  (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t))            \
	X(int, open, (const char *, int, ...))                                                     \
	X(int, open64, (const char *, int, ...))                                                   \
	X(int, openat, (int, const char *, int, ...))                                              \
	X(int, openat64, (int, const char *, int, ...))                                            \
	X(int, __open_2, (const char *, int))                                                      \
	X(int, __open64_2, (const char *, int))                                                    \
	X(int, __openat_2, (int, const char *, int))                                               \
	X(int, __openat64_2, (int, const char *, int))                                             \
	X(FILE *, fopen, (const char *, const char *))                                             \
	X(FILE *, fopen64, (const char *, const char *))                                           \
	X(DIR *, opendir, (const char *))                                                          \
	X(int, scandir,                                                                            \
	  (const char *, struct dirent ***, int (*)(const struct dirent *),                        \
	   int (*)(const struct dirent **, const struct dirent **)))                               \
	X(int, scandir64,                                                                          \
	  (const char *, struct dirent64 ***, int (*)(const struct dirent64 *),                    \
	   int (*)(const struct dirent64 **, const struct dirent64 **)))                           \
	X(int, glob, (const char *, int, int (*)(const char *, int), glob_t *))                    \
	X(int, glob64, (const char *, int, int (*)(const char *, int), glob64_t *))                \
	X(ssize_t, readlink, (const char *, char *, size_t))                                       \
	X(ssize_t, readlinkat, (int, const char *, char *, size_t))                                \
	X(int, chdir, (const char *))                                                              \
	X(char *, getcwd, (char *, size_t))                                                        \
	X(ssize_t, getxattr, (const char *, const char *, void *, size_t))                         \
	X(ssize_t, lgetxattr, (const char *, const char *, void *, size_t))                        \
	X(ssize_t, listxattr, (const char *, char *, size_t))                                      \
	X(ssize_t, llistxattr, (const char *, char *, size_t))                                     \
	X(char *, realpath, (const char *, char *))                                                \
	X(int, fstat, (int, struct stat *))                                                        \
	X(int, fstat64, (int, struct stat64 *))                                                    \
	X(int, fstatat, (int, const char *, struct stat *, int))                                   \
	X(int, statx, (int, const char *, int, unsigned, struct statx *))                          \
	X(int, access, (const char *, int))                                                        \
	X(int, faccessat, (int, const char *, int, int))                                           \
	X(int, eaccess, (const char *, int))                                                       \
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

/* The first call looks the functions up; later calls cost one load. */
const struct next *next_fn(void);

/* Set what is NULL, since glibc before 2.33 does not export it, to the system call. Programs of
 * such a glibc call __fxstat() and its like. */
void next_fill(struct next *t);

#endif
