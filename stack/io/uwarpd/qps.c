/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs of datagrams: the uwarpd sends us the packets to those that we have claimed. RC ones without
 * rdma_cm: only who has claimed one may say where it is. */
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "io/uwarpd/link.h"

enum { FIRST_ROOM = 16 };

/* The place of the QP; n_qps: it is not claimed. */
static unsigned find(const struct uwarpd_link *u, uint32_t qpn)
{
	unsigned i = 0;

	while (i < u->n_qps && u->qps[i] != qpn)
		i++;
	return i;
}

static bool make_room(struct uwarpd_link *u)
{
	unsigned room = u->qps_room ? 2 * u->qps_room : FIRST_ROOM;
	uint32_t *more;

	if (u->n_qps < u->qps_room)
		return true;
	more = realloc(u->qps, room * sizeof(*more));
	if (!more)
		return false;
	u->qps = more;
	u->qps_room = room;
	return true;
}

static void say_refused(const struct uwarpd_link *u, uint32_t qpn)
{
	switch (u->why) {
	case SWITCH_LIMIT:
		uw_log("QP %u: this process has as many QPs of the uwarpd as it may "
		       "(uwarpd --max-ports)",
		       (unsigned)qpn);
		break;
	case SWITCH_IN_USE:
		uw_log("QP %u: the uwarpd at %s cannot give it: another process has the number "
		       "or had it a minute ago, or another program has UDP port 4791 (the "
		       "uwarpd's log says so)",
		       (unsigned)qpn, u->path);
		break;
	default:
		break;
	}
}

/* With u->lock held. */
static uw_status claim(struct uwarpd_link *u, uint32_t qpn)
{
	struct switch_msg m = switch_msg_of(SWITCH_CLAIM_QP);
	uw_status st;

	if (!make_room(u))
		return UW_E_NOMEM;
	m.qpn = qpn;
	st = claims_ask(u, &m);
	if (!st)
		u->qps[u->n_qps++] = qpn;
	else if (st != UW_E_NO_LINK && m.serial == u->serial) /* it was asked */
		say_refused(u, qpn);
	return st;
}

/* With u->lock held. Of a QP that is owed the uwarpd knows that it is ours. */
static bool take_back(struct uwarpd_link *u, uint32_t qpn)
{
	unsigned at = u->connected ? find(u, qpn | QP_OWED) : u->n_qps;

	if (at == u->n_qps)
		return false;
	u->qps[at] = qpn;
	u->owes--;
	return true;
}

uw_status uwarpd_claim_qp(struct io_link *l, uint32_t qpn)
{
	struct uwarpd_link *u = uwarpd_link_of(l);
	uw_status st = UW_OK;

	pthread_mutex_lock(&u->lock);
	if (find(u, qpn) == u->n_qps && !take_back(u, qpn))
		st = claim(u, qpn);
	pthread_mutex_unlock(&u->lock);
	return st;
}

static void remove_at(struct uwarpd_link *u, unsigned at)
{
	u->qps[at] = u->qps[--u->n_qps];
}

/* With u->lock held. False: it is still there. */
static bool send_release(struct uwarpd_link *u, unsigned at)
{
	struct switch_msg m = switch_msg_of(SWITCH_RELEASE_QP);

	m.qpn = u->qps[at] & ~QP_OWED;
	if (!u->connected || switch_send(u->peer.fd, &m, NULL, 0))
		return false;
	remove_at(u, at);
	return true;
}

/* A forked child's QPs are not the parent's to lose. */
void uwarpd_release_qp(struct io_link *l, uint32_t qpn)
{
	struct uwarpd_link *u = uwarpd_link_of(l);
	unsigned at;

	if (u->pid != getpid())
		return;
	pthread_mutex_lock(&u->lock);
	at = find(u, qpn);
	if (at < u->n_qps && !send_release(u, at)) {
		u->qps[at] |= QP_OWED;
		claims_owe(u);
	}
	pthread_mutex_unlock(&u->lock);
}

void qps_pay(struct uwarpd_link *u)
{
	for (unsigned i = u->n_qps; u->owes && i--;) {
		if (!(u->qps[i] & QP_OWED))
			continue;
		if (!send_release(u, i))
			break;
		u->owes--;
	}
}

/* 0: there is none, or it is owed to the old uwarpd. */
static uint32_t qp_at(struct uwarpd_link *u, unsigned i)
{
	uint32_t qpn;

	pthread_mutex_lock(&u->lock);
	qpn = i < u->n_qps ? u->qps[i] : 0;
	if (qpn & QP_OWED) {
		remove_at(u, i);
		u->owes--;
		qpn = 0;
	}
	pthread_mutex_unlock(&u->lock);
	return qpn;
}

static bool renew(struct uwarpd_link *u, uint32_t qpn)
{
	struct switch_msg m = switch_msg_of(SWITCH_CLAIM_QP);

	m.qpn = qpn;
	if (!claims_ask_alone(u, &m))
		return false;
	if (m.why != SWITCH_GRANTED)
		uw_log("QP %u is not ours any more at the new uwarpd", (unsigned)qpn);
	return true;
}

/* Backwards: of one that is removed, the last one takes the place. None is added, since nothing is
 * claimed before the link is up. What is released from here on is owed to the new uwarpd. */
bool qps_renew(struct uwarpd_link *u)
{
	unsigned n;

	pthread_mutex_lock(&u->lock);
	n = u->n_qps;
	pthread_mutex_unlock(&u->lock);
	while (n--) {
		uint32_t qpn = qp_at(u, n);

		if (qpn && !renew(u, qpn))
			return false;
	}
	return true;
}
