/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that finds the way to peers of CM-less RC, which may block and so is not done under the
 * stack lock. Only for links where that can block (io_ops.resolve). */
#ifndef UWARP_ENGINE_FINDER_H
#define UWARP_ENGINE_FINDER_H

#include "base/status.h"

struct uw_engine;
struct uw_rc;

/* All under the stack lock but engine_finder_stop. */
uw_status engine_finder_start(struct uw_engine *e) UW_CHECK;
/* There is a uw_rc in RC_FINDING. */
void engine_finder_kick(struct uw_engine *e);
void engine_finder_stop(struct uw_engine *e);
/* rc.c: the way is known, or not. */
void engine_rc_found(struct uw_rc *rc, uw_status st);

#endif
