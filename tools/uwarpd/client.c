/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "io/shm.h"
#include "server.h"

static void end(struct client *c)
{
	c->state = CLIENT_ENDED;
}

/* All clients of a user that cost long have the share of one together. One that is not up is told
 * a few messages at most: each is measured, if it was suspect when it came. */
void client_woken(struct server *s, struct client *c, struct wake_cost_time since)
{
	bool stays = c->wake_cost.suspect && c->state != CLIENT_UP;
	uint64_t alone_us = wake_cost_end(&c->wake_cost, since), now;
	unsigned n = 1;

	c->wake_cost.suspect |= stays;
	if (!alone_us)
		return;
	now = uw_clock_us();
	for (unsigned i = 0; i < s->n; i++) {
		const struct client *other = s->active[i];

		n += other != c && other->uid == c->uid &&
		     !wake_cost_is_over(&other->wake_cost, now);
	}
	c->wake_cost.until_us = now + n * alone_us;
}

/* Its entry, or the one whose time is over first. */
static struct left_cost *cost_of(struct server *s, uid_t uid, uint64_t now)
{
	struct left_cost *found = &s->left_costs[0];

	for (unsigned i = 0; i < LEFT_USERS; i++) {
		struct left_cost *it = &s->left_costs[i];

		if (it->uid == uid && it->until_us > now)
			return it;
		if (it->until_us < found->until_us)
			found = it;
	}
	return found;
}

void client_leaves_cost(struct server *s, const struct client *c)
{
	uint64_t now = uw_clock_us();
	struct left_cost *to;

	if (!c->wake_cost.suspect && wake_cost_is_over(&c->wake_cost, now))
		return;
	to = cost_of(s, c->uid, now);
	if (to->uid != c->uid || to->alone_us < c->wake_cost.until_us)
		to->alone_us = c->wake_cost.until_us;
	to->uid = c->uid;
	to->until_us = (to->alone_us > now ? to->alone_us : now) + LEFT_KEEP_US;
}

void client_takes_cost(struct server *s, struct client *c)
{
	uint64_t now = uw_clock_us();
	const struct left_cost *from = cost_of(s, c->uid, now);
	uint64_t until = from->alone_us < now + HEARD_US ? from->alone_us : now + HEARD_US;

	if (from->uid == c->uid && from->until_us > now)
		c->wake_cost = (struct wake_cost){ .until_us = until, .suspect = true };
}

/* What it does not read it does not get. */
static int tell(struct server *s, struct client *c, const struct switch_msg *m, const int *fds,
		unsigned n)
{
	struct wake_cost_time since = wake_cost_begin(&c->wake_cost);
	int rc = switch_send(c->fd, m, fds, n);

	client_woken(s, c, since);
	return rc;
}

void client_refuse(struct server *s, struct client *c, enum switch_msg_why why)
{
	struct switch_msg m = switch_msg_of(SWITCH_REFUSE);

	m.why = (uint8_t)why;
	tell(s, c, &m, NULL, 0);
	s->refused++;
	end(c);
}

/* ---- joining ------------------------------------------------------------------------------- */

static bool is_allowed(const struct options *o, uid_t uid)
{
	bool found = !o->allows;

	for (unsigned i = 0; i < o->allows && !found; i++)
		found = o->allow[i] == uid;
	return found;
}

/* Those that have only connected do not count: nobody keeps others out by saying nothing. */
static bool is_full(const struct server *s, uid_t uid)
{
	unsigned n = 0, of_user = 0;

	for (unsigned i = 0; i < s->n; i++) {
		bool joined =
			s->active[i]->state == CLIENT_TOLD || s->active[i]->state == CLIENT_UP;

		n += joined;
		of_user += joined && s->active[i]->uid == uid;
	}
	return n >= s->o.max_clients || of_user >= s->o.max_per_user;
}

/* Everything that WELCOME shares. GRANTED, or why not; then *region is none. */
static enum switch_msg_why share(struct server *s, struct client *c, int *region)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET, .data.ptr = NULL };

	c->ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->ring_fd < 0 || conduit_make(&c->conduit, region))
		return SWITCH_NO_MEMORY;
	if (!epoll_ctl(s->wait_fd, EPOLL_CTL_ADD, c->ring_fd, &e))
		return SWITCH_GRANTED;
	close(*region);
	return SWITCH_NO_MEMORY;
}

static struct switch_msg welcome(const struct server *s)
{
	struct switch_msg m = switch_msg_of(SWITCH_WELCOME);
	const struct uplink *p = s->uplink;

	m.addr = p->addr;
	m.mask = p->mask;
	m.mtu = p->mtu;
	m.flags = p->flags | SWITCH_FLAG_WAKES;
	m.bps = p->bps;
	m.scope = p->scope;
	m.n_ip6 = p->n_ip6;
	for (unsigned i = 0; i < 6; i++)
		m.mac[i] = p->mac[i];
	return m;
}

/* A client of before IPv6 expects nothing but READY here. */
static bool tell_ip6(struct server *s, struct client *c, const struct switch_msg *hello)
{
	const struct uplink *p = s->uplink;
	bool sent = true;

	for (unsigned i = 0; sent && hello->flags & SWITCH_FLAG_IP6 && i < p->n_ip6; i++) {
		struct switch_msg m = switch_msg_of(SWITCH_ADDRESS);

		memcpy(m.ip6, p->ip6[i].ip.b, sizeof(m.ip6));
		m.bits = p->ip6[i].bits;
		sent = !tell(s, c, &m, NULL, 0);
	}
	return sent;
}

static int take_memory(struct mail *m)
{
	int fd = m->memory;

	m->memory = -1;
	return fd;
}

static void on_hello(struct server *s, struct client *c, struct mail *hello)
{
	struct switch_msg m = welcome(s);
	enum switch_msg_why why;
	int region;

	if (hello->m.version != SWITCH_VERSION) {
		client_refuse(s, c, SWITCH_NOT_YOURS);
		return;
	}
	if (!is_allowed(&s->o, c->uid)) {
		client_refuse(s, c, SWITCH_NO_RIGHT);
		return;
	}
	if (is_full(s, c->uid)) {
		client_refuse(s, c, SWITCH_LIMIT);
		return;
	}
	if (hello->lost) {
		client_refuse(s, c, SWITCH_NO_MEMORY);
		return;
	}
	c->wake_fd = hello->wake_fd;
	c->bell = shm_map(take_memory(hello), CONDUIT_PAGE, SHM_WRITABLE);
	why = c->bell && !hello->alien ? share(s, c, &region) : SWITCH_NOT_YOURS;
	if (why != SWITCH_GRANTED) {
		client_refuse(s, c, why);
		return;
	}
	if (tell(s, c, &m, (int[]){ region, c->ring_fd, s->bell_fd }, 3) ||
	    !tell_ip6(s, c, &hello->m))
		end(c);
	else
		c->state = CLIENT_TOLD;
	close(region);
}

static void on_ready(struct server *s, struct client *c, struct mail *ready)
{
	struct switch_msg m = switch_msg_of(SWITCH_READY);

	if (conduit_attach(&c->conduit, take_memory(ready))) {
		client_refuse(s, c, ready->lost ? SWITCH_NO_MEMORY : SWITCH_NOT_YOURS);
		return;
	}
	if (tell(s, c, &m, NULL, 0)) {
		end(c);
		return;
	}
	c->state = CLIENT_UP;
	s->joined++;
	if (s->o.verbose)
		uw_log("process %d of user %u joins", (int)c->pid, (unsigned)c->uid);
}

/* ---- messages ------------------------------------------------------------------------------ */

static enum io_versions version_of(const struct switch_msg *m)
{
	return m->flags & SWITCH_FLAG_IP6 ? IO_V6 : IO_V4;
}

static void on_claim(struct server *s, struct client *c, const struct switch_msg *m)
{
	struct switch_msg a = switch_msg_of(SWITCH_ANSWER_TO);

	a.serial = m->serial;
	a.port = m->port;
	a.why = (uint8_t)ports_claim(s, c, m->port, version_of(m));
	if (tell(s, c, &a, NULL, 0))
		end(c); /* it does not read its answers */
}

static void on_claim_qp(struct server *s, struct client *c, const struct switch_msg *m)
{
	struct switch_msg a = switch_msg_of(SWITCH_ANSWER_TO);

	a.serial = m->serial;
	a.qpn = m->qpn;
	a.why = (uint8_t)qps_claim(s, c, m->qpn);
	if (tell(s, c, &a, NULL, 0))
		end(c);
}

/* Those of a client that is up. False: there is none of this type. */
static bool on_claims(struct server *s, struct client *c, const struct switch_msg *m)
{
	switch (m->type) {
	case SWITCH_CLAIM:
		on_claim(s, c, m);
		return true;
	case SWITCH_RELEASE:
		ports_release(s, c, m->port, version_of(m));
		return true;
	case SWITCH_CLAIM_QP:
		on_claim_qp(s, c, m);
		return true;
	case SWITCH_RELEASE_QP:
		qps_release(s, c, m->qpn);
		return true;
	default:
		return false;
	}
}

/* As many messages as there are clients. */
static void on_status(struct server *s, struct client *c)
{
	struct wake_cost_time since = wake_cost_begin(&c->wake_cost);

	status_tell(s, c->fd);
	client_woken(s, c, since);
	end(c);
}

static void on_message(struct server *s, struct client *c, struct mail *m)
{
	if (c->state == CLIENT_NEW && m->m.type == SWITCH_HELLO) {
		on_hello(s, c, m);
	} else if (c->state == CLIENT_NEW && m->m.type == SWITCH_STATUS) {
		on_status(s, c);
	} else if (c->state == CLIENT_TOLD && m->m.type == SWITCH_READY) {
		on_ready(s, c, m);
	} else if (c->state != CLIENT_UP || !on_claims(s, c, &m->m)) {
		s->faults++;
		end(c);
	}
}

void client_hear(struct server *s, struct client *c, const struct mail *from)
{
	struct mail m = *from;

	if (m.ended) {
		end(c);
		return;
	}
	on_message(s, c, &m);
	if (m.memory >= 0)
		close(m.memory);
	if (c->messages)
		c->messages--;
}

/* The client has the same open file, and the kernel keeps a watch as long as that is there. */
static void close_ring(const struct server *s, const struct client *c)
{
	if (c->ring_fd < 0)
		return;
	epoll_ctl(s->wait_fd, EPOLL_CTL_DEL, c->ring_fd, NULL);
	close(c->ring_fd);
}

/* Which wakes it, too. */
void client_hang_up(struct server *s, struct client *c)
{
	struct wake_cost_time since = wake_cost_begin(&c->wake_cost);

	conn_let_go(s->conns, c->conn);
	client_woken(s, c, since);
	client_leaves_cost(s, c);
}

void client_free(struct server *s, struct client *c)
{
	if (s->o.verbose && c->conduit.theirs)
		uw_log("process %d of user %u leaves", (int)c->pid, (unsigned)c->uid);
	forward_rest(s, c);
	ports_release_all(s, c);
	qps_release_all(s, c);
	s->client[c->id] = NULL;
	s->ended++;
	if (c->conn)
		client_hang_up(s, c);
	close_ring(s, c);
	shm_unmap(c->bell, CONDUIT_PAGE);
	conduit_free(&c->conduit);
	free(c);
}
