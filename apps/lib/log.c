/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

#define LINE_MAX_OCTETS 512

static void line(const char *format, va_list values, int err)
{
	char text[LINE_MAX_OCTETS];

	vsnprintf(text, sizeof(text), format, values);
	fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, text, err ? ": " : "",
		err ? strerror(err) : "");
}

void log_line(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	line(format, values, 0);
	va_end(values);
}

int log_errno(const char *format, ...)
{
	int err = errno ? errno : EIO;
	va_list values;

	va_start(values, format);
	line(format, values, err);
	va_end(values);
	return -err;
}
