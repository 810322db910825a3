/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss recovery and congestion control of one TCP connection's sending side. It decides what is
 * lost, what is sent again and when, and how much may be in flight; whoever has the connection
 * sends, and tells what was sent and what was acknowledged. Nothing here sends, allocates, or knows
 * what time it is.
 *
 *   record   what was sent              rack, sack   what of it arrived, what is lost (RFC 8985)
 *   rtt, rto the timer (RFC 6298)       tlp          the probe before it (RFC 8985 §7)
 *   cc       how much (CUBIC, ...)      prr          how much while repairing (RFC 6937)
 *   frto, undo   what was no loss       pace         how fast
 *
 * The caller's turn, each time something happened:
 *   an ACK came            loss_acked
 *   the deadline is over   loss_timer
 *   then, in both cases    while ((s = loss_next(l, now))) { send s again; loss_resent(l, s, now);
 * } new octets to send     while loss_may_send(l, n, now) { send; loss_sent(...); }
 *
 * Times are microseconds of any clock that does not go back.
 */
#ifndef UWARP_LOSS_LOSS_H
#define UWARP_LOSS_LOSS_H

#include "loss/cc.h"
#include "loss/config.h"
#include "loss/frto.h"
#include "loss/option.h"
#include "loss/pace.h"
#include "loss/prr.h"
#include "loss/rack.h"
#include "loss/record.h"
#include "loss/rto.h"
#include "loss/rtt.h"
#include "loss/sack.h"
#include "loss/tlp.h"
#include "loss/undo.h"

enum loss_phase {
	LOSS_OPEN,
	LOSS_RECOVERY, /* a loss was detected: until `recover` is acknowledged */
	LOSS_TIMEOUT,  /* the RTO fired: likewise */
};

enum loss_due {
	LOSS_DUE_NOTHING,
	LOSS_DUE_SEND,	/* there is something for loss_next */
	LOSS_DUE_PROBE, /* send one new segment, or else repeat loss_last; then loss_probed */
};

enum loss_timer_kind { LOSS_NO_TIMER, LOSS_REORDER_TIMER, LOSS_PROBE_TIMER, LOSS_RTO_TIMER };

struct loss_stats {
	uint64_t sent_again; /* segments */
	uint64_t recoveries; /* by detection, not by timeout */
	uint64_t timeouts;
	uint64_t probes, probe_losses; /* RFC 8985 §7.4.2: the second repaired something */
	uint64_t duplicates;	       /* D-SACKs */
	uint64_t undone;	       /* recoveries that were none */
	uint64_t spurious_timeouts;
	uint64_t reneged; /* RFC 2018 §8 */
	uint64_t ece;	  /* windows that were reduced for a mark */
};

struct loss {
	const struct loss_config *cfg;
	struct record rec;
	uint32_t una, nxt; /* SND.UNA, SND.NXT */
	struct rtt rtt;
	struct rto rto;
	struct rack rack;
	struct sack sack;
	struct tlp tlp;
	struct prr prr;
	struct frto frto;
	struct undo undo;
	struct cc cc;
	struct pace pace;
	bool has_sack; /* both sides permit it */

	enum loss_phase phase;
	uint32_t recover;     /* RecoveryPoint, RFC 6675 §5 */
	bool force;	      /* the first repeat of a recovery goes whatever the window says */
	unsigned dup_acks;    /* without SACK, RFC 5681 §3.2 */
	uint32_t dup_octets;  /* ... and what they stand for */
	bool reduced;	      /* for a mark, RFC 3168 §6.1.2: not again before ... */
	uint32_t reduced_end; /* ... this is acknowledged */
	bool owes_cwr;	      /* the next new segment says CWR */

	uint64_t delivered, delivered_us, first_sent_us; /* rate samples */
	uint64_t app_limited;				 /* until so much is delivered; 0: not */
	uint32_t peak, peak_end; /* RFC 7661 §4.2: most in flight in this round */
	uint64_t last_us;	 /* of the last sending */
	uint64_t probe_base_us;
	bool held; /* something waits for its time (pace) */

	enum loss_timer_kind timer;
	uint64_t deadline_us; /* UINT64_MAX: nothing runs */
	struct loss_stats stats;
};

/* One ACK. Without SACK `plain` tells a duplicate one: no octets, no new window (RFC 5681 §2). */
struct loss_ack {
	uint32_t ack;
	unsigned n_blocks;
	const struct loss_block *block;
	bool plain;
	bool ece;
};

/* Nothing is outstanding; una is the next sequence number to be sent. slot: n entries (a power of
 * two) of the caller's, as long as l lives or until loss_grow. mss bounds a segment's octets. */
void loss_init(struct loss *l, const struct loss_config *cfg, struct sent *slot, uint32_t n,
	       uint32_t una, uint32_t mss);
void loss_grow(struct loss *l, struct sent *slot, uint32_t n);

/* ---- sending ----------------------------------------------------------------------------- */

/* May a new segment of n octets go? The peer's window is the caller's to look at. */
bool loss_may_send(struct loss *l, uint32_t n, uint64_t now_us);
/* How many new octets may go, behind all that has to be sent again. */
uint32_t loss_room(const struct loss *l);
/* A new segment went, from SND.NXT on. NULL: the record is full (loss_grow it before). */
struct sent *loss_sent(struct loss *l, uint32_t len, void *tag, uint64_t now_us);
/* There was nothing more to send although the window is open. */
void loss_idle(struct loss *l);
/* The next to send again, NULL: none, or not now. */
struct sent *loss_next(struct loss *l, uint64_t now_us);
void loss_resent(struct loss *l, struct sent *s, uint64_t now_us);

/* ---- hearing ----------------------------------------------------------------------------- */

/* What acknowledges octets that were never sent is ignored (RFC 9293 §3.10.7.4). */
void loss_acked(struct loss *l, const struct loss_ack *a, uint64_t now_us);

/* ---- time -------------------------------------------------------------------------------- */

/* When to call loss_timer, and then to try to send: UINT64_MAX never. */
uint64_t loss_wake_us(const struct loss *l);
enum loss_due loss_timer(struct loss *l, uint64_t now_us);
/* The last segment, NULL: none is outstanding. */
struct sent *loss_last(const struct loss *l);
/* The probe: `again` the last segment was repeated (as loss_resent), else a new one went (as
 * loss_sent) or nothing could. */
void loss_probed(struct loss *l, bool again, uint64_t now_us);

/* Octets taken to be in flight: `pipe` of RFC 6675 §4. */
uint32_t loss_pipe(const struct loss *l);

#endif
