/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP timestamps, RFC 7323 §3 to §5: what one end of a connection remembers of the option, PAWS
 * (protection against segments of an earlier lap of the sequence numbers), and the times that an
 * echo tells. The clock has ticks of a millisecond (§5.4).
 */
#ifndef UWARP_LOSS_STAMP_H
#define UWARP_LOSS_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#define STAMP_OCTETS  12u /* of the option with two NOPs in front, RFC 7323 appendix A */
#define STAMP_TICK_US 1000u

struct stamp {
	bool on;	    /* both SYNs had the option, §3.2 */
	uint32_t offset;    /* what is added to the clock, one for each pair of ends, §7.1 */
	uint32_t recent;    /* TS.Recent */
	uint64_t recent_us; /* when it came */
	uint32_t last_ack;  /* Last.ACK.sent */
};

/* A segment of the peer's. octets: of payload, and one for each of SYN and FIN. */
struct stamp_segment {
	bool stamped;	/* it has the option */
	uint32_t value; /* TSval */
	uint32_t seq, octets;
	uint32_t rcv_nxt; /* before this segment */
};

/* The peer's SYN had the option, with this TSval, and so has ours. s->offset is set. */
void stamp_begin(struct stamp *s, uint32_t value, uint64_t now_us);
/* TSval of what is sent now. */
uint32_t stamp_now(const struct stamp *s, uint64_t now_us);
/* Write the option with its NOPs: STAMP_OCTETS octets. */
void stamp_put(const struct stamp *s, uint64_t now_us, uint8_t *out);
/* May the segment, which is no RST (§5.2), come in? False: it is to be dropped. With *answer it is
 * answered by an ACK. */
bool stamp_accepts(const struct stamp *s, const struct stamp_segment *seg, uint64_t now_us,
		   bool *answer);
/* One that did, and is known to be undamaged: its TSval is remembered where §4.3 asks for it. */
void stamp_take(struct stamp *s, const struct stamp_segment *seg, uint64_t now_us);
/* The round trip that TSecr tells of, RFC 7323 §4.1, microseconds; 0: too short for the clock, or
 * the echo is not of ours. */
uint64_t stamp_rtt(const struct stamp *s, uint32_t echo, uint64_t now_us);

#endif
