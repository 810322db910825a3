/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets as the path wants them: DF on those of IPv4 (RFC 1191 §3), and TCP segments that are
 * longer than the path takes, because they were queued before that was known, cut into several, as
 * a port with TSO cuts them. The queue and stack/loss keep them whole, so FPDUs lose their
 * alignment on the wire only (RFC 5044 §5.1 has receivers bear that).
 */
#include "io/lwip/edge.h"

#include <string.h>

#include "base/be.h"
#include "base/sum.h"

#include "lwip/prot/ethernet.h"
#include "lwip/prot/ip.h"
#include "lwip/prot/ip4.h"
#include "lwip/prot/ip6.h"
#include "lwip/prot/tcp.h"

enum { IP4_TOTAL = 2, IP4_ID = 4, IP4_FLAGS = 6, IP4_SUM = 10, IP4_ADDRS = 12 };
enum { IP6_LENGTH = 4, IP6_ADDRS = 8 };
enum { TCP_SEQ = 4, TCP_FLAGS_AT = 13, TCP_SUM = 16 };
enum { FIN = 1, PSH = 8, CWR = 0x80 };

/* Where the headers of a TCP segment are. */
struct layout {
	bool v4;
	unsigned tcp, payload; /* octets in front of the TCP header, and of the payload */
};

static bool read_layout(const uint8_t *f, size_t n, struct layout *out)
{
	const uint8_t *ip = f + SIZEOF_ETH_HDR;

	if (n < SIZEOF_ETH_HDR + IP_HLEN + TCP_HLEN)
		return false;
	out->v4 = uw_be16(f + 12) == ETHTYPE_IP;
	if (out->v4 && ip[9] == IP_PROTO_TCP)
		out->tcp = SIZEOF_ETH_HDR + (ip[0] & 15u) * 4;
	else if (uw_be16(f + 12) == ETHTYPE_IPV6 && n >= SIZEOF_ETH_HDR + IP6_HLEN + TCP_HLEN &&
		 ip[6] == IP6_NEXTH_TCP)
		out->tcp = SIZEOF_ETH_HDR + IP6_HLEN;
	else
		return false;
	if (n < out->tcp + TCP_HLEN)
		return false;
	out->payload = out->tcp + (f[out->tcp + 12] >> 4) * 4u;
	return true;
}

static const struct pmtu_path *path_of(const uint8_t *f, bool v4)
{
	const uint8_t *ip = f + SIZEOF_ETH_HDR;
	struct uw_ip to;
	uint32_t addr;

	if (v4) {
		memcpy(&addr, ip + IP4_ADDRS + 4, 4);
		to = uw_ip_v4(addr);
	} else {
		memcpy(to.b, ip + IP6_ADDRS + 16, 16);
	}
	return pmtu_find(&edge.paths, &to);
}

/* ---- DF ----------------------------------------------------------------------------------------
 */

/* RFC 1624 §3: the header's checksum with one more bit. */
static void set_df(uint8_t *ip)
{
	uint32_t sum;

	if (uw_be16(ip + IP4_FLAGS) & 0x4000)
		return;
	uw_put16(ip + IP4_FLAGS, uw_be16(ip + IP4_FLAGS) | 0x4000);
	sum = (uint16_t)~uw_be16(ip + IP4_SUM) + 0x4000u;
	uw_put16(ip + IP4_SUM, (uint16_t)~uw_sum_fold(sum));
}

void edge_set_df(uint8_t *frame, size_t n)
{
	const struct pmtu_path *p;

	if (n < SIZEOF_ETH_HDR + IP_HLEN || uw_be16(frame + 12) != ETHTYPE_IP ||
	    frame[SIZEOF_ETH_HDR + 9] != IP_PROTO_TCP)
		return;
	p = edge.paths.n ? path_of(frame, true) : NULL;
	if (!p || !p->fragment)
		set_df(frame + SIZEOF_ETH_HDR);
}

/* ---- cutting -----------------------------------------------------------------------------------
 */

static uint32_t limit_of(const struct io_link *l, const uint8_t *f, bool v4)
{
	const struct pmtu_path *p = path_of(f, v4);

	return p && p->mtu < l->mtu ? p->mtu : l->mtu;
}

static uint16_t tcp_sum(const uint8_t *f, const struct layout *at, uint32_t tcp)
{
	const uint8_t *ip = f + SIZEOF_ETH_HDR;
	uint8_t pseudo[40] = { 0 };
	size_t addrs = at->v4 ? 8 : 32;
	uint32_t sum;

	memcpy(pseudo, ip + (at->v4 ? IP4_ADDRS : IP6_ADDRS), addrs);
	uw_put16(pseudo + addrs + 2, IP_PROTO_TCP);
	uw_put16(pseudo + addrs + 4, (uint16_t)tcp);
	sum = uw_lwip_checksum(pseudo, (int)addrs + 6);
	sum += uw_lwip_checksum(f + at->tcp, (int)tcp);
	return (uint16_t)~uw_sum_fold(sum);
}

/* The headers of the piece that begins `done` octets into the payload and has n of it, number i. */
static void fix_headers(uint8_t *f, const struct layout *at, uint32_t done, uint32_t n, unsigned i)
{
	uint8_t *ip = f + SIZEOF_ETH_HDR, *tcp = f + at->tcp;
	uint32_t length = at->payload - SIZEOF_ETH_HDR + n;
	uint16_t sum = 0;

	uw_put32(tcp + TCP_SEQ, uw_be32(tcp + TCP_SEQ) + done);
	if (!at->v4) {
		uw_put16(ip + IP6_LENGTH, (uint16_t)(length - IP6_HLEN));
		return;
	}
	uw_put16(ip + IP4_TOTAL, (uint16_t)length);
	uw_put16(ip + IP4_ID, (uint16_t)(uw_be16(ip + IP4_ID) + i));
	memcpy(ip + IP4_SUM, &sum, 2);
	sum = (uint16_t)~uw_lwip_checksum(ip, (int)at->tcp - SIZEOF_ETH_HDR);
	memcpy(ip + IP4_SUM, &sum, 2);
}

static struct io_frame *piece(struct io_link *l, struct pbuf *p, const struct layout *at,
			      uint32_t done, uint32_t n)
{
	struct io_frame *f = l->ops->alloc(l);

	if (!f)
		return NULL;
	if (at->payload + n > f->room - (uint32_t)(f->data - f->buf)) {
		l->ops->free(f);
		return NULL;
	}
	pbuf_copy_partial(p, f->data, (u16_t)at->payload, 0);
	pbuf_copy_partial(p, f->data + at->payload, (u16_t)n, (u16_t)(at->payload + done));
	f->len = at->payload + n;
	return f;
}

static void finish(const struct io_link *l, struct io_frame *f, const struct layout *at)
{
	uint8_t *tcp = f->data + at->tcp;
	uint16_t sum = 0;

	f->marks = l->flags & IO_TX_CSUM ? IO_FRAME_SUM : 0;
	memcpy(tcp + TCP_SUM, &sum, 2);
	if (f->marks)
		return;
	sum = tcp_sum(f->data, at, f->len - at->tcp);
	memcpy(tcp + TCP_SUM, &sum, 2);
}

bool edge_is_too_long(const struct edge_link *el, const struct pbuf *p, uint32_t cut)
{
	struct layout at;
	uint32_t n;

	if (!read_layout(p->payload, p->len, &at) || p->tot_len <= at.payload)
		return false;
	n = cut ? LWIP_MIN(p->tot_len, at.payload + cut) : p->tot_len;
	return n > SIZEOF_ETH_HDR + limit_of(el->io, p->payload, at.v4);
}

/* What finds no frame is lost as on a wire, if something of it went. */
err_t edge_send_cut(struct edge_link *el, struct pbuf *p)
{
	struct io_link *l = el->io;
	struct layout at;
	uint32_t each, payload;
	unsigned i = 0;

	if (!read_layout(p->payload, p->len, &at))
		return ERR_VAL;
	each = limit_of(l, p->payload, at.v4) + SIZEOF_ETH_HDR - at.payload;
	payload = p->tot_len - at.payload;
	for (uint32_t done = 0; done < payload; done += each, i++) {
		uint32_t n = LWIP_MIN(each, payload - done);
		struct io_frame *f = el->tx_n < EDGE_TXQ ? piece(l, p, &at, done, n) : NULL;

		if (!f)
			break;
		f->data[at.tcp + TCP_FLAGS_AT] &=
			(uint8_t) ~((done ? CWR : 0) | (done + n < payload ? FIN | PSH : 0));
		fix_headers(f->data, &at, done, n, i);
		finish(l, f, &at);
		edge_queue(el, f);
	}
	edge.cfg.stats->tcp_tx_cut += i;
	return i ? ERR_OK : ERR_MEM;
}
