/* SPDX-License-Identifier: BSD-3-Clause */
/* Which client has which TCP port, of which version of IP. */
#include <arpa/inet.h>

#include "server.h"

/* Longer than TIME_WAIT of a client's TCP (io/lwip/lwipopts.h): late segments are still its own. */
#define LINGER_US  10000000u
#define PRIVILEGED 1024u

/* Of a port whose client has ended, and which is nobody's: its turn has come long ago. */
#define LEFT_US 1u
/* Each port given back costs several system calls, a fraction of a millisecond; frames wait. */
enum { BATCH = 4, BATCH_US = 1000 };

static uint16_t *holders(struct server *s, enum io_versions v)
{
	return v == IO_V6 ? s->table.holder6 : s->table.holder;
}

static unsigned place_of(unsigned port, enum io_versions v)
{
	return v == IO_V6 ? PORTS + port : port;
}

static uint64_t *lingers(struct server *s, unsigned port, enum io_versions v)
{
	return &s->linger[place_of(port, v)].until_us;
}

static void stop_lingering(struct server *s, unsigned port, enum io_versions v)
{
	struct lingering *l = &s->linger[place_of(port, v)];

	if (!l->until_us)
		return;
	s->linger[l->prev].next = l->next;
	s->linger[l->next].prev = l->prev;
	l->until_us = 0;
	s->linger_n--;
}

/* Behind that place of the list. */
static void linger(struct server *s, unsigned at, uint64_t until_us, unsigned behind)
{
	struct lingering *l = &s->linger[at], *before = &s->linger[behind];

	*l = (struct lingering){ until_us, before->next, behind };
	s->linger[l->next].prev = at;
	before->next = at;
	s->linger_n++;
}

static struct left *left(struct server *s, enum io_versions v)
{
	return v == IO_V6 ? s->left_ports6 : s->left_ports;
}

/* ---- a user's share -------------------------------------------------------------------------- */

/* Its entry, or a free one; NULL: there is none. */
static struct user_ports *user_of(struct server *s, uid_t uid)
{
	struct user_ports *free = NULL;

	for (unsigned i = 0; i < SWITCH_CLIENTS_MAX; i++) {
		struct user_ports *u = &s->user[i];

		if (u->n && u->uid == uid)
			return u;
		if (!u->n && !free)
			free = u;
	}
	return free;
}

/* False: the user has its share. */
static bool count_for(struct server *s, uid_t uid, unsigned place)
{
	struct user_ports *u = user_of(s, uid);

	if (!u || u->n >= s->user_ports)
		return false;
	u->uid = s->port_of[place] = uid;
	u->n++;
	return true;
}

static void count_no_more(struct server *s, uid_t uid)
{
	struct user_ports *u = user_of(s, uid);

	if (u && u->n)
		u->n--;
}

/* Of a port that is counted for whoever left it. */
static bool count_instead(struct server *s, uid_t uid, unsigned place)
{
	uid_t before = s->port_of[place];

	if (before == uid)
		return true;
	if (!count_for(s, uid, place))
		return false;
	count_no_more(s, before);
	return true;
}

/* ---------------------------------------------------------------------------------------------- */

static void give_back(struct server *s, unsigned port, enum io_versions v)
{
	struct client *c = s->client[holders(s, v)[port]];

	count_no_more(s, s->port_of[place_of(port, v)]);
	holders(s, v)[port] = SWITCH_NOBODY;
	stop_lingering(s, port, v);
	if (c)
		c->ports--;
	if (s->uplink->ops->release)
		s->uplink->ops->release(s->uplink, htons((uint16_t)port), v);
}

static bool has_version(const struct server *s, enum io_versions v)
{
	return v == IO_V6 ? s->table.n_ip6 : s->table.addr;
}

/* GRANTED: the port of the uplink is there. One that has been left is there still; its user may be
 * another one, if that one might keep no more (left.h). */
static enum switch_msg_why take(struct server *s, const struct client *c, uint16_t port_be,
				enum io_versions v)
{
	unsigned port = ntohs(port_be);
	enum switch_msg_why why = SWITCH_GRANTED;

	if (*lingers(s, port, v)) {
		if (!count_instead(s, c->uid, place_of(port, v)))
			return SWITCH_LIMIT;
		stop_lingering(s, port, v);
		return SWITCH_GRANTED;
	}
	if (!count_for(s, c->uid, place_of(port, v)))
		return SWITCH_LIMIT;
	if (s->uplink->ops->claim)
		why = s->uplink->ops->claim(s->uplink, port_be, v);
	if (why != SWITCH_GRANTED)
		count_no_more(s, c->uid);
	return why;
}

/* The usual port of RC without rdma_cm is no client's: it would get the calls for QPs of all
 * others, and callers take for their peer whoever answers as it would (doc/adr/0048). They hear at
 * once that nobody is there, whatever the kernel's firewall does, and ask who has the QP. */
static bool is_nobodys(struct server *s, uint16_t port_be, enum io_versions v)
{
	bool *held = v == IO_V6 ? &s->table.refuses6 : &s->table.refuses;

	if (port_be != htons(SWITCH_RC_PORT) || !qps_are_asked_for(s))
		return false;
	if (!*held && s->uplink->ops->claim)
		*held = s->uplink->ops->claim(s->uplink, port_be, v) == SWITCH_GRANTED;
	return true;
}

enum switch_msg_why ports_claim(struct server *s, struct client *c, uint16_t port_be,
				enum io_versions v)
{
	unsigned port = ntohs(port_be), holder = holders(s, v)[port];
	enum switch_msg_why why;

	if (!has_version(s, v))
		return SWITCH_NOT_YOURS;
	if (!port || (holder && holder != c->id))
		return SWITCH_IN_USE;
	if (!holder && !left_to(&left(s, v)[port], c->uid, s->now_us))
		return SWITCH_IN_USE;
	if (!holder && is_nobodys(s, port_be, v))
		return SWITCH_IN_USE;
	if (port < PRIVILEGED && c->uid)
		return SWITCH_NO_RIGHT;
	if (holder) { /* its own, perhaps released a while ago */
		stop_lingering(s, port, v);
		return SWITCH_GRANTED;
	}
	if (c->ports >= s->o.max_ports)
		return SWITCH_LIMIT;
	why = take(s, c, port_be, v);
	if (why != SWITCH_GRANTED)
		return why;
	holders(s, v)[port] = c->id;
	c->ports++;
	return SWITCH_GRANTED;
}

void ports_release(struct server *s, struct client *c, uint16_t port_be, enum io_versions v)
{
	unsigned port = ntohs(port_be);

	if (holders(s, v)[port] == c->id && !*lingers(s, port, v))
		linger(s, place_of(port, v), s->now_us + LINGER_US, s->linger[0].prev);
}

/* The place of the first port whose time is over; 0: there is none. */
static unsigned first_due(const struct server *s)
{
	unsigned at = s->linger[0].next;

	return s->linger[at].until_us <= s->now_us ? at : 0;
}

void ports_tick(struct server *s)
{
	unsigned n = 0, at;

	if (s->now_us - s->gave_us < BATCH_US)
		return;
	for (; n < BATCH && (at = first_due(s)); n++)
		give_back(s, at % PORTS, at < PORTS ? IO_V4 : IO_V6);
	if (n)
		s->gave_us = s->now_us;
}

/* A port that the client had released has no connections any more: it stays as long as it would
 * have. */
static void keep_for_user(struct server *s, const struct client *c, unsigned port,
			  enum io_versions v)
{
	uint64_t until = *lingers(s, port, v);

	left_by(&left(s, v)[port], c->uid, until ? until : s->now_us + LEFT_KEEP_US);
}

/* *may_keep: so many more ports the user may keep. */
static void leave(struct server *s, struct client *c, unsigned port, enum io_versions v,
		  unsigned *may_keep)
{
	c->ports--;
	if (*may_keep) {
		--*may_keep;
		keep_for_user(s, c, port, v);
	}
	holders(s, v)[port] = SWITCH_NOBODY;
	stop_lingering(s, port, v);
	linger(s, place_of(port, v), LEFT_US, 0);
}

/* A user keeps no more than its processes may have. */
static unsigned room_of_user(const struct server *s, uid_t uid)
{
	const struct left *v[] = { s->left_ports, s->left_ports6 };
	unsigned most = s->o.max_per_user * s->o.max_ports, kept = 0;

	for (unsigned i = 0; i < 2; i++) {
		for (unsigned port = 0; port < PORTS; port++)
			kept += v[i][port].uid == uid &&
				!left_is_over(v[i][port].until_s, s->now_us);
	}
	return kept < most ? most - kept : 0;
}

void ports_release_all(struct server *s, struct client *c)
{
	unsigned may_keep = c->ports ? room_of_user(s, c->uid) : 0;

	for (unsigned port = 0; port < PORTS && c->ports; port++) {
		if (s->table.holder[port] == c->id)
			leave(s, c, port, IO_V4, &may_keep);
		if (s->table.holder6[port] == c->id)
			leave(s, c, port, IO_V6, &may_keep);
	}
}
