/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/history.h"

#include <stddef.h>

static struct history_event *latest(struct history *h)
{
	return h->n ? &h->event[(h->n - 1) % HISTORY_EVENTS] : NULL;
}

/* A change of state is an event of its own each time; all others are counted. */
static bool repeats(const struct history_event *e, unsigned kind)
{
	return e && e->kind == kind && kind != HISTORY_STATE;
}

void history_add(struct history *h, uint64_t now_us, unsigned kind, uint32_t arg)
{
	struct history_event *e = latest(h);

	if (!repeats(e, kind)) {
		e = &h->event[h->n++ % HISTORY_EVENTS];
		*e = (struct history_event){ .first_us = now_us, .kind = (uint8_t)kind };
	}
	e->for_ms = (uint32_t)((now_us - e->first_us) / 1000);
	e->count++;
	e->arg = arg;
}

uint32_t history_count(const struct history *h)
{
	return h->n < HISTORY_EVENTS ? h->n : HISTORY_EVENTS;
}

const struct history_event *history_at(const struct history *h, uint32_t i)
{
	return &h->event[(h->n - history_count(h) + i) % HISTORY_EVENTS];
}

const struct history_event *history_last(const struct history *h, unsigned kind)
{
	for (uint32_t i = history_count(h); i > 0; i--) {
		const struct history_event *e = history_at(h, i - 1);

		if (e->kind == kind)
			return e;
	}
	return NULL;
}

const char *history_text(unsigned kind)
{
	static const char *const text[HISTORY_KINDS] = {
		[LLP_SENT_AGAIN] = "segment sent again, from sequence number",
		[LLP_RTO] = "no ACK in time; next retransmission timeout in ms:",
		[LLP_PROBE] = "tail loss probe sent",
		[LLP_TIMEOUTS] = "timeouts in a row:",
		[LLP_RESET] = "RST came",
		[LLP_UNANSWERED] = "given up; ms without an ACK:",
		[LLP_SILENT] = "keepalives unanswered; ms without a segment:",
		[LLP_PROCESS_GONE] = "the peer's process has ended",
		[HISTORY_STATE] = "state",
		[HISTORY_PEER_FIN] = "FIN came",
		[HISTORY_FAILED] = "QP in error",
	};

	return kind < HISTORY_KINDS ? text[kind] : "?";
}
