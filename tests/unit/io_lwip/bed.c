/* SPDX-License-Identifier: BSD-3-Clause */
#include "bed.h"

#include "base/be.h"

#include "lwip/priv/tcp_priv.h"

#define ETH	 14u
#define HEADROOM 128u
#define ISS	 1000u

struct bed bed;

static bool network, timestamps, ecn; /* what bed_open_seeded opens */
static const struct cc_ops *congestion;
static uint32_t keepalive_ms;

/* lwIP's clock must not go back from one bed to the next. */
static uint64_t clock_us = 1000000;

/* ---- the link ---------------------------------------------------------------------------- */

struct buffer {
	struct io_frame f;
	unsigned refs;
	uint8_t octets[];
};

static struct buffer *buffer_of(const struct io_frame *f)
{
	return (struct buffer *)(uintptr_t)f;
}

#define LONG_ROOM 60000u

static struct io_frame *frame_new(size_t room)
{
	struct buffer *b = calloc(1, sizeof(*b) + room);

	assert_non_null(b);
	b->f.link = &bed.link;
	b->f.buf = b->f.data = b->octets;
	b->f.room = (uint32_t)room;
	b->refs = 1;
	bed.frames++;
	return &b->f;
}

static struct io_frame *link_alloc(struct io_link *l)
{
	struct io_frame *f;

	if (bed.frames >= bed.pool) {
		l->stats.no_frame++;
		return NULL;
	}
	f = frame_new(HEADROOM + ETH + BED_MTU);
	f->data += HEADROOM;
	return f;
}

static void link_free(struct io_frame *f)
{
	assert_true(buffer_of(f)->refs);
	if (--buffer_of(f)->refs)
		return;
	bed.frames--;
	bed.long_out -= f->room > LONG_ROOM;
	free(buffer_of(f));
}

static void link_ref(struct io_frame *f)
{
	buffer_of(f)->refs++;
}

static unsigned link_refs(const struct io_frame *f)
{
	return buffer_of(f)->refs;
}

static void hear_one(const struct io_frame *f)
{
	const uint8_t *ip = f->data + ETH, *tcp = ip + 20;
	struct bed_seg *s;
	size_t head;

	memcpy(bed.from_mac, f->data + 6, 6);
	if (uw_be16(ip - 2) == 0x0806 && uw_be16(ip + 6) == 1 && uw_be32(ip + 24) != BED_OURS)
		bed.asked++;
	if (uw_be16(ip - 2) == 0x0806 && uw_be32(ip + 24) == BED_THEIRS) {
		bed.arp = true;
		bed.arps++;
	}
	if (uw_be16(ip - 2) == 0x0806 && uw_be32(ip + 14) == BED_OURS &&
	    uw_be32(ip + 24) == BED_OURS)
		bed.announced++;
	if (uw_be16(ip - 2) != 0x0800 || ip[9] != 6) /* the announcement of our address */
		return;
	assert_true(f->len >= ETH + 40 && ip[0] == 0x45);
	head = (size_t)(tcp[12] >> 4) * 4;
	s = &bed.out[bed.sent++ % BED_OUT];
	*s = (struct bed_seg){
		.from = uw_be32(ip + 16), /* to whom */
		.sport = uw_be16(tcp),
		.dport = uw_be16(tcp + 2),
		.seq = uw_be32(tcp + 4),
		.ack = uw_be32(tcp + 8),
		.flags = tcp[13],
		.window = uw_be16(tcp + 14),
		.n = uw_be16(ip + 2) - 20u - head,
		.options_n = (unsigned)(head - 20),
		.df = ip[6] & 0x40,
		.ecn = ip[1] & 3,
	};
	assert_true(loss_options_read(tcp + 20, head - 20, &s->read));
	if (s->n)
		s->first = tcp[head];
}

/* The segments of the wire that a long one is cut into (struct io_frame, cut). */
static void hear(const struct io_frame *f)
{
	const uint32_t head = ETH + 20 + (uint32_t)(f->data[ETH + 20 + 12] >> 4) * 4;
	uint8_t octets[ETH + BED_MTU];
	struct io_frame one = { .data = octets };

	if (!f->cut || f->len <= head + f->cut) {
		hear_one(f);
		return;
	}
	bed.longs++;
	for (uint32_t at = 0, n; at < f->len - head; at += n) {
		n = f->len - head - at < f->cut ? f->len - head - at : f->cut;
		memcpy(octets, f->data, head);
		memcpy(octets + head, f->data + head + at, n);
		uw_put16(octets + ETH + 2, (uint16_t)(head - ETH + n));
		uw_put32(octets + ETH + 20 + 4, uw_be32(octets + ETH + 20 + 4) + at);
		if (at + n < f->len - head)
			octets[ETH + 20 + 13] &= (uint8_t) ~(FIN | PSH);
		one.len = head + n;
		hear_one(&one);
	}
}

static struct io_frame *link_alloc_long(struct io_link *l)
{
	struct io_frame *f;

	(void)l;
	if (bed.frames >= bed.pool)
		return NULL;
	f = frame_new(HEADROOM + ETH + 65535);
	bed.long_out++;
	f->data += HEADROOM;
	return f;
}

static unsigned link_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	(void)l;
	if (bed.stuck)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		hear(v[i]);
		link_free(v[i]);
	}
	return n;
}

static const struct io_ops ops = {
	.name = "bed",
	.tx = link_tx,
	.alloc = link_alloc,
	.free = link_free,
	.ref = link_ref,
	.refs = link_refs,
};

/* A link that cuts. */
static const struct io_ops cutting_ops = {
	.name = "bed",
	.tx = link_tx,
	.alloc = link_alloc,
	.alloc_long = link_alloc_long,
	.free = link_free,
	.ref = link_ref,
	.refs = link_refs,
};

void bed_open_cutting(void)
{
	bed_open_network();
	bed.link.ops = &cutting_ops;
}

/* ---- the user ---------------------------------------------------------------------------- */

static void on_connected(void *ctx)
{
	((struct bed_conn *)ctx)->connected = true;
}

static void *on_accepted(void *listener, struct llp_conn *c)
{
	struct bed_conn *u = &bed.conn[bed.conns++ % BED_CONNS];

	(void)listener;
	*u = (struct bed_conn){ .c = c, .connected = true, .pause = bed.pause, .grain = bed.grain };
	return u;
}

static size_t on_rx(void *ctx, struct uw_rope in)
{
	struct bed_conn *u = ctx;
	size_t n = u->grain ? in.len - in.len % u->grain : in.len;

	if (bed.in_rx) {
		void (*call)(void) = bed.in_rx;

		bed.in_rx = NULL;
		call();
	}
	if (u->pause) {
		llp_raw.pause(u->c);
		return 0;
	}
	for (size_t at = 0; at < n;) {
		struct uw_span s = uw_rope_head(uw_rope_sub(in, at, n - at));

		for (size_t i = 0; i < s.n; i++)
			u->sum = (uint8_t)(u->sum + s.p[i]);
		at += s.n;
	}
	u->got += n;
	return n;
}

static void on_writable(void *ctx)
{
	((struct bed_conn *)ctx)->writable++;
}

static void on_closed(void *ctx, uw_status why)
{
	struct bed_conn *u = ctx;

	u->closed = true;
	u->why = why;
	if (why != UW_OK)
		u->c = NULL;
}

static void on_note(void *ctx, enum llp_note what, uint32_t arg)
{
	struct bed_conn *u = ctx;

	u->note[what].times++;
	u->note[what].arg = arg;
}

static const struct llp_user user = {
	.connected = on_connected,
	.accepted = on_accepted,
	.rx = on_rx,
	.writable = on_writable,
	.closed = on_closed,
	.note = on_note,
};

static uint64_t now(void *arg)
{
	(void)arg;
	return bed.now_us;
}

static uint32_t draw(void *arg)
{
	(void)arg;
	bed.seed = bed.seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(bed.seed >> 32);
}

/* ---- life -------------------------------------------------------------------------------- */

void bed_open(void)
{
	bed_open_seeded(1);
}

void bed_open_network(void)
{
	network = true;
	bed_open_seeded(1);
	network = false;
}

void bed_open_stamps(void)
{
	timestamps = true;
	bed_open_network();
	timestamps = false;
}

void bed_open_ecn(const struct cc_ops *policy)
{
	ecn = true;
	congestion = policy;
	bed_open_network();
	ecn = false;
	congestion = NULL;
}

void bed_open_asking(uint32_t ms)
{
	keepalive_ms = ms;
	bed_open_network();
	keepalive_ms = 0;
}

void bed_open_stamps_between(void)
{
	timestamps = true;
	bed_open();
	timestamps = false;
}

void bed_open_seeded(uint64_t seed)
{
	const struct llp_place at = { .addr = uw_ip_v4(0), .port = htons(BED_PORT) };
	const struct llp_config cfg = { .user = &user,
					.now_us = now,
					.random = draw,
					.stats = &bed.stats,
					.timestamps = timestamps,
					.ecn = ecn,
					.congestion = congestion,
					.keepalive_ms = keepalive_ms };

	memset(&bed, 0, sizeof(bed));
	bed.now_us = clock_us;
	bed.seed = seed;
	bed.pool = 100000;
	bed.link = (struct io_link){ .ops = &ops,
				     .addr = htonl(BED_OURS),
				     .mask = htonl(0xffffff00),
				     .mtu = BED_MTU,
				     .headroom = HEADROOM,
				     .flags = network ? IO_RX_CSUM : IO_P2P,
				     .doorbell = &bed.doorbell };
	io_mac_of(bed.link.addr, bed.link.mac);
	assert_status(llp_raw.init(&cfg), UW_OK);
	llp_raw.add_link(&bed.link);
	assert_status(llp_raw.listen(&bed.link, &at, 16, &bed, &bed.ls), UW_OK);
}

static void end_all(struct tcp_pcb **list)
{
	while (*list)
		tcp_abort(*list);
}

void bed_close(void)
{
	for (unsigned i = 0; i < bed.conns && i < BED_CONNS; i++) {
		if (bed.conn[i].c)
			llp_raw.abort(bed.conn[i].c);
	}
	llp_raw.unlisten(bed.ls);
	end_all(&tcp_active_pcbs);
	end_all(&tcp_tw_pcbs);
	bed_pass(20000);
	llp_raw.remove_link(&bed.link);
	assert_int_equal(bed.frames, 0);
	clock_us = bed.now_us + 1000000;
}

/* ---- what comes and goes ----------------------------------------------------------------- */

static void answer_arp(void)
{
	struct io_frame *f = frame_new(64);
	uint8_t *a = f->data + ETH;

	memcpy(f->data, bed.link.mac, 6);
	io_mac_of(htonl(BED_THEIRS), f->data + 6);
	uw_put16(f->data + 12, 0x0806);
	uw_put16(a, 1);
	uw_put16(a + 2, 0x0800);
	uw_put16(a + 4, 0x0604);
	uw_put16(a + 6, 2);
	memcpy(a + 8, f->data + 6, 6);
	uw_put32(a + 14, BED_THEIRS);
	memcpy(a + 18, bed.link.mac, 6);
	uw_put32(a + 24, BED_OURS);
	f->len = 64;
	llp_raw.input(&bed.link, f);
}

void bed_flush(void)
{
	llp_raw.acks(LLP_ACKS_ALL);
	while (llp_raw.flush_links())
		continue;
	if (!bed.arp)
		return;
	bed.arp = false;
	answer_arp();
	bed_flush();
}

static void put_ip_sum(uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += uw_be16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	uw_put16(ip + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
}

static void in_ip(uint32_t from, uint8_t proto, const void *p, size_t n)
{
	struct io_frame *f;
	uint8_t *ip;

	if (bed.frames >= bed.pool)
		return; /* the card has no buffer */
	f = frame_new(ETH + 20 + n < 64 ? 64 : ETH + 20 + n);
	ip = f->data + ETH;
	memcpy(f->data, bed.link.mac, 6);
	io_mac_of(htonl(from), f->data + 6);
	uw_put16(f->data + 12, 0x0800);
	ip[0] = 0x45;
	uw_put16(ip + 2, (uint16_t)(20 + n));
	ip[1] = bed.ecn;
	uw_put16(ip + 6, bed.fragment);
	ip[8] = 64;
	ip[9] = proto;
	uw_put32(ip + 12, from);
	uw_put32(ip + 16, BED_OURS);
	put_ip_sum(ip);
	f->marks = (bed.damaged ? 0 : IO_FRAME_SUM_GOOD) | (bed.copy ? IO_FRAME_COPY : 0);
	memcpy(ip + 20, p, n);
	f->len = (uint32_t)(ETH + 20 + n);
	llp_raw.input(&bed.link, f);
	if (!bed.burst)
		bed_flush();
}

void bed_in_frame(const void *p, size_t n)
{
	struct io_frame *f = frame_new(n);

	memcpy(f->data, p, n);
	f->len = (uint32_t)n;
	f->marks = bed.copy ? IO_FRAME_COPY : 0;
	llp_raw.input(&bed.link, f);
	bed_flush();
}

void bed_be_network(void)
{
	struct io_frame *f = frame_new(64);
	uint8_t *arp = f->data + ETH;

	bed.link.flags = 0;
	memset(f->data, 0xff, 6);
	io_mac_of(htonl(BED_THEIRS), f->data + 6);
	uw_put16(f->data + 12, 0x0806);
	memset(arp, 0, 28);
	uw_put16(arp, 1); /* RFC 826 */
	uw_put16(arp + 2, 0x0800);
	arp[4] = 6;
	arp[5] = 4;
	uw_put16(arp + 6, 1);
	io_mac_of(htonl(BED_THEIRS), arp + 8);
	uw_put32(arp + 14, BED_THEIRS);
	uw_put32(arp + 24, BED_OURS);
	f->len = ETH + 28;
	llp_raw.input(&bed.link, f);
	bed_flush();
}

void bed_in_ip(uint8_t proto, const void *p, size_t n)
{
	in_ip(BED_THEIRS, proto, p, n);
}

void bed_in(const struct bed_seg *s)
{
	uint8_t tcp[BED_MTU] = { 0 };
	size_t head = 20 + s->options_n;

	assert_true(head + s->n <= BED_MTU - 20);
	uw_put16(tcp, s->sport);
	uw_put16(tcp + 2, s->dport ? s->dport : BED_PORT);
	uw_put32(tcp + 4, s->seq);
	uw_put32(tcp + 8, s->ack);
	tcp[12] = (uint8_t)(head / 4 << 4);
	tcp[13] = s->flags;
	uw_put16(tcp + 14, s->window);
	if (s->options_n)
		memcpy(tcp + 20, s->options, s->options_n);
	if (s->n)
		memcpy(tcp + head, s->data, s->n);
	in_ip(s->from ? s->from : BED_THEIRS, 6, tcp, head + s->n);
}

void bed_pass(uint64_t us)
{
	uint64_t end = bed.now_us + us;

	while (bed.now_us < end) {
		bed.now_us += end - bed.now_us < 10000 ? end - bed.now_us : 10000;
		llp_raw.timers();
		llp_raw.poll();
		bed_flush();
	}
}

const struct bed_seg *bed_last(uint16_t port, unsigned since)
{
	for (unsigned i = bed.sent; i > since && bed.sent - i < BED_OUT; i--) {
		if (bed.out[(i - 1) % BED_OUT].dport == port)
			return &bed.out[(i - 1) % BED_OUT];
	}
	return NULL;
}

struct bed_peer bed_connect(uint16_t port)
{
	static const uint8_t scale[] = { 1, 3, 3, 7 },
			     mss[] = { 2, 4, BED_MSS >> 8, BED_MSS & 255 };
	bool offers = bed.scaled || !(bed.link.flags & IO_P2P);

	return bed_connect_with(port, 65535, bed.scaled ? scale : mss, offers ? 4 : 0);
}

struct bed_peer bed_connect_with(uint16_t port, uint16_t window, const uint8_t *options, unsigned n)
{
	struct bed_peer p = { .port = port, .seq = ISS + 1, .window = window };
	unsigned since = bed.sent;
	const struct bed_seg *answer;

	bed_in(&(struct bed_seg){ .sport = port,
				  .seq = ISS,
				  .flags = SYN,
				  .window = window,
				  .options = options,
				  .options_n = n });
	answer = bed_last(port, since);
	assert_non_null(answer);
	assert_int_equal(answer->flags, SYN | ACK);
	p.ack = answer->seq + 1;
	p.user = &bed.conn[bed.conns % BED_CONNS];
	p.user->c = NULL;
	bed_segment(&p, 0, 0, ACK);
	assert_non_null(p.user->c);
	return p;
}

size_t bed_send_full(const struct bed_peer *p, unsigned n)
{
	size_t room = 0;

	for (unsigned i = 0; i < n; i++) {
		uint8_t *at = llp_raw.tx_begin(p->user->c, &room);

		assert_non_null(at);
		memset(at, (int)i, room);
		llp_raw.tx_commit(p->user->c, room);
	}
	llp_raw.tx_flush(p->user->c);
	bed_flush();
	return room;
}

void bed_segment(const struct bed_peer *p, uint32_t at, size_t n, uint8_t flags)
{
	static const uint8_t zeros[BED_MSS];

	bed_in(&(struct bed_seg){ .from = p->from,
				  .sport = p->port,
				  .seq = p->seq + at,
				  .ack = p->ack,
				  .flags = flags,
				  .window = p->window,
				  .data = zeros,
				  .n = n });
}

void bed_data(const struct bed_peer *p, uint32_t at, size_t n)
{
	bed_segment(p, at, n, ACK);
}
