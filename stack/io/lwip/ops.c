/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport `raw`: what each file of this folder gives to io/llp.h. */
#include "io/lwip/edge.h"

const struct llp_ops llp_raw = {
	.init = edge_init,
	.add_link = edge_add_link,
	.remove_link = edge_remove_link,
	.input = edge_input,
	.poll = edge_poll,
	.acks = edge_acks,
	.flush_links = edge_flush_links,
	.timers = edge_timers,
	.next_timer_us = edge_next_timer_us,
	.listen = edge_listen,
	.unlisten = edge_unlisten,
	.connect = edge_connect,
	.close = edge_close,
	.shutdown = edge_shutdown,
	.abort = edge_abort,
	.peer_down = edge_peer_down,
	.lingering = edge_lingering,
	.pause = edge_pause,
	.resume = edge_resume,
	.tx_begin = edge_tx_begin,
	.tx_commit = edge_tx_commit,
	.tx_flush = edge_tx_flush,
	.in_flight = edge_in_flight,
	.ack_promptly = edge_ack_promptly,
	.addrs = edge_addrs,
	.set_tos = edge_set_tos,
	.prefetch = edge_prefetch,
	.prefetch_list = edge_prefetch_list,
};
