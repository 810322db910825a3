/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/loss.h"

#include <string.h>

#include "loss/seq.h"

void loss_config_default(struct loss_config *cfg)
{
	*cfg = (struct loss_config){
		.cc = &cc_cubic,
		.initial_segments = 10,
		.min_segments = 2,
		.max_window = 64u << 20,
		.abc_limit = 8,
		.dup_thresh = 3,
		.rto_first_us = 200000,
		.rto_min_us = 30000,
		.rto_max_us = 8000000,
		.granularity_us = 1000,
		.ack_delay_us = 12000,
		.reorder_bound_us = 2000,
		.sack = true,
		.tlp = true,
		.frto = true,
		.idle_restart = true,
		.hystart = true,
	};
}

void loss_init(struct loss *l, const struct loss_config *cfg, struct sent *slot, uint32_t n,
	       uint32_t una, uint32_t mss)
{
	memset(l, 0, sizeof(*l));
	l->cfg = cfg;
	l->una = l->nxt = una;
	l->has_sack = cfg->sack;
	l->deadline_us = UINT64_MAX;
	record_init(&l->rec, slot, n);
	rto_init(&l->rto, cfg);
	rack_init(&l->rack, una);
	cc_init(&l->cc, cfg, mss);
}

void loss_grow(struct loss *l, struct sent *slot, uint32_t n)
{
	record_grow(&l->rec, slot, n);
}

/* ---- timers ------------------------------------------------------------------------------ */

static void set_timer(struct loss *l, enum loss_timer_kind kind, uint64_t at)
{
	l->timer = kind;
	l->deadline_us = at;
}

/* RFC 8985 §7.2: when a probe may be scheduled. */
static bool may_probe(const struct loss *l)
{
	return l->cfg->tlp && l->has_sack && l->phase == LOSS_OPEN && !l->rec.sacked &&
	       !l->tlp.pending && !l->rto.backoff;
}

/* RFC 8985 §8: one timer, for whatever comes first. */
static void arm(struct loss *l)
{
	uint64_t rto = rto_at(&l->rto, l->cfg, &l->rtt), pto;

	if (!record_count(&l->rec)) { /* RFC 6298 §5.2 */
		set_timer(l, LOSS_NO_TIMER, UINT64_MAX);
		return;
	}
	set_timer(l, LOSS_RTO_TIMER, rto);
	if (l->rack.deadline_us && l->rack.deadline_us < rto) {
		set_timer(l, LOSS_REORDER_TIMER, l->rack.deadline_us);
	} else if (may_probe(l)) {
		pto = l->probe_base_us + tlp_pto(l->cfg, &l->rtt, &l->rec);
		if (pto < rto)
			set_timer(l, LOSS_PROBE_TIMER, pto);
	}
}

static uint64_t rack_wait(const struct loss *l)
{
	return rack_window(&l->rack, l->cfg, &l->rtt, &l->rec, l->phase != LOSS_OPEN);
}

/* ---- windows ----------------------------------------------------------------------------- */

uint32_t loss_pipe(const struct loss *l)
{
	uint32_t flying = l->rec.octets[SENT_FLYING];

	return flying > l->dup_octets ? flying - l->dup_octets : 0;
}

static uint32_t window_left(const struct loss *l)
{
	uint32_t pipe = loss_pipe(l);

	return l->cc.cwnd > pipe ? l->cc.cwnd - pipe : 0;
}

/* The window, or when nothing is in flight one segment: it may be longer than the window. */
static bool has_room(const struct loss *l, uint32_t n)
{
	return window_left(l) >= n || !loss_pipe(l);
}

uint32_t loss_room(const struct loss *l)
{
	uint32_t left = window_left(l), lost = l->rec.octets[SENT_LOST];

	if (frto_wants_new(&l->frto))
		return l->frto.new_left * l->cc.mss;
	/* An empty pipe lets one segment go, and that is not a new one while some are lost. */
	if (left <= lost)
		return lost || loss_pipe(l) ? 0 : l->cc.mss;
	return left - lost;
}

/* Only pacing is in the way, if anything. */
static bool in_time(struct loss *l, uint64_t now_us)
{
	l->held = !pace_open(&l->pace, now_us);
	return !l->held;
}

bool loss_may_send(struct loss *l, uint32_t n, uint64_t now_us)
{
	l->held = false;
	if (record_full(&l->rec))
		return false;
	if (!frto_wants_new(&l->frto) && (l->rec.octets[SENT_LOST] || !has_room(l, n)))
		return false;
	return in_time(l, now_us);
}

/* RFC 2861 §2: half for each RTO of silence, down to the first window; RFC 5681 §4.1. */
static void restart_after_idle(struct loss *l, uint64_t now_us)
{
	uint64_t silent = now_us - l->last_us, rto = rto_us(&l->rto, l->cfg, &l->rtt);
	uint32_t first = cc_initial_window(&l->cc);
	struct cc *c = &l->cc;

	if (!l->cfg->idle_restart || !l->last_us || silent <= rto)
		return;
	c->ops->idle(c);
	if (c->ops->own_recovery || c->cwnd <= first)
		return;
	if (c->ssthresh < c->cwnd - c->cwnd / 4)
		c->ssthresh = c->cwnd - c->cwnd / 4;
	for (; silent > rto && c->cwnd > first; silent -= rto)
		c->cwnd /= 2;
	if (c->cwnd < first)
		c->cwnd = first;
}

static void note_sending(struct loss *l, struct sent *s, uint64_t now_us)
{
	uint32_t pipe = loss_pipe(l);

	s->delivered = l->delivered;
	s->delivered_us = l->delivered_us;
	s->first_sent_us = l->first_sent_us;
	s->app_limited = l->app_limited != 0;
	if (pipe > l->peak)
		l->peak = pipe;
	l->last_us = now_us;
	if (l->phase == LOSS_RECOVERY)
		prr_sent(&l->prr, s->len);
	pace_sent(&l->pace, s->len, now_us);
}

struct sent *loss_sent(struct loss *l, uint32_t len, void *tag, uint64_t now_us)
{
	bool first = !record_count(&l->rec);
	struct sent *s;

	if (first)
		restart_after_idle(l, now_us);
	s = record_append(&l->rec, l->nxt, len, now_us);
	if (!s)
		return NULL;
	s->tag = tag;
	l->nxt += len;
	if (first) { /* RFC 6298 §5.1 */
		rto_restart(&l->rto, now_us);
		l->first_sent_us = l->delivered_us = now_us;
		l->peak = 0;
		l->peak_end = l->nxt;
	}
	note_sending(l, s, now_us);
	frto_sent_new(&l->frto);
	l->probe_base_us = now_us;
	arm(l);
	return s;
}

void loss_idle(struct loss *l)
{
	l->app_limited = l->delivered + loss_pipe(l);
	if (!l->app_limited)
		l->app_limited = 1;
}

struct sent *loss_next(struct loss *l, uint64_t now_us)
{
	struct sent *s;

	if (l->rec.lost.first == RECORD_NONE || frto_wants_new(&l->frto))
		return NULL;
	s = record_at(&l->rec, l->rec.lost.first);
	if (l->force)
		return s;
	return has_room(l, s->len) && in_time(l, now_us) ? s : NULL;
}

static uint32_t id_of(const struct loss *l, const struct sent *s)
{
	return record_find(&l->rec, s->seq);
}

void loss_resent(struct loss *l, struct sent *s, uint64_t now_us)
{
	uint32_t id = id_of(l, s);

	l->force = false;
	s->sent_us = now_us;
	if (s->times < UINT8_MAX)
		s->times++;
	record_set(&l->rec, id, SENT_FLYING);
	undo_sent_again(&l->undo);
	l->stats.sent_again++;
	note_sending(l, s, now_us);
	if (id == l->rec.first)
		l->rto.base_us = now_us;
	arm(l);
}

/* ---- losses ------------------------------------------------------------------------------ */

static void begin(struct loss *l, enum loss_phase phase, enum cc_event why)
{
	if (l->phase == LOSS_OPEN) {
		undo_arm(&l->undo, l->una, l->cc.cwnd, l->cc.ssthresh);
		l->cc.ops->congested(&l->cc, why, l->nxt - l->una);
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
	rack_timeout(&l->rack, &l->rec, rack_wait(l), now_us);
	record_sort_lost(&l->rec); /* RFC 6298 §5.4: the earliest is sent again */
	l->dup_octets = 0;
}

static void timed_out(struct loss *l, uint64_t now_us)
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
static void unmark(struct loss *l)
{
	while (l->rec.lost.first != RECORD_NONE)
		record_set(&l->rec, l->rec.lost.first, SENT_FLYING);
}

/* RFC 4015 §3.2: as it was. */
static void take_back(struct loss *l)
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

/* ---- an ACK ------------------------------------------------------------------------------ */

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

static void look_for_losses(struct loss *l, uint64_t now_us)
{
	if (l->has_sack)
		rack_detect(&l->rack, &l->rec, rack_wait(l), now_us);
	if (l->rec.octets[SENT_LOST] && l->phase == LOSS_OPEN)
		begin_recovery(l);
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
	if (l->cc.cwnd < l->cc.ssthresh) /* RFC 9438 §5.8, RFC 7661 §4.3: in use by half */
		return l->cc.cwnd < 2 * (uint64_t)l->peak;
	return l->peak + 2 * l->cc.mss >= l->cc.cwnd;
}

static void new_round(struct loss *l)
{
	if (!seq_leq(l->peak_end, l->una))
		return;
	l->peak = loss_pipe(l);
	l->peak_end = l->nxt;
}

/* RFC 3168 §6.1.2: once in a window. */
static void take_mark(struct loss *l)
{
	if (l->reduced && seq_leq(l->reduced_end, l->una))
		l->reduced = false;
	if (l->reduced || l->phase != LOSS_OPEN || l->cc.ops->every_mark)
		return;
	l->cc.ops->congested(&l->cc, CC_ECE, l->nxt - l->una);
	if (l->cc.cwnd > l->cc.ssthresh)
		l->cc.cwnd = l->cc.ssthresh;
	l->reduced = true;
	l->reduced_end = l->nxt;
	l->owes_cwr = true;
	l->stats.ece++;
}

static void take_dsack(struct loss *l, const struct loss_block *b)
{
	l->stats.duplicates++;
	if (undo_duplicate(&l->undo, b, l->cc.mss))
		take_back(l);
}

static void take_probe(struct loss *l, const struct loss_ack *a, const struct loss_block *dsack)
{
	if (tlp_acked(&l->tlp, a->ack, dsack, a->plain && !a->n_blocks) != TLP_REPAIRED)
		return;
	/* RFC 8985 §7.4.2: the probe hid a loss from the congestion control. */
	l->stats.probe_losses++;
	if (l->phase != LOSS_OPEN)
		return;
	l->cc.ops->congested(&l->cc, CC_LOSS, l->nxt - l->una);
	if (!l->cc.ops->own_recovery && l->cc.cwnd > l->cc.ssthresh)
		l->cc.cwnd = l->cc.ssthresh;
	l->owes_cwr = true;
}

static void take_frto(struct loss *l, bool advanced, bool original)
{
	if (l->phase != LOSS_TIMEOUT)
		return;
	if (frto_acked(&l->frto, advanced, original) != FRTO_SPURIOUS)
		return;
	l->stats.spurious_timeouts++;
	rto_was_spurious(&l->rto);
	unmark(l);
	take_back(l);
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
	if (c->ops->own_recovery)
		pace_set(&l->pace, c->ops->pace(c, &l->rtt), a->now_us);
}

static struct delivery delivery_begin(const struct loss *l, uint64_t now_us)
{
	return (struct delivery){ .now_us = now_us,
				  .min_rtt_us = rtt_min(&l->rtt),
				  .fack = l->rack.fack,
				  .flying_before = l->rec.octets[SENT_FLYING],
				  .frto_end = l->phase == LOSS_TIMEOUT ? l->recover : l->una,
				  .highest = l->una };
}

/* The segments that this ACK speaks of. */
static void take_segments(struct loss *l, const struct loss_ack *a, bool dsack, struct delivery *d)
{
	uint32_t una = l->una;
	bool advanced = seq_lt(una, a->ack);

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
	if (delivery_rtt(d))
		rtt_sample(&l->rtt, delivery_rtt(d), d->now_us);
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
	take_frto(l, advanced, d.original);
	if (dsack)
		take_dsack(l, a->block);
	take_probe(l, a, dsack ? a->block : NULL);
	ended = end_phase(l);
	rack_adapt(&l->rack, dsack, ended, l->una, l->nxt);
	if (a->ece)
		take_mark(l);
	look_for_losses(l, now_us);
	if (l->rec.octets[SENT_LOST] > lost)
		c.lost = l->rec.octets[SENT_LOST] - lost;
	c.delivered = d.octets;
	c.una = l->una;
	c.nxt = l->nxt;
	c.rtt_us = delivery_rtt(&d);
	set_window(l, &c, advanced);
	new_round(l);
	arm(l);
}

/* ---- time -------------------------------------------------------------------------------- */

struct sent *loss_last(const struct loss *l)
{
	if (!record_count(&l->rec))
		return NULL;
	return record_at(&l->rec, (l->rec.end - 1) & RECORD_IDS);
}

uint64_t loss_wake_us(const struct loss *l)
{
	uint64_t at = l->held ? pace_at(&l->pace) : UINT64_MAX;

	return at < l->deadline_us ? at : l->deadline_us;
}

enum loss_due loss_timer(struct loss *l, uint64_t now_us)
{
	if (now_us < l->deadline_us)
		return LOSS_DUE_NOTHING;
	if (l->timer == LOSS_PROBE_TIMER)
		return LOSS_DUE_PROBE;
	if (l->timer == LOSS_REORDER_TIMER)
		look_for_losses(l, now_us);
	else
		timed_out(l, now_us);
	arm(l);
	return l->rec.octets[SENT_LOST] ? LOSS_DUE_SEND : LOSS_DUE_NOTHING;
}

void loss_probed(struct loss *l, bool again, uint64_t now_us)
{
	l->stats.probes++;
	tlp_sent(&l->tlp, again, l->nxt);
	l->rto.base_us = now_us; /* RFC 8985 §7.3: the RTO runs from now */
	arm(l);
}
