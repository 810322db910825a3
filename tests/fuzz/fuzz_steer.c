/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What reads a frame of the network before lwIP does: whose it is where a port has several stacks
 * (io/steer.h), whether another host has our address (io/dad), and what it says of multicast groups
 * (io/member). Each frame lies in a block of its own. A stack gets it, or all get it or a copy.
 */
#include <arpa/inet.h>

#include "base/be.h"
#include "fuzz.h"
#include "io/dad/dad.h"
#include "io/member/message.h"
#include "io/steer.h"

enum { STACKS = 3, STEPS = 24, FRAME = 200, ADDR = 0x0a000001 };

static struct io_link under[STACKS];
static struct io_frame *coming[STACKS];
static unsigned live;

/* ---- a link ------------------------------------------------------------------------------ */

static struct io_frame *frame_new(const uint8_t *octets, uint32_t n, uint32_t room)
{
	struct io_frame *f = fuzz_alloc(sizeof(*f));

	*f = (struct io_frame){ .link = &under[0], .room = room, .len = n };
	f->buf = f->data = octets ? fuzz_copy(octets, n) : fuzz_alloc(room);
	live++;
	return f;
}

static struct io_frame *link_alloc(struct io_link *l)
{
	return l->stats.no_frame++ % 4 ? frame_new(NULL, 0, FRAME) : NULL;
}

static void link_free(struct io_frame *f)
{
	live--;
	free(f->buf);
	free(f);
}

static unsigned link_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct io_frame **c = &coming[l - under];

	if (!n || !*c)
		return 0;
	v[0] = *c;
	*c = NULL;
	return 1;
}

static bool link_pending(struct io_link *l)
{
	return coming[l - under];
}

static void link_close(struct io_link *l)
{
	(void)l;
}

static void woken(void *arg)
{
	(void)arg;
}

static const struct io_ops ops = { .name = "fuzz",
				   .rx = link_rx,
				   .alloc = link_alloc,
				   .free = link_free,
				   .pending = link_pending,
				   .close = link_close };

static void open_links(struct io_link **out)
{
	static struct steer_ports *ports;
	static void *arg[STACKS];
	struct io_link *v[STACKS];
	struct steer_config c = { .under = v, .n = STACKS, .wake = woken, .arg = arg };

	for (unsigned i = 0; i < STACKS; i++) {
		under[i] = (struct io_link){ .ops = &ops, .addr = htonl(ADDR), .mtu = 1500 };
		io_mac_of(under[i].addr, under[i].mac);
		under[i].n_ip6 = 1;
		memset(under[i].ip6[0].ip.b, 0xfd, 16);
		v[i] = &under[i];
	}
	if (!ports) {
		ports = steer_ports_new();
		CHECK(ports);
		for (unsigned i = 0; i < STACKS; i++) {
			steer_port(ports, STEER_IP4, htons((uint16_t)(7000 + i)), (uint8_t)i);
			steer_port(ports, STEER_IP6, htons((uint16_t)(7000 + i)), (uint8_t)i);
		}
	}
	c.ports = ports;
	CHECK(!steer_open(&c, out));
}

/* ---- frames ------------------------------------------------------------------------------ */

/* As far as it goes before the octets of the feed decide. */
static uint32_t shape(struct feed *f, uint8_t *h)
{
	static const uint16_t types[] = { 0x0800, 0x86dd, 0x0806, 0x8100 };
	static const uint8_t protocols[] = { 6, 1, 2, 58, 0, 17 };
	uint32_t n = feed_length(f, FRAME);
	unsigned type = feed_below(f, 5);

	feed_fill(f, h, FRAME);
	if (type == 4)
		return n;
	uw_put16(h + 12, types[type]);
	h[14] = (uint8_t)((types[type] == 0x0800 ? 0x40 : 0x60) | feed_below(f, 16));
	h[20] = protocols[feed_below(f, 6)]; /* IPv6's next header; IPv4: fragments */
	if (types[type] == 0x0800) {
		h[20] &= 0x40;
		h[23] = protocols[feed_below(f, 6)];
		uw_put32(h + 30, ADDR);
		uw_put16(h + 14 + (h[14] & 15) * 4 + 2, (uint16_t)(7000 + feed_below(f, 4)));
	} else if (types[type] == 0x0806) {
		uw_put32(h + 14, 0x00010800);
		uw_put32(h + 18, 0x06040000 | (1 + feed_below(f, 2)));
		uw_put32(h + (feed_bool(f) ? 28 : 38), ADDR);
	} else {
		memset(h + (feed_bool(f) ? 38 : 62), 0xfd, 16);
		h[54] = (uint8_t)(130 + feed_below(f, 14));
	}
	return n;
}

static void read_frame(struct feed *f, const uint8_t *octets, uint32_t n)
{
	struct dad_conflict who;
	struct member_message m;

	if (dad_read(&under[0], octets, n, feed_bool(f), &who))
		CHECK(uw_ip_eq(&who.ip, &under[0].ip6[0].ip) ||
		      (uw_ip_is_v4(&who.ip) && uw_ip_v4_be(&who.ip) == under[0].addr));
	member_message_read(octets, n, &m);
}

/* Frames that stack i has; *copies: of them, those that are copies. */
static unsigned receive(struct io_link *l, unsigned *copies)
{
	struct io_frame *v[4];
	unsigned n = l->ops->rx(l, v, 4);

	for (unsigned i = 0; i < n; i++) {
		*copies += (v[i]->marks & IO_FRAME_COPY) != 0;
		v[i]->link->ops->free(v[i]);
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	static struct io_link *l[STACKS]; /* their rings are large */
	uint8_t h[FRAME];

	if (!l[0])
		open_links(l);
	for (unsigned i = 0; i < STEPS && f.n; i++) {
		unsigned at = feed_below(&f, STACKS), n, copies = 0;
		uint32_t len = shape(&f, h);

		coming[at] = frame_new(h, len, len);
		read_frame(&f, coming[at]->data, len);
		n = receive(l[at], &copies);
		for (unsigned k = 0; k < STACKS; k++)
			n += receive(l[k], &copies);
		CHECK(n == copies + 1 && copies < STACKS);
		CHECK(!live);
	}
	return 0;
}
