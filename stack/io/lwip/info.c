/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of a connection, for those who look (llp_ops.info). */
#include "io/lwip/loss_conn.h"

#include "io/lwip/pcb/private.h"

static const char *phase_name(enum loss_phase p)
{
	static const char *const name[] = {
		[LOSS_OPEN] = "open", [LOSS_RECOVERY] = "recovery", [LOSS_TIMEOUT] = "timeout"
	};

	return name[p];
}

static void fill_loss(const struct loss *l, struct llp_info *out)
{
	const struct loss_stats *st = &l->stats;

	out->mss = l->cc.mss;
	out->cwnd = l->cc.cwnd;
	out->ssthresh = l->cc.ssthresh;
	out->in_flight = loss_pipe(l);
	out->srtt_us = l->rtt.smoothed_us;
	out->rttvar_us = l->rtt.var_us;
	out->min_rtt_us = l->rtt.any ? rtt_min(&l->rtt) : 0;
	out->rto_us = rto_us(&l->rto, l->cfg, &l->rtt);
	out->reorder_us = rack_window(&l->rack, l->cfg, &l->rtt, &l->rec, l->phase != LOSS_OPEN);
	out->reordering = l->rack.reordering_seen;
	out->delivered = l->delivered;
	out->sent_again = st->sent_again;
	out->recoveries = st->recoveries;
	out->timeouts = st->timeouts;
	out->probes = st->probes;
	out->probe_losses = st->probe_losses;
	out->duplicates = st->duplicates;
	out->undone = st->undone;
	out->spurious = st->spurious_timeouts;
	out->reneged = st->reneged;
	out->marked = st->ece;
	out->control = l->cc.ops->name;
	out->phase = phase_name(l->phase);
}

void edge_info(const struct llp_conn *c, struct llp_info *out)
{
	const struct tcp_pcb *pcb = c->pcb;

	out->mss = pcb->mss;
	out->cwnd = pcb->cwnd;
	out->ssthresh = pcb->ssthresh;
	out->in_flight = pcb->snd_nxt - pcb->lastack;
	if (c->loss)
		fill_loss(&c->loss->loss, out);
	out->unsent = pcb->snd_lbb - pcb->snd_nxt;
	out->peer_window = pcb->snd_wnd;
	out->own_window = pcb->rcv_ann_wnd;
	out->rx_held = (uint32_t)rx_queue_octets(&c->rx_queue);
	out->rx_buffers = c->pinned;
	out->paused = c->paused;
}
