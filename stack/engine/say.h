/* SPDX-License-Identifier: BSD-3-Clause */
/* The few lines that the engine says on stderr: each names what happened and what to fix. */
#ifndef UWARP_ENGINE_SAY_H
#define UWARP_ENGINE_SAY_H

#include "base/status.h"

struct uw_ep;
struct uw_engine;

/* "uwarp: " + the line + newline, in one write. */
void engine_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Why a connection did not come to be; a repeat of the same line is swallowed. */
void engine_say_connect_failed(const struct uw_ep *ep, uw_status why);
/* Neither side may speak first; said once. */
void engine_say_both_wait(const struct uw_ep *ep);

#endif
