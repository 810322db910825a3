/* SPDX-License-Identifier: BSD-3-Clause */
/* A recovery: how it begins, by detection or by timeout, and how it is taken back. */
#include "loss/internal.h"

uint32_t loss_flight(const struct loss *l)
{
	uint32_t flight = l->nxt - l->una, peak = loss_peak(l);

	return flight > peak ? flight : peak;
}

static void begin(struct loss *l, enum loss_phase phase, enum cc_event why)
{
	if (l->phase == LOSS_OPEN) {
		undo_arm(&l->undo, l->una, l->cc.cwnd, l->cc.ssthresh);
		l->cc.ops->congested(&l->cc, why, loss_flight(l));
	}
	l->phase = phase;
	l->cc.hystart.done = true;
	l->recover = l->nxt;
	l->owes_cwr = true;
}

static void begin_recovery(struct loss *l)
{
	uint32_t flight = l->nxt - l->una;

	begin(l, LOSS_RECOVERY, CC_LOSS);
	l->stats.recoveries++;
	prr_begin(&l->prr, flight);
	l->force = true;
}

static void give_up_on_flight(struct loss *l, uint64_t now_us)
{
	if (record_at(&l->rec, l->rec.first)->state == SENT_SACKED) { /* RFC 2018 §8 */
		l->stats.reneged++;
		sack_forget(&l->sack, &l->rec);
	}
	rack_timeout(&l->rack, &l->rec, loss_reorder_wait(l), now_us);
	record_sort_lost(&l->rec); /* RFC 6298 §5.4: the earliest is sent again */
	l->dup_octets = 0;
}

void loss_timed_out(struct loss *l, uint64_t now_us)
{
	bool fresh = l->phase != LOSS_TIMEOUT && l->cfg->frto && l->has_sack;

	l->stats.timeouts++;
	begin(l, LOSS_TIMEOUT, CC_TIMEOUT);
	give_up_on_flight(l, now_us);
	l->cc.cwnd = l->cc.mss; /* RFC 5681 §3.1: the loss window */
	rto_fired(&l->rto, now_us);
	l->tlp.pending = false;
	l->dup_acks = 0;
	l->rack.deadline_us = 0;
	l->frto.state = FRTO_OFF;
	if (fresh)
		frto_begin(&l->frto);
	l->force = true;
}

/* What was marked lost is on its way after all. */
void loss_unmark(struct loss *l)
{
	record_unmark(&l->rec);
}

/* RFC 4015 §3.2: as it was. */
void loss_take_back(struct loss *l)
{
	struct cc *c = &l->cc;

	if (c->cwnd < l->undo.cwnd)
		c->cwnd = l->undo.cwnd;
	if (c->ssthresh < l->undo.ssthresh)
		c->ssthresh = l->undo.ssthresh;
	c->ops->undo(c);
	l->undo.armed = false;
	l->phase = LOSS_OPEN;
	l->stats.undone++;
	l->owes_cwr = false;
}

void loss_detect(struct loss *l, uint64_t now_us)
{
	if (l->has_sack)
		rack_detect(&l->rack, &l->rec, loss_reorder_wait(l), now_us);
	if (l->rec.octets[SENT_LOST] && l->phase == LOSS_OPEN)
		begin_recovery(l);
}

void loss_too_long(struct loss *l)
{
	struct record *r = &l->rec;

	for (uint32_t id = r->first; id != r->end; id = record_next(id)) {
		const struct sent *s = record_at(r, id);

		if (s->state == SENT_FLYING && s->len > l->cc.mss && s->times == 1)
			record_set(r, id, SENT_LOST);
	}
	record_sort_lost(r);
	l->force = true;
	loss_arm(l);
}
