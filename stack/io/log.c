/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/log.h"

#include <arpa/inet.h>
#include <stdarg.h>

#include "base/log.h"

uw_status log_error(uw_status st, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	uw_vlog(fmt, ap);
	va_end(ap);
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
