/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control: how many octets may be in flight. Each algorithm is a table of functions
 * (struct cc_ops). The state of every algorithm lies in struct cc, which therefore has the same
 * size for all. Windows are in octets, times in microseconds, rates in octets per second.
 */
#ifndef UWARP_LOSS_CC_H
#define UWARP_LOSS_CC_H

#include <stdbool.h>
#include <stdint.h>

#include "loss/config.h"
#include "loss/hystart.h"
#include "loss/rtt.h"

/* What one ACK says to the algorithm. */
struct cc_ack {
	uint64_t now_us;
	uint32_t delivered; /* octets that this ACK delivers */
	uint32_t lost;	    /* octets that were marked lost on this ACK */
	uint32_t una, nxt;  /* SND.UNA and SND.NXT after the ACK */
	uint64_t rtt_us;    /* RTT sample; 0: none */
	const struct rtt *rtt;
	bool limited;  /* true: cwnd limited the sender; false: the program sent less than cwnd */
	bool ece;      /* RFC 3168: the ACK has ECE, so the peer received a CE mark */
	uint64_t rate; /* delivery rate sample; 0: none */
	bool app_limited; /* the program limited that rate: the path may be faster */
};

enum cc_event {
	CC_LOSS,    /* a recovery begins, RFC 5681 §3.2 */
	CC_ECE,	    /* ECE came, RFC 3168 §6.1.2 */
	CC_TIMEOUT, /* the RTO fired, RFC 5681 §3.1 */
};

struct cubic {
	/* RFC 9438 §4.1.2: W_max, K (seconds), W_est, and the plateau of W_cubic; in segments */
	double w_max, k, w_est, origin;
	double cwnd_prior;
	double fraction; /* the part of an octet by which cwnd has still to grow */
	/* start of the congestion avoidance stage; 0: the next ACK starts one */
	uint64_t epoch_us;
	double saved_w_max, saved_k, saved_w_est, saved_origin, saved_prior;
	uint64_t saved_epoch_us;
};

struct dctcp {
	uint32_t alpha;	     /* DCTCP.Alpha, in 1/1024, RFC 8257 §3.3 */
	uint32_t window_end; /* DCTCP.WindowEnd */
	uint64_t acked, marked;
	uint32_t fraction; /* octets acknowledged since cwnd last grew by a segment */
	bool begun;
};

#define DELAY_ROUNDS 10u

enum delay_phase { DELAY_STARTUP, DELAY_DRAIN, DELAY_CRUISE, DELAY_LOOK };

struct delay {
	enum delay_phase phase;
	uint64_t rate[DELAY_ROUNDS]; /* highest rate sample of each of the last round trips */
	/* full: round trips of the start-up without growth of the rate by a quarter */
	unsigned round, full;
	uint32_t round_end;
	uint64_t best;	      /* highest rate at the last growth during the start-up */
	uint64_t look_us;     /* when to lower the window next, to measure the path's minimum RTT */
	uint64_t look_end_us; /* end of that measurement */
	uint64_t lost, delivered; /* octets in this round trip */
	uint32_t cap; /* limit of the window after a round trip that lost more than an eighth */
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
	/* The algorithm sets cwnd during a recovery too; PRR is not used. */
	bool own_recovery;
	/* acked() handles ECE of every ACK (RFC 8257); congested(CC_ECE) is not called. */
	bool every_mark;
	void (*init)(struct cc *c);
	/* An ACK came. Called outside of a recovery; with own_recovery always. */
	void (*acked)(struct cc *c, const struct cc_ack *a);
	/* Sets ssthresh. flight: octets between SND.UNA and SND.NXT. */
	void (*congested)(struct cc *c, enum cc_event why, uint32_t flight);
	/* The last congested() was a mistake: restore the own state. The caller has restored cwnd
	 * and ssthresh. */
	void (*undo)(struct cc *c);
	/* Nothing was sent for longer than an RTO. */
	void (*idle)(struct cc *c);
	/* The rate at which to send, octets per second; 0: no pacing. */
	uint64_t (*pace)(const struct cc *c, const struct rtt *r);
};

extern const struct cc_ops cc_cubic, cc_dctcp, cc_delay;

void cc_init(struct cc *c, const struct loss_config *cfg, uint32_t mss);
uint32_t cc_initial_window(const struct cc *c);

/* For the files of the algorithms. */
/* Slow start (RFC 3465 §2.2, RFC 9406): grows cwnd up to ssthresh. Returns the delivered octets
 * that are left for congestion avoidance. */
uint32_t cc_slow_start(struct cc *c, const struct cc_ack *a);
/* min_segments of the configuration, in octets. */
uint32_t cc_least_window(const struct cc *c);
/* Lower cwnd to max_window of the configuration. */
void cc_bound(struct cc *c);
/* A rate for pace(): 2 windows per round trip in slow start, 1.2 later, so that pacing does not
 * limit the window. 0: no RTT sample yet. */
uint64_t cc_pace_window(const struct cc *c, const struct rtt *r);

#endif
