/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport `seq`: what each file of this folder gives to io/llp.h. */
#include "io/seq/seq.h"

/* lwIP's thread does it by itself. */
static void nothing(void)
{
}

static void no_acks(enum llp_acks which)
{
	(void)which;
}

const struct llp_ops llp_seq = {
	.init = seq_init,
	.add_link = seq_add_link,
	.remove_link = seq_remove_link,
	.input = seq_input,
	.poll = seq_poll,
	.pending = seq_pending,
	.acks = no_acks,
	.flush_links = seq_flush_links,
	.timers = nothing,
	.next_timer_us = seq_next_timer_us,
	.port_free = seq_port_free,
	.listen = seq_listen,
	.unlisten = seq_unlisten,
	.connect = seq_connect,
	.close = seq_close,
	.shutdown = seq_shutdown,
	.abort = seq_abort,
	.peer_down = seq_peer_down,
	.lingering = seq_lingering,
	.pause = seq_pause,
	.resume = seq_resume,
	.tx_begin = seq_tx_begin,
	.tx_commit = seq_tx_commit,
	.tx_flush = seq_tx_flush,
	.addrs = seq_addrs,
	.set_tos = seq_set_tos,
};
