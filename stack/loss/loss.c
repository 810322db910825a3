/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/internal.h"

#include <string.h>

void loss_config_default(struct loss_config *cfg)
{
	*cfg = (struct loss_config){
		.cc = &cc_cubic,
		.initial_segments = 10,
		.min_segments = 2,
		.max_window = 64u << 20,
		.abc_limit = 64,
		.dup_thresh = 3,
		.rto_first_us = 200000,
		.rto_min_us = 30000,
		.rto_max_us = 8000000,
		.granularity_us = 1000,
		.ack_delay_us = 12000,
		.reorder_bound_us = 2000,
		.short_rtt_us = 5000,
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

void loss_cut(struct loss *l, struct sent *slot, uint32_t n)
{
	record_cut(&l->rec, slot, n, l->cut);
	l->cut = 0;
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
	       !l->tlp.pending && !l->tlp.needless && !l->rto.backoff;
}

/* RFC 8985 §8: one timer, for whatever comes first. */
void loss_arm(struct loss *l)
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

uint64_t loss_reorder_wait(const struct loss *l)
{
	return rack_window(&l->rack, l->cfg, &l->rtt, &l->rec, l->phase != LOSS_OPEN);
}

/* ---- windows ----------------------------------------------------------------------------- */

uint32_t loss_pipe(const struct loss *l)
{
	uint32_t flying = l->rec.octets[SENT_FLYING];

	return flying > l->dup_octets ? flying - l->dup_octets : 0;
}

uint32_t loss_peak(const struct loss *l)
{
	return l->peak > l->peak_before ? l->peak : l->peak_before;
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
	/* loss_next says whether pacing holds these back. */
	if (l->rec.octets[SENT_LOST] && !frto_wants_new(&l->frto))
		return false;
	l->held = false;
	if (record_full(&l->rec) || (!frto_wants_new(&l->frto) && !has_room(l, n)))
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
	c->hystart.begun = false; /* its round trips are of the time before */
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
	if (first) {
		rto_restart(&l->rto, now_us);
		l->first_sent_us = l->delivered_us = now_us;
		l->peak_before = l->peak;
		l->peak = 0;
		l->peak_end = l->nxt;
	}
	note_sending(l, s, now_us);
	frto_sent_new(&l->frto);
	l->probe_base_us = now_us;
	loss_arm(l);
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

	l->held = false;
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
	if (l->stamp && l->phase != LOSS_OPEN && !l->undo.again)
		eifel_sent_again(&l->eifel, sent_end(s), stamp_now(l->stamp, now_us));
	if (l->phase != LOSS_OPEN)
		undo_sent_again(&l->undo, sent_end(s));
	l->stats.sent_again++;
	note_sending(l, s, now_us);
	if (id == l->rec.first)
		l->rto.base_us = now_us;
	loss_arm(l);
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
		loss_detect(l, now_us);
	else
		loss_timed_out(l, now_us);
	loss_arm(l);
	return l->rec.octets[SENT_LOST] ? LOSS_DUE_SEND : LOSS_DUE_NOTHING;
}

void loss_probed(struct loss *l, bool again, uint64_t now_us)
{
	l->stats.probes++;
	tlp_sent(&l->tlp, again, l->nxt);
	l->rto.base_us = now_us; /* RFC 8985 §7.3: the RTO runs from now */
	loss_arm(l);
}

void loss_path_up(struct loss *l, uint64_t now_us)
{
	if (l->timer != LOSS_RTO_TIMER || !l->rto.backoff)
		return;
	rto_restart(&l->rto, now_us);
	l->rto.backoff = 0;
	l->deadline_us = now_us;
}
