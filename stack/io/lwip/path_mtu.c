/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/lwip/path_mtu.h"

#include "io/lwip/loss_conn.h"
#include "io/lwip/pcb/private.h"
#include "io/route/table.h"

static uint64_t now(void)
{
	return edge.cfg.now_us(edge.cfg.arg);
}

uint32_t edge_conn_path_mtu(const struct llp_conn *c)
{
	const struct io_link *l = c->el->io;
	const struct pmtu_path *p = pmtu_find(&edge.paths, &c->flow.remote);
	const struct route *r = l->routes ? route_find(l->routes, &c->flow.remote) : NULL;
	uint32_t mtu = l->mtu;

	if (r && r->mtu && r->mtu < mtu)
		mtu = r->mtu;
	return p && p->mtu < mtu ? p->mtu : mtu;
}

uint32_t edge_conn_path_headers(const struct llp_conn *c)
{
	return (uw_ip_is_v4(&c->flow.remote) ? IP_HLEN : IP6_HLEN) + TCP_HLEN +
	       (c->stamp.on ? STAMP_OCTETS : 0);
}

/* RFC 4821 §7.7, RFC 8899 §4.3: long packets vanish, and no router says so: shorter ones are tried.
 */
void edge_conn_path_suspect(const struct llp_conn *c, uint32_t octets)
{
	const struct uw_ip to = c->flow.remote;
	uint32_t old = edge_conn_path_mtu(c);

	if (!c->full_mss ||
	    pmtu_guess(&edge.paths, &to, old, octets + edge_conn_path_headers(c), now()) >= old)
		return;
	edge.cfg.stats->tcp_black_holes++;
	edge.paths_changed = true;
}

void edge_conn_path_acked(const struct llp_conn *c, uint32_t ack)
{
	const struct loss *l = &c->loss->loss;
	const struct uw_ip to = c->flow.remote;

	for (uint32_t id = l->rec.first; id != l->rec.end; id = record_next(id)) {
		const struct sent *s = record_at(&l->rec, id);
		uint32_t len = l->cut && s->len > l->cut ? l->cut : s->len;
		const struct pmtu_packet p = { .octets = len + edge_conn_path_headers(c),
					       .sent_us = s->sent_us,
					       .once = s->times == 1 };

		if (TCP_SEQ_GT(sent_end(s), ack))
			break;
		edge.paths_changed |= pmtu_acked(&edge.paths, &to, &p, now());
	}
}
