/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/lwip/pcb/pcb.h"

#include "io/isn.h"
#include "io/lwip/hooks.h"
#include "io/lwip/pcb/private.h"

/* A first flight that fills a fast link without flooding a slow one (RFC 6928 is 10 segments). */
#define INITIAL_SEGMENTS 10u
#define PROBE_MS	 500u /* between keepalives without an answer, at least */
#define PROBES		 8u   /* at most, but no fewer than PROBES_MIN */
#define PROBES_MIN	 3u

static void open_window(struct tcp_pcb *pcb, const struct io_link *l)
{
	/* No path has an MTU below this, and no TCP refuses a segment for its length. */
	pcb->mss = LWIP_MAX(pcb->mss, LLP_ROOM_LEAST);
	/* A link between two processes neither loses nor shares: nothing to probe. */
	if (l->flags & IO_P2P)
		pcb->cwnd = TCP_SND_BUF;
	else
		pcb->cwnd = INITIAL_SEGMENTS * (tcpwnd_size_t)pcb->mss;
	pcb->ssthresh = TCP_SND_BUF;
}

/* The link to another process tells when that dies. Of another host nothing tells but its silence,
 * and who only waits for it would wait for ever. RFC 1122 §4.2.3.6 would have two hours here, for
 * the sake of lines that are paid by the packet. Who does not answer is asked more often, and is
 * given up after as long again: doc/adr/0037. */
static void watch_peer(struct tcp_pcb *pcb, const struct io_link *l, uint32_t ms)
{
	if (!ms || l->flags & IO_P2P)
		return;
	ip_set_option(pcb, SOF_KEEPALIVE);
	pcb->keep_idle = ms;
	pcb->keep_intvl = LWIP_MAX(ms / PROBES, LWIP_MIN(ms, PROBE_MS));
	pcb->keep_cnt = LWIP_MAX(PROBES_MIN, ms / pcb->keep_intvl);
}

/* One for the process's life: a new one would give up what the clock of RFC 6528 is for. */
static const struct siphash_key *isn_key(void)
{
	static struct siphash_key key;

	while (!key.k[0] && !key.k[1]) {
		for (unsigned i = 0; i < 2; i++)
			key.k[i] = (uint64_t)uw_lwip_random() << 32 | uw_lwip_random();
	}
	return &key;
}

uint32_t uw_lwip_isn(struct tcp_pcb *pcb)
{
	const struct uw_ip local = edge_ip(&pcb->local_ip), remote = edge_ip(&pcb->remote_ip);
	const uint16_t ports[2] = { pcb->local_port, pcb->remote_port };

	return tcp_isn(isn_key(), &local, &remote, ports, uw_lwip_now_us());
}

void edge_pcb_came_up(struct tcp_pcb *pcb, const struct io_link *l, uint32_t keepalive_ms)
{
	/* What the SYN cost says nothing about what follows (RFC 6298 §5.7). */
	pcb->nrtx = 0;
	pcb->rto = (s16_t)((pcb->sa >> 3) + pcb->sv);
	open_window(pcb, l);
	watch_peer(pcb, l, keepalive_ms);
}

struct llp_addrs edge_pcb_addrs(const struct tcp_pcb *pcb)
{
	return (struct llp_addrs){
		.local = edge_ip(&pcb->local_ip),
		.remote = edge_ip(&pcb->remote_ip),
		.lport = lwip_htons(pcb->local_port),
		.rport = lwip_htons(pcb->remote_port),
	};
}

static bool is_to(const struct tcp_pcb *pcb, uint32_t addr)
{
	struct uw_ip remote = edge_ip(&pcb->remote_ip);

	return !addr || uw_ip_v4_be(&remote) == addr;
}

/* The process that has the address next may use the same ports. */
static void forget_waiting(uint32_t addr)
{
	struct tcp_pcb *pcb = tcp_tw_pcbs, *next;

	for (; pcb; pcb = next) {
		next = pcb->next;
		if (is_to(pcb, addr))
			edge_pcb_drop_time_wait(pcb);
	}
}

void edge_pcbs_lose(uint32_t addr, bool (*keep)(const struct tcp_pcb *pcb))
{
	struct tcp_pcb *pcb = tcp_active_pcbs, *next;

	forget_waiting(addr);
	for (; pcb; pcb = next) {
		next = pcb->next;
		if (!is_to(pcb, addr) || (keep && keep(pcb)))
			continue;
		/* Quietly: there is nobody to send an RST to. The pcb's user hears of it. */
		tcp_abandon(pcb, 0);
		next = tcp_active_pcbs; /* the callback may have changed the list */
	}
}

void edge_pcb_drop(struct tcp_pcb *pcb)
{
	tcp_abandon(pcb, 0);
}

bool edge_pcb_drop_time_wait(struct tcp_pcb *pcb)
{
	if (pcb->state != TIME_WAIT)
		return false;
	tcp_abandon(pcb, 0);
	return true;
}

static bool finishing(const struct tcp_pcb *pcb)
{
	return pcb->unsent || pcb->unacked || pcb->state == FIN_WAIT_1 || pcb->state == CLOSING ||
	       pcb->state == LAST_ACK;
}

unsigned edge_pcbs_finishing(void)
{
	unsigned n = 0;

	for (const struct tcp_pcb *pcb = tcp_active_pcbs; pcb; pcb = pcb->next)
		n += finishing(pcb);
	return n;
}

ip_addr_t edge_listen_addr(const struct io_link *l, const struct llp_place *at)
{
	ip_addr_t both = *IP_ANY_TYPE, six = *IP6_ADDR_ANY, four = IPADDR4_INIT(l->addr);

	if (uw_ip_is_v4(&at->addr))
		return four;
	if (uw_ip_is_loopback(&at->addr) || (uw_ip_is_any(&at->addr) && at->only6))
		return six;
	return uw_ip_is_any(&at->addr) ? both : edge_addr(&at->addr);
}

uw_status edge_status(err_t err)
{
	switch (err) {
	case ERR_OK:
		return UW_OK;
	case ERR_USE:
		return UW_E_ADDR_IN_USE;
	case ERR_MEM:
		return UW_E_NOMEM;
	case ERR_RTE:
		return UW_E_UNREACHABLE;
	default:
		return UW_E_INVAL;
	}
}
