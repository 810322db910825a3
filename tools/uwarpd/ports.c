/* SPDX-License-Identifier: BSD-3-Clause */
/* Which client has which TCP port. */
#include <arpa/inet.h>

#include "server.h"

/* Longer than TIME_WAIT of a client's TCP (io/lwip/lwipopts.h): late segments are still its own. */
#define LINGER_US  10000000u
#define PRIVILEGED 1024u

static void give_back(struct server *s, unsigned port)
{
	struct client *c = s->client[s->table.holder[port]];

	s->table.holder[port] = SWITCH_NOBODY;
	s->linger_until[port] = 0;
	if (c)
		c->ports--;
	if (s->uplink->ops->release)
		s->uplink->ops->release(s->uplink, htons((uint16_t)port));
}

enum switch_msg_why ports_claim(struct server *s, struct client *c, uint16_t port_be)
{
	unsigned port = ntohs(port_be), holder = s->table.holder[port];
	enum switch_msg_why why = SWITCH_GRANTED;

	if (!port || (holder && holder != c->id))
		return SWITCH_IN_USE;
	if (port < PRIVILEGED && c->uid)
		return SWITCH_NO_RIGHT;
	if (holder) { /* its own, perhaps released a while ago */
		s->linger_until[port] = 0;
		return SWITCH_GRANTED;
	}
	if (c->ports >= s->o.max_ports)
		return SWITCH_LIMIT;
	if (s->uplink->ops->claim)
		why = s->uplink->ops->claim(s->uplink, port_be);
	if (why != SWITCH_GRANTED)
		return why;
	s->table.holder[port] = c->id;
	c->ports++;
	return SWITCH_GRANTED;
}

void ports_release(struct server *s, struct client *c, uint16_t port_be)
{
	unsigned port = ntohs(port_be);
	uint64_t until = s->now_us + LINGER_US;

	if (s->table.holder[port] != c->id || s->linger_until[port])
		return;
	if (s->linger_n == LINGER_MAX) {
		give_back(s, port);
		return;
	}
	s->linger[(s->linger_first + s->linger_n++) % LINGER_MAX] =
		(struct lingering){ (uint16_t)port, until };
	s->linger_until[port] = until;
}

/* Of a port that was claimed again meanwhile, the entry is void. */
void ports_tick(struct server *s)
{
	while (s->linger_n && s->linger[s->linger_first].until_us <= s->now_us) {
		const struct lingering *l = &s->linger[s->linger_first];

		if (s->linger_until[l->port] == l->until_us)
			give_back(s, l->port);
		s->linger_first = (s->linger_first + 1) % LINGER_MAX;
		s->linger_n--;
	}
}

/* At once: its connections are dead, and whoever holds the address resets their peers. */
void ports_release_all(struct server *s, struct client *c)
{
	for (unsigned port = 0; port < 65536 && c->ports; port++) {
		if (s->table.holder[port] == c->id)
			give_back(s, port);
	}
}
