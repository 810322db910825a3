/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/delivery.h"

#include "loss/seq.h"

bool sent_after(uint64_t us1, uint32_t end1, uint64_t us2, uint32_t end2)
{
	return us1 > us2 || (us1 == us2 && seq_lt(end2, end1));
}

/* RFC 8985 §6.2 step 2: what was sent again and is answered sooner than a round trip can take is
 * the answer to an earlier sending. */
static bool is_ambiguous(const struct delivery *d, const struct sent *s)
{
	return s->times > 1 &&
	       (d->min_rtt_us == UINT64_MAX || d->now_us - s->sent_us < d->min_rtt_us);
}

void delivery_take(struct delivery *d, const struct sent *s)
{
	uint32_t end = sent_end(s);

	d->octets += s->len;
	d->segments++;
	d->highest = seq_max(d->highest, end);
	d->resent |= s->times > 1;
	if (s->times == 1) {
		d->reordered |= seq_lt(end, d->fack);
		d->original |= seq_lt(s->seq, d->frto_end);
		if (!d->rtt_us || d->now_us - s->sent_us < d->rtt_us)
			d->rtt_us = d->now_us > s->sent_us ? d->now_us - s->sent_us : 1;
	}
	if (is_ambiguous(d, s))
		return;
	if (!d->any || sent_after(s->sent_us, end, d->newest.sent_us, sent_end(&d->newest)))
		d->newest = *s;
	d->any = true;
}
