/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of RoCEv2, to the QPs whose they are. */
#include "conn/dgram/dgram.h"
#include "conn/dgram/sidr.h"
#include "io/addr.h"

static void count_bad(struct uw_stats *stats, enum roce_verdict v)
{
	if (v == ROCE_BAD_ICRC)
		stats->roce_rx_icrc_errors++;
	else
		stats->roce_rx_bad++;
}

/* Another process may share the address, but a QP is of one process. */
static bool is_from_us(const struct stack *s, const struct roce_packet *p)
{
	for (unsigned i = 0; i < s->n_links; i++) {
		if (io_has(s->links[i], &p->src))
			return dgram_find(s, p->deth.src_qp);
	}
	return false;
}

/* What comes back of our own our members have had (dgram_send.c). */
static void to_group(struct stack *s, const struct roce_packet *p)
{
	if (p->op->transport != ROCE_UD || !is_from_us(s, p))
		dgram_group_packet(s, p, NULL);
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
		mad_packet(s, l, &p);
		return;
	}
	if (uw_ip_is_multicast(&p.dst)) {
		to_group(s, &p);
		return;
	}
	q = dgram_find(s, p.bth.dest_qp);
	if (!q) {
		s->sched.stats.roce_rx_no_qp++;
		return;
	}
	st = roce_rx(&q->dgram->r, &p);
	if (st)
		conn_qp_down(q, st);
}
