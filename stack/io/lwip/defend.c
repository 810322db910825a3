/* SPDX-License-Identifier: BSD-3-Clause */
/* Our addresses on a network: told when they are new, and defended against others that use them
 * (io/dad, doc/adr/0036). */
#include "io/lwip/edge.h"

#include "base/log.h"
#include "io/dad/search.h"
#include "io/route/options.h"

static uint64_t now(void)
{
	return edge.cfg.now_us(edge.cfg.arg);
}

static void announce(struct io_link *l)
{
	uint8_t frame[DAD_FRAME];
	size_t n = dad_announcement(l, frame);

	if (n)
		dad_send(l, frame, n);
}

static void say(const struct dad_conflict *c)
{
	char ip[ROUTE_TEXT];

	uw_log("address %s is in use by another host, too, whose MAC is "
	       "%02x:%02x:%02x:%02x:%02x:%02x: connections of both break until one gives it up",
	       route_ip_text(&c->ip, ip), c->mac[0], c->mac[1], c->mac[2], c->mac[3], c->mac[4],
	       c->mac[5]);
}

/* RFC 5227 §2.4 (c). Of several stacks the one does it that has the frame itself. */
void edge_defend(struct edge_link *el, const struct io_frame *f)
{
	struct dad_conflict c;

	if (!(el->io->flags & IO_NEIGHBOURS) || !dad_read(el->io, f->data, f->len, false, &c) ||
	    f->marks & IO_FRAME_COPY)
		return;
	edge.cfg.stats->ip_conflicts++;
	if (!dad_defends(&el->defence, now()))
		return;
	say(&c);
	if (uw_ip_is_v4(&c.ip))
		announce(el->io);
}

static bool tells(const struct edge_link *el)
{
	return el->io && el->io->flags & IO_NEIGHBOURS;
}

void edge_defend_timer(void)
{
	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		struct edge_link *el = &edge.links[i];

		if (tells(el) && el->defence.announced < DAD_ANNOUNCED &&
		    dad_announces(&el->defence, now()))
			announce(el->io);
	}
}

uint64_t edge_defend_next_us(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < EDGE_LINKS; i++) {
		const struct edge_link *el = &edge.links[i];
		uint64_t t, at;

		if (!tells(el) || el->defence.announced == DAD_ANNOUNCED)
			continue;
		t = now();
		at = dad_next_us(&el->defence, t);
		next = LWIP_MIN(next, at > t ? at - t : 1);
	}
	return next;
}
