/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control: how much may be in flight. One table of functions for each control; what they
 * keep lies in struct cc, so that one can take another's place without memory of its own. Windows
 * are in octets, times in microseconds, rates in octets per second.
 */
#ifndef UWARP_LOSS_CC_H
#define UWARP_LOSS_CC_H

#include <stdbool.h>
#include <stdint.h>

#include "loss/config.h"
#include "loss/hystart.h"
#include "loss/rtt.h"

/* What one ACK tells a control. */
struct cc_ack {
	uint64_t now_us;
	uint32_t delivered; /* octets, newly */
	uint32_t lost;	    /* octets, newly taken for lost */
	uint32_t una, nxt;  /* after the ACK */
	uint64_t rtt_us;    /* sample; 0: none */
	const struct rtt *rtt;
	bool limited;	  /* the window bounded what was sent, not the program */
	bool ece;	  /* RFC 3168: the peer saw a mark */
	uint64_t rate;	  /* delivery rate sample; 0: none */
	bool app_limited; /* ... was bounded by the program */
};

enum cc_event {
	CC_LOSS,    /* a recovery begins, RFC 5681 §3.2 */
	CC_ECE,	    /* a mark, RFC 3168 §6.1.2 */
	CC_TIMEOUT, /* the RTO fired, RFC 5681 §3.1 */
};

struct cubic {
	double w_max, k, w_est, origin; /* segments, seconds; RFC 9438 §4.1.2 */
	double cwnd_prior;
	double fraction;   /* octets that the window has earned, less than one */
	uint64_t epoch_us; /* 0: the next ACK begins one */
	double saved_w_max, saved_k, saved_w_est, saved_origin, saved_prior;
	uint64_t saved_epoch_us;
};

struct dctcp {
	uint32_t alpha;	     /* DCTCP.Alpha, in 1/1024, RFC 8257 §3.3 */
	uint32_t window_end; /* DCTCP.WindowEnd */
	uint64_t acked, marked;
	uint32_t fraction; /* octets acknowledged since the window grew */
	bool begun;
};

#define DELAY_ROUNDS 10u

enum delay_phase { DELAY_STARTUP, DELAY_DRAIN, DELAY_CRUISE, DELAY_LOOK };

struct delay {
	enum delay_phase phase;
	uint64_t rate[DELAY_ROUNDS]; /* the highest of each round trip */
	unsigned round, full;	     /* full: rounds in which the rate grew no more */
	uint32_t round_end;
	uint64_t best;		  /* when the start-up last saw it grow */
	uint64_t look_us;	  /* when to look for the least round-trip time again, ... */
	uint64_t look_end_us;	  /* ... and until when */
	uint64_t lost, delivered; /* of this round */
	uint32_t cap;		  /* what a loss of many bounds the window to */
	bool begun;
};

struct cc {
	const struct loss_config *cfg;
	const struct cc_ops *ops;
	uint32_t mss;
	uint32_t cwnd, ssthresh;
	struct hystart hystart;
	union {
		struct cubic cubic;
		struct dctcp dctcp;
		struct delay delay;
	};
};

struct cc_ops {
	const char *name;
	/* It says itself how much may be in flight while losses are repaired: no PRR. */
	bool own_recovery;
	/* Every ACK with a mark is its business, not one in a window (RFC 8257). */
	bool every_mark;
	void (*init)(struct cc *c);
	/* An ACK, outside of a recovery, or at any time with own_recovery. */
	void (*acked)(struct cc *c, const struct cc_ack *a);
	/* Sets ssthresh, from what was in flight and its window. */
	void (*congested)(struct cc *c, enum cc_event why, uint32_t flight);
	/* What the last one reported was none. cwnd and ssthresh are back already. */
	void (*undo)(struct cc *c);
	/* Nothing was sent for longer than an RTO. */
	void (*idle)(struct cc *c);
	/* How fast to send; 0: as the window lets. */
	uint64_t (*pace)(const struct cc *c, const struct rtt *r);
};

extern const struct cc_ops cc_cubic, cc_dctcp, cc_delay;

/* NULL: there is none of that name. */
const struct cc_ops *cc_by_name(const char *name);
void cc_init(struct cc *c, const struct loss_config *cfg, uint32_t mss);
uint32_t cc_initial_window(const struct cc *c);

/* For the controls. */
/* RFC 3465 §2.2 and RFC 9406: what is left of the octets when ssthresh is reached. */
uint32_t cc_slow_start(struct cc *c, const struct cc_ack *a);
uint32_t cc_least_window(const struct cc *c);
void cc_bound(struct cc *c);
/* 2 windows in a round trip in slow start, 1.2 later: pacing must not be what limits the window. */
uint64_t cc_pace_window(const struct cc *c, const struct rtt *r);

#endif
