/* SPDX-License-Identifier: BSD-3-Clause */
/* Links without a kernel that would do it: their groups are told to the network (io/member). */
#include "io/lwip/edge.h"

static void send(struct io_link *l, const struct uw_ip *group, bool leaves)
{
	struct io_frame *f = l->ops->alloc(l);

	if (!f)
		return; /* a report comes again */
	f->len = (uint32_t)member_frame(l, group, leaves, f->data);
	edge_capture(f);
	edge.cfg.stats->member_tx++;
	if (!l->ops->tx(l, &f, 1))
		l->ops->free(f);
}

static bool is_told(const struct io_link *l)
{
	return l && l->flags & IO_NEIGHBOURS && !l->ops->group;
}

uw_status edge_group(struct io_link *l, const struct uw_ip *group, bool in)
{
	struct edge_link *el = edge_link_of(l);

	if (!el || !is_told(l))
		return UW_OK;
	el->members.random = edge.cfg.random;
	el->members.arg = edge.cfg.arg;
	if (in && !member_join(&el->members, group, edge.cfg.now_us(edge.cfg.arg)))
		return UW_E_NOMEM;
	if (!in && member_leave(&el->members, group))
		send(l, group, true);
	edge_member_timer();
	if (edge.cfg.wake) /* there is a new timer */
		edge.cfg.wake(edge.cfg.arg);
	return UW_OK;
}

bool edge_member_in(struct edge_link *el, const struct io_frame *f)
{
	if (!is_told(el->io) ||
	    !member_read(&el->members, f->data, f->len, edge.cfg.now_us(edge.cfg.arg)))
		return false;
	edge.cfg.stats->member_rx++;
	return true;
}

void edge_member_timer(void)
{
	struct uw_ip group;

	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		struct edge_link *el = &edge.links[i];

		while (is_told(el->io) && el->members.n &&
		       member_due(&el->members, edge.cfg.now_us(edge.cfg.arg), &group))
			send(el->io, &group, false);
	}
}

uint64_t edge_member_next_us(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		const struct edge_link *el = &edge.links[i];
		uint64_t at = is_told(el->io) ? member_next_us(&el->members) : UINT64_MAX, now;

		if (at == UINT64_MAX)
			continue;
		now = edge.cfg.now_us(edge.cfg.arg);
		next = LWIP_MIN(next, at > now ? at - now : 1);
	}
	return next;
}
