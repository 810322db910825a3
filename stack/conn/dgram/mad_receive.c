/* SPDX-License-Identifier: BSD-3-Clause */
/* Management datagrams that came to QP 1, to whom they concern. */
#include "conn/dgram/sidr.h"
#include "conn/rc/rc.h"

static void request(struct stack *s, struct io_link *l, const struct roce_packet *p,
		    const struct mad *m)
{
	s->sched.stats.sidr_rx_requests++;
	if (m->req.space == SIDR_RC)
		rc_asked(s, l, p, m);
	else
		sidr_request(s, l, p, m);
}

static void reply(struct stack *s, const struct roce_packet *p, const struct mad *m)
{
	if (m->rep.space == SIDR_RC)
		rc_answered(s, p, m);
	else
		sidr_reply(s, p, m);
}

void mad_packet(struct stack *s, struct io_link *l, const struct roce_packet *p)
{
	struct mad m;

	/* IBA §10.2.4.2: who does not know QP 1's Q_Key is no manager */
	if (p->op->transport != ROCE_UD || p->deth.qkey != MAD_QKEY) {
		s->sched.stats.roce_rx_bad_qkey++;
		return;
	}
	switch (mad_decode(p->payload, &m)) {
	case MAD_SIDR_REQ:
		request(s, l, p, &m);
		break;
	case MAD_SIDR_REP:
		reply(s, p, &m);
		break;
	default:
		s->sched.stats.sidr_rx_unknown++;
	}
}
