/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast: which UD QPs are members of which groups, and packets to them (IBA volume 1, §10.5).
 */
#include <stdlib.h>

#include "conn/dgram/dgram.h"

static struct dgram_group **find(struct stack *s, const struct conn_qp *q,
				 const struct uw_ip *group)
{
	struct dgram_group **at = &s->groups;

	while (*at && !((!q || (*at)->q == q) && (!group || uw_ip_eq(&(*at)->addr, group))))
		at = &(*at)->next;
	return at;
}

/* All are looked at for each packet to a group. */
static bool has_room(const struct stack *s, const struct uw_ip *group, bool first)
{
	unsigned members = 0;

	for (const struct dgram_group *g = s->groups; g; g = g->next)
		members += uw_ip_eq(&g->addr, group);
	return members < UW_GROUP_QPS_MAX && (!first || s->n_groups < UW_GROUPS_MAX);
}

uw_status dgram_join(struct conn_qp *q, const struct uw_ip *group, bool *first)
{
	struct stack *s = conn_qp_stack(q);
	struct dgram_group *g;

	*first = !*find(s, NULL, group);
	if (!q->dgram || q->dgram->r.transport != ROCE_UD || !uw_ip_is_multicast(group))
		return UW_E_INVAL;
	if (*find(s, q, group))
		return UW_OK;
	g = has_room(s, group, *first) ? malloc(sizeof(*g)) : NULL;
	if (!g)
		return UW_E_NOMEM;
	*g = (struct dgram_group){ .next = s->groups, .q = q, .addr = *group };
	s->groups = g;
	s->n_groups += *first;
	return UW_OK;
}

uw_status dgram_leave(struct conn_qp *q, const struct uw_ip *group, bool *last)
{
	struct stack *s = conn_qp_stack(q);
	struct dgram_group **at = find(s, q, group), *g = *at;

	*last = false;
	if (!g)
		return UW_E_INVAL;
	*at = g->next;
	free(g);
	*last = !*find(s, NULL, group);
	s->n_groups -= *last;
	return UW_OK;
}

bool dgram_some_group(struct conn_qp *q, struct uw_ip *out)
{
	const struct dgram_group *g = *find(conn_qp_stack(q), q, NULL);

	if (g)
		*out = g->addr;
	return g;
}

/* No kernel does it for the link. */
static uw_status tell_network(struct stack *s, struct io_link *l, const struct uw_ip *group,
			      bool in)
{
	uw_status st;

	if (!s->llp->group || (!uw_ip_is_v4(group) && !l->n_ip6))
		return UW_OK;
	sched_lock(&s->sched);
	st = stack_is_without_links(s) ? UW_E_STATE : s->llp->group(l, group, in);
	stack_flush(s);
	sched_unlock(&s->sched);
	return st;
}

static uw_status tell_link(struct stack *s, struct io_link *l, const struct uw_ip *group, bool in)
{
	if (uw_ip_is_v4(group) && !l->addr)
		return UW_OK;
	return l->ops->group ? l->ops->group(l, group, in) : tell_network(s, l, group, in);
}

/* A link that cannot leave keeps no other from it. */
uw_status dgram_tell_links(struct stack *s, const struct uw_ip *group, bool in)
{
	uw_status st = UW_OK;
	unsigned n;

	sched_lock(&s->sched);
	n = stack_hold_links(s) ? s->n_links : 0;
	sched_unlock(&s->sched);
	for (unsigned i = 0; i < n && !(st && in); i++) {
		uw_status one = tell_link(s, s->links[i], group, in);

		st = st ? st : one;
	}
	if (n)
		stack_let_links_go(s);
	return st;
}

/* IBA §9.6.1.2.2: a packet to a group names the QP of multicast. */
static bool is_for_group(const struct roce_packet *p)
{
	return p->bth.dest_qp == ROCE_MULTICAST && p->op->transport == ROCE_UD;
}

/* IBA §9.6.1.2.3, §10.5.2.1: each member gets a copy; who sent it does not. */
void dgram_group_packet(struct stack *s, const struct roce_packet *p, const struct conn_qp *sender)
{
	unsigned members = 0;

	for (struct dgram_group *g = is_for_group(p) ? s->groups : NULL, *next; g; g = next) {
		uw_status st;

		next = g->next;
		if (!uw_ip_eq(&g->addr, &p->dst))
			continue;
		members++;
		if (g->q == sender)
			continue;
		st = roce_rx(&g->q->dgram->r, p);
		if (st)
			conn_qp_down(g->q, st);
	}
	if (!members)
		s->sched.stats.roce_rx_no_qp++;
}
