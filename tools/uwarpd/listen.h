/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of a uwarpd: made, or inherited from systemd; and what systemd is told. */
#ifndef UWARPD_LISTEN_H
#define UWARPD_LISTEN_H

#include <stdbool.h>

#include "options.h"

/* Listen at o->path; *inherited: systemd's socket (LISTEN_FDS, sd_listen_fds(3)) is used instead.
 * -1: one line on stderr says why. A socket that nobody listens on any more is replaced. */
int listen_open(const struct options *o, bool *inherited);

/* Tell systemd (NOTIFY_SOCKET, sd_notify(3)), if it asked for it. */
void listen_notify(const char *state);

#endif
