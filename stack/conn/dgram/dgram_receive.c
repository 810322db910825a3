/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of RoCEv2, to the QPs whose they are. */
#include "conn/dgram/dgram.h"
#include "conn/dgram/sidr.h"
#include "io/addr.h"

static struct conn_qp *find(const struct stack *s, uint32_t qpn)
{
	const struct conn_hooks *h = &s->domain->hooks;
	struct conn_qp *q = h->find_qp(h->find_qp_arg, qpn);

	return q && q->dgram ? q : NULL;
}

static void count_bad(struct uw_stats *stats, enum roce_verdict v)
{
	if (v == ROCE_BAD_ICRC)
		stats->roce_rx_icrc_errors++;
	else
		stats->roce_rx_bad++;
}

static bool is_from_us(const struct stack *s, const struct roce_packet *p)
{
	for (unsigned i = 0; i < s->n_links; i++) {
		if (io_has(s->links[i], &p->src))
			return true;
	}
	return false;
}

/* IBA §9.6.1.2.2: a packet to a group names the QP of multicast. What comes back of our own our
 * members have had (dgram_send.c). */
static void to_group(struct stack *s, const struct roce_packet *p)
{
	if (is_from_us(s, p))
		return;
	if (p->bth.dest_qp == ROCE_MULTICAST && p->op->transport == ROCE_UD)
		dgram_group_packet(s, p, NULL);
	else
		s->sched.stats.roce_rx_no_qp++;
}

void dgram_packet(void *arg, struct io_link *l, struct uw_rope packet)
{
	struct stack *s = arg;
	struct roce_packet p;
	enum roce_verdict v = roce_packet_read(packet, &p);
	struct conn_qp *q;
	uw_status st;

	if (v) {
		count_bad(&s->sched.stats, v);
		return;
	}
	if (p.bth.dest_qp == MAD_QPN && !uw_ip_is_multicast(&p.dst)) {
		sidr_packet(s, l, &p);
		return;
	}
	if (uw_ip_is_multicast(&p.dst)) {
		to_group(s, &p);
		return;
	}
	q = find(s, p.bth.dest_qp);
	if (!q) {
		s->sched.stats.roce_rx_no_qp++;
		return;
	}
	st = roce_rx(&q->dgram->r, &p);
	if (st)
		conn_qp_down(q, st);
}
