/* SPDX-License-Identifier: BSD-3-Clause */
/* A stack's round: frames in, timers, frames out. */
#include "conn/stack.h"

#include "conn/conn.h"
#include "conn/dgram/sidr.h"
#include "conn/listener.h"

#define BURST	 32u
#define TIMER_US 10000u /* timers run no more often */
/* A link that had no room for a packet tells nobody when it has: it is asked again. */
#define NO_ROOM_US 100u

static struct conn_policies policies_of(const struct uw_config *cfg, bool crc)
{
	struct conn_policies p = { .cm = { .rev = (uint8_t)cfg->mpa_rev,
					   .rev_max = 2,
					   .crc = crc,
					   .rx_markers = cfg->markers,
					   .p2p = cfg->p2p,
					   .rtr = MPA_RTR_WRITE | MPA_RTR_READ,
					   .ird_max = (uint16_t)cfg->ird,
					   .ord_max = (uint16_t)cfg->ord } };

	/* Both sides are uwarp, and either may speak first (RFC 6581 §9.2). */
	p.rc = p.cm;
	p.rc.rev = 2;
	p.rc.p2p = true;
	return p;
}

uw_status conn_domain_init(struct conn_domain *d, const struct uw_config *cfg,
			   const struct conn_hooks *hooks)
{
	d->cfg = cfg;
	d->hooks = *hooks;
	d->policies = policies_of(cfg, cfg->crc != UW_CRC_OFF);
	d->intact = policies_of(cfg, cfg->crc == UW_CRC_ON);
	return ports_init(&d->ports);
}

void conn_domain_free(struct conn_domain *d)
{
	ports_free(&d->ports);
	persister_forget(d);
}

void stack_set_up(struct stack *s, struct conn_domain *d, const struct llp_ops *llp)
{
	s->domain = d;
	s->llp = llp;
	s->rc.due_us = UINT64_MAX;
	s->dgram_last = &s->dgram_first;
	s->turns.fn = conn_turns;
	atomic_init(&s->turns.home, &s->sched);
}

/* ---- a round ----------------------------------------------------------------------------- */

static unsigned receive(struct stack *s, struct io_link *l)
{
	struct io_frame *v[BURST];
	unsigned n = l->ops->rx(l, v, BURST);

	if (n && s->llp->prefetch)
		s->llp->prefetch(v, n);
	for (unsigned i = 0; i < n; i++) {
		s->llp->input(l, v[i]);
		/* After every frame, never per burst: a post waits 2 us that way, not 13. */
		sched_drain(&s->sched);
	}
	return n;
}

unsigned stack_receive(struct stack *s)
{
	unsigned frames = 0;

	for (unsigned i = 0; i < s->n_links; i++)
		frames += receive(s, s->links[i]);
	return frames + s->llp->poll();
}

void stack_timers(struct stack *s, uint64_t now_us)
{
	s->llp->timers();
	conn_timers(s, now_us);
	if (s->sidrs)
		sidr_timers(s, now_us);
}

/* In microseconds from now on; a timer is not looked at more often than every TIMER_US. */
static uint64_t until(uint64_t now, uint64_t at)
{
	return at > now + TIMER_US ? at - now : TIMER_US;
}

/* When a link next has a frame to let go. */
static uint64_t links_due_us(const struct stack *s)
{
	uint64_t at = UINT64_MAX, ns;

	for (unsigned i = 0; i < s->n_links; i++) {
		if (!s->links[i]->ops->due_ns)
			continue;
		ns = s->links[i]->ops->due_ns(s->links[i]);
		if (ns != UINT64_MAX && ns / 1000 < at)
			at = ns / 1000;
	}
	return at;
}

uint64_t stack_next_timer_us(struct stack *s, uint64_t now_us)
{
	uint64_t us = s->llp->next_timer_us(), at = deadline_next_us(&s->timers);
	uint64_t sidr = s->sidrs ? sidr_next_us(s) : UINT64_MAX;

	if (sidr < at)
		at = sidr;
	if (at != UINT64_MAX && until(now_us, at) < us)
		us = until(now_us, at);
	if (s->dgram_first && us > NO_ROOM_US)
		us = NO_ROOM_US;
	at = links_due_us(s);
	us = us > UINT64_MAX - now_us ? UINT64_MAX : now_us + us;
	return us < at ? us : at;
}

bool stack_pending(struct stack *s, bool links)
{
	if (s->llp->pending && s->llp->pending())
		return true;
	if (links && s->llp->acks_left && s->llp->acks_left())
		return true;
	for (unsigned i = 0; links && i < s->n_links; i++) {
		if (s->links[i]->ops->pending(s->links[i]))
			return true;
	}
	return false;
}

/* ---- the end ----------------------------------------------------------------------------- */

bool stack_is_quiet(const struct stack *s)
{
	for (struct conn *c = s->conns; c; c = c->next) {
		if (c->qp && c->llp && (qp_tx_prepare(&c->qp->qp) || !sq_empty(&c->qp->qp.sq)))
			return false;
	}
	return !s->dgram_first;
}

void stack_retire(struct stack *s)
{
	for (struct conn *c = s->conns; c; c = c->next)
		conn_drop(c);
	listeners_stop(s);
}

struct stack *stack_next_home(struct conn_domain *d)
{
	struct stack *home = d->first;

	if (!sched_is_one_of_several(&home->sched))
		return home;
	for (unsigned i = d->next_home++ % d->cfg->stacks; i; i--)
		home = stack_next(home);
	return home;
}
