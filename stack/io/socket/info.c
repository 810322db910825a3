/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel's TCP says of a connection. */
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "io/socket/sock.h"

/* enum tcp_ca_state of linux/tcp.h */
static const char *phase_name(unsigned ca_state)
{
	return ca_state == 4 ? "timeout" : ca_state >= 2 ? "recovery" : "open";
}

static void fill_kernel(const struct tcp_info *t, struct llp_info *out)
{
	out->mss = t->tcpi_snd_mss;
	out->cwnd = t->tcpi_snd_cwnd * t->tcpi_snd_mss;
	out->ssthresh = t->tcpi_snd_ssthresh > UINT32_MAX / (t->tcpi_snd_mss + 1)
				? UINT32_MAX
				: t->tcpi_snd_ssthresh * t->tcpi_snd_mss;
	out->in_flight = t->tcpi_unacked * t->tcpi_snd_mss;
	out->own_window = t->tcpi_rcv_space;
	out->srtt_us = t->tcpi_rtt;
	out->rttvar_us = t->tcpi_rttvar;
	out->rto_us = t->tcpi_rto;
	out->sent_again = t->tcpi_total_retrans;
	out->phase = phase_name(t->tcpi_ca_state);
	out->control = "kernel";
}

void sock_info(const struct llp_conn *c, struct llp_info *out)
{
	struct tcp_info t = { 0 };
	socklen_t len = sizeof(t);

	if (getsockopt(c->w.fd, IPPROTO_TCP, TCP_INFO, &t, &len) == 0)
		fill_kernel(&t, out);
	out->unsent = c->out ? (uint32_t)(c->out->len - c->out->off) : 0;
	out->rx_held = c->in ? (uint32_t)(c->in->len - c->in->off) : 0;
	out->paused = c->paused;
}
