/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP ports, which the uwarpd gives out. How it is asked for a QP, too (qps.c). */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/fds.h"
#include "io/uwarpd/link.h"

/* The answer comes within microseconds, unless the uwarpd is stopped or gets no CPU; then frames do
 * not move either. The caller may hold the stack lock. */
#define ANSWER_MS 2000
/* After a limit or no answer at all, nothing is asked for so long: a search for a free port tries
 * thousands. */
#define REFUSE_MS 200
#define RENEW_MS  2000

static uw_status status_of(enum switch_msg_why why)
{
	switch (why) {
	case SWITCH_GRANTED:
		return UW_OK;
	case SWITCH_NO_RIGHT:
		return UW_E_PERM;
	case SWITCH_LIMIT:
	case SWITCH_NO_MEMORY:
		return UW_E_NOMEM;
	default:
		return UW_E_ADDR_IN_USE;
	}
}

static void say_refused(uint16_t port, enum switch_msg_why why)
{
	if (why == SWITCH_NO_RIGHT)
		uw_log("port %u: only root may take ports below 1024 of the uwarpd", ntohs(port));
	else if (why == SWITCH_LIMIT)
		uw_log("port %u: this process has as many ports of the uwarpd as it may "
		       "(uwarpd --max-ports)",
		       ntohs(port));
}

/* With u->lock held, so that nobody else takes the room: many RELEASEs may be on their way. */
static bool send_claim(struct uwarpd_link *u, struct switch_msg *m, uint64_t until)
{
	struct pollfd p = { .fd = u->peer.fd, .events = POLLOUT };
	uint64_t now;
	int rc;

	m->serial = ++u->serial;
	if (!u->connected)
		return false;
	rc = switch_send(p.fd, m, NULL, 0);
	while (rc == -EAGAIN && (now = uw_clock_ms()) < until) {
		poll(&p, 1, (int)(until - now)); /* a signal may end it */
		rc = switch_send(p.fd, m, NULL, 0);
	}
	return rc == 0;
}

/* With u->lock held. False: there is none in time, or the uwarpd has ended. */
static bool await_answer(struct uwarpd_link *u, uint64_t until)
{
	struct timespec t = { .tv_sec = (time_t)(until / 1000),
			      .tv_nsec = (long)(until % 1000 * 1000000) };

	u->waits = true;
	while (u->waits && u->connected && !pthread_cond_timedwait(&u->answered, &u->lock, &t))
		;
	return !u->waits;
}

uw_status claims_ask(struct uwarpd_link *u, struct switch_msg *m)
{
	uint64_t now = uw_clock_ms(), until = now + ANSWER_MS;

	if (now < u->refuse_until_ms)
		return UW_E_ADDR_IN_USE;
	if (!send_claim(u, m, until) || !await_answer(u, until)) {
		if (u->connected)
			uw_log("the uwarpd at %s has not answered for %u ms: is it stopped, or has "
			       "it no CPU?",
			       u->path, ANSWER_MS);
		u->refuse_until_ms = until + REFUSE_MS;
		return UW_E_NO_LINK;
	}
	if (u->why == SWITCH_LIMIT || u->why == SWITCH_NO_MEMORY)
		u->refuse_until_ms = now + REFUSE_MS;
	return status_of(u->why);
}

/* Where a port (network order) of one version is in u->users. */
static unsigned port_at(uint16_t port, enum io_versions v)
{
	return ntohs(port) + (v == IO_V6 ? 65536u : 0);
}

static struct switch_msg message(enum switch_msg_type type, unsigned at)
{
	struct switch_msg m = switch_msg_of(type);

	m.port = htons((uint16_t)at);
	m.flags = at >= 65536 ? SWITCH_FLAG_IP6 : 0;
	return m;
}

/* With u->lock held. */
static uw_status ask(struct uwarpd_link *u, unsigned at)
{
	struct switch_msg m = message(SWITCH_CLAIM, at);
	uw_status st = claims_ask(u, &m);

	if (st && st != UW_E_NO_LINK && m.serial == u->serial) /* it was asked */
		say_refused(m.port, u->why);
	return st;
}

/* With u->lock held. True: it was owed. */
static bool forgive(struct uwarpd_link *u, unsigned at)
{
	uint64_t bit = UINT64_C(1) << (at % 64);
	bool was = u->owed[at / 64] & bit;

	u->owed[at / 64] &= ~bit;
	u->owes -= was;
	return was;
}

/* With u->lock held. Of a port that is owed the uwarpd knows that it is ours. */
static uw_status claim(struct uwarpd_link *u, unsigned at)
{
	bool ours = u->users[at] || (u->connected && forgive(u, at));
	uw_status st = ours ? UW_OK : ask(u, at);

	if (!st)
		u->users[at]++;
	return st;
}

/* With u->lock held. */
static bool send_release(struct uwarpd_link *u, unsigned at)
{
	struct switch_msg m = message(SWITCH_RELEASE, at);

	return u->connected && !switch_send(u->peer.fd, &m, NULL, 0);
}

/* With u->lock held. The uwarpd keeps the port ours for a while, for late segments. Where none is
 * connected the next one may have granted it already. */
static void release(struct uwarpd_link *u, unsigned at)
{
	if (!u->users[at] || --u->users[at] || send_release(u, at))
		return;
	u->owed[at / 64] |= UINT64_C(1) << (at % 64);
	claims_owe(u);
}

uw_status uwarpd_claim(struct io_link *l, uint16_t port, unsigned versions)
{
	struct uwarpd_link *u = uwarpd_link_of(l);
	uw_status st = UW_OK;

	versions &= io_shared_versions(l);
	pthread_mutex_lock(&u->lock);
	if (versions & IO_V4)
		st = claim(u, port_at(port, IO_V4));
	if (!st && versions & IO_V6) {
		st = claim(u, port_at(port, IO_V6));
		if (st && versions & IO_V4)
			release(u, port_at(port, IO_V4));
	}
	pthread_mutex_unlock(&u->lock);
	return st;
}

bool uwarpd_is_ours(struct io_link *l, uint16_t port, enum io_versions version)
{
	struct uwarpd_link *u = uwarpd_link_of(l);
	bool ours;

	pthread_mutex_lock(&u->lock);
	ours = u->users[port_at(port, version)];
	pthread_mutex_unlock(&u->lock);
	return ours;
}

void uwarpd_release(struct io_link *l, uint16_t port, unsigned versions)
{
	struct uwarpd_link *u = uwarpd_link_of(l);

	versions &= io_shared_versions(l);
	pthread_mutex_lock(&u->lock);
	if (versions & IO_V4)
		release(u, port_at(port, IO_V4));
	if (versions & IO_V6)
		release(u, port_at(port, IO_V6));
	pthread_mutex_unlock(&u->lock);
}

void claims_answered(struct uwarpd_link *u, const struct switch_msg *m)
{
	pthread_mutex_lock(&u->lock);
	if (u->waits && m->serial == u->serial) {
		u->waits = false;
		u->why = m->why;
		pthread_cond_broadcast(&u->answered);
	}
	pthread_mutex_unlock(&u->lock);
}

/* ---- what is owed -------------------------------------------------------------------------- */

void claims_owe(struct uwarpd_link *u)
{
	if (!u->owes++ && !u->deaf)
		fds_ring(u->stop_fd);
}

bool claims_owes(struct uwarpd_link *u)
{
	bool owes;

	pthread_mutex_lock(&u->lock);
	owes = u->connected && u->owes;
	pthread_mutex_unlock(&u->lock);
	return owes;
}

/* With u->lock held. False: there is no room. */
static bool pay_word(struct uwarpd_link *u, unsigned word)
{
	while (u->owed[word]) {
		unsigned at = word * 64 + (unsigned)__builtin_ctzll(u->owed[word]);

		if (!send_release(u, at))
			return false;
		forgive(u, at);
	}
	return true;
}

void claims_pay(struct uwarpd_link *u)
{
	unsigned word = 0;

	pthread_mutex_lock(&u->lock);
	while (u->owes && word < UWARPD_PORTS / 64 && pay_word(u, word))
		word++;
	qps_pay(u);
	pthread_mutex_unlock(&u->lock);
}

/* ---- a new uwarpd -------------------------------------------------------------------------- */

/* Only the session thread reads the connection, and nobody else uses it yet. */
bool claims_ask_alone(struct uwarpd_link *u, struct switch_msg *m)
{
	struct switch_fds fds;

	if (switch_send(u->peer.fd, m, NULL, 0) || switch_await(u->peer.fd, RENEW_MS, m, &fds) != 1)
		return false;
	switch_fds_close(&fds);
	return true;
}

static bool renew(struct uwarpd_link *u, unsigned at)
{
	struct switch_msg m = message(SWITCH_CLAIM, at);

	if (!claims_ask_alone(u, &m))
		return false;
	if (m.why != SWITCH_GRANTED)
		uw_log("port %u is not ours any more at the new uwarpd", at % 65536);
	return true;
}

/* One that is released from here on is owed to the new one. */
bool claims_renew(struct uwarpd_link *u)
{
	for (unsigned at = 0; at < UWARPD_PORTS; at++) {
		bool used;

		pthread_mutex_lock(&u->lock);
		used = u->users[at];
		if (!used)
			forgive(u, at); /* it was the old one's */
		pthread_mutex_unlock(&u->lock);
		if (used && !renew(u, at))
			return false;
	}
	return true;
}
