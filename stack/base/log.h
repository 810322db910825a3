/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on standard error, for the person who runs the program. */
#ifndef UWARP_BASE_LOG_H
#define UWARP_BASE_LOG_H

#include <stdarg.h>
#include <stddef.h>
#include <sys/types.h>

/* Write "uwarp: ", the line and a newline in one write. Any thread. Never on the hot path. */
void uw_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void uw_vlog(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* As write(), but a pipe whose reader has ended raises no signal: the program does not know of it.
 */
ssize_t uw_write_quietly(int fd, const void *octets, size_t n);

#endif
