/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/steer.h"

#include <stdlib.h>
#include <string.h>

#include "base/be.h"
#include "io/link_filter.h"

#define RING 2048u /* frames on their way from one stack to another; more are dropped */

#define ETH_HEADER  14u
#define ETH_IP4	    0x0800u
#define ETH_ARP	    0x0806u
#define ETH_IP6	    0x86ddu
#define ARP_OP	    6u /* offsets; RFC 826 */
#define ARP_SENDER  14u
#define ARP_TARGET  24u
#define ARP_REQUEST 1u
#define IP_ICMP	    1u
#define IP_TCP	    6u
#define IP4_HEADER  20u
#define IP6_HEADER  40u
#define IP6_ICMP    58u
#define ND_ANSWER   136u /* RFC 4861 §4.4 */
#define ICMP_HEADER 8u
#define UNREACHABLE 3u /* RFC 792; it includes "fragmentation needed" */

/* One writer and one reader, each under its stack's lock. */
struct ring {
	_Alignas(64) _Atomic unsigned put; /* release by the giver, acquire by the taker */
	_Alignas(64) _Atomic unsigned got; /* the other way round */
	struct io_frame *v[RING];
};

struct steer_link {
	struct link_filter filter; /* first: an io_link * is a steer_link * */
	struct steer *s;
	unsigned index;
	unsigned touched; /* a bit for each stack that has got something */
	uint64_t handed, dropped;
	struct ring in[STEER_MAX]; /* from each of the others */
};

struct steer {
	unsigned n;
	_Atomic unsigned open;
	void (*wake)(void *arg);
	void *arg[STEER_MAX];
	struct steer_link *link[STEER_MAX];
	struct io_ops ops;
	const struct steer_ports *ports;
};

static struct steer_link *of(const struct io_link *l)
{
	return (struct steer_link *)(uintptr_t)l;
}

/* ---- whose it is ------------------------------------------------------------------------- */

enum { MINE = 0xfe, ALL = 0xfd };

static unsigned port_owner(const struct steer *s, enum steer_ip v, uint16_t port)
{
	/* relaxed: a port is given before the first segment of its connection leaves, and that
	 * one's answer comes through the link */
	return atomic_load_explicit(&s->ports->owner[v][port], memory_order_relaxed);
}

/* Port numbers stand in the first buffer of every frame that a link has. */
static unsigned owner_of(const struct steer *s, enum steer_ip v, const struct io_frame *f,
			 size_t tcp)
{
	uint16_t port;

	if (f->len < tcp + 4)
		return MINE; /* it will be refused there */
	memcpy(&port, f->data + tcp + 2, sizeof(port));
	return port_owner(s, v, port);
}

/* Where the TCP header is that an ICMP error quotes; 0: it is none, or quotes something else. */
static size_t quoted4(const struct io_frame *f)
{
	size_t icmp = ETH_HEADER + (size_t)(f->data[ETH_HEADER] & 15) * 4, ip = icmp + ICMP_HEADER;

	if (f->len < ip + IP4_HEADER || f->data[icmp] != UNREACHABLE || f->data[ip + 9] != IP_TCP)
		return 0;
	return ip + (size_t)(f->data[ip] & 15) * 4;
}

/* RFC 4443 §3.1, §3.2 */
static size_t quoted6(const struct io_frame *f)
{
	size_t icmp = ETH_HEADER + IP6_HEADER, ip = icmp + ICMP_HEADER;

	if (f->len < ip + IP6_HEADER || (f->data[icmp] != 1 && f->data[icmp] != 2) ||
	    f->data[ip + 6] != IP_TCP)
		return 0;
	return ip + IP6_HEADER;
}

/* An ICMP error goes to the stack whose segment it quotes (RFC 1122 §4.2.3.9): it alone has the
 * connection, and sends shorter ones or ends it. Of a port that is listened on any stack may have
 * it. What quotes no segment is the first one's to refuse. */
static unsigned whose_error(const struct steer *s, enum steer_ip v, const struct io_frame *f,
			    size_t tcp)
{
	uint16_t port;
	unsigned to;

	if (!tcp || f->len < tcp + sizeof(port))
		return 0;
	memcpy(&port, f->data + tcp, sizeof(port));
	to = port_owner(s, v, port);
	return to == STEER_ANY ? ALL : to;
}

static unsigned whose_ip4(const struct steer *s, const struct io_frame *f)
{
	const uint8_t *ip = f->data + ETH_HEADER;

	if (f->len < ETH_HEADER + IP4_HEADER)
		return 0;
	if (ip[9] != IP_TCP)
		return ip[9] == IP_ICMP ? whose_error(s, STEER_IP4, f, quoted4(f)) : 0;
	/* Of fragments only the first has ports. Nobody puts them together; the first stack counts
	 * them (ip_rx_fragments). */
	if (uw_be16(ip + 6) & 0x3fff)
		return 0;
	return owner_of(s, STEER_IP4, f, ETH_HEADER + (size_t)(ip[0] & 15) * 4);
}

static unsigned whose_ip6(const struct steer *s, const struct io_frame *f)
{
	const uint8_t *ip = f->data + ETH_HEADER;

	if (f->len < ETH_HEADER + IP6_HEADER + 1)
		return 0;
	if (ip[6] == IP_TCP)
		return owner_of(s, STEER_IP6, f, ETH_HEADER + IP6_HEADER);
	if (ip[6] != IP6_ICMP)
		return 0;
	return ip[IP6_HEADER] == ND_ANSWER ? ALL : whose_error(s, STEER_IP6, f, quoted6(f));
}

/* An announcement (RFC 5227 §2.3) is an answer that nobody has asked for. One of our own address is
 * another host's, and the first stack defends it (§2.4). */
static bool announces(const struct steer *s, const struct io_frame *f)
{
	const uint8_t *arp = f->data + ETH_HEADER;
	const struct io_link *l = &s->link[0]->filter.l;

	return f->len >= ETH_HEADER + ARP_TARGET + 4 &&
	       !memcmp(arp + ARP_SENDER, arp + ARP_TARGET, 4) &&
	       memcmp(arp + ARP_SENDER, &l->addr, 4) != 0;
}

static unsigned whose_arp(const struct steer *s, const struct io_frame *f)
{
	bool asks = uw_be16(f->data + ETH_HEADER + ARP_OP) == ARP_REQUEST;

	return asks && !announces(s, f) ? 0 : ALL;
}

/* The first stack answers for all; what it is told concerns all. */
static unsigned whose(const struct steer *s, const struct io_frame *f)
{
	if (f->len < ETH_HEADER + ARP_OP + 2)
		return MINE;
	switch (uw_be16(f->data + 12)) {
	case ETH_IP4:
		return whose_ip4(s, f);
	case ETH_IP6:
		return whose_ip6(s, f);
	case ETH_ARP:
		return whose_arp(s, f);
	default:
		return 0;
	}
}

/* ---- handing over ------------------------------------------------------------------------ */

static void give(struct steer_link *from, unsigned to, struct io_frame *f)
{
	struct ring *r = &from->s->link[to]->in[from->index];
	unsigned put = atomic_load_explicit(&r->put, memory_order_relaxed);

	if (put - atomic_load_explicit(&r->got, memory_order_acquire) == RING) {
		from->dropped++;
		io_free_chain(f);
		return;
	}
	r->v[put % RING] = f;
	atomic_store_explicit(&r->put, put + 1, memory_order_release);
	from->touched |= 1u << to;
	from->handed++;
}

static void give_copy(struct steer_link *from, unsigned to, const struct io_frame *f)
{
	struct io_frame *copy = from->filter.under->ops->alloc(from->filter.under);
	size_t room;

	if (!copy)
		return;
	room = copy->room - (size_t)(copy->data - copy->buf);
	if (f->next || f->len > room) {
		from->filter.under->ops->free(copy);
		return;
	}
	memcpy(copy->data, f->data, f->len);
	copy->len = f->len;
	copy->marks = IO_FRAME_COPY;
	give(from, to, copy);
}

static void wake_touched(struct steer_link *k)
{
	for (unsigned i = 0; k->touched; i++) {
		if (k->touched & 1u << i)
			k->s->wake(k->s->arg[i]);
		k->touched &= ~(1u << i);
	}
}

/* True: it is for this stack. */
static bool keep(struct steer_link *k, struct io_frame *f)
{
	unsigned to = whose(k->s, f);

	if (to == ALL) {
		for (unsigned i = 0; i < k->s->n; i++) {
			if (i != k->index)
				give_copy(k, i, f);
		}
		return true;
	}
	if (to >= k->s->n || to == k->index)
		return true;
	give(k, to, f);
	return false;
}

static unsigned take(struct steer_link *k, struct io_frame **v, unsigned n)
{
	unsigned got = 0;

	for (unsigned i = 0; i < k->s->n && got < n; i++) {
		struct ring *r = &k->in[i];
		unsigned at = atomic_load_explicit(&r->got, memory_order_relaxed);
		unsigned end = atomic_load_explicit(&r->put, memory_order_acquire);

		while (at != end && got < n)
			v[got++] = r->v[at++ % RING];
		atomic_store_explicit(&r->got, at, memory_order_release);
	}
	return got;
}

/* ---- the link ---------------------------------------------------------------------------- */

static void take_stats(struct steer_link *k)
{
	k->filter.l.stats = k->filter.under->stats;
	k->filter.l.stats.handed = k->handed;
	k->filter.l.stats.rx_drops += k->dropped;
}

static unsigned steer_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct steer_link *k = of(l);
	unsigned got = take(k, v, n), came, kept = got;

	came = k->filter.under->ops->rx(k->filter.under, v + got, n - got);
	for (unsigned i = got; i < got + came; i++) {
		if (keep(k, v[i]))
			v[kept++] = v[i];
	}
	wake_touched(k);
	take_stats(k);
	return kept;
}

static unsigned steer_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	return link_filter_under(l)->ops->tx(link_filter_under(l), v, n);
}

/* Before a sleep. The giver rings after it has put, so none is missed. */
static bool steer_pending(struct io_link *l)
{
	struct steer_link *k = of(l);

	for (unsigned i = 0; i < k->s->n; i++) {
		if (atomic_load_explicit(&k->in[i].put, memory_order_acquire) !=
		    atomic_load_explicit(&k->in[i].got, memory_order_relaxed))
			return true;
	}
	return k->filter.under->ops->pending(k->filter.under);
}

static void free_all(struct steer *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->link[i]);
	free(s);
}

static void steer_close(struct io_link *l)
{
	struct steer *s = of(l)->s;

	link_filter_under(l)->ops->close(link_filter_under(l));
	/* acq_rel: whoever is last frees what the others have used */
	if (atomic_fetch_sub_explicit(&s->open, 1, memory_order_acq_rel) == 1)
		free_all(s);
}

/* ---- set-up ------------------------------------------------------------------------------ */

static struct io_ops ops_over(const struct io_ops *under)
{
	struct io_ops o = link_filter_ops(under);

	o.rx = steer_rx;
	o.tx = steer_tx;
	o.pending = steer_pending;
	o.close = steer_close;
	return o;
}

static struct steer_link *new_link(struct steer *s, struct io_link *under, unsigned i)
{
	struct steer_link *k = aligned_alloc(64, (sizeof(*k) + 63) & ~(size_t)63);

	if (!k)
		return NULL;
	memset(k, 0, sizeof(*k));
	k->filter.l = *under;
	k->filter.l.ops = &s->ops;
	k->filter.l.flags &= ~(unsigned)IO_WAITS;
	k->filter.under = under;
	k->s = s;
	k->index = i;
	return k;
}

struct steer_ports *steer_ports_new(void)
{
	struct steer_ports *p = malloc(sizeof(*p));

	if (p)
		memset(p, STEER_ANY, sizeof(*p));
	return p;
}

uw_status steer_open(const struct steer_config *c, struct io_link **out)
{
	struct steer *s = calloc(1, sizeof(*s));

	if (!s)
		return UW_E_NOMEM;
	s->n = c->n;
	s->wake = c->wake;
	s->ops = ops_over(c->under[0]->ops);
	s->ports = c->ports;
	atomic_init(&s->open, c->n);
	for (unsigned i = 0; i < c->n; i++) {
		s->arg[i] = c->arg[i];
		s->link[i] = new_link(s, c->under[i], i);
		if (!s->link[i]) {
			free_all(s);
			return UW_E_NOMEM;
		}
	}
	for (unsigned i = 0; i < c->n; i++)
		out[i] = &s->link[i]->filter.l;
	return UW_OK;
}

void steer_port(struct steer_ports *p, enum steer_ip v, uint16_t port, uint8_t to)
{
	atomic_store_explicit(&p->owner[v][port], to, memory_order_relaxed);
}

void steer_stop(struct io_link *l)
{
	struct io_frame *f;

	while (take(of(l), &f, 1))
		io_free_chain(f);
}
