/* SPDX-License-Identifier: BSD-3-Clause */
/* The few lines that the engine says on stderr: each names what happened and what to fix. */
#ifndef UWARP_ENGINE_SAY_H
#define UWARP_ENGINE_SAY_H

#include "base/stats.h"
#include "base/status.h"
#include "cm/rc.h"

struct io_link;
struct io_stats;
struct uw_ep;
struct uw_engine;
struct uw_rc;

/* "uwarp: " + the line + newline, in one write. */
void engine_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Why a connection did not come to be; a repeat of the same line is swallowed. */
void engine_say_connect_failed(const struct uw_ep *ep, uw_status why);
/* Neither side may speak first; said once. */
void engine_say_both_wait(const struct uw_ep *ep);

/* verbose: how often payload was copied. */
/* verbose: what every layer counted, and a link. */
void engine_say_counters(const struct uw_stats *st);
void engine_say_link(const struct io_link *l);
/* What went to a port that cuts. */
void engine_say_tso(const struct io_stats *st);

/* CM-less RC: nobody was there in time; the peer says no. */
void engine_say_no_peer(const struct uw_rc *rc);
void engine_say_refused(const struct uw_rc *rc, enum rc_refusal why);

#endif
