/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of reception (doc/adr/0015): Van Jacobson's header prediction. The next segment of
 * an established connection, with nothing in it but octets and an acknowledgement, is taken in
 * here. What RFC 9293 §3.10.7.4 asks for is done as lwIP 2.2.1 does it in tcp_process and
 * tcp_receive. Every other segment goes to lwIP. Only on IO_P2P links over IPv4, because nothing is
 * checksummed there.
 */
#include "io/lwip/conn.h"
#include "io/lwip/pcb/private.h"

#include "base/be.h"

#include "lwip/prot/ethernet.h"
#include "lwip/prot/ip.h"
#include "lwip/prot/ip4.h"

#define HEADERS	  (SIZEOF_ETH_HDR + IP_HLEN + TCP_HLEN)
#define IP_WHOLE  0x45 /* version 4, no options */
#define TCP_WHOLE 0x50 /* no options */

struct segment {
	uint32_t seq, ack, wnd;
	uint16_t len;
};

/* Not a fragment; of the flags ACK and perhaps PSH. */
static bool is_plain(const struct io_frame *f)
{
	const uint8_t *ip = f->data + SIZEOF_ETH_HDR, *tcp = ip + IP_HLEN;

	return !f->next && f->len >= HEADERS && uw_be16(ip - 2) == ETHTYPE_IP &&
	       ip[0] == IP_WHOLE && !(uw_be16(ip + 6) & (IP_MF | IP_OFFMASK)) &&
	       ip[9] == IP_PROTO_TCP && tcp[12] == TCP_WHOLE && (tcp[13] & ~TCP_PSH) == TCP_ACK;
}

static struct llp_conn *edge_conn_for(const struct io_frame *f)
{
	const uint8_t *ip = f->data + SIZEOF_ETH_HDR;
	struct flow_key k;
	uint32_t addr[2];

	memcpy(addr, ip + 12, sizeof(addr));
	k.remote = uw_ip_v4(addr[0]);
	k.local = uw_ip_v4(addr[1]);
	memcpy(&k.rport, ip + IP_HLEN, 2);
	memcpy(&k.lport, ip + IP_HLEN + 2, 2);
	return edge_conn_flow_lookup(&k);
}

/* False: it says it is longer than it is. */
static bool read_segment(const struct io_frame *f, const struct llp_conn *c, struct segment *s)
{
	const uint8_t *ip = f->data + SIZEOF_ETH_HDR, *tcp = ip + IP_HLEN;
	size_t total = uw_be16(ip + 2);

	if (total < IP_HLEN + TCP_HLEN || total > f->len - SIZEOF_ETH_HDR)
		return false;
	s->len = (uint16_t)(total - IP_HLEN - TCP_HLEN);
	s->seq = uw_be32(tcp + 4);
	s->ack = uw_be32(tcp + 8);
	s->wnd = SND_WND_SCALE(c->pcb, (uint32_t)uw_be16(tcp + 14));
	return true;
}

/* Nothing is lost, repeated, refused or ending; no ACK of what was acknowledged already without
 * octets, which may be a duplicate; nothing beyond the window, nothing acknowledged ahead. */
static bool is_expected(const struct tcp_pcb *pcb, const struct segment *s)
{
	const tcpflags_t special = TF_RTO | TF_INFR | TF_FIN | TF_CLOSEPEND | TF_RXCLOSED;

	if (pcb->state != ESTABLISHED || pcb->flags & special || pcb->ooseq || pcb->refused_data ||
	    LWIP_TCP_SACK_VALID(pcb, 0))
		return false;
	if (s->seq != pcb->rcv_nxt || s->len > pcb->rcv_wnd)
		return false;
	if (!TCP_SEQ_BETWEEN(s->ack, pcb->lastack, pcb->snd_nxt) ||
	    (s->ack == pcb->lastack && !s->len))
		return false;
	return !pcb->unsent || TCP_SEQ_GEQ(lwip_ntohl(pcb->unsent->tcphdr->seqno), pcb->snd_nxt);
}

/* ---- what is acknowledged ---------------------------------------------------------------- */

static void take_window(struct tcp_pcb *pcb, const struct segment *s)
{
	if (!TCP_SEQ_LT(pcb->snd_wl1, s->seq) &&
	    !(pcb->snd_wl1 == s->seq && TCP_SEQ_LT(pcb->snd_wl2, s->ack)) &&
	    !(pcb->snd_wl2 == s->ack && s->wnd > pcb->snd_wnd))
		return;
	pcb->snd_wnd = s->wnd;
	pcb->snd_wnd_max = LWIP_MAX(pcb->snd_wnd_max, s->wnd);
	pcb->snd_wl1 = s->seq;
	pcb->snd_wl2 = s->ack;
}

/* RFC 5681 §3.1, in octets (RFC 3465). */
static void open_congestion_window(struct tcp_pcb *pcb, tcpwnd_size_t acked)
{
	if (pcb->cwnd < pcb->ssthresh) {
		tcpwnd_size_t more = LWIP_MIN(acked, (tcpwnd_size_t)(2 * pcb->mss));

		TCP_WND_INC(pcb->cwnd, more);
		return;
	}
	TCP_WND_INC(pcb->bytes_acked, acked);
	if (pcb->bytes_acked >= pcb->cwnd) {
		pcb->bytes_acked -= pcb->cwnd;
		TCP_WND_INC(pcb->cwnd, pcb->mss);
	}
}

static void drop_acked(struct tcp_pcb *pcb, uint32_t ack)
{
	struct tcp_seg *seg;

	while ((seg = pcb->unacked) &&
	       TCP_SEQ_LEQ(lwip_ntohl(seg->tcphdr->seqno) + TCP_TCPLEN(seg), ack)) {
		pcb->unacked = seg->next;
		pcb->snd_queuelen = (u16_t)(pcb->snd_queuelen - pbuf_clen(seg->p));
		pcb->snd_buf += seg->len;
		tcp_seg_free(seg);
	}
}

/* RFC 6298 §2, in lwIP's ticks and with its shifts. */
static void measure(struct tcp_pcb *pcb)
{
	int m = (s16_t)(tcp_ticks - pcb->rttest) - (pcb->sa >> 3);

	pcb->sa = (s16_t)(pcb->sa + m);
	m = (m < 0 ? -m : m) - (pcb->sv >> 2);
	pcb->sv = (s16_t)(pcb->sv + m);
	pcb->rto = (s16_t)((pcb->sa >> 3) + pcb->sv);
	pcb->rttest = 0;
}

static void take_ack(struct tcp_pcb *pcb, const struct segment *s)
{
	tcpwnd_size_t acked = s->ack - pcb->lastack;

	take_window(pcb, s);
	if (acked) {
		pcb->nrtx = 0;
		pcb->rto = (s16_t)((pcb->sa >> 3) + pcb->sv);
		pcb->dupacks = 0;
		pcb->lastack = s->ack;
		open_congestion_window(pcb, acked);
		drop_acked(pcb, s->ack);
		pcb->rtime = pcb->unacked ? 0 : -1;
		pcb->polltmr = 0;
	}
	if (pcb->rttest && TCP_SEQ_LT(pcb->rtseq, s->ack))
		measure(pcb);
}

/* ---- what comes -------------------------------------------------------------------------- */

/* While the user does not pause it has taken the octets as soon as they are here. */
static void take_octets(struct llp_conn *c, const struct segment *s)
{
	struct tcp_pcb *pcb = c->pcb;

	pcb->rcv_nxt += s->len;
	if (c->paused) {
		pcb->rcv_wnd -= s->len;
		c->window_debt += s->len;
	}
	if (tcp_update_rcv_ann_wnd(pcb) >= TCP_WND_UPDATE_THRESHOLD)
		tcp_ack_now(pcb);
	else
		tcp_ack(pcb);
}

/* Cut off the headers, and what Ethernet has filled up with. */
static void strip(struct io_frame *f, const struct segment *s)
{
	f->data += HEADERS;
	f->len = s->len;
}

static void hand_over(struct llp_conn *c, struct io_frame *f, const struct segment *s)
{
	bool acked = s->ack != c->pcb->lastack, on;

	c->pcb->tmr = tcp_ticks;
	c->pcb->keep_cnt_sent = 0;
	c->pcb->persist_probe = 0;
	take_ack(c->pcb, s);
	if (s->len)
		take_octets(c, s);
	c->in_callback = true;
	if (acked)
		edge.cfg.user->writable(c->ctx);
	strip(f, s);
	edge_conn_rx(c, f);
	on = c->end == EDGE_CONN_ON;
	/* Within it the connection ends, if the user has said so. */
	if (edge_conn_callback_end(c) == ERR_OK && on)
		edge_tx_flush(c);
}

bool edge_rx_fast(const struct edge_link *el, struct io_frame *f)
{
	struct llp_conn *c;
	struct segment s;

	if (!io_unsummed(el->io) || !is_plain(f))
		return false;
	c = edge_conn_for(f);
	if (!c || c->el != el || c->end != EDGE_CONN_ON || !read_segment(f, c, &s) ||
	    !is_expected(c->pcb, &s) || (c->paused && !edge_conn_rx_room(c)))
		return false;
	edge_conn_activate(c);
	if (edge.flows >= UW_PREFETCH_FROM)
		edge_conn_rx_seen(c);
	hand_over(c, f, &s);
	return true;
}
