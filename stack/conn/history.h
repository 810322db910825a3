/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last events of a connection, for the person who asks why it ended (doc/adr/0029). The size is
 * constant: a new event takes the place of the oldest, and an event that repeats is counted in the
 * one before. Nothing here is used by a message that goes well.
 */
#ifndef UWARP_CONN_HISTORY_H
#define UWARP_CONN_HISTORY_H

#include "io/llp.h"

#define HISTORY_EVENTS 16u

enum history_kind {
	/* enum llp_note, with the arg that it has there */
	HISTORY_STATE = LLP_NOTES, /* arg: the new enum conn_state */
	HISTORY_PEER_FIN,	   /* the peer's FIN came */
	HISTORY_FAILED,		   /* the QP went to error; arg: uw_status */
	HISTORY_KINDS
};

struct history_event {
	uint64_t first_us; /* on the stack's clock */
	uint32_t for_ms;   /* from the first to the last of those counted here */
	uint32_t count;
	uint32_t arg; /* of the last */
	uint8_t kind; /* enum llp_note or history_kind */
};

struct history {
	uint32_t n; /* events ever added, but for repeated ones */
	struct history_event event[HISTORY_EVENTS];
};

void history_add(struct history *h, uint64_t now_us, unsigned kind, uint32_t arg);
/* The number of events kept. */
uint32_t history_count(const struct history *h);
/* Event i < history_count(), the oldest first. */
const struct history_event *history_at(const struct history *h, uint32_t i);
/* The latest event of that kind; NULL: none is kept. */
const struct history_event *history_last(const struct history *h, unsigned kind);
/* The event in words, such as "segment sent again". Never NULL. */
const char *history_text(unsigned kind);

#endif
