/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this folder reads or writes of lwIP's struct tcp_pcb, all of it. lwIP promises none of these
 * fields to its users, so a new version of lwIP has to be looked at with this list in hand.
 *
 * tests/unit/io_lwip/private_fields.py fails when a file of io/lwip uses a field that is not
 * listed. tests/sim/test_expected.c compares every listed field after each message of two runs, one
 * of which goes through rx_fast.c and tx_fast.c and the other through lwIP. The second word of an
 * entry says how:
 *
 *   PLAIN   the value
 *   RX_SEQ  a sequence number of the peer's: how far it is from where the connection began
 *   TX_SEQ  one of ours
 *   TICK    a time: how many ticks ago it was; 0 is no time
 *   RTT_SEQ as TX_SEQ while an RTT is measured; else it means nothing
 *   QUEUE   a list of segments: how many they are
 *   POINTER whether it is NULL
 *   OTHER   not compared: addresses, and what differs between two runs by nature
 */
#ifndef UWARP_LWIP_PRIVATE_H
#define UWARP_LWIP_PRIVATE_H

#include <assert.h>

#include "lwip/init.h"
#include "lwip/priv/tcp_priv.h"

static_assert(LWIP_VERSION_MAJOR == 2 && LWIP_VERSION_MINOR == 2 && LWIP_VERSION_REVISION == 1,
	      "another lwIP: read io/lwip/pcb/private.h, then change the version here");

/* clang-format off */
#define LWIP_PCB_FIELDS(X)                                                                         \
	/* who it is */                                                                            \
	X(next, OTHER) X(local_ip, OTHER) X(remote_ip, OTHER) X(local_port, OTHER)                 \
	X(remote_port, OTHER) X(callback_arg, OTHER) X(ext_args, OTHER) X(sent, POINTER)           \
	X(state, PLAIN) X(flags, PLAIN) X(tos, PLAIN) X(ttl, PLAIN) X(mss, PLAIN)                  \
	/* what comes */                                                                           \
	X(rcv_nxt, RX_SEQ) X(rcv_wnd, PLAIN) X(rcv_ann_wnd, PLAIN) X(rcv_ann_right_edge, RX_SEQ)   \
	X(ooseq, QUEUE) X(refused_data, POINTER) X(rcv_sacks, OTHER)                               \
	/* what goes */                                                                            \
	X(snd_nxt, TX_SEQ) X(snd_lbb, TX_SEQ) X(lastack, TX_SEQ) X(snd_wl1, RX_SEQ)                \
	X(snd_wl2, TX_SEQ) X(snd_wnd, PLAIN) X(snd_wnd_max, PLAIN) X(snd_buf, PLAIN)               \
	X(snd_queuelen, PLAIN) X(unsent, QUEUE) X(unacked, QUEUE)                                  \
	/* congestion, round trips and repetition */                                               \
	X(cwnd, PLAIN) X(ssthresh, PLAIN) X(bytes_acked, PLAIN) X(dupacks, PLAIN) X(nrtx, PLAIN)   \
	X(rtime, PLAIN) X(rto, PLAIN) X(sa, PLAIN) X(sv, PLAIN) X(rttest, TICK) X(rtseq, RTT_SEQ)  \
	/* timers */                                                                               \
	X(tmr, TICK) X(polltmr, PLAIN) X(persist_backoff, PLAIN) X(persist_probe, PLAIN)           \
	X(keep_idle, PLAIN) X(keep_intvl, PLAIN) X(keep_cnt, PLAIN) X(keep_cnt_sent, PLAIN)
/* clang-format on */

#endif
