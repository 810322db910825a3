/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/head.h"

#include <string.h>

#include "base/be.h"

enum { PROTOCOL_FRAGMENT = 44 };

bool switch_is_ours6(const struct switch_table *t, const uint8_t *addr)
{
	for (unsigned i = 0; i < t->n_ip6; i++)
		if (!memcmp(addr, t->ip6[i].b, sizeof(t->ip6[i].b)))
			return true;
	return false;
}

static bool is_addr(const struct switch_table *t, const uint8_t *p)
{
	return t->addr && !memcmp(p, &t->addr, sizeof(t->addr));
}

/* UDP with options is none of ours. */
static enum switch_reason read4(const struct switch_table *t, const struct switch_frame *f,
				struct switch_ip *p)
{
	const uint8_t *h = f->head;
	uint32_t len;

	if (f->len < ETHER + IP4_LEN)
		return SWITCH_WHY_length;
	len = (uint32_t)(h[ETHER] & 15) * 4;
	p->protocol = h[IP_PROTOCOL];
	if (h[ETHER] >> 4 != 4 || len < IP4_LEN ||
	    (p->protocol != PROTOCOL_TCP && (p->protocol != PROTOCOL_UDP || len != IP4_LEN)))
		return SWITCH_WHY_protocol;
	if (uw_be16(h + IP_FRAGMENT) & 0x3fff)
		return SWITCH_WHY_fragment;
	p->at = ETHER + len;
	p->total = ETHER + uw_be16(h + IP_TOTAL);
	p->from_us = is_addr(t, h + IP_FROM);
	p->to_us = is_addr(t, h + IP_TO);
	p->to_no_host = h[IP_TO] >= 224 || h[IP_TO] == 127;
	return SWITCH_WHY_none;
}

/* RFC 4291 §2.4, §2.5.5: also none that stands for an address of IPv4. */
static bool is_no_host(const uint8_t *addr)
{
	static const uint8_t zero[10];

	return addr[0] == 0xff || !memcmp(addr, zero, sizeof(zero));
}

/* RFC 8200 §4: the next header is the protocol itself, else something is in between. */
static enum switch_reason read6(const struct switch_table *t, const struct switch_frame *f,
				struct switch_ip *p)
{
	const uint8_t *h = f->head;

	if (f->len < ETHER + IP6_LEN)
		return SWITCH_WHY_length;
	p->protocol = h[IP6_NEXT];
	if (p->protocol == PROTOCOL_FRAGMENT)
		return SWITCH_WHY_fragment;
	if (h[ETHER] >> 4 != 6 || (p->protocol != PROTOCOL_TCP && p->protocol != PROTOCOL_UDP &&
				   p->protocol != PROTOCOL_ICMP6))
		return SWITCH_WHY_protocol;
	p->at = ETHER + IP6_LEN;
	p->total = p->at + uw_be16(h + IP6_PAYLOAD);
	p->from_us = switch_is_ours6(t, h + IP6_FROM);
	p->to_us = switch_is_ours6(t, h + IP6_TO);
	p->to_no_host = is_no_host(h + IP6_TO);
	return SWITCH_WHY_none;
}

enum switch_reason switch_read_ip(const struct switch_table *t, const struct switch_frame *f,
				  struct switch_ip *out)
{
	out->six = uw_be16(f->head + TYPE) == TYPE_IP6;
	return out->six ? read6(t, f, out) : read4(t, f, out);
}
