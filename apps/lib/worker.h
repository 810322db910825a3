/* SPDX-License-Identifier: BSD-3-Clause */
/* A server's workers; for server.c alone. */
#ifndef APPS_WORKER_H
#define APPS_WORKER_H

#include "server.h"

#define SENDS_EACH 2u /* requests in the send queue for each slot: a WRITE and the reply */

int worker_start(struct worker *w, struct server *s, unsigned index);
/* Ends the thread, and the sessions without ceremony. */
void worker_close(struct worker *w);
/* From here on the session is the worker's. */
void worker_add(struct worker *w, struct session *s);
/* The connection is over: the worker frees the session when nothing of it is under way. */
void worker_end(struct session *s);

#endif
