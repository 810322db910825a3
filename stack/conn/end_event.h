/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DISCONNECTED, which waits until the program has read what was completed before the end.
 *
 * A program may find its CQ empty, lose the CPU, read the event and destroy the QP with the
 * completions that came meanwhile: libfabric's ofi_rxm does. With hardware the event takes the way
 * of a MAD, long after them.
 */
#ifndef UWARP_CONN_END_EVENT_H
#define UWARP_CONN_END_EVENT_H

#include "conn/conn.h"

/* The longest wait of an event: after it the program is told, whether it has read or not. */
#define END_EVENT_US 10000u
/* Most events of one stack that wait; beyond that programs are told at once. */
#define END_EVENTS_MAX 64u

struct end_event;

/* All under the stack lock. c's QP is about to be flushed; why: as for conn_qp_down(). NULL: there
 * is nothing to read first, or the program asked for the end itself; it is told at once. */
struct end_event *end_event_new(struct conn *c, uw_status why);
/* Tell the program of c's end, now or when e, which end_event_new() returned, has waited. */
void end_event_tell(struct conn *c, struct end_event *e);
/* Tell the programs that have read everything. */
void end_events_look(struct stack *s);
/* c's event, if one waits: tell the program now, or never. */
void end_event_now(struct conn *c);
void end_event_drop(const struct conn *c);
/* Under all locks: q is about to be destroyed, and perhaps its CQs. An event that waits for what
 * they hold is told now. */
void end_event_forget_qp(const struct conn_qp *q);

#endif
