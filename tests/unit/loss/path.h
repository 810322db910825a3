/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of two TCP endpoints and the path between them: a sender that is stack/loss, a receiver
 * that acknowledges as RFC 9293, 2018 and 2883 say, and a link with a rate, a queue, a delay, loss,
 * reordering and marks. Events in virtual time; a run depends on its seed alone.
 */
#ifndef UWARP_TESTS_LOSS_PATH_H
#define UWARP_TESTS_LOSS_PATH_H

#include "loss/loss.h"

struct path_config {
	struct loss_config loss;
	uint64_t bps;	   /* of the bottleneck */
	uint64_t rtt_us;   /* without queueing */
	unsigned queue;	   /* packets it holds */
	unsigned mark_at;  /* ECN: marks from so many on; 0: never */
	uint32_t drop_ppm; /* of the data */
	uint32_t ack_drop_ppm;
	uint32_t reorder_ppm;
	uint64_t reorder_us;
	bool vary;	    /* segments of all lengths, else full ones */
	bool peer_sack;	    /* it permits SACK */
	unsigned ack_every; /* packets; the last waits for ack_delay_us */
	uint64_t ack_delay_us;
	uint64_t stall_at_us, stall_us; /* nothing gets through for so long */
	uint64_t pause_every, pause_us; /* the program is silent after so many segments */
	unsigned segments;		/* to be delivered */
	uint64_t limit_us;
	uint64_t seed;
};

struct path_result {
	bool done;
	uint64_t us; /* until all was acknowledged */
	uint64_t octets;
	uint64_t sent, dropped, overflowed, reordered, marked, twice; /* packets */
	uint64_t worst_queue;
	struct loss_stats stats;
	uint32_t cwnd, ssthresh;
};

#define PATH_MSS 1460u

/* 1500-octet packets, 1 Gb/s, 200 us, no faults. */
struct path_config path_default(void);
/* Asserts on the way that the record is sound and every octet arrives once, in order. */
struct path_result path_run(const struct path_config *cfg);
/* Octets per second. */
double path_goodput(const struct path_result *r);

#endif
