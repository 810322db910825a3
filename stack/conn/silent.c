/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/silent.h"

#include "conn/conn.h"

/* Who has been silent for so long may give way. A Request follows the handshake at once. */
#define LONG_US 1000000u

static void draw_key(struct stack *s)
{
	for (unsigned i = 0; i < 2; i++)
		s->silent.key[i] = (uint64_t)stack_random(s) << 32 | stack_random(s) | i;
}

static unsigned group_of(struct stack *s, const struct uw_ip *host)
{
	if (!s->silent.key[1])
		draw_key(s);
	/* the top bits of a product with an unknown odd number */
	return (unsigned)((uw_ip_host(host) + s->silent.key[0]) * s->silent.key[1] >> 58);
}

bool silent_has_room(struct stack *s, const struct uw_ip *host, struct conn **gives_way)
{
	unsigned limit = s->domain->cfg->silent_per_host, g = group_of(s, host);
	struct conn *oldest = s->silent.group[g].first;

	*gives_way = NULL;
	if (s->domain->cfg->conns_per_host &&
	    s->silent.group[g].all >= s->domain->cfg->conns_per_host) {
		s->sched.stats.conn_host_refused++;
		return false;
	}
	if (!limit || s->silent.group[g].n < limit)
		return true;
	if (stack_now_us(s) - oldest->since_us < LONG_US) {
		s->sched.stats.conn_silent_refused++;
		return false;
	}
	s->sched.stats.conn_silent_dropped++;
	*gives_way = oldest;
	return true;
}

void silent_add(struct conn *c)
{
	unsigned g = group_of(c->stack, &c->remote);
	struct conn *last = c->stack->silent.group[g].last;

	c->is_silent = c->of_host = true;
	c->stack->silent.group[g].all++;
	c->silent_group = (uint8_t)g;
	c->silent_next = NULL;
	c->silent_prev = last;
	if (last)
		last->silent_next = c;
	else
		c->stack->silent.group[g].first = c;
	c->stack->silent.group[g].last = c;
	c->stack->silent.group[g].n++;
}

void silent_remove(struct conn *c)
{
	struct silent *t = &c->stack->silent;

	if (!c->is_silent)
		return;
	c->is_silent = false;
	if (c->silent_prev)
		c->silent_prev->silent_next = c->silent_next;
	else
		t->group[c->silent_group].first = c->silent_next;
	if (c->silent_next)
		c->silent_next->silent_prev = c->silent_prev;
	else
		t->group[c->silent_group].last = c->silent_prev;
	t->group[c->silent_group].n--;
}

void silent_leave(struct conn *c)
{
	silent_remove(c);
	if (c->of_host)
		c->stack->silent.group[c->silent_group].all--;
	c->of_host = false;
}
