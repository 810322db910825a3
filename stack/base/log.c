/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void uw_vlog(const char *fmt, va_list ap)
{
	char line[512] = "uwarp: ";
	size_t n = strlen(line);
	int k = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);

	if (k > 0)
		n += (size_t)k < sizeof(line) - n - 1 ? (size_t)k : sizeof(line) - n - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* standard error is closed: nobody to tell */
}

void uw_log(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	uw_vlog(fmt, ap);
	va_end(ap);
}
