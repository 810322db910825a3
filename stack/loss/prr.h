/* SPDX-License-Identifier: BSD-3-Clause */
/* Proportional rate reduction: how much may be sent for each ACK during a recovery, so that the
 * window is at ssthresh in its end. RFC 6937. */
#ifndef UWARP_LOSS_PRR_H
#define UWARP_LOSS_PRR_H

#include <stdbool.h>
#include <stdint.h>

struct prr {
	uint32_t flight;    /* RecoverFS: what was outstanding when it began */
	uint64_t delivered; /* prr_delivered */
	uint64_t out;	    /* prr_out */
};

/* One ACK during a recovery. */
struct prr_ack {
	uint32_t delivered; /* DeliveredData */
	uint32_t pipe;
	uint32_t ssthresh;
	uint32_t mss;
	bool progress; /* it moved SND.UNA and told of no further loss */
};

void prr_begin(struct prr *p, uint32_t flight);
void prr_sent(struct prr *p, uint32_t octets);
/* sndcnt: the octets that may be sent now. */
uint32_t prr_acked(struct prr *p, const struct prr_ack *a);

#endif
