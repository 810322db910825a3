/* SPDX-License-Identifier: BSD-3-Clause */
/* The tail loss probe: one segment is sent before the RTO would fire, so that the peer acknowledges
 * what it has. RFC 8985 §7. */
#ifndef UWARP_LOSS_TLP_H
#define UWARP_LOSS_TLP_H

#include "loss/config.h"
#include "loss/option.h"
#include "loss/record.h"
#include "loss/rtt.h"

struct tlp {
	bool pending; /* a probe was sent and not answered yet */
	bool again;   /* TLP.is_retrans: the probe repeated the last segment */
	/* The last repeat was for nothing, and there was no RTT sample since. None is sent until
	 * there is: where each segment is repeated there would never be one. */
	bool needless;
	uint32_t end_seq; /* TLP.end_seq */
};

/* What an ACK says of the probe: nothing, that no segment was lost, or that the probe repaired a
 * loss. */
enum tlp_said { TLP_NOTHING, TLP_NO_LOSS, TLP_REPAIRED };

/* RFC 8985 §7.2: the PTO, not yet limited by the RTO. */
uint64_t tlp_pto(const struct loss_config *cfg, const struct rtt *r, const struct record *rec);
/* RFC 8985 §7.3: the probe was sent; nxt is SND.NXT after it. */
void tlp_sent(struct tlp *t, bool again, uint32_t nxt);
/* RFC 8985 §7.4.2. dsack: the block that reports a duplicate, or NULL. plain: an ACK without
 * octets, new window or SACK block. */
enum tlp_said tlp_acked(struct tlp *t, uint32_t ack, const struct loss_block *dsack, bool plain);

#endif
