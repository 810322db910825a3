/* SPDX-License-Identifier: BSD-3-Clause */
/* Explicit congestion notification, RFC 3168 §6.1: agreed on in the SYNs, told of by the receiver,
 * heard by the sender. lwIP knows nothing of it; its hooks show every header before it goes. */
#include "io/lwip/loss.h"
#include "io/lwip/loss_conn.h"

#include "lwip/ip.h"
#include "io/lwip/pcb/private.h"

/* TCP's flags (RFC 3168 §6.1) and IP's code points (§5) */
#define ECE	 0x40u
#define CWR	 0x80u
#define ECT0	 2u
#define CE	 3u
#define IP_FIELD 3u

enum { ASKED = 1, ON = 2, ECHO = 4 }; /* llp_conn.ecn */

/* What the SYN that lwIP is looking at asks for: its connection has no record yet. */
static bool syn_asks;

static unsigned flags_of(const struct tcp_hdr *h)
{
	return lwip_ntohs(h->_hdrlen_rsvd_flags) & 0xffu;
}

static void put_flags(struct tcp_hdr *h, unsigned flags)
{
	unsigned others = lwip_ntohs(h->_hdrlen_rsvd_flags) & ~(ECE | CWR);

	h->_hdrlen_rsvd_flags = lwip_htons((u16_t)(others | flags));
}

static bool is_marked(void)
{
	unsigned field =
		ip_current_is_v6() ? IP6H_TC(ip6_current_header()) : IPH_TOS(ip4_current_header());

	return (field & IP_FIELD) == CE;
}

/* ---- what goes --------------------------------------------------------------------------- */

/* RFC 3168 §6.1.1. A SYN that is sent again asks no more: somebody may drop those that do
 * (§6.1.1.1). */
static void send_syn(struct llp_conn *c, const struct tcp_pcb *pcb, struct tcp_hdr *h)
{
	bool ask = edge_conn_loss_ecn() && c && !pcb->nrtx;

	if (pcb->state == SYN_SENT) {
		put_flags(h, ask ? ECE | CWR : 0);
		if (c)
			c->ecn = ask ? ASKED : 0;
	} else {
		put_flags(h, (c ? c->ecn & ON : edge_conn_loss_ecn() && syn_asks) ? ECE : 0);
	}
}

void edge_conn_ecn_sending(struct tcp_pcb *pcb, struct tcp_hdr *h, bool is_new)
{
	struct llp_conn *c = edge_conn_of(pcb);
	unsigned flags = 0;

	if (TCPH_FLAGS(h) & TCP_SYN) {
		send_syn(c, pcb, h);
		return;
	}
	if (!c || !(c->ecn & ON))
		return;
	if (c->ecn & ECHO)
		flags |= ECE;
	if (is_new && c->loss && c->loss->loss.owes_cwr) { /* RFC 3168 §6.1.2 */
		flags |= CWR;
		c->loss->loss.owes_cwr = false;
	}
	put_flags(h, flags);
	/* RFC 3168 §6.1.4 and §6.1.5: neither pure ACKs nor what is sent again may be marked. */
	pcb->tos = (u8_t)((pcb->tos & ~IP_FIELD) | (is_new ? ECT0 : 0));
}

/* ---- what comes -------------------------------------------------------------------------- */

void edge_conn_ecn_half(struct llp_conn *c)
{
	c->ecn = edge_conn_loss_ecn() && syn_asks ? ON : 0;
	syn_asks = false;
}

/* RFC 8257 §3.2: the sender is to know how many octets were marked, so ACKs that say it and ACKs
 * that do not are told apart. */
static void echo_exactly(struct llp_conn *c, bool marked)
{
	if (marked == !!(c->ecn & ECHO))
		return;
	if (c->pcb->flags & TF_ACK_DELAY) {
		tcp_ack_now(c->pcb);
		tcp_output(c->pcb);
	}
	c->ecn ^= ECHO;
}

static void hear_octets(struct llp_conn *c, unsigned flags)
{
	if (c->loss && c->loss->loss.cc.ops->every_mark) {
		echo_exactly(c, is_marked());
		return;
	}
	if (flags & CWR) /* RFC 3168 §6.1.3 */
		c->ecn &= (uint8_t)~ECHO;
	if (is_marked())
		c->ecn |= ECHO;
}

bool edge_conn_ecn_in(struct tcp_pcb *pcb, const struct uw_lwip_segment *s)
{
	unsigned flags = flags_of(s->hdr);
	struct llp_conn *c;

	if (pcb->state == LISTEN) {
		syn_asks = (flags & (ECE | CWR | TCP_SYN | TCP_ACK)) == (ECE | CWR | TCP_SYN);
		return false;
	}
	c = edge_conn_of(pcb);
	if (!c)
		return false;
	if (pcb->state == SYN_SENT && flags & TCP_SYN)
		c->ecn = c->ecn & ASKED && (flags & (ECE | CWR)) == ECE ? ON : 0;
	if (!(c->ecn & ON) || flags & TCP_SYN)
		return false;
	if (s->p->tot_len)
		hear_octets(c, flags);
	return flags & ECE;
}
