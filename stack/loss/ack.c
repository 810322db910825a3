/* SPDX-License-Identifier: BSD-3-Clause */
/* What an ACK says, to whom, in which order. */
#include "loss/internal.h"
#include "loss/seq.h"

/* Of a long segment, what the ACK covers. */
static void take_front(struct loss *l, uint32_t ack, struct delivery *d)
{
	struct sent front;
	uint32_t n;

	if (!record_count(&l->rec))
		return;
	front = *record_at(&l->rec, l->rec.first);
	if (!l->cut || front.len <= l->cut || !seq_lt(front.seq, ack))
		return;
	n = (ack - front.seq) / l->cut * l->cut;
	if (!n)
		return;
	front.len = n;
	if (front.state != SENT_SACKED)
		delivery_take(d, &front);
	record_trim(&l->rec, n);
}

static void take_cumulative(struct loss *l, uint32_t ack, struct delivery *d)
{
	while (record_count(&l->rec)) {
		const struct sent *s = record_at(&l->rec, l->rec.first);

		if (seq_lt(ack, sent_end(s)))
			break;
		if (s->state != SENT_SACKED)
			delivery_take(d, s);
		record_pop(&l->rec);
	}
	take_front(l, ack, d);
	l->una = ack;
}

/* Without SACK each duplicate ACK stands for a segment that has left the network (RFC 5681 §3.2),
 * the third tells of a loss; in a recovery a partial ACK tells of the next (RFC 6582 §3.2). */
static void take_without_sack(struct loss *l, const struct loss_ack *a, bool advanced)
{
	uint32_t flying = l->rec.octets[SENT_FLYING];
	bool hole = false;

	if (advanced) {
		l->dup_acks = 0;
		l->dup_octets = 0;
		hole = l->phase == LOSS_RECOVERY && seq_lt(a->ack, l->recover);
	} else if (a->plain && record_count(&l->rec)) {
		l->dup_acks++;
		if (l->dup_octets + l->cc.mss <= flying)
			l->dup_octets += l->cc.mss;
		hole = l->dup_acks == l->cfg->dup_thresh && l->phase == LOSS_OPEN;
	}
	if (hole && record_count(&l->rec) && record_at(&l->rec, l->rec.first)->state == SENT_FLYING)
		record_set(&l->rec, l->rec.first, SENT_LOST);
}

/* Draft-cheng-iccrg-delivery-rate-estimation §3.3, of the segment sent last. */
static void sample_rate(struct loss *l, const struct delivery *d, struct cc_ack *a)
{
	const struct sent *s = &d->newest;
	uint64_t sending, arriving, us;

	if (!d->any)
		return;
	sending = s->sent_us - s->first_sent_us;
	arriving = d->now_us - s->delivered_us;
	us = sending > arriving ? sending : arriving;
	l->first_sent_us = s->sent_us;
	if (!us || us < rtt_min(&l->rtt))
		return;
	a->rate = (l->delivered - s->delivered) * 1000000 / us;
	a->app_limited = s->app_limited;
}

static bool is_limited(const struct loss *l)
{
	uint32_t peak = loss_peak(l);

	/* RFC 9438 §5.8, RFC 7661 §4.3: in use by half, or by so much that no whole segment may go:
	 * a short one waits for the room of a long one */
	if (l->cc.cwnd < l->cc.ssthresh)
		return l->cc.cwnd < 2 * (uint64_t)peak || l->cc.cwnd < peak + l->cc.mss;
	return peak + 2 * l->cc.mss >= l->cc.cwnd;
}

static void new_round(struct loss *l)
{
	if (!seq_leq(l->peak_end, l->una))
		return;
	l->peak_before = l->peak;
	l->peak = loss_pipe(l);
	l->peak_end = l->nxt;
}

/* RFC 3168 §6.1.2: once in a window, "in response to a series of dropped and/or CE packets". What
 * is sent next has CWR. */
static void note_reduction(struct loss *l)
{
	l->reduced = true;
	l->reduced_end = l->nxt;
	l->owes_cwr = true;
}

/* The ACK that ends a recovery without acknowledging more is from before CWR, too. */
static void take_mark(struct loss *l)
{
	if (l->reduced || l->phase != LOSS_OPEN || l->una == l->recover || l->cc.ops->every_mark)
		return;
	l->cc.ops->congested(&l->cc, CC_ECE, loss_flight(l));
	l->undo.armed = false; /* the last recovery's window is not this one's */
	if (l->cc.cwnd > l->cc.ssthresh)
		l->cc.cwnd = l->cc.ssthresh;
	note_reduction(l);
	l->stats.ece++;
}

static void take_dsack(struct loss *l, const struct loss_block *b)
{
	l->stats.duplicates++;
	if (undo_duplicate(&l->undo, b, l->cc.mss))
		loss_take_back(l);
}

static void take_probe(struct loss *l, const struct loss_ack *a, const struct loss_block *dsack)
{
	if (tlp_acked(&l->tlp, a->ack, dsack, a->plain && !a->n_blocks) != TLP_REPAIRED)
		return;
	/* RFC 8985 §7.4.2: the probe hid a loss from the congestion control. */
	l->stats.probe_losses++;
	if (l->phase != LOSS_OPEN)
		return;
	l->cc.ops->congested(&l->cc, CC_LOSS, loss_flight(l));
	l->undo.armed = false; /* as for a mark */
	if (!l->cc.ops->own_recovery && l->cc.cwnd > l->cc.ssthresh)
		l->cc.cwnd = l->cc.ssthresh;
	note_reduction(l);
}

/* RFC 3522 §3.2 step 5, RFC 4015 §3. */
static void take_echo(struct loss *l, const struct loss_ack *a, bool advanced)
{
	if (!a->echoed || !advanced || !eifel_acked(&l->eifel, a->ack, a->echo) ||
	    l->phase == LOSS_OPEN)
		return;
	if (l->phase == LOSS_TIMEOUT) {
		l->stats.spurious_timeouts++;
		rto_was_spurious(&l->rto);
	}
	l->frto.state = FRTO_OFF;
	loss_unmark(l);
	loss_take_back(l);
}

static void take_frto(struct loss *l, bool advanced, bool original)
{
	if (l->phase != LOSS_TIMEOUT)
		return;
	if (frto_acked(&l->frto, advanced, original) != FRTO_SPURIOUS)
		return;
	l->stats.spurious_timeouts++;
	rto_was_spurious(&l->rto);
	loss_unmark(l);
	loss_take_back(l);
}

/* RFC 6675 §5: RecoveryPoint is reached. True: a recovery has ended. */
static bool end_phase(struct loss *l)
{
	if (l->phase == LOSS_OPEN || seq_lt(l->una, l->recover))
		return false;
	if (l->phase == LOSS_RECOVERY && !l->cc.ops->own_recovery)
		l->cc.cwnd = l->cc.ssthresh; /* RFC 6937 §3 */
	l->phase = LOSS_OPEN;
	l->frto.state = FRTO_OFF;
	l->dup_octets = 0;
	return true;
}

/* The peer says ECE until it has CWR, which the segment has that begins at the end: an ACK of no
 * more than that still says it of the mark that was heard. Looked at with each ACK: after 2^31
 * octets the end would be ahead again. */
static void end_reduction(struct loss *l)
{
	if (l->reduced && seq_lt(l->reduced_end, l->una))
		l->reduced = false;
}

/* Outside of a recovery a window grows with SND.UNA only: duplicate ACKs let limited transmit go on
 * (RFC 3042 §2). On a path that reorders SND.UNA stands still for most of the time, and what is
 * delivered out of order counts, too. */
static bool grows(const struct loss *l, const struct cc_ack *a, bool progress)
{
	return a->delivered && (l->cc.ops->own_recovery || progress || l->rack.reordering_seen ||
				l->rack.multiplier > 1);
}

static void set_window(struct loss *l, const struct cc_ack *a, bool progress)
{
	struct cc *c = &l->cc;

	if (l->phase == LOSS_RECOVERY && !c->ops->own_recovery) {
		struct prr_ack p = { .delivered = a->delivered,
				     .pipe = loss_pipe(l),
				     .ssthresh = c->ssthresh,
				     .mss = c->mss,
				     .progress = progress && !a->lost };

		c->cwnd = p.pipe + prr_acked(&l->prr, &p);
		if (c->cwnd < c->mss)
			c->cwnd = c->mss;
	} else if (grows(l, a, progress)) {
		c->ops->acked(c, a);
	}
	if (c->ops->own_recovery || l->paced)
		pace_set(&l->pace, c->ops->pace(c, &l->rtt), a->now_us);
}

static struct delivery delivery_begin(const struct loss *l, uint64_t now_us)
{
	return (struct delivery){ .now_us = now_us,
				  .min_rtt_us = rtt_min(&l->rtt),
				  .fack = l->rack.fack,
				  .frto_end = l->phase == LOSS_TIMEOUT ? l->recover : l->una,
				  .una_before = l->una,
				  .highest = l->una };
}

/* What was sent again is measured by its echo only (RFC 6298 §3, RFC 7323 §4.1). */
static uint64_t round_trip(const struct loss *l, const struct loss_ack *a, const struct delivery *d)
{
	if (delivery_rtt(d) || !a->echoed || !d->octets || !seq_lt(d->una_before, l->una))
		return delivery_rtt(d);
	return stamp_rtt(l->stamp, a->echo, d->now_us);
}

/* The segments that this ACK speaks of. */
static void take_segments(struct loss *l, const struct loss_ack *a, bool dsack, struct delivery *d)
{
	uint32_t una = l->una;
	bool advanced = seq_lt(una, a->ack);
	uint64_t rtt_us;

	if (advanced)
		take_cumulative(l, a->ack, d);
	if (l->has_sack)
		sack_take(&l->sack, &l->rec, a->block + dsack, a->n_blocks - dsack, d);
	else
		take_without_sack(l, a, advanced);
	l->delivered += d->octets;
	if (d->octets)
		l->delivered_us = d->now_us;
	if (l->app_limited && l->delivered >= l->app_limited)
		l->app_limited = 0;
	rtt_us = round_trip(l, a, d);
	if (rtt_us) {
		rtt_sample(&l->rtt, rtt_us, d->now_us);
		l->rto.backoff = 0; /* RFC 6298 §5 */
		l->tlp.needless = false;
	}
	rack_delivered(&l->rack, d, &l->rtt);
	if (advanced)
		rto_restart(&l->rto, d->now_us);
	if (d->octets)
		l->probe_base_us = d->now_us;
}

/* The ACK in a segment of octets from a peer that hears nothing new. */
static bool says_nothing(const struct loss *l, const struct loss_ack *a)
{
	return a->ack == l->una && !a->n_blocks && !a->plain && !a->ece;
}

void loss_acked(struct loss *l, const struct loss_ack *a, uint64_t now_us)
{
	struct delivery d = delivery_begin(l, now_us);
	struct cc_ack c = { .now_us = now_us, .rtt = &l->rtt, .ece = a->ece };
	bool advanced = seq_lt(l->una, a->ack), dsack, ended;
	uint32_t lost = l->rec.octets[SENT_LOST];

	if (seq_lt(l->nxt, a->ack) || says_nothing(l, a))
		return;
	dsack = l->has_sack && sack_is_duplicate(a->ack, a->block, a->n_blocks);
	c.limited = is_limited(l);
	take_segments(l, a, dsack, &d);
	sample_rate(l, &d, &c);
	take_echo(l, a, advanced);
	take_frto(l, advanced, d.original);
	if (dsack)
		take_dsack(l, a->block);
	take_probe(l, a, dsack ? a->block : NULL);
	ended = end_phase(l);
	end_reduction(l);
	rack_adapt(&l->rack, dsack, ended, l->una, l->nxt);
	if (a->ece)
		take_mark(l);
	loss_detect(l, now_us);
	if (l->rec.octets[SENT_LOST] > lost)
		c.lost = l->rec.octets[SENT_LOST] - lost;
	c.delivered = d.octets;
	c.una = l->una;
	c.nxt = l->nxt;
	c.rtt_us = delivery_rtt(&d);
	set_window(l, &c, advanced);
	new_round(l);
	loss_arm(l);
}
