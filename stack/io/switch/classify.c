/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/classify.h"

#include <string.h>

#include "base/be.h"
#include "io/switch/datagram.h"
#include "io/switch/head.h"
#include "io/switch/icmp6.h"

enum { TCP_LEN = 20, ARP_LEN = 28 };
enum { ARP_REQUEST = 1, ARP_REPLY = 2 };
/* More offsets in a frame. */
enum {
	ARP_KIND = ETHER,   /* hardware, protocol, and the lengths of both addresses */
	ARP_OP = ETHER + 6, /* then: the sender's MAC and IP address, the target's */
	ARP_MAC = ETHER + 8,
	ARP_FROM = ETHER + 14,
	ARP_TO = ETHER + 24,
};

const char *switch_why(enum switch_reason why)
{
	static const char *const names[] = {
#define NAME(name) #name,
		SWITCH_REASONS(NAME)
#undef NAME
	};

	return why < SWITCH_WHY_COUNT ? names[why] : "?";
}

static bool is_addr(const uint8_t *p, uint32_t addr)
{
	return addr && !memcmp(p, &addr, 4);
}

/* ---- ARP (RFC 826) ------------------------------------------------------------------------- */

static bool is_arp(const struct switch_frame *f)
{
	static const uint8_t kind[] = { 0, 1, 8, 0, 6, 4 };

	return f->len >= ETHER + ARP_LEN && !memcmp(f->head + ARP_KIND, kind, sizeof(kind));
}

static struct switch_result arp_out(const struct switch_table *t, const struct switch_frame *f)
{
	if (!is_arp(f) || uw_be16(f->head + ARP_OP) != ARP_REQUEST)
		return switch_drop(SWITCH_WHY_protocol);
	if (memcmp(f->head + ARP_MAC, t->mac, 6))
		return switch_drop(SWITCH_WHY_source_mac);
	if (!is_addr(f->head + ARP_FROM, t->addr))
		return switch_drop(SWITCH_WHY_source_addr);
	return (struct switch_result){ .verdict = SWITCH_TO_PORT, .segments = 1 };
}

/* Requests for an address that the kernel has are the kernel's to answer. */
static struct switch_result arp_in(const struct switch_table *t, const struct switch_frame *f)
{
	if (!is_arp(f))
		return switch_drop(SWITCH_WHY_protocol);
	if (!is_addr(f->head + ARP_TO, t->addr))
		return switch_drop(SWITCH_WHY_target);
	switch (uw_be16(f->head + ARP_OP)) {
	case ARP_REPLY:
		return (struct switch_result){ .verdict = SWITCH_TO_ALL, .segments = 1 };
	case ARP_REQUEST:
		if (t->own)
			return (struct switch_result){ .verdict = SWITCH_ANSWER, .segments = 1 };
		return switch_drop(SWITCH_WHY_none);
	default:
		return switch_drop(SWITCH_WHY_protocol);
	}
}

/* ---- TCP ----------------------------------------------------------------------------------- */

struct segment {
	const uint8_t *tcp;
	uint32_t headers; /* octets of all headers */
};

/* Frames of less than 60 octets have padding behind the packet. */
static enum switch_reason read_segment(const struct switch_frame *f, const struct switch_ip *p,
				       struct segment *s)
{
	uint32_t tcp;

	if (p->at + TCP_LEN > p->total || p->total > f->len)
		return SWITCH_WHY_length;
	s->tcp = f->head + p->at;
	tcp = (uint32_t)(s->tcp[12] >> 4) * 4;
	s->headers = p->at + tcp;
	return tcp < TCP_LEN || s->headers > p->total ? SWITCH_WHY_length : SWITCH_WHY_none;
}

/* Segments that the frame becomes on the wire; 0: it may not be sent. A merged frame has no octets
 * behind its packet, since they would become payload. */
static uint32_t segments(const struct switch_table *t, const struct switch_frame *f,
			 const struct switch_ip *p, uint32_t headers)
{
	uint32_t payload = p->total - headers, n;

	if (!f->gso_size)
		return p->total <= ETHER + t->mtu && f->len <= ETHER + t->mtu ? 1 : 0;
	if (!t->merges || f->len != p->total || headers - ETHER + f->gso_size > t->mtu)
		return 0;
	n = (payload + f->gso_size - 1) / f->gso_size;
	return n <= SWITCH_SEGMENTS_MAX ? n : 0;
}

static struct switch_result tcp_out(const struct switch_table *t, uint16_t client,
				    const struct switch_frame *f, const struct switch_ip *p)
{
	struct switch_result r = { .verdict = SWITCH_TO_PORT };
	struct segment s;
	enum switch_reason why = read_segment(f, p, &s);

	if (why)
		return switch_drop(why);
	if (!p->from_us)
		return switch_drop(SWITCH_WHY_source_addr);
	if (switch_port_holder(t, p->six, s.tcp) != client)
		return switch_drop(SWITCH_WHY_source_port);
	if (switch_to_group(f) || p->to_no_host)
		return switch_drop(SWITCH_WHY_target);
	r.segments = segments(t, f, p, s.headers);
	if (!r.segments)
		return switch_drop(f->gso_size ? SWITCH_WHY_merge : SWITCH_WHY_length);
	r.headers = s.headers;
	r.tcp = p->at;
	if (!p->to_us)
		return r;
	r.client = switch_port_holder(t, p->six, s.tcp + 2);
	r.verdict = r.client ? SWITCH_TO_CLIENT : SWITCH_ANSWER;
	return r;
}

/* Is it ours to answer, if no client has the port? */
static bool is_refused(const struct switch_table *t, bool six, const uint8_t *port)
{
	return t->own || ((six ? t->refuses6 : t->refuses) && uw_be16(port) == SWITCH_RC_PORT);
}

static struct switch_result tcp_in(const struct switch_table *t, const struct switch_frame *f,
				   const struct switch_ip *p)
{
	struct switch_result r = { .verdict = SWITCH_TO_CLIENT, .segments = 1 };
	struct segment s;
	enum switch_reason why = read_segment(f, p, &s);

	if (why)
		return switch_drop(why);
	if (!p->to_us || switch_to_group(f))
		return switch_drop(SWITCH_WHY_target);
	r.client = switch_port_holder(t, p->six, s.tcp + 2);
	r.headers = s.headers;
	r.tcp = p->at;
	if (r.client)
		return r;
	if (!is_refused(t, p->six, s.tcp + 2))
		return switch_drop(SWITCH_WHY_no_holder);
	r.verdict = SWITCH_ANSWER;
	return r;
}

/* ---- both ways ----------------------------------------------------------------------------- */

static struct switch_result ip_out(const struct switch_table *t, uint16_t client,
				   const struct switch_frame *f)
{
	struct switch_ip p;
	enum switch_reason why = switch_read_ip(t, f, &p);

	if (why)
		return switch_drop(why);
	if (p.protocol == PROTOCOL_UDP)
		return datagram_out(t, client, f, &p);
	return p.protocol == PROTOCOL_TCP ? tcp_out(t, client, f, &p) : icmp6_out(t, f, &p);
}

static struct switch_result ip_in(const struct switch_table *t, const struct switch_frame *f)
{
	struct switch_ip p;
	enum switch_reason why = switch_read_ip(t, f, &p);

	if (why)
		return switch_drop(why);
	if (p.protocol == PROTOCOL_UDP)
		return datagram_in(t, f, &p);
	return p.protocol == PROTOCOL_TCP ? tcp_in(t, f, &p) : icmp6_in(t, f, &p);
}

struct switch_result switch_out(const struct switch_table *t, uint16_t client,
				const struct switch_frame *f)
{
	if (f->len < ETHER || f->len > SWITCH_FRAME_MAX)
		return switch_drop(SWITCH_WHY_length);
	if (memcmp(f->head + MAC_FROM, t->mac, 6))
		return switch_drop(SWITCH_WHY_source_mac);
	switch (uw_be16(f->head + TYPE)) {
	case TYPE_IP4:
	case TYPE_IP6:
		return ip_out(t, client, f);
	case TYPE_ARP:
		return arp_out(t, f);
	default:
		return switch_drop(SWITCH_WHY_protocol);
	}
}

struct switch_result switch_in(const struct switch_table *t, const struct switch_frame *f)
{
	if (f->len < ETHER || f->len > SWITCH_FRAME_MAX)
		return switch_drop(SWITCH_WHY_length);
	switch (uw_be16(f->head + TYPE)) {
	case TYPE_IP4:
	case TYPE_IP6:
		return ip_in(t, f);
	case TYPE_ARP:
		return arp_in(t, f);
	default:
		return switch_drop(SWITCH_WHY_protocol);
	}
}
