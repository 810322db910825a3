/* SPDX-License-Identifier: BSD-3-Clause */
/* Start-up frames and a stream's segments, into TCP. */
#include <stdlib.h>
#include <string.h>

#include "conn/conn.h"

#define TURN_SEGMENTS 16u    /* then other connections have their turn */
#define FLUSH_OCTETS  16384u /* then the link gets them: the peer works while we go on */
#define FIRST_OCTETS  4096u  /* ... and these at once, so that it begins early */
/* A link that merges segments takes a merged frame in little more time than a single one: it gets
 * two whole ones at once, each of as many segments as fit in one IP packet, and not a third of few.
 */
#define MERGED_OCTETS 128000u

/* ---- start-up frames ---------------------------------------------------------------------- */

/* As much as there is room for. A peer may announce segments that are smaller than the frame. */
static size_t put_frame(struct conn *c, const uint8_t *frame, size_t n)
{
	const struct llp_ops *llp = c->stack->llp;
	size_t done = 0;

	while (done < n) {
		size_t room, part;
		uint8_t *p = llp->tx_begin(c->llp, &room);

		if (!p)
			break;
		part = n - done < room ? n - done : room;
		memcpy(p, frame + done, part);
		llp->tx_commit(c->llp, part);
		done += part;
	}
	if (done)
		llp->tx_flush(c->llp);
	return done;
}

/* Many connections that come up at once have more to say than the link takes at a time. */
uw_status conn_send_frame(struct conn *c, const uint8_t *frame, size_t n)
{
	size_t done = put_frame(c, frame, n);

	if (done == n)
		return UW_OK;
	c->unsent = malloc(n - done);
	if (!c->unsent)
		return UW_E_NOMEM;
	c->unsent_len = (uint16_t)(n - done);
	memcpy(c->unsent, frame + done, n - done);
	conn_send_soon(c);
	return UW_OK;
}

bool conn_send_unsent(struct conn *c)
{
	size_t done;

	if (!c->unsent)
		return true;
	done = c->llp ? put_frame(c, c->unsent, c->unsent_len) : c->unsent_len;
	c->unsent_len = (uint16_t)(c->unsent_len - done);
	if (c->unsent_len) {
		memmove(c->unsent, c->unsent + done, c->unsent_len);
		conn_send_soon(c);
		return false;
	}
	conn_forget_unsent(c);
	return true;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- the stream --------------------------------------------------------------------------- */

static void sent_something(struct conn *c)
{
	c->stack->llp->tx_flush(c->llp);
	if (c->silence == PEER_HEARD)
		return;
	c->silence = PEER_SILENT_WE_SENT;
	conn_arm(c);
}

static void flush_to_peer(struct conn *c)
{
	c->stack->llp->tx_flush(c->llp);
	stack_flush(c->stack);
	sched_wake_peers(&c->stack->sched);
}

static bool is_our_turn(const struct conn *c, unsigned segments, size_t octets)
{
	return c->l->flags & IO_TSO ? octets < MERGED_OCTETS : segments < TURN_SEGMENTS;
}

/* A link that merges gets all of a turn at once, but for merged frames that are made already. */
static bool flush_early(const struct conn *c, size_t held, bool merged)
{
	return held >= FLUSH_OCTETS && (merged || !(c->l->flags & IO_TSO));
}

static bool nothing_under_way(const struct conn *c)
{
	const struct llp_ops *llp = c->stack->llp;

	return llp->in_flight && !llp->in_flight(c->llp);
}

/* Of a message that is alone and needs two merged frames, two thirds go in the first: the peer
 * works on them while the rest is made. In a stream it has work anyway. */
static size_t first_part(const struct conn *c, size_t room, size_t each)
{
	size_t all = qp_tx_segments(&c->qp->qp, each), most = room / each;

	if (all <= most || all > 2 * most || !nothing_under_way(c))
		return room;
	return min(room, (all * 2 + 2) / 3 * each);
}

/* Room for segments of *each octets: for several where they go together, or else for one. */
static uint8_t *begin(const struct conn *c, size_t *room, size_t *each)
{
	const struct llp_ops *llp = c->stack->llp;
	uint8_t *p;

	if (c->l->flags & IO_TSO && llp->tx_begin_many) {
		p = llp->tx_begin_many(c->llp, room, each);
		if (p) {
			*room = first_part(c, *room, *each);
			return p;
		}
	}
	p = llp->tx_begin(c->llp, room);
	*each = p ? *room : 0;
	return p;
}

/* Behind what is left of a start-up frame, which a small window may have cut in two. */
void conn_send_stream(struct conn *c)
{
	const struct llp_ops *llp = c->stack->llp;
	struct qp *qp = &c->qp->qp;
	size_t held = FLUSH_OCTETS - FIRST_OCTETS, total = 0;
	unsigned sent = 0;
	bool more;

	if (!conn_send_unsent(c))
		return;
	while ((more = qp_tx_prepare(qp)) && is_our_turn(c, sent, total)) {
		size_t room, each, n;
		uint8_t *p = begin(c, &room, &each);

		if (!p)
			break;
		n = qp_tx_many(qp, p, room, each);
		llp->tx_commit(c->llp, n);
		if (!n)
			break;
		sent++;
		held += n;
		total += n;
		if (flush_early(c, held, n > each)) {
			flush_to_peer(c);
			held = 0;
		}
	}
	if (sent)
		sent_something(c);
	if (more && qp_tx_prepare(qp)) /* no room, or others' turn */
		conn_send_soon(c);
}
