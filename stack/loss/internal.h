/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions shared by loss.c (sending, timers), ack.c and recover.c. */
#ifndef UWARP_LOSS_INTERNAL_H
#define UWARP_LOSS_INTERNAL_H

#include "loss/loss.h"

/* loss.c: compute the deadline again. Call this after any change of what the timer depends on. */
void loss_arm(struct loss *l);
/* Most octets in flight in this round trip and the one before. A sender that waits until there is
 * room for many segments has less in flight at most moments. */
uint32_t loss_peak(const struct loss *l);
/* RACK.reo_wnd now, microseconds. */
uint64_t loss_reorder_wait(const struct loss *l);

/* recover.c: FlightSize for ssthresh (RFC 5681 §3.1, RFC 9438 §4.6), or loss_peak if that is more.
 */
uint32_t loss_flight(const struct loss *l);
/* mark segments that are lost by now; in phase LOSS_OPEN the first one starts a
 * recovery. */
void loss_detect(struct loss *l, uint64_t now_us);
/* The RTO fired: mark segments lost and begin LOSS_TIMEOUT. */
void loss_timed_out(struct loss *l, uint64_t now_us);
/* All segments in state lost go back to state flying: the RTO was spurious. */
void loss_unmark(struct loss *l);
/* RFC 4015 §3.2: restore cwnd and ssthresh from before the recovery, and end the recovery. */
void loss_take_back(struct loss *l);

#endif
