/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on standard error, for the person who runs the program. */
#ifndef UWARP_BASE_LOG_H
#define UWARP_BASE_LOG_H

#include <stdarg.h>

/* Write "uwarp: ", the line and a newline in one write. Any thread. Never on the hot path. */
void uw_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void uw_vlog(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

#endif
