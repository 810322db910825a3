/* SPDX-License-Identifier: BSD-3-Clause */
/* The tail loss probe: one segment more, before the RTO would fire, so that the peer says what it
 * has. RFC 8985 §7. */
#ifndef UWARP_LOSS_TLP_H
#define UWARP_LOSS_TLP_H

#include "loss/config.h"
#include "loss/option.h"
#include "loss/record.h"
#include "loss/rtt.h"

struct tlp {
	bool pending;	  /* TLP.end_seq is set: a probe is under way */
	bool again;	  /* TLP.is_retrans: it repeated the last segment */
	uint32_t end_seq; /* TLP.end_seq */
};

/* What an ACK says of a probe. */
enum tlp_said { TLP_NOTHING, TLP_NO_LOSS, TLP_REPAIRED };

/* RFC 8985 §7.2: PTO, without regard to the RTO. */
uint64_t tlp_pto(const struct loss_config *cfg, const struct rtt *r, const struct record *rec);
/* RFC 8985 §7.3: the probe was sent; nxt is SND.NXT after it. */
void tlp_sent(struct tlp *t, bool again, uint32_t nxt);
/* RFC 8985 §7.4.2. dsack: the block that reports a duplicate, or NULL. plain: an ACK of nothing new
 * without any block. */
enum tlp_said tlp_acked(struct tlp *t, uint32_t ack, const struct loss_block *dsack, bool plain);

#endif
