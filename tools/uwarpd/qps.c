/* SPDX-License-Identifier: BSD-3-Clause */
/* Which client has which QP, of datagrams or of RC without rdma_cm. QP numbers are random, and are
 * not kept when a QP is gone.
 */
#include <stdlib.h>

#include "server.h"

enum { FIRST_ROOM = 16 };
/* Pieces to look at in a tick. */
enum { LOOKS = 256 };

/* What a QP has sent may still be in its client's conduit when it is released. */
#define LINGER_US 1000000u

static bool make_room(struct client *c)
{
	unsigned room = c->qps_room ? 2 * c->qps_room : FIRST_ROOM;
	struct held_qp *more;

	if (c->n_qps < c->qps_room)
		return true;
	more = realloc(c->qps, room * sizeof(*more));
	if (!more)
		return false;
	c->qps = more;
	c->qps_room = room;
	return true;
}

static enum switch_msg_why claim_of_port(struct server *s)
{
	return s->uplink->ops->claim_packets ? s->uplink->ops->claim_packets(s->uplink)
					     : SWITCH_GRANTED;
}

bool qps_are_asked_for(struct server *s)
{
	return s->table.qps && claim_of_port(s) == SWITCH_GRANTED;
}

static struct held_qp *find(const struct client *c, uint32_t qpn)
{
	for (unsigned i = 0; i < c->n_qps; i++) {
		if (c->qps[i].qpn == qpn)
			return &c->qps[i];
	}
	return NULL;
}

static void keep(struct server *s, struct held_qp *h)
{
	s->lingering_qps -= h->until_us != 0;
	h->until_us = 0;
}

/* The user's own, or one whose time is over; NULL: there is none. */
static struct left_sum *sum_of(struct server *s, uid_t uid)
{
	struct left_sum *found = NULL;

	for (unsigned i = 0; i < LEFT_USERS; i++) {
		struct left_sum *it = &s->left_sums[i];

		if (left_is_over(it->until_s, s->now_us))
			found = it;
		else if (it->uid == uid)
			return it;
	}
	if (found)
		*found = (struct left_sum){ uid, 0, left_until(s->now_us + LEFT_KEEP_US) };
	return found;
}

/* In the time for which they are kept a user may leave as many as its processes may have. */
static bool may_leave(struct server *s, uid_t uid)
{
	struct left_sum *sum = sum_of(s, uid);

	return sum && sum->n++ < s->o.max_per_user * s->o.max_ports;
}

/* Without memory for it the QP is anybody's at once, and so is one too many. */
static void note_left(struct server *s, uid_t uid, uint32_t qpn)
{
	struct left_piece **piece = &s->left_qps[qpn / LEFT_PIECE];
	uint64_t until_us = s->now_us + LEFT_KEEP_US;

	if (!may_leave(s, uid))
		return;
	if (!*piece)
		*piece = calloc(1, sizeof(**piece));
	if (!*piece)
		return;
	left_by(&(*piece)->of[qpn % LEFT_PIECE], uid, until_us);
	(*piece)->until_s = left_until(until_us);
}

static bool is_kept(const struct server *s, uid_t uid, uint32_t qpn)
{
	const struct left_piece *piece = s->left_qps[qpn / LEFT_PIECE];

	return piece && !left_to(&piece->of[qpn % LEFT_PIECE], uid, s->now_us);
}

static enum switch_msg_why take(struct server *s, struct client *c, uint32_t qpn)
{
	struct switch_qps *q = s->table.qps;

	if (q->holder[qpn] && q->holder[qpn] != c->id)
		return SWITCH_IN_USE;
	if (q->holder[qpn]) { /* perhaps released a while ago */
		keep(s, find(c, qpn));
		return SWITCH_GRANTED;
	}
	if (is_kept(s, c->uid, qpn))
		return SWITCH_IN_USE;
	if (c->n_qps >= s->o.max_ports)
		return SWITCH_LIMIT;
	if (!make_room(c))
		return SWITCH_NO_MEMORY;
	c->qps[c->n_qps++] = (struct held_qp){ .qpn = qpn };
	q->holder[qpn] = c->id;
	q->n[c->id]++;
	return SWITCH_GRANTED;
}

enum switch_msg_why qps_claim(struct server *s, struct client *c, uint32_t qpn)
{
	enum switch_msg_why why;

	if (!s->table.qps || !qpn || qpn >= SWITCH_QPN_END)
		return SWITCH_NOT_YOURS;
	why = claim_of_port(s);
	if (why != SWITCH_GRANTED)
		return why;
	if (qpn != SWITCH_CM_QP)
		return take(s, c, qpn);
	s->table.qps->manages[c->id] = true;
	return SWITCH_GRANTED;
}

static void give_back(struct server *s, struct client *c, struct held_qp *h)
{
	struct switch_qps *q = s->table.qps;

	keep(s, h);
	q->holder[h->qpn] = SWITCH_NOBODY;
	q->n[c->id]--;
	*h = c->qps[--c->n_qps];
}

void qps_release(struct server *s, struct client *c, uint32_t qpn)
{
	struct held_qp *h = find(c, qpn);

	if (!h || h->until_us)
		return;
	h->until_us = s->now_us + LINGER_US;
	s->lingering_qps++;
}

/* Another client may get its number. */
static void forget_questions(struct switch_qps *q, uint16_t client)
{
	for (unsigned i = 0; i < SWITCH_ASKED_MAX; i++) {
		if (q->asked[i].client == client)
			q->asked[i].client = SWITCH_NOBODY;
	}
	q->manages[client] = false;
}

void qps_release_all(struct server *s, struct client *c)
{
	while (c->n_qps) {
		struct held_qp *h = &c->qps[c->n_qps - 1];

		note_left(s, c->uid, h->qpn);
		give_back(s, c, h);
	}
	if (s->table.qps)
		forget_questions(s->table.qps, c->id);
	free(c->qps);
	c->qps = NULL;
	c->qps_room = 0;
}

static void tick(struct server *s, struct client *c)
{
	for (unsigned i = c->n_qps; i--;) {
		struct held_qp *h = &c->qps[i];

		if (h->until_us && h->until_us <= s->now_us)
			give_back(s, c, h);
	}
}

void qps_close(struct server *s)
{
	for (unsigned i = 0; i < LEFT_PIECES; i++)
		free(s->left_qps[i]);
}

/* One piece each time. */
static void forget_left(struct server *s)
{
	struct left_piece **piece = &s->left_qps[s->left_at];

	s->left_at = (s->left_at + 1) % LEFT_PIECES;
	if (!*piece || !left_is_over((*piece)->until_s, s->now_us))
		return;
	free(*piece);
	*piece = NULL;
}

void qps_tick(struct server *s)
{
	if (s->table.qps) {
		s->table.qps->may_ask_all = true;
		s->table.qps->second = (uint16_t)(s->now_us / 1000000);
	}
	for (unsigned i = 0; i < LOOKS; i++)
		forget_left(s);
	for (unsigned i = 0; i < s->n && s->lingering_qps; i++)
		tick(s, s->active[i]);
}
