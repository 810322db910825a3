/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss recovery of ours (stack/loss) on lwIP's connections. lwIP keeps the states, the order of
 * octets and the close; of what is sent and not acknowledged it keeps the queue (pcb->unacked).
 * What is lost, what is sent again and when, and how much may be in flight is decided in
 * stack/loss; lwIP's own fast retransmission, RTO and congestion window are out of work:
 *
 *   pcb->cwnd      is set to what may be outstanding beyond pcb->lastack now
 *   pcb->dupacks   is 0 before each segment that comes, so it never gets to 3
 *   pcb->rto       is as long as it can be, and pcb->rttest off, so it stays so
 *
 * Not on IO_P2P links, which neither lose nor share. Private to this folder.
 */
#ifndef UWARP_LWIP_LOSS_H
#define UWARP_LWIP_LOSS_H

#include "io/lwip/conn.h"

/* edge_init: the policy. */
void edge_loss_init(const struct llp_config *cfg);
/* The time of the next timer, microseconds from now; UINT64_MAX: none runs. */
uint64_t edge_loss_next_us(void);
/* Run those that are due. Often: it looks at one number when none is. */
void edge_loss_timers(void);
/* After a frame was given to lwIP: send again what it has shown to be lost, and go on. */
void edge_loss_settle(void);

/* A SYN opened it. */
void edge_conn_ecn_half(struct llp_conn *c);
/* The same, for the timestamps option (stamps.c); we are about to send a SYN; the connection is up.
 */
void edge_conn_stamp_half(struct llp_conn *c);
void edge_conn_stamp_ask(struct llp_conn *c, const struct uw_ip *remote);
void edge_conn_stamp_came_up(struct llp_conn *c);
/* edge_init */
void edge_stamps_init(const struct llp_config *cfg);
/* The connection is up. Without memory for it lwIP's own recovery remains. */
void edge_conn_loss_begin(struct llp_conn *c);
void edge_conn_loss_end(struct llp_conn *c);
/* Octets that may be outstanding in all; pcb->cwnd has it, too. */
uint32_t edge_conn_loss_window(struct llp_conn *c);
/* The shortest round trip of late, microseconds, at most a second; a second: not known. */
uint32_t edge_conn_loss_min_rtt(const struct llp_conn *c);
/* pcb->mss has changed. */
void edge_conn_loss_mss(struct llp_conn *c);
/* The network drops segments that are longer than pcb->mss: send those again that are out. May end
 * the connection. */
void edge_conn_loss_too_big(struct llp_conn *c);
/* Nothing seems to be lost: a segment may be long, made of segments of emss octets. */
bool edge_conn_loss_calm(const struct llp_conn *c, uint32_t emss);
/* One is, made of segments of `cut` octets. */
void edge_conn_loss_long(struct llp_conn *c, uint32_t cut);
/* Cut all long ones into the segments of the wire, since something may be lost. Without memory they
 * stay. */
void edge_conn_loss_cut(struct llp_conn *c);
/* Nothing was sent for long: what a large window needed is given back, 330 KB for 4 MiB in flight.
 */
void edge_conn_loss_rest(struct llp_conn *c);
/* Something was sent, or could not be. */
void edge_conn_loss_sent(struct llp_conn *c);

#endif
