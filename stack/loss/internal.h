/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that make up the entry share: loss.c (sending, time), ack.c, recover.c. */
#ifndef UWARP_LOSS_INTERNAL_H
#define UWARP_LOSS_INTERNAL_H

#include "loss/loss.h"

/* loss.c: set the deadline anew, after anything that may have changed it. */
void loss_arm(struct loss *l);
/* RACK.reo_wnd as it is now. */
uint64_t loss_reorder_wait(const struct loss *l);

/* recover.c: mark what is lost by now; a recovery begins if it is the first. */
void loss_detect(struct loss *l, uint64_t now_us);
/* The RTO fired. */
void loss_timed_out(struct loss *l, uint64_t now_us);
/* What was marked lost is on its way after all. */
void loss_unmark(struct loss *l);
/* RFC 4015 §3.2: the windows are as they were before the recovery. */
void loss_take_back(struct loss *l);

#endif
