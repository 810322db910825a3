/* SPDX-License-Identifier: BSD-3-Clause */
/* The retransmission timer's length, RFC 6298, in microseconds. */
#ifndef UWARP_LOSS_RTO_H
#define UWARP_LOSS_RTO_H

#include "loss/config.h"
#include "loss/rtt.h"

struct rto {
	unsigned backoff;  /* doublings since the last progress, RFC 6298 §5.5 */
	uint64_t floor_us; /* at least rto_min_us: more after it fired for nothing */
	uint64_t base_us;  /* it runs since then, RFC 6298 §5.1 and §5.3 */
};

void rto_init(struct rto *t, const struct loss_config *cfg);
/* RTO, backed off. */
uint64_t rto_us(const struct rto *t, const struct loss_config *cfg, const struct rtt *r);
/* When it fires. */
uint64_t rto_at(const struct rto *t, const struct loss_config *cfg, const struct rtt *r);
/* New data was acknowledged, or the first was sent: start it again. */
void rto_restart(struct rto *t, uint64_t now_us);
/* It fired. */
void rto_fired(struct rto *t, uint64_t now_us);
/* It had fired although nothing was lost: this peer or path takes longer than the floor. */
void rto_was_spurious(struct rto *t);

#endif
