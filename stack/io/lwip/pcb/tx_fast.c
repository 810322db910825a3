/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of transmission (doc/adr/0015): new segments and pure ACKs go straight to the link.
 * Only on IO_P2P links over IPv4, where each peer's MAC address is known and nothing is
 * checksummed, so that the headers of a connection are always the same but for a few fields. The
 * pcb is left as lwIP 2.2.1's tcp_output would leave it. Retransmissions and everything unusual are
 * lwIP's.
 */
#include "io/lwip/conn.h"
#include "io/lwip/pcb/private.h"

#include <string.h>

#include "base/be.h"

#include "lwip/prot/ethernet.h"
#include "lwip/prot/ip.h"
#include "lwip/prot/ip4.h"

static_assert(EDGE_CONN_HEAD == SIZEOF_ETH_HDR + IP_HLEN, "Ethernet and IPv4 without options");

static uint16_t ip_id; /* of the next IPv4 packet */

static void make_head(struct llp_conn *c)
{
	const struct tcp_pcb *pcb = c->pcb;
	struct ip_hdr *ip = (struct ip_hdr *)(c->head + SIZEOF_ETH_HDR);

	memset(c->head, 0, sizeof(c->head));
	io_mac_of(ip_addr_get_ip4_u32(&pcb->remote_ip), c->head);
	memcpy(c->head + 6, c->el->nif.hwaddr, 6);
	c->head[12] = ETHTYPE_IP >> 8;
	IPH_VHL_SET(ip, 4, IP_HLEN / 4);
	IPH_TOS_SET(ip, pcb->tos);
	IPH_TTL_SET(ip, pcb->ttl);
	IPH_PROTO_SET(ip, IP_PROTO_TCP);
	ip->src.addr = ip_addr_get_ip4_u32(&pcb->local_ip);
	ip->dest.addr = ip_addr_get_ip4_u32(&pcb->remote_ip);
}

void edge_conn_fast_start(struct llp_conn *c)
{
	const struct io_link *l = c->el->io;

	if (!io_unsummed(l) || !IP_IS_V4_VAL(c->pcb->remote_ip) ||
	    ip_addr_get_ip4_u32(&c->pcb->remote_ip) == l->addr)
		return;
	make_head(c);
	c->fast = true;
}

void edge_conn_fast_headers(struct llp_conn *c)
{
	if (c->fast)
		make_head(c);
}

/* tcp: octets from the TCP header on. */
static void put_head(const struct llp_conn *c, uint8_t *at, size_t tcp)
{
	memcpy(at, c->head, EDGE_CONN_HEAD);
	uw_put16(at + SIZEOF_ETH_HDR + 2, (uint16_t)(IP_HLEN + tcp));
	uw_put16(at + SIZEOF_ETH_HDR + 4, ip_id++);
}

/* What an acknowledgement says, with or without octets. */
static void acknowledge(struct tcp_pcb *pcb, struct tcp_hdr *h)
{
	h->ackno = lwip_htonl(pcb->rcv_nxt);
	h->wnd = lwip_htons(TCPWND_MIN16(RCV_WND_SCALE(pcb, pcb->rcv_ann_wnd)));
	h->chksum = 0;
	pcb->rcv_ann_right_edge = pcb->rcv_nxt + pcb->rcv_ann_wnd;
	tcp_clear_flags(pcb, TF_ACK_DELAY | TF_ACK_NOW);
}

static bool is_open(const struct tcp_pcb *pcb)
{
	return pcb->state == ESTABLISHED || pcb->state == CLOSE_WAIT;
}

/* ---- segments ---------------------------------------------------------------------------- */

/* A segment of tx_queue.c's that was never sent, within the window, and nobody has touched it. */
static bool may_go(const struct llp_conn *c, const struct tcp_seg *seg)
{
	const struct tcp_pcb *pcb = c->pcb;
	uint32_t wnd = LWIP_MIN(pcb->snd_wnd, pcb->cwnd);

	return seg->tcphdr->seqno == lwip_htonl(pcb->snd_nxt) &&
	       pcb->snd_nxt - pcb->lastack + seg->len <= wnd && !seg->flags && seg->len &&
	       !(TCPH_FLAGS(seg->tcphdr) & ~TCP_PSH) && seg->p->payload == seg->tcphdr &&
	       seg->p->ref == 1 && edge_is_tx(seg->p) && c->el->tx_n < EDGE_TXQ;
}

static void send_one(struct llp_conn *c, struct tcp_seg *seg)
{
	struct tcp_pcb *pcb = c->pcb;
	struct pbuf *p = seg->p;

	TCPH_SET_FLAG(seg->tcphdr, TCP_ACK);
	acknowledge(pcb, seg->tcphdr);
	if (pcb->rtime < 0)
		pcb->rtime = 0;
	if (!pcb->rttest) {
		pcb->rttest = tcp_ticks;
		pcb->rtseq = pcb->snd_nxt;
	}
	pcb->persist_backoff = 0;
	pcb->snd_nxt += seg->len;
	p->payload = (uint8_t *)p->payload - EDGE_CONN_HEAD;
	put_head(c, p->payload, p->tot_len);
	p->len = (u16_t)(p->len + EDGE_CONN_HEAD);
	p->tot_len = (u16_t)(p->tot_len + EDGE_CONN_HEAD);
	edge_queue(c->el, edge_lend(p));
}

void edge_conn_tx_fast(struct llp_conn *c, struct tcp_seg *last)
{
	const tcpflags_t special = TF_RTO | TF_INFR | TF_FIN | TF_CLOSEPEND | TF_NAGLEMEMERR;
	struct tcp_pcb *pcb = c->pcb;
	struct tcp_seg *seg;

	if (!is_open(pcb) || pcb->flags & special)
		return;
	while ((seg = pcb->unsent) && may_go(c, seg)) {
		send_one(c, seg);
		pcb->unsent = seg->next;
		seg->next = NULL;
		if (last)
			last->next = seg;
		else
			pcb->unacked = seg;
		last = seg;
	}
}

/* ---- acknowledgements -------------------------------------------------------------------- */

/* With a hole in what came, lwIP tells of it (SACK). */
static bool has_hole(const struct tcp_pcb *pcb)
{
	return pcb->ooseq || LWIP_TCP_SACK_VALID(pcb, 0);
}

bool edge_conn_ack_fast(struct llp_conn *c)
{
	struct tcp_pcb *pcb = c->pcb;
	struct io_link *l = c->el->io;
	struct tcp_hdr *h;
	struct io_frame *f;

	if (!c->fast || !is_open(pcb) || pcb->unsent || has_hole(pcb) || c->el->tx_n == EDGE_TXQ)
		return false;
	f = l->ops->alloc(l);
	if (!f)
		return false;
	put_head(c, f->data, TCP_HLEN);
	h = (struct tcp_hdr *)(f->data + EDGE_CONN_HEAD);
	h->src = lwip_htons(pcb->local_port);
	h->dest = lwip_htons(pcb->remote_port);
	h->seqno = lwip_htonl(pcb->snd_nxt);
	h->urgp = 0;
	TCPH_HDRLEN_FLAGS_SET(h, TCP_HLEN / 4, TCP_ACK);
	acknowledge(pcb, h);
	f->len = EDGE_CONN_HEAD + TCP_HLEN;
	edge_queue(c->el, f);
	return true;
}
