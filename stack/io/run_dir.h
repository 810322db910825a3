/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the processes of a user meet: the run directory. tools/run/place.py has the same rule, and
 * a test compares the two. */
#ifndef UWARP_IO_RUN_DIR_H
#define UWARP_IO_RUN_DIR_H

#include <stdbool.h>
#include <stddef.h>

/* `chosen` (UWARP_DIR) if it is not empty, made absolute; else `uwarp` in XDG_RUNTIME_DIR, if that
 * is the user's own and may be written to; else /tmp/uwarp-UID. It need not exist. false with
 * errno: it has no room in `dir`, or the working directory that it is in has gone. */
bool run_dir_find(const char *chosen, char *dir, size_t size);

#endif
