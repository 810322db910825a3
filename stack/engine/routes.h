/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The routes of the links (io/route): those that the user names (UWARP_GATEWAY, UWARP_ROUTES), and
 * where the link is an interface of the kernel, the kernel's, whose changes a thread follows
 * (doc/adr/0028).
 */
#ifndef UWARP_ENGINE_ROUTES_H
#define UWARP_ENGINE_ROUTES_H

#include "engine/engine.h"

/* The links are open, one for each stack, and no stack uses them yet. An error writes one line to
 * stderr. */
uw_status engine_routes_open(struct uw_engine *e, struct io_link *const *links) UW_CHECK;
/* The stacks use the links: follow the kernel's changes from now on. No lock held. */
int engine_routes_follow(struct uw_engine *e);
/* Stop to follow; no lock held. Before the links are closed. */
void engine_routes_stop(struct uw_engine *e);
/* The links are closed: free everything. */
void engine_routes_free(struct uw_engine *e);

#endif
