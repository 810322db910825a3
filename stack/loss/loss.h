/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss recovery and congestion control of one TCP connection's sending side. This folder decides
 * which segments are lost, what is sent again and when, and how many octets may be in flight. The
 * caller sends segments, and reports what was sent and what was acknowledged. No function here
 * sends, allocates or reads a clock.
 *
 *   record       the segments sent        rack, sack   which arrived, which are lost (RFC 8985)
 *   rtt, rto     the timer (RFC 6298)     tlp          the probe before the RTO (RFC 8985 §7)
 *   cc           the window (CUBIC, ...)  prr          the window in a recovery (RFC 6937)
 *   frto, undo   spurious recoveries      pace         the rate of sending
 *   eifel, stamp the same and more, where both ends send timestamps (RFC 7323)
 *
 * What the caller does:
 *   an ACK came            loss_acked
 *   the deadline passed    loss_timer
 *   after both             while ((s = loss_next(l, now))) { send s; loss_resent(l, s, now); }
 *   new octets to send     while (loss_may_send(l, n, now)) { send; loss_sent(...); }
 *
 * Times are microseconds of any clock that does not go back.
 */
#ifndef UWARP_LOSS_LOSS_H
#define UWARP_LOSS_LOSS_H

#include "loss/cc.h"
#include "loss/config.h"
#include "loss/eifel.h"
#include "loss/frto.h"
#include "loss/option.h"
#include "loss/pace.h"
#include "loss/prr.h"
#include "loss/rack.h"
#include "loss/record.h"
#include "loss/rto.h"
#include "loss/rtt.h"
#include "loss/sack.h"
#include "loss/stamp.h"
#include "loss/tlp.h"
#include "loss/undo.h"

enum loss_phase {
	LOSS_OPEN,
	LOSS_RECOVERY, /* a loss was detected; lasts until `recover` is acknowledged */
	LOSS_TIMEOUT,  /* the RTO fired; lasts until `recover` is acknowledged */
};

enum loss_due {
	LOSS_DUE_NOTHING,
	LOSS_DUE_SEND, /* call loss_next */
	/* send one new segment, or else repeat loss_last(); then call loss_probed */
	LOSS_DUE_PROBE,
};

enum loss_timer_kind { LOSS_NO_TIMER, LOSS_REORDER_TIMER, LOSS_PROBE_TIMER, LOSS_RTO_TIMER };

struct loss_stats {
	uint64_t sent_again; /* segments sent again */
	uint64_t recoveries; /* recoveries that began without an RTO */
	uint64_t timeouts;
	/* probe_losses: probes that repaired a loss, RFC 8985 §7.4.2 */
	uint64_t probes, probe_losses;
	uint64_t duplicates; /* D-SACKs received */
	uint64_t undone;     /* recoveries taken back since nothing was lost */
	uint64_t spurious_timeouts;
	uint64_t reneged; /* times that the peer dropped octets it had SACKed, RFC 2018 §8 */
	uint64_t ece;	  /* times that the window was reduced for ECE */
};

struct loss {
	const struct loss_config *cfg;
	struct record rec;
	uint32_t una, nxt; /* SND.UNA, SND.NXT */
	/* Set by the caller: some segments are longer than these octets, and cut into such on the
	 * wire. 0: none is. */
	uint32_t cut;
	struct rtt rtt;
	struct rto rto;
	struct rack rack;
	struct sack sack;
	struct tlp tlp;
	struct prr prr;
	struct frto frto;
	struct undo undo;
	struct eifel eifel;
	struct cc cc;
	struct pace pace;
	bool has_sack; /* both sides permit SACK */
	bool paced;    /* pace whatever the control: nothing behind the caller smooths bursts */
	const struct stamp *stamp; /* the caller's; NULL: no timestamps */

	enum loss_phase phase;
	uint32_t recover;     /* RecoveryPoint, RFC 6675 §5 */
	bool force;	      /* the next repeat may exceed the window: the first of a recovery */
	unsigned dup_acks;    /* without SACK: duplicate ACKs, RFC 5681 §3.2 */
	uint32_t dup_octets;  /* octets that those ACKs say have left the network */
	bool reduced;	      /* the window was reduced (RFC 3168 §6.1.2), ... */
	uint32_t reduced_end; /* ... and not again for ECE until more than this is acknowledged */
	bool owes_cwr;	      /* the next new segment carries CWR */

	/* for rate samples: octets delivered, when the last were, and when the segment that an ACK
	 * last sampled was sent */
	uint64_t delivered, delivered_us, first_sent_us;
	/* rate samples are limited by the program until `delivered` is this; 0: they are not */
	uint64_t app_limited;
	/* peak: most octets in flight in this round trip (RFC 7661 §4.2), which ends at peak_end;
	 * peak_before: in the one before */
	uint32_t peak, peak_before, peak_end;
	uint64_t last_us;	/* time of the last sending */
	uint64_t probe_base_us; /* the probe timer (PTO) runs from this time */
	bool held;		/* pacing holds a segment back */

	enum loss_timer_kind timer;
	uint64_t deadline_us; /* UINT64_MAX: no timer runs */
	struct loss_stats stats;
};

/* One ACK. plain: the segment has no octets and the same window as before, so without SACK the ACK
 * may count as a duplicate (RFC 5681 §2). */
struct loss_ack {
	uint32_t ack;
	unsigned n_blocks;
	const struct loss_block *block;
	bool plain;
	bool ece;
	bool echoed;   /* the ACK has the timestamps option; only with loss.stamp */
	uint32_t echo; /* TSecr */
};

/* Nothing is outstanding. una: the next sequence number to send. slot: n entries (a power of two);
 * the caller owns the memory and keeps it until loss_grow or the end of l. mss: most octets of a
 * segment. */
void loss_init(struct loss *l, const struct loss_config *cfg, struct sent *slot, uint32_t n,
	       uint32_t una, uint32_t mss);
/* Move to a larger array of n slots (a power of two). The old array is the caller's again. */
void loss_grow(struct loss *l, struct sent *slot, uint32_t n);
/* The same, and make l->cut octets of each long segment an entry (record_cut); l->cut is 0 then. */
void loss_cut(struct loss *l, struct sent *slot, uint32_t n);

/* Is nothing known or suspected to be lost? If something is, the caller cuts long segments
 * (loss_cut) before the next call of loss_acked or loss_timer. */
static inline bool loss_calm(const struct loss *l)
{
	return l->phase == LOSS_OPEN && !l->rec.sacked;
}

/* ---- sending ----------------------------------------------------------------------------- */

/* May a new segment of n octets be sent? The caller checks the peer's window. */
bool loss_may_send(struct loss *l, uint32_t n, uint64_t now_us);
/* How many new octets fit into the window beside the lost ones, which go first. */
uint32_t loss_room(const struct loss *l);
/* A new segment was sent; the segment begins at SND.NXT. tag is kept for the caller. NULL: the
 * record is full (call loss_grow before). */
struct sent *loss_sent(struct loss *l, uint32_t len, void *tag, uint64_t now_us);
/* The program had nothing more to send although the window is open. */
void loss_idle(struct loss *l);
/* The segment to send again now; NULL: none, or the window or pacing forbids to send. */
struct sent *loss_next(struct loss *l, uint64_t now_us);
void loss_resent(struct loss *l, struct sent *s, uint64_t now_us);

/* The network drops segments longer than cc.mss, and has dropped those that were sent once: they
 * are lost, but for no congestion, so the window stays (RFC 1191 §6.4). */
void loss_too_long(struct loss *l);

/* ---- hearing ----------------------------------------------------------------------------- */

/* An ACK beyond SND.NXT is ignored (RFC 9293 §3.10.7.4). */
void loss_acked(struct loss *l, const struct loss_ack *a, uint64_t now_us);

/* ---- time -------------------------------------------------------------------------------- */

/* When to call loss_timer and then to try to send; UINT64_MAX: never. */
uint64_t loss_wake_us(const struct loss *l);
enum loss_due loss_timer(struct loss *l, uint64_t now_us);
/* The path works again, as the caller knows from elsewhere (RFC 6069 has that of ICMP): whatever
 * waits for the RTO is due now, and the back-off begins anew. */
void loss_path_up(struct loss *l, uint64_t now_us);
/* The segment with the highest sequence number; NULL: nothing is outstanding. */
struct sent *loss_last(const struct loss *l);
/* The caller has handled LOSS_DUE_PROBE. again: the last segment was repeated (after loss_resent);
 * else a new one was sent (after loss_sent), or nothing could be sent. */
void loss_probed(struct loss *l, bool again, uint64_t now_us);

/* Octets assumed to be in flight: `pipe` of RFC 6675 §4. */
uint32_t loss_pipe(const struct loss *l);

#endif
