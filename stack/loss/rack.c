/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/rack.h"

#include "loss/seq.h"

#define PERSIST 16u /* RFC 8985 §6.2 step 4 */

void rack_init(struct rack *k, uint32_t una)
{
	*k = (struct rack){ .fack = una, .multiplier = 1, .persist = PERSIST };
}

/* Without timestamps nobody knows which sending of a segment is answered. On a path that reorders
 * it may well be the first, which came late; taken for the second it would make all that was sent
 * between the two look lost. So there those get the time that they may need. */
static uint64_t careful_rtt(const struct rack *k, const struct sent *s, const struct rtt *r,
			    uint64_t us)
{
	uint64_t usual = r->smoothed_us + 4 * r->var_us;

	if (s->times == 1 || (!k->reordering_seen && k->multiplier == 1))
		return us;
	return us > usual ? us : usual;
}

void rack_delivered(struct rack *k, const struct delivery *d, const struct rtt *r)
{
	k->fack = seq_max(k->fack, d->highest);
	k->reordering_seen |= d->reordered;
	if (!d->any)
		return;
	if (k->any && !sent_after(d->newest.sent_us, sent_end(&d->newest), k->xmit_us, k->end_seq))
		return;
	k->any = true;
	k->xmit_us = d->newest.sent_us;
	k->end_seq = sent_end(&d->newest);
	k->rtt_us = careful_rtt(k, &d->newest, r, d->now_us - d->newest.sent_us);
}

void rack_adapt(struct rack *k, bool dsack, bool recovery_ended, uint32_t una, uint32_t nxt)
{
	if (k->in_dsack_round && seq_leq(k->dsack_round, una))
		k->in_dsack_round = false;
	if (dsack && !k->in_dsack_round) {
		k->in_dsack_round = true;
		k->dsack_round = nxt;
		k->multiplier++;
		k->persist = PERSIST;
	} else if (recovery_ended && k->persist && !--k->persist) {
		k->multiplier = 1;
		k->persist = PERSIST;
	}
}

uint64_t rack_window(const struct rack *k, const struct loss_config *cfg, const struct rtt *r,
		     const struct record *rec, bool recovering)
{
	uint64_t us, bound;

	/* Without reordering the DupThresh of RFC 6675 decides, at once. */
	if (!k->reordering_seen && k->multiplier == 1 &&
	    (recovering || rec->sacked >= cfg->dup_thresh))
		return 0;
	if (!r->any)
		return 0;
	bound = r->smoothed_us > cfg->reorder_bound_us ? r->smoothed_us : cfg->reorder_bound_us;
	us = k->multiplier * (rtt_min(r) / 4);
	return us < bound ? us : bound;
}

static bool sent_before_newest(const struct rack *k, const struct sent *s)
{
	return sent_after(k->xmit_us, k->end_seq, s->sent_us, sent_end(s));
}

uint32_t rack_detect(struct rack *k, struct record *r, uint64_t window_us, uint64_t now_us)
{
	uint32_t lost = 0, id;

	k->deadline_us = 0;
	/* The list is in the order of sending: behind the first that is young enough all are. */
	while (k->any && (id = r->flying.first) != RECORD_NONE) {
		const struct sent *s = record_at(r, id);
		uint64_t due = s->sent_us + k->rtt_us + window_us;

		if (!sent_before_newest(k, s))
			break;
		if (due > now_us) {
			k->deadline_us = due;
			break;
		}
		lost += s->len;
		record_set(r, id, SENT_LOST);
	}
	return lost;
}

uint32_t rack_timeout(const struct rack *k, struct record *r, uint64_t window_us, uint64_t now_us)
{
	uint32_t lost = 0, id = r->flying.first, after;

	for (; id != RECORD_NONE; id = after) {
		const struct sent *s = record_at(r, id);

		after = s->after;
		if (id != r->first && k->any && s->sent_us + k->rtt_us + window_us > now_us)
			continue;
		lost += s->len;
		record_set(r, id, SENT_LOST);
	}
	return lost;
}
