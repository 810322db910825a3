/* SPDX-License-Identifier: BSD-3-Clause */
/* Error messages of links: one line on stderr. */
#ifndef UWARP_IO_LOG_H
#define UWARP_IO_LOG_H

#include "base/status.h"

/* Prints "uwarp: " and the line in one write, returns st. */
uw_status log_error(uw_status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* addr_be as text ("127.0.0.2"), in one of a few buffers of the calling thread. */
const char *log_addr(uint32_t addr_be);

#endif
