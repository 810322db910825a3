/* SPDX-License-Identifier: BSD-3-Clause */
/* Proportional Rate Reduction (RFC 6937): how much may be sent for each ACK during a recovery, so
 * that the window is ssthresh at the end of the recovery. */
#ifndef UWARP_LOSS_PRR_H
#define UWARP_LOSS_PRR_H

#include <stdbool.h>
#include <stdint.h>

struct prr {
	uint32_t flight;    /* RecoverFS: octets outstanding at the start of the recovery */
	uint64_t delivered; /* prr_delivered */
	uint64_t out;	    /* prr_out */
};

/* One ACK during a recovery. */
struct prr_ack {
	uint32_t delivered; /* DeliveredData */
	uint32_t pipe;
	uint32_t ssthresh;
	uint32_t mss;
	bool progress; /* the ACK moved SND.UNA and no further loss was detected */
};

void prr_begin(struct prr *p, uint32_t flight);
void prr_sent(struct prr *p, uint32_t octets);
/* sndcnt: the octets that may be sent now. */
uint32_t prr_acked(struct prr *p, const struct prr_ack *a);

#endif
