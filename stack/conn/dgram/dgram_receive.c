/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of RoCEv2, to the QPs whose they are. */
#include "conn/dgram/dgram.h"
#include "conn/dgram/sidr.h"

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
	if (p.bth.dest_qp == MAD_QPN) {
		sidr_packet(s, l, &p);
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
