/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines for the user, on stderr, with the program's name in front. */
#ifndef APPS_LOG_H
#define APPS_LOG_H

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Also says what errno means, and returns it negated (-EIO if it is 0). */
int log_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
