/* SPDX-License-Identifier: BSD-3-Clause */
/* lwIP's timers and ours: when the next is due, and what is done then. Those of loss.c run in
 * edge_poll. */
#include "io/lwip/assertion.h"
#include "io/lwip/loss.h"
#include "io/lwip/pcb/private.h"

#include "lwip/timeouts.h"

static uint64_t next_of_tcp(void)
{
	uint64_t tick = TCP_TMR_INTERVAL * 1000;

	if (!edge.conns && !tcp_active_pcbs && !tcp_tw_pcbs)
		return UINT64_MAX;
	if (tcp_active_pcbs)
		return LWIP_MIN(tick, edge_loss_next_us());
	return LWIP_MIN(25 * tick, edge_active_list_next_us());
}

uint64_t edge_next_timer_us(void)
{
	uint64_t tcp = next_of_tcp(), defence = edge_defend_next_us(),
		 member = edge_member_next_us();

	return LWIP_MIN(LWIP_MIN(tcp, edge_acks_next_us()), LWIP_MIN(defence, member));
}

#define PATIENT 8u /* below TCP_MAXRTX, at which lwIP gives up */

/* Between processes the link tells when the peer's has ended. A peer that is silent is stopped, and
 * may go on: it is not given up, as long as our user is there. Repeats keep the distance that they
 * have. */
static void wait_for_stopped(void)
{
	static u32_t seen;

	if (tcp_ticks == seen)
		return;
	seen = tcp_ticks;
	for (struct tcp_pcb *pcb = tcp_active_pcbs; pcb; pcb = pcb->next) {
		const struct llp_conn *c = edge_conn_of(pcb);

		if (!c || c->end != EDGE_CONN_ON || pcb->state < ESTABLISHED ||
		    !(c->el->io->flags & IO_P2P))
			continue;
		pcb->nrtx = LWIP_MIN(pcb->nrtx, PATIENT);
		pcb->persist_probe = LWIP_MIN(pcb->persist_probe, PATIENT);
	}
}

#define TICK_US	    (TCP_SLOW_INTERVAL * 1000u)
#define MOST_MISSED (1000u / TCP_SLOW_INTERVAL) /* longer than next_of_tcp() lets us sleep */

/* lwIP's clock goes on by one tick in each second call, and a process with nothing under way is
 * called seldom: 4 s of TIME_WAIT would be more than a minute. Those that wait are made older by
 * what lwIP has missed. Its clock stays: RTTs and keepalives of idle connections are counted by it.
 * After a longer pause, of a process that was stopped, nobody knows who has waited all the time. */
static void age_waiting(void)
{
	static uint64_t since_us; /* 0: nobody waited when we last looked */
	static u32_t since;	  /* the tick at that time */
	uint64_t now = edge.cfg.now_us(edge.cfg.arg), due;
	u32_t missed;

	if (!tcp_tw_pcbs)
		since_us = 0;
	else if (!since_us) {
		since_us = now;
		since = tcp_ticks;
	}
	due = since_us ? (now - since_us) / TICK_US : 0;
	if (due <= tcp_ticks - since)
		return;
	missed = (u32_t)LWIP_MIN(due - (tcp_ticks - since), MOST_MISSED);
	for (struct tcp_pcb *pcb = tcp_tw_pcbs; pcb; pcb = pcb->next)
		pcb->tmr -= missed;
	since_us += due * TICK_US;
	since = tcp_ticks;
}

void edge_timers(void)
{
	wait_for_stopped();
	age_waiting();
	sys_check_timeouts();
	edge_active_list_timer();
	edge_defend_timer();
	edge_member_timer();
	edge.cfg.stats->tcp_assertions += lwip_assertions_take();
}
