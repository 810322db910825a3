/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the network says: ICMP and ICMPv6 errors about segments that are on their way, or nearly so,
 * ARP, and messages of neighbor discovery, into an engine whose QP is at work and whose path gets
 * shorter and longer.
 */
#include "world.h"

enum { ICMP = 1, ROOM = 600 };

static void put_sum(uint8_t *p, size_t n)
{
	uint32_t sum = 0;

	uw_put16(p + 2, 0);
	for (size_t i = 0; i + 1 < n; i += 2)
		sum += uw_be16(p + i);
	if (n & 1)
		sum += (uint32_t)p[n - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	uw_put16(p + 2, (uint16_t)~sum);
}

/* The first octets of a segment that we got from the engine, or might have. */
static size_t quoted(const struct world *w, struct feed *f, uint8_t *ip)
{
	const struct flow *fl = &w->flows[feed_rarely(f, 4) ? feed_below(f, WORLD_FLOWS) : 0];
	bool six = w->raw.six;
	uint8_t *tcp = ip + (six ? 40 : 20);

	ip[0] = six ? 0x60 : 0x45;
	uw_put16(ip + (six ? 4 : 2), feed_bool(f) ? 1500 : feed_u16(f));
	ip[six ? 6 : 9] = 6;
	if (six) {
		memcpy(ip + 8, RAW_NET6, 12);
		uw_put32(ip + 20, RAW_OURS);
		memcpy(ip + 24, RAW_NET6, 12);
		uw_put32(ip + 36, RAW_THEIRS);
	} else {
		uw_put32(ip + 12, RAW_OURS);
		uw_put32(ip + 16, RAW_THEIRS);
	}
	uw_put16(tcp, fl->ours);
	uw_put16(tcp + 2, fl->theirs);
	uw_put32(tcp + 4, fl->ack - (feed_bool(f) ? 1460 : feed_u16(f)));
	return (size_t)(tcp - ip) + 8;
}

static void error(struct world *w, struct feed *f)
{
	static const uint16_t mtus[] = { 0, 68, 552, 576, 1280, 1400, 1499, 1500 };
	uint8_t p[ROOM] = { 0 };
	bool big = feed_bool(f);
	size_t n;

	p[0] = w->raw.six ? (big ? 2 : 1) : 3;
	p[1] = big ? 4 : feed_u8(f) & 15;
	if (w->raw.six && big)
		p[1] = 0;
	uw_put16(p + 6, feed_bool(f) ? mtus[feed_below(f, 8)] : feed_u16(f));
	n = 8 + quoted(w, f, p + 8) + feed_length(f, 64);
	for (unsigned k = feed_below(f, 4); k; k--)
		p[feed_below(f, (uint32_t)n)] = feed_u8(f);
	if (w->raw.six) {
		raw_icmp6(&w->raw, p, n);
		return;
	}
	put_sum(p, n);
	raw_ip(&w->raw, ICMP, p, n);
}

static void arp(struct world *w, struct feed *f)
{
	uint8_t p[64] = { 0 };

	if (feed_bool(f)) {
		raw_arp(&w->raw, feed_u16(f) & 3, RAW_THEIRS + feed_below(f, 4),
			RAW_OURS + feed_below(f, 4));
		return;
	}
	feed_fill(f, p, 42);
	memcpy(p, w->raw.link.mac, 6);
	uw_put16(p + 12, 0x0806);
	raw_send(&w->raw, p, 14 + feed_below(f, 50));
}

/* Solicitations, advertisements, redirects, of routers too, with any options. */
static void neighbor(struct world *w, struct feed *f)
{
	uint8_t p[ROOM] = { (uint8_t)(133 + feed_below(f, 5)) };
	size_t n = 24 + feed_length(f, 200);

	feed_fill(f, p + 4, n - 4);
	if (feed_bool(f)) {
		memcpy(p + 8, RAW_NET6, 12);
		uw_put32(p + 20, feed_bool(f) ? RAW_OURS : RAW_THEIRS);
	}
	raw_icmp6(&w->raw, p, n);
}

static void mtu(struct world *w, struct feed *f)
{
	w->raw.link.mtu = 576 + feed_u16(f) % (RAW_MTU - 575);
	llp_raw.link_changed(&w->raw.link);
}

static void one(struct world *w, struct feed *f)
{
	switch (feed_below(f, 12)) {
	case 0:
	case 1:
	case 2:
		error(w, f);
		break;
	case 3:
		arp(w, f);
		break;
	case 4:
		neighbor(w, f);
		break;
	case 5:
		mtu(w, f);
		break;
	case 6:
	case 7:
		bed_post_send(&w->b, f);
		break;
	case 8:
		w->quiet = feed_bool(f);
		break;
	case 9:
		speak_fpdu(&w->speaker, &w->b, f);
		flow_stream(w, f);
		break;
	case 10:
		if (world_has_room(w))
			world_connect(w, f);
		break;
	default:
		raw_pass(&w->raw, 1000ull << feed_below(f, 16));
		break;
	}
	world_run(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	static struct world w;
	unsigned connects = 0;

	world_open(&w, &f);
	flow_establish(&w, &f);
	while (f.n && connects++ < 200)
		one(&w, &f);
	w.raw.link.mtu = RAW_MTU;
	world_close(&w, true);
	return 0;
}
