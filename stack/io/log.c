/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/log.h"

uw_status log_error(uw_status st, const char *fmt, ...)
{
	static const char prefix[] = "uwarp: ";
	char line[512];
	size_t len = sizeof(prefix) - 1;
	va_list ap;

	memcpy(line, prefix, len);
	va_start(ap, fmt);
	int n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return st;
	len += (size_t)n < sizeof(line) - len - 1 ? (size_t)n : sizeof(line) - len - 2;
	line[len++] = '\n';
	/* One write, so that the lines of several processes do not mix. */
	if (write(STDERR_FILENO, line, len) < 0)
		return st;
	return st;
}

const char *log_addr(uint32_t addr_be)
{
	static _Thread_local char text[4][INET_ADDRSTRLEN];
	static _Thread_local unsigned turn;
	struct in_addr in = { .s_addr = addr_be };
	char *out = text[turn++ % 4];

	return inet_ntop(AF_INET, &in, out, INET_ADDRSTRLEN) ? out : "?";
}
