/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport `socket`: what each file of this folder gives to io/llp.h. */
#include "io/socket/sock.h"

/* A link without frames brings none. */
static void no_input(struct io_link *l, struct io_frame *f)
{
	(void)l;
	(void)f;
}

/* ACKs and segments are the kernel's, and who dies is missed by it. */
static void no_acks(enum llp_acks which)
{
	(void)which;
}

static bool nothing_queued(void)
{
	return false;
}

static void no_peer_down(struct io_link *l, uint32_t addr)
{
	(void)l;
	(void)addr;
}

const struct llp_ops llp_socket = {
	.init = sock_init,
	.add_link = sock_add_link,
	.remove_link = sock_remove_link,
	.input = no_input,
	.poll = sock_poll,
	.sleep = sock_sleep,
	.rouse = sock_rouse,
	.acks = no_acks,
	.flush_links = nothing_queued,
	.timers = sock_timers,
	.next_timer_us = sock_next_timer_us,
	.port_free = sock_port_free,
	.listen = sock_listen,
	.unlisten = sock_unlisten,
	.connect = sock_connect,
	.close = sock_close,
	.shutdown = sock_shutdown,
	.abort = sock_abort,
	.peer_down = no_peer_down,
	.lingering = sock_lingering,
	.pause = sock_pause,
	.resume = sock_resume,
	.tx_begin = sock_tx_begin,
	.tx_commit = sock_tx_commit,
	.tx_flush = sock_tx_flush,
	.addrs = sock_addrs,
	.info = sock_info,
	.set_tos = sock_set_tos,
};
