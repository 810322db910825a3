/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine says: checked and counted instead of printed, since a run says the same thousands
 * of times. */
#ifndef UWARP_FUZZ_SAY_H
#define UWARP_FUZZ_SAY_H

#include <stddef.h>
#include <sys/types.h>

extern unsigned fuzz_said;

ssize_t fuzz_say(int fd, const char *line, size_t n);

#endif
