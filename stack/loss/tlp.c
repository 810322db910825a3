/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/tlp.h"

#include "loss/seq.h"

uint64_t tlp_pto(const struct loss_config *cfg, const struct rtt *r, const struct record *rec)
{
	uint64_t us;

	if (!r->any)
		return 1000000;
	us = 2 * r->smoothed_us;
	/* A lone segment's ACK may be delayed. */
	if (record_count(rec) == 1)
		us += cfg->ack_delay_us;
	return us > cfg->granularity_us ? us : cfg->granularity_us;
}

void tlp_sent(struct tlp *t, bool again, uint32_t nxt)
{
	t->pending = true;
	t->again = again;
	t->end_seq = nxt;
}

enum tlp_said tlp_acked(struct tlp *t, uint32_t ack, const struct loss_block *dsack, bool plain)
{
	if (!t->pending || seq_lt(ack, t->end_seq))
		return TLP_NOTHING;
	if (!t->again || (dsack && dsack->right == t->end_seq)) {
		t->pending = false;
		t->needless = t->again;
		return TLP_NO_LOSS;
	}
	if (seq_lt(t->end_seq, ack)) { /* more than the probe, and no duplicate was reported */
		t->pending = false;
		return TLP_REPAIRED;
	}
	if (plain) {
		t->pending = false;
		t->needless = true;
		return TLP_NO_LOSS;
	}
	return TLP_NOTHING;
}
