/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/dad/dad.h"

#include <string.h>

#include "base/sum.h"

enum {
	ETH = 14,
	ARP = ETH + 28,
	IP6 = 40,
	NS = 24, /* octets of a solicitation or an advertisement without options */
	ICMP6 = 58,
	SOLICITS = 135,
	ADVERTISES = 136,
	REQUEST = 1,
};

static const uint8_t everybody[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

static bool owns_v4(const struct io_link *l)
{
	return l->addr && !(l->flags & IO_SHARED);
}

/* How many of IPv6. */
static unsigned owns_v6(const struct io_link *l)
{
	return l->flags & IO_SHARED6 ? 0 : l->n_ip6;
}

bool dad_is_due(const struct io_link *l)
{
	return l->flags & IO_NEIGHBOURS && (owns_v4(l) || owns_v6(l));
}

/* ---- frames to send ---------------------------------------------------------------------- */

static void ethernet(const struct io_link *l, const uint8_t *to, uint16_t type, uint8_t *out)
{
	memset(out, 0, DAD_FRAME);
	memcpy(out, to, 6);
	memcpy(out + 6, l->mac, 6);
	uw_put16(out + 12, type);
}

/* RFC 5227 §1.1: a probe has no sender's address, so that it changes nobody's cache. */
static size_t arp(const struct io_link *l, bool probe, uint8_t *out)
{
	uint8_t *a = out + ETH;

	ethernet(l, everybody, 0x0806, out);
	uw_put16(a, 1);
	uw_put16(a + 2, 0x0800);
	a[4] = 6;
	a[5] = 4;
	uw_put16(a + 6, REQUEST);
	memcpy(a + 8, l->mac, 6);
	if (!probe)
		memcpy(a + 14, &l->addr, 4);
	memcpy(a + 24, &l->addr, 4);
	return ARP;
}

/* RFC 4862 §5.4.2, RFC 4861 §7.2.2: from nobody, to the solicited-node address. */
static size_t solicitation(const struct io_link *l, const struct uw_ip *ip, uint8_t *out)
{
	const uint8_t mac[6] = { 0x33, 0x33, 0xff, ip->b[13], ip->b[14], ip->b[15] };
	uint8_t *p = out + ETH, *m = p + IP6;
	uint32_t sum;

	ethernet(l, mac, 0x86dd, out);
	p[0] = 0x60;
	uw_put16(p + 4, NS);
	p[6] = ICMP6;
	p[7] = 255;
	memcpy(p + 24, "\xff\x02\0\0\0\0\0\0\0\0\0\x01\xff", 13);
	memcpy(p + 37, ip->b + 13, 3);
	m[0] = SOLICITS;
	memcpy(m + 8, ip->b, 16);
	sum = uw_sum_add(NS + ICMP6, p + 8, 32);
	uw_put16(m + 2, (uint16_t)~uw_sum_fold(uw_sum_add(sum, m, NS)));
	return ETH + IP6 + NS;
}

size_t dad_probe(const struct io_link *l, unsigned i, uint8_t *out)
{
	if (owns_v4(l) && !i)
		return arp(l, true, out);
	i -= owns_v4(l);
	return i < owns_v6(l) ? solicitation(l, &l->ip6[i].ip, out) : 0;
}

size_t dad_announcement(const struct io_link *l, uint8_t *out)
{
	return l->flags & IO_NEIGHBOURS && owns_v4(l) ? arp(l, false, out) : 0;
}

/* ---- frames that came -------------------------------------------------------------------- */

static bool is_ours(const struct io_link *l, const uint8_t *mac)
{
	return !memcmp(mac, l->mac, 6);
}

/* RFC 5227 §2.1.1, §2.4 */
static bool read_arp(const struct io_link *l, const uint8_t *a, bool searching,
		     struct dad_conflict *out)
{
	static const uint8_t nobody[4];
	bool has = !memcmp(a + 14, &l->addr, 4);
	bool wants = searching && uw_be16(a + 6) == REQUEST && !memcmp(a + 14, nobody, 4) &&
		     !memcmp(a + 24, &l->addr, 4);

	if (uw_be16(a) != 1 || uw_be16(a + 2) != 0x0800 || a[4] != 6 || a[5] != 4 ||
	    is_ours(l, a + 8) || !(has || wants))
		return false;
	out->ip = uw_ip_v4(l->addr);
	memcpy(out->mac, a + 8, 6);
	return true;
}

static bool has_ip6(const struct io_link *l, const uint8_t *target)
{
	for (unsigned i = 0; i < owns_v6(l); i++) {
		if (!memcmp(l->ip6[i].ip.b, target, 16))
			return true;
	}
	return false;
}

/* RFC 4861 §7.1.1, §7.1.2: a hop limit below 255 came from beyond the link. */
static bool is_neighbours(const uint8_t *p, size_t n)
{
	return p[0] >> 4 == 6 && p[6] == ICMP6 && p[7] == 255 && uw_be16(p + 4) >= NS &&
	       uw_be16(p + 4) <= n - IP6;
}

static bool sum_is_right(const uint8_t *p)
{
	unsigned length = uw_be16(p + 4);
	uint32_t sum = uw_sum_add(length + ICMP6, p + 8, 32);

	return uw_sum_fold(uw_sum_add(sum, p + IP6, length)) == 0xffff;
}

/* RFC 4862 §5.4.3, §5.4.4 */
static bool read_ip6(const struct io_link *l, const uint8_t *frame, size_t n, bool searching,
		     struct dad_conflict *out)
{
	const uint8_t *p = frame + ETH, *m = p + IP6;
	static const uint8_t nobody[16];
	bool asks = searching && m[0] == SOLICITS && !memcmp(p + 8, nobody, 16);

	if (!is_neighbours(p, n - ETH) || (m[0] != ADVERTISES && !asks) || is_ours(l, frame + 6) ||
	    !has_ip6(l, m + 8) || !sum_is_right(p))
		return false;
	memcpy(out->ip.b, m + 8, 16);
	memcpy(out->mac, frame + 6, 6);
	return true;
}

bool dad_read(const struct io_link *l, const uint8_t *frame, size_t n, bool searching,
	      struct dad_conflict *out)
{
	uint16_t type = n < ETH ? 0 : uw_be16(frame + 12);

	if (type == 0x0806 && n >= ARP && owns_v4(l))
		return read_arp(l, frame + ETH, searching, out);
	return type == 0x86dd && n >= ETH + IP6 + NS && read_ip6(l, frame, n, searching, out);
}

/* ---- afterwards -------------------------------------------------------------------------- */

bool dad_announces(struct dad_defence *d, uint64_t now_us)
{
	if (dad_next_us(d, now_us) > now_us)
		return false;
	d->announced++;
	d->announced_us = now_us;
	return true;
}

uint64_t dad_next_us(const struct dad_defence *d, uint64_t now_us)
{
	if (d->announced >= DAD_ANNOUNCED)
		return UINT64_MAX;
	return d->announced ? d->announced_us + DAD_ANNOUNCE_US : now_us;
}

bool dad_defends(struct dad_defence *d, uint64_t now_us)
{
	if (d->defended_us && now_us - d->defended_us < DAD_DEFEND_US)
		return false;
	d->defended_us = now_us;
	return true;
}
