/* SPDX-License-Identifier: BSD-3-Clause */
/* The timestamps option (loss/stamp.h) on lwIP's connections, by lwIP's hooks for options: lwIP's
 * own knows no PAWS and no way to leave it out. Every segment of a connection has it or none has
 * (RFC 7323 §3.2), so the EMSS is constant (RFC 5044 §4.5). Not on IO_P2P links. */
#include "io/lwip/loss.h"
#include "io/lwip/loss_conn.h"

#include "base/be.h"
#include "io/siphash.h"
#include "lwip/ip.h"
#include "io/lwip/pcb/private.h"

static bool wanted;
static struct siphash_key key;
/* What the SYN that lwIP is looking at has: its connection has no record yet. */
static struct loss_options syn;

static uint64_t now(void)
{
	return edge.cfg.now_us(edge.cfg.arg);
}

void edge_stamps_init(const struct llp_config *cfg)
{
	wanted = cfg->timestamps;
	for (unsigned i = 0; i < 2 && wanted; i++)
		key.k[i] = (uint64_t)cfg->random(cfg->arg) << 32 | cfg->random(cfg->arg);
}

/* RFC 7323 §7.1: the same for each connection of two ends, so that a later one's are higher. */
static uint32_t offset_of(const struct tcp_pcb *pcb, const struct uw_ip *remote)
{
	const struct uw_ip local = edge_ip(&pcb->local_ip);
	const uint64_t words[] = { uw_ip_half(&local, 0), uw_ip_half(&local, 1),
				   uw_ip_half(remote, 0), uw_ip_half(remote, 1) };

	return (uint32_t)siphash(&key, words, sizeof(words) / sizeof(words[0]));
}

/* ---- what goes --------------------------------------------------------------------------- */

/* An answer to a SYN whose connection has no record yet. */
static bool is_first_answer(const struct tcp_pcb *pcb)
{
	return pcb && pcb->state == SYN_RCVD && !edge_conn_of(pcb);
}

static bool is_stamped(const struct tcp_pcb *pcb)
{
	const struct llp_conn *c;

	if (!wanted || !pcb || pcb->state == LISTEN)
		return false;
	if (is_first_answer(pcb))
		return syn.stamped;
	c = edge_conn_of(pcb);
	if (!c)
		return false;
	/* lwIP makes the SYN before it calls the state SYN_SENT */
	return pcb->state == CLOSED || pcb->state == SYN_SENT ? c->stamp_asks : c->stamp.on;
}

unsigned uw_lwip_options(const struct tcp_pcb *pcb, unsigned others)
{
	return others + (is_stamped(pcb) ? STAMP_OCTETS : 0);
}

/* lwIP puts the octet of a window probe right behind the header, and only then the options. */
static void make_way(const struct pbuf *p, const struct tcp_pcb *pcb, uint8_t *at)
{
	const struct tcp_hdr *h = p->payload;

	if (pcb->unsent && pcb->unsent->p == p)
		return;
	if (at == (const uint8_t *)(h + 1) && p->tot_len == TCPH_HDRLEN_BYTES(h) + 1)
		at[STAMP_OCTETS] = at[0];
}

uint32_t *uw_lwip_put_options(const struct pbuf *p, const struct tcp_pcb *pcb, uint32_t *at)
{
	struct stamp first = { 0 };
	const struct stamp *s = &first;
	struct uw_ip remote;

	if (!is_stamped(pcb))
		return at;
	if (is_first_answer(pcb)) {
		remote = edge_ip(&pcb->remote_ip);
		first.offset = offset_of(pcb, &remote);
		first.recent = syn.value;
	} else {
		s = &edge_conn_of(pcb)->stamp;
	}
	make_way(p, pcb, (uint8_t *)at);
	stamp_put(s, now(), (uint8_t *)at);
	return at + STAMP_OCTETS / sizeof(*at);
}

void edge_conn_stamp_sending(const struct tcp_hdr *h, struct llp_conn *c)
{
	if (c && c->stamp.on && TCPH_FLAGS(h) & TCP_ACK)
		c->stamp.last_ack = lwip_ntohl(h->ackno);
}

void edge_conn_stamp_ask(struct llp_conn *c, const struct uw_ip *remote)
{
	c->stamp_asks = wanted && !(c->el->io->flags & IO_P2P);
	if (c->stamp_asks)
		c->stamp.offset = offset_of(c->pcb, remote);
}

/* ---- what comes -------------------------------------------------------------------------- */

static bool from_network(void)
{
	const struct netif *nif = ip_current_input_netif();

	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		const struct edge_link *el = &edge.links[i];

		if (&el->nif == nif)
			return el->io && !(el->io->flags & IO_P2P);
	}
	return false;
}

static void take_syn(struct tcp_pcb *pcb, const struct uw_lwip_segment *s)
{
	const uint8_t *options = (const uint8_t *)(s->hdr + 1);
	struct loss_options opt;
	struct llp_conn *c;

	if (pcb->state == LISTEN) {
		syn = (struct loss_options){ 0 };
		if (from_network())
			loss_options_read(options, s->optlen, &syn);
		return;
	}
	c = edge_conn_of(pcb);
	if (!c || pcb->state != SYN_SENT || !c->stamp_asks)
		return;
	loss_options_read(options, s->optlen, &opt);
	c->stamp.on = false;
	if (opt.stamped)
		stamp_begin(&c->stamp, opt.value, now());
}

/* lwIP has verified the checksum: a damaged value would let nothing in any more. */
static void take_segment(const struct tcp_pcb *pcb, const struct uw_lwip_segment *s)
{
	struct llp_conn *c = pcb->state == LISTEN ? NULL : edge_conn_of(pcb);
	struct loss_options opt;
	struct stamp_segment seg;

	if (!c || !c->stamp.on || TCPH_FLAGS(s->hdr) & TCP_RST)
		return;
	loss_options_read((const uint8_t *)(s->hdr + 1), s->optlen, &opt);
	seg = (struct stamp_segment){ .stamped = opt.stamped,
				      .value = opt.value,
				      .seq = s->hdr->seqno,
				      .octets = s->p->tot_len + !!(TCPH_FLAGS(s->hdr) & TCP_FIN),
				      .rcv_nxt = pcb->rcv_nxt };
	stamp_take(&c->stamp, &seg, now());
}

void edge_conn_stamp_in(struct tcp_pcb *pcb, const struct uw_lwip_segment *s)
{
	if (!wanted)
		return;
	if (TCPH_FLAGS(s->hdr) & TCP_SYN)
		take_syn(pcb, s);
	else
		take_segment(pcb, s);
}

void edge_conn_stamp_half(struct llp_conn *c)
{
	const struct uw_ip remote = edge_ip(&c->pcb->remote_ip);

	if (!wanted || !syn.stamped)
		return;
	c->stamp.offset = offset_of(c->pcb, &remote);
	stamp_begin(&c->stamp, syn.value, now());
	c->stamp.last_ack = c->pcb->rcv_nxt;
	syn.stamped = false;
}

void edge_conn_stamp_came_up(struct llp_conn *c)
{
	if (c->stamp.on)
		c->pcb->mss = (u16_t)LWIP_MAX(c->pcb->mss - STAMP_OCTETS, LLP_ROOM_LEAST);
}

bool edge_conn_stamp_check(struct llp_conn *c, const struct edge_segment *s, bool *answer)
{
	struct loss_options opt;
	struct stamp_segment seg = { .seq = s->seq,
				     .octets = s->len + !!(s->flags & TCP_FIN),
				     .rcv_nxt = c->pcb->rcv_nxt };

	if (!c->stamp.on || s->flags & TCP_RST) /* RFC 7323 §5.2 */
		return true;
	loss_options_read(s->tcp + TCP_HLEN, s->options, &opt);
	seg.stamped = opt.stamped;
	seg.value = opt.value;
	if (stamp_accepts(&c->stamp, &seg, now(), answer))
		return true;
	edge.cfg.stats->tcp_rx_old++;
	return false;
}
