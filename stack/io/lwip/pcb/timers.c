/* SPDX-License-Identifier: BSD-3-Clause */
/* lwIP's timers and ours: when the next is due, and what is done then. Those of loss.c run in
 * edge_poll. */
#include "io/lwip/assertion.h"
#include "io/lwip/loss.h"
#include "io/lwip/pcb/private.h"

#include "lwip/timeouts.h"

uint64_t edge_next_timer_us(void)
{
	uint64_t tick = TCP_TMR_INTERVAL * 1000;

	if (!edge.conns && !tcp_active_pcbs && !tcp_tw_pcbs)
		return UINT64_MAX;
	if (tcp_active_pcbs)
		return LWIP_MIN(tick, edge_loss_next_us());
	return LWIP_MIN(25 * tick, edge_active_list_next_us());
}

void edge_timers(void)
{
	sys_check_timeouts();
	edge_active_list_timer();
	edge.cfg.stats->tcp_assertions += lwip_assertions_take();
}
