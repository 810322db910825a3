/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole of a QP's path, structured: the input chooses what the peer says, what the program
 * posts, what TCP takes and how it cuts, which memory comes and goes; lengths, CRCs and sequence
 * numbers are made right, so the depths are reached.
 */
#include "bed.h"
#include "speak.h"

static void restart(struct bed *b, struct speaker *s, struct feed *f)
{
	CHECK(!qp_modify(b->qp, UW_QPS_RESET));
	bed_poll(b);
	/* What was posted has no completion, nor has what it took from the SRQ. */
	if (b->srq)
		b->recvs.lossy = true;
	else
		ledger_forget(&b->recvs);
	ledger_forget(&b->sends);
	b->sends.failed = b->recvs.failed = 0;
	CHECK(!qp_modify(b->qp, UW_QPS_INIT));
	speak_init(s);
	bed_start(b, feed_bool(f));
}

static void change(struct bed *b, struct speaker *s, struct feed *f)
{
	static const enum uw_qp_state to[] = { UW_QPS_INIT, UW_QPS_RTR, UW_QPS_RTS,
					       UW_QPS_SQD,  UW_QPS_SQE, UW_QPS_ERR };
	unsigned which = feed_below(f, 32);
	uw_status st;

	if (which >= COUNT(to)) {
		if (which < 9)
			restart(b, s, f);
		else
			bed_toggle(b, (enum bed_region)(which % BED_REGIONS));
		return;
	}
	st = qp_modify(b->qp, to[which]);
	CHECK(st == UW_OK || st == UW_E_INVAL || st == UW_E_STATE);
	bed_poll(b);
}

static void one(struct bed *b, struct speaker *s, struct feed *f)
{
	switch (feed_below(f, 16)) {
	case 0:
	case 1:
		bed_post_recv(b, f);
		break;
	case 2:
	case 3:
	case 4:
		bed_post_send(b, f);
		break;
	case 5:
	case 6:
		bed_pull(b, (uint8_t[BED_ROOM]){ 0 }, feed_length(f, BED_ROOM));
		break;
	case 7:
		change(b, s, f);
		break;
	case 8:
		if (feed_rarely(f, 4)) {
			struct uw_span any = feed_span(f, feed_length(f, 100));

			bed_arrive(b, any.p, any.n);
		}
		bed_deliver(b, f);
		break;
	case 9:
		cq_arm(&b->rcq, feed_bool(f) ? CQ_SOLICITED : CQ_ANY);
		speak_fpdu(s, b, f); /* waits for the next */
		break;
	default:
		speak_fpdu(s, b, f);
		bed_deliver(b, f);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	static struct bed b;
	struct speaker s;
	unsigned after = 0;

	bed_open(&b, &f);
	speak_init(&s);
	while (f.n && after < 8) {
		one(&b, &s, &f);
		after += b.qp->state == UW_QPS_ERR; /* a few more, then it is over */
	}
	bed_deliver(&b, &f);
	bed_pull_all(&b, 1460);
	bed_close(&b);
	return 0;
}
