/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/switch/icmp6.h"

#include <string.h>

#include "base/be.h"

enum { UNREACHABLE = 1, TOO_BIG = 2 };
/* Offsets from the ICMPv6 header. */
enum {
	ICMP_CODE = 1,
	OPTION = ICMP6_ND_LEN, /* type, length in 8 octets, MAC */
	QUOTED = 8,	       /* the packet that an error is about */
	QUOTED_NEXT = QUOTED + 6,
	QUOTED_FROM = QUOTED + 8,
	QUOTED_PORT = QUOTED + IP6_LEN,
	QUOTED_END = QUOTED_PORT + 4,
	OPTION_LEN = 8,
};
enum { SOURCE_MAC = 1, HOPS = 255 };
_Static_assert(ETHER + IP6_LEN + QUOTED_END <= SWITCH_HEAD_MAX, "all that is read is there");

static bool is_whole(const struct switch_frame *f, const struct switch_ip *p, uint32_t len)
{
	return p->at + len <= p->total && p->total <= f->len;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* RFC 4861 §4.3, RFC 4291 §2.7.1, RFC 2464 §7: to the solicited-node address of the target, or to
 * the target itself. */
static bool goes_to_target(const struct switch_frame *f, const uint8_t *target)
{
	static const uint8_t group[13] = { 0xff, 0x02, [11] = 1, [12] = 0xff };
	const uint8_t mac[6] = { 0x33, 0x33, 0xff, target[13], target[14], target[15] };
	const uint8_t *to = f->head + IP6_TO;

	if (!switch_to_group(f))
		return !memcmp(to, target, 16);
	return !memcmp(to, group, sizeof(group)) && !memcmp(to + 13, target + 13, 3) &&
	       !memcmp(f->head + MAC_TO, mac, sizeof(mac));
}

/* Of the option alone a neighbour learns whose MAC an address has, so it must be ours. Without one
 * it answers to the frame's. */
static bool tells_our_mac(const struct switch_table *t, const uint8_t *icmp, uint32_t len)
{
	const uint8_t *o = icmp + OPTION;

	if (len == ICMP6_ND_LEN)
		return true;
	return len == ICMP6_ND_LEN + OPTION_LEN && o[0] == SOURCE_MAC && o[1] == 1 &&
	       !memcmp(o + 2, t->mac, 6);
}

struct switch_result icmp6_out(const struct switch_table *t, const struct switch_frame *f,
			       const struct switch_ip *p)
{
	const uint8_t *icmp = f->head + p->at, *target = icmp + ICMP6_TARGET;

	if (!is_whole(f, p, ICMP6_ND_LEN) || f->len > ETHER + t->mtu)
		return switch_drop(SWITCH_WHY_length);
	if (icmp[0] != ICMP6_SOLICIT || icmp[ICMP_CODE] || f->head[IP6_HOPS] != HOPS)
		return switch_drop(SWITCH_WHY_protocol);
	if (f->gso_size)
		return switch_drop(SWITCH_WHY_merge);
	if (!p->from_us)
		return switch_drop(SWITCH_WHY_source_addr);
	if (!tells_our_mac(t, icmp, p->total - p->at))
		return switch_drop(SWITCH_WHY_source_mac);
	if (target[0] == 0xff || switch_is_ours6(t, target) || !goes_to_target(f, target))
		return switch_drop(SWITCH_WHY_target);
	return (struct switch_result){ .verdict = SWITCH_TO_PORT, .segments = 1 };
}

/* ---- in -------------------------------------------------------------------------------------- */

/* RFC 4861 §7.1.2: none that came over a router. To one of ours, or to all nodes. */
static struct switch_result advert_in(const struct switch_frame *f, const struct switch_ip *p)
{
	static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };

	if (!is_whole(f, p, ICMP6_ND_LEN))
		return switch_drop(SWITCH_WHY_length);
	if (f->head[IP6_HOPS] != HOPS)
		return switch_drop(SWITCH_WHY_protocol);
	if (!p->to_us && memcmp(f->head + IP6_TO, all_nodes, sizeof(all_nodes)))
		return switch_drop(SWITCH_WHY_target);
	return (struct switch_result){ .verdict = SWITCH_TO_ALL, .segments = 1 };
}

/* Solicitations of an address that the kernel has are the kernel's to answer. */
static struct switch_result solicit_in(const struct switch_table *t, const struct switch_frame *f,
				       const struct switch_ip *p)
{
	if (!is_whole(f, p, ICMP6_ND_LEN))
		return switch_drop(SWITCH_WHY_length);
	if (f->head[IP6_HOPS] != HOPS || f->head[p->at + ICMP_CODE])
		return switch_drop(SWITCH_WHY_protocol);
	if (!switch_is_ours6(t, f->head + p->at + ICMP6_TARGET))
		return switch_drop(SWITCH_WHY_target);
	if (!t->own)
		return switch_drop(SWITCH_WHY_none);
	return (struct switch_result){ .verdict = SWITCH_ANSWER, .segments = 1 };
}

/* RFC 4443 §2.4(d): who sent what is quoted hears of it, and nobody else. A segment names its
 * sender by its port. */
static struct switch_result error_in(const struct switch_table *t, const struct switch_frame *f,
				     const struct switch_ip *p)
{
	const uint8_t *icmp = f->head + p->at;
	struct switch_result r = { .verdict = SWITCH_TO_CLIENT, .segments = 1 };

	if (!is_whole(f, p, QUOTED_END))
		return switch_drop(SWITCH_WHY_length);
	if (!p->to_us || switch_to_group(f) || !switch_is_ours6(t, icmp + QUOTED_FROM))
		return switch_drop(SWITCH_WHY_target);
	if (icmp[QUOTED] >> 4 != 6 || icmp[QUOTED_NEXT] != PROTOCOL_TCP)
		return switch_drop(SWITCH_WHY_protocol);
	r.client = switch_port_holder(t, true, icmp + QUOTED_PORT);
	return r.client ? r : switch_drop(SWITCH_WHY_no_holder);
}

struct switch_result icmp6_in(const struct switch_table *t, const struct switch_frame *f,
			      const struct switch_ip *p)
{
	if (!is_whole(f, p, 4))
		return switch_drop(SWITCH_WHY_length);
	switch (f->head[p->at]) {
	case UNREACHABLE:
	case TOO_BIG:
		return error_in(t, f, p);
	case ICMP6_ADVERT:
		return advert_in(f, p);
	case ICMP6_SOLICIT:
		return solicit_in(t, f, p);
	default:
		return switch_drop(SWITCH_WHY_protocol);
	}
}
