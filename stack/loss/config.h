/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy of loss recovery and congestion control: one struct, read by every file of this
 * folder and changed by none. All times are microseconds. */
#ifndef UWARP_LOSS_CONFIG_H
#define UWARP_LOSS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct cc_ops;

struct loss_config {
	const struct cc_ops *cc;   /* congestion control: &cc_cubic, &cc_dctcp, &cc_delay */
	unsigned initial_segments; /* initial window, RFC 6928 §2 */
	unsigned min_segments;	   /* least window, except after an RTO (1 segment) */
	uint32_t max_window;	   /* octets; largest window */
	unsigned abc_limit;	   /* RFC 3465 §2.2: segments that one ACK may add in slow start */
	unsigned dup_thresh;	   /* RFC 6675 §2: DupThresh */

	uint64_t rto_first_us; /* RTO before the first RTT sample, RFC 6298 §2.1 */
	/* the RTO is at least SRTT plus this; RFC 6298 §2.4 has an RTO of 1 s: doc/adr/0022 */
	uint64_t rto_min_us;
	uint64_t rto_max_us;	 /* largest RTO, RFC 6298 §2.5 */
	uint64_t granularity_us; /* G of RFC 6298 §2: clock granularity of the timer */
	uint64_t ack_delay_us;	 /* TLP.max_ack_delay, RFC 8985 §7.2 */
	/* RFC 8985 §6.2 step 4 limits the reordering window to SRTT. A host's scheduler may delay
	 * packets by more than SRTT, so the limit is the larger of SRTT and this. */
	uint64_t reorder_bound_us;

	/* CUBIC grows by a segment in each round trip that is shorter than this: doc/adr/0035 */
	uint64_t short_rtt_us;

	bool sack;	   /* false: behave as with a peer that does not permit SACK */
	bool tlp;	   /* send tail loss probes, RFC 8985 §7 */
	bool frto;	   /* detect spurious RTOs by F-RTO, RFC 5682 §3.1 */
	bool idle_restart; /* reduce the window after an idle time, RFC 5681 §4.1, RFC 2861 */
	bool hystart;	   /* use HyStart++ (RFC 9406), in algorithms that have a slow start */
};

/* Defaults for a network within one building; they are safe on the Internet too. */
void loss_config_default(struct loss_config *cfg);

#endif
