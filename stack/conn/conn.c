/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's record, its states, its events and its end. */
#include "conn/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/slab.h"

/* ---- states ------------------------------------------------------------------------------ */

#define TO(s) (1u << CONN_##s)

/* Which states may follow which. Any state may end; nothing follows the end. */
static const unsigned next_states[CONN_STATES] = {
	[CONN_NEW] = TO(CONNECTING) | TO(STARTING) | TO(ENDED),
	[CONN_CONNECTING] = TO(RETRY) | TO(STARTING) | TO(ENDED),
	[CONN_RETRY] = TO(CONNECTING) | TO(ENDED),
	[CONN_STARTING] = TO(REQUESTED) | TO(STREAMING) | TO(ENDED),
	[CONN_REQUESTED] = TO(STREAMING) | TO(ENDED),
	[CONN_STREAMING] = TO(CLOSING) | TO(ENDED),
	[CONN_CLOSING] = TO(ENDED),
	[CONN_ENDED] = 0,
};

bool conn_may_enter(enum conn_state from, enum conn_state to)
{
	return next_states[from] & 1u << to;
}

const char *conn_state_name(unsigned state)
{
	static const char *const name[CONN_STATES] = {
		[CONN_NEW] = "new",
		[CONN_CONNECTING] = "connecting",
		[CONN_RETRY] = "retry",
		[CONN_STARTING] = "starting",
		[CONN_REQUESTED] = "requested",
		[CONN_STREAMING] = "streaming",
		[CONN_CLOSING] = "closing",
		[CONN_ENDED] = "ended",
	};

	return state < CONN_STATES ? name[state] : "?";
}

void conn_note(struct conn *c, unsigned kind, uint32_t arg)
{
	history_add(&c->history, stack_now_us(c->stack), kind, arg);
}

void conn_enter(struct conn *c, enum conn_state to)
{
	if (c->state != to && !conn_may_enter(c->state, to)) {
		c->stack->sched.stats.conn_bad_state++;
		to = CONN_ENDED;
	}
	if (to != CONN_STARTING)
		silent_remove(c);
	if (to == CONN_ENDED)
		silent_leave(c);
	if (to == CONN_STREAMING || to == CONN_ENDED)
		order_done(c);
	if (c->state != to)
		conn_note(c, HISTORY_STATE, to);
	c->state = (uint8_t)to;
}

#define HINT_US	   2000000u
#define NEXT_ROUND 1u /* a time that is due at the next round of timers */

/* ---- the record -------------------------------------------------------------------------- */

struct conn *conn_create(struct stack *s, enum conn_role role)
{
	struct conn *c = slab_alloc(sizeof(*c));

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->stack = s;
	c->role = (uint8_t)role;
	c->since_us = stack_now_us(s);
	c->local = c->remote = uw_ip_v4(0);
	c->next = s->conns;
	c->link = &s->conns;
	if (c->next)
		c->next->link = &c->next;
	s->conns = c;
	return c;
}

void conn_forget_unsent(struct conn *c)
{
	free(c->unsent);
	c->unsent = NULL;
	c->unsent_len = 0;
}

void conn_forget_startup(struct conn *c)
{
	free(c->cm);
	free(c->request);
	c->cm = NULL;
	c->request = NULL;
	if (c->claimed)
		c->claimed->claimed_by = NULL;
	c->claimed = NULL;
}

/* ---- the stack's lists ---------------------------------------------------------------------- */

void conn_send_soon(struct conn *c)
{
	if (c->in_tx_list)
		return;
	c->in_tx_list = true;
	c->tx_next = NULL;
	if (c->stack->tx_last)
		c->stack->tx_last->tx_next = c;
	else
		c->stack->tx_first = c;
	c->stack->tx_last = c;
}

void conn_complete_soon(struct conn *c)
{
	if (c->in_acked_list)
		return;
	c->in_acked_list = true;
	c->acked_next = c->stack->acked_list;
	c->stack->acked_list = c;
}

static void leave_tx_list(struct conn *c)
{
	struct stack *s = c->stack;
	struct conn *before = NULL, **p = &s->tx_first;

	while (*p && *p != c) {
		before = *p;
		p = &before->tx_next;
	}
	if (!*p)
		return;
	*p = c->tx_next;
	if (s->tx_last == c)
		s->tx_last = before;
}

static void leave_acked_list(struct conn *c)
{
	struct conn **p = &c->stack->acked_list;

	while (*p && *p != c)
		p = &(*p)->acked_next;
	if (*p)
		*p = c->acked_next;
}

void conn_leave_lists(struct conn *c)
{
	if (c->in_tx_list)
		leave_tx_list(c);
	if (c->in_acked_list)
		leave_acked_list(c);
}

/* ---- the timer ------------------------------------------------------------------------------ */

/* b 0: never. */
static uint64_t earlier(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

static uint64_t streaming_due(const struct conn *c)
{
	uint64_t at = UINT64_MAX;

	if (c->silence == PEER_SILENT_WE_SENT)
		at = NEXT_ROUND;
	else if (c->silence == PEER_SILENT)
		at = earlier(at, c->nudge_us);
	return earlier(at, c->gate_us);
}

static uint64_t due_of(const struct conn *c)
{
	uint64_t at = UINT64_MAX;

	if (c->cm_less && c->state == CONN_ENDED)
		return NEXT_ROUND;
	if (c->state == CONN_RETRY)
		at = NEXT_ROUND;
	if (c->state == CONN_STREAMING)
		at = streaming_due(c);
	if (c->state == CONN_STARTING)
		at = earlier(at, c->cm->deadline_us);
	return earlier(earlier(at, c->rnr_until_us), c->deadline_us);
}

/* A time that is no longer waited for stays set: when it comes, nothing is found to be due. */
void conn_arm(struct conn *c)
{
	struct stack *s = c->stack;
	uint64_t at = due_of(c);

	if (at == UINT64_MAX)
		return;
	if (at <= s->timers_us)
		at = s->timers_us + 1; /* not in the same round once more */
	if (!c->timer.set || at < c->timer.at_us)
		deadline_set(&s->timers, &c->timer, at);
}

uint64_t conn_gate_period_us(const struct conn *c)
{
	return conn_cfg(c)->speak_first_ms ? conn_cfg(c)->speak_first_ms * 1000ull : HINT_US;
}

/* ---- the end ----------------------------------------------------------------------------- */

void conn_end(struct conn *c)
{
	struct llp_conn *llp = c->llp;

	c->llp = NULL;
	conn_enter(c, CONN_ENDED);
	c->deadline_us = 0;
	conn_arm(c);
	conn_forget_unsent(c);
	if (llp)
		c->stack->llp->close(llp);
}

/* ---- events ------------------------------------------------------------------------------ */

void conn_event(struct conn *c, enum uw_cm_event_type type, uw_status why)
{
	struct uw_cm_event ev = { .type = type,
				  .error = -uw_status_errno(why),
				  .stack = (struct uw_stack *)c->stack };

	if (c->cm && (type == UW_CM_ESTABLISHED || type == UW_CM_REJECTED)) {
		ev.param.private_data = c->cm->peer.pd.p;
		ev.param.private_data_len = (uint16_t)c->cm->peer.pd.n;
		ev.param.ird = c->cm->peer.ird;
		ev.param.ord = c->cm->peer.ord;
	}
	if (c->user)
		c->user->event(c, type, &ev);
	if (type == UW_CM_ESTABLISHED || c->state == CONN_ENDED)
		conn_forget_startup(c);
}
