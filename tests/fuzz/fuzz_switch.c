/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch of a uwarpd: frames of any octets from a client and from the wire, and a conduit whose
 * other side writes anything. Whatever a client sends out carries the link's addresses and a port
 * or a QP of its own, in the octets that go out; nothing is read beyond what was given.
 */
#include <arpa/inet.h>
#include <unistd.h>

#include "base/be.h"
#include "fuzz.h"
#include "io/switch/answer.h"
#include "io/switch/conduit.h"

#define ADDR 0x0a000001u
/* Where things are behind the Ethernet header of IPv6. */
enum { FROM6 = 22, TO6 = 38, L4_6 = 54 };

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t ours6[16] = { 0xfd, 0x77, [15] = 1 };
static struct switch_table table;
static struct switch_qps qps;

static void make_table(struct feed *f)
{
	memset(&table, 0, sizeof(table));
	table.addr = htonl(ADDR);
	memcpy(table.mac, mac, 6);
	table.mtu = 1500;
	memcpy(table.ip6[0].b, ours6, 16);
	table.n_ip6 = 1;
	table.own = feed_bool(f);
	table.merges = feed_bool(f);
	for (unsigned i = 1; i < 4; i++)
		table.holder[i * 1000] = table.holder6[(4 - i) * 1000] = (uint16_t)i;
	for (unsigned i = 1; i < 4; i++) {
		qps.holder[i << 16 | i << 8 | i] = (uint16_t)i;
		qps.n[i] = i < 3;
		qps.manages[i] = i == 1;
	}
	table.qps = feed_rarely(f, 8) ? NULL : &qps;
}

/* RoCEv2, of a QP that somebody has, or of nobody's. */
static void make_datagram(struct feed *f, uint8_t *h, uint32_t len)
{
	h[14] = 0x45;
	h[23] = 17;
	uw_put16(h + 36, 4791);
	uw_put16(h + 38, (uint16_t)(len > 34 ? len - 34 : 0));
	h[42] = (uint8_t)(feed_below(f, 8) << 5 | 4);
	memset(h + 47, (int)feed_below(f, 5), 3);
	memset(h + 59, (int)feed_below(f, 5), 3);
}

/* TCP, a solicitation, or an error with a packet of ours in it. */
static void make_six(struct feed *f, uint8_t *h, uint32_t len, bool out)
{
	static const uint8_t next[] = { 6, 17, 58, 44, 0 }, types[] = { 135, 136, 1, 2, 128 };

	memset(h + 14, 0, 60);
	uw_put16(h + 12, 0x86dd);
	h[14] = 0x60;
	uw_put16(h + 18, (uint16_t)(len > L4_6 ? len - L4_6 : 0));
	h[20] = next[feed_below(f, 5)];
	h[21] = 255;
	h[FROM6] = h[TO6] = 0xfd;
	memcpy(h + (out ? FROM6 : TO6), ours6, 16);
	if (feed_rarely(f, 4))
		memcpy(h + (out ? TO6 : FROM6), ours6, 16);
	for (unsigned at = L4_6; at < L4_6 + 16; at += 2)
		uw_put16(h + at, (uint16_t)(feed_below(f, 5) * 1000));
	h[L4_6 + 12] = (uint8_t)(feed_below(f, 16) << 4);
	if (h[20] != 58)
		return;
	h[L4_6] = types[feed_below(f, 5)];
	h[L4_6 + 1] = 0;
	if (h[L4_6] > 2) {
		memcpy(h + L4_6 + 8, out ? h + TO6 : ours6, 16);
		uw_put16(h + L4_6 + 24, 0x0101);
		memcpy(h + L4_6 + 26, mac, 6);
		return;
	}
	h[L4_6 + 8] = 0x60;
	h[L4_6 + 8 + 6] = 6;
	memcpy(h + L4_6 + 8 + 8, ours6, 16);
	uw_put16(h + L4_6 + 8 + 40, (uint16_t)(feed_below(f, 5) * 1000));
}

/* Something that could be a frame of ours, changed in a few places. */
static uint32_t make_frame(struct feed *f, uint8_t *h, bool out)
{
	uint32_t len = feed_length(f, 2000);

	memset(h, 0, 2000);
	memcpy(h + (out ? 6 : 0), mac, 6);
	h[12] = 8;
	h[13] = feed_rarely(f, 4) ? 6 : 0;
	if (h[13]) {
		memcpy(h + 14, "\0\1\10\0\6\4", 6);
		h[21] = feed_u8(f) & 3;
		memcpy(h + 22, mac, 6);
		memcpy(h + 28, &table.addr, 4);
		memcpy(h + 38, &table.addr, 4);
	} else {
		h[14] = (uint8_t)(0x40 | feed_u8(f));
		uw_put16(h + 16, (uint16_t)(len > 14 ? len - 14 : 0));
		h[23] = 6;
		memcpy(h + (out ? 26 : 30), &table.addr, 4);
		for (unsigned at = 34; at < 76; at += 2)
			uw_put16(h + at, (uint16_t)(feed_below(f, 5) * 1000));
		if (feed_rarely(f, 3))
			make_datagram(f, h, len);
	}
	if (feed_bool(f))
		make_six(f, h, len, out);
	for (unsigned n = feed_below(f, 6); n; n--)
		h[feed_below(f, 80)] = feed_u8(f);
	return len;
}

static void check_datagram(uint16_t client, const uint8_t *h, const struct switch_result *r)
{
	uint32_t source = (uint32_t)h[59] << 16 | (uint32_t)h[60] << 8 | h[61];

	CHECK(uw_be32(h + 26) == ADDR && uw_be16(h + 36) == 4791 && !r->tcp && !r->headers);
	if (h[42] >> 5 == 1)
		CHECK(qps.n[client]);
	else
		CHECK(source == 1 ? qps.manages[client] : qps.holder[source] == client);
	CHECK((r->verdict != SWITCH_TO_PORT) == (uw_be32(h + 30) == ADDR));
}

/* An address and a port, a QP or a MAC of its own, behind no other header. */
static void check_six(uint16_t client, const uint8_t *h, const struct switch_result *r)
{
	uint32_t source = (uint32_t)h[79] << 16 | (uint32_t)h[80] << 8 | h[81];

	CHECK(h[14] >> 4 == 6 && !memcmp(h + FROM6, ours6, 16));
	if (h[20] == 58) {
		CHECK(h[L4_6] == 135 && r->verdict == SWITCH_TO_PORT && h[21] == 255);
		CHECK(uw_be16(h + 18) == 24 || !memcmp(h + L4_6 + 26, mac, 6));
		return;
	}
	CHECK(h[TO6] != 0xff && !(h[0] & 1));
	CHECK((r->verdict != SWITCH_TO_PORT) == !memcmp(h + TO6, ours6, 16));
	if (h[20] == 6) {
		CHECK(r->tcp == L4_6 && r->headers >= L4_6 + 20);
		CHECK(table.holder6[uw_be16(h + L4_6)] == client);
		return;
	}
	CHECK(h[20] == 17 && uw_be16(h + L4_6 + 2) == 4791);
	if (h[62] >> 5 == 1)
		CHECK(qps.n[client]);
	else
		CHECK(source == 1 ? qps.manages[client] : qps.holder[source] == client);
}

static void check_out(uint16_t client, const uint8_t *h, const struct switch_result *r)
{
	CHECK(r->verdict != SWITCH_TO_ALL);
	CHECK(!memcmp(h + 6, mac, 6) && r->segments >= 1 && r->segments <= SWITCH_SEGMENTS_MAX);
	if (uw_be16(h + 12) == 0x86dd) {
		check_six(client, h, r);
		return;
	}
	if (uw_be16(h + 12) == 0x0806) {
		CHECK(uw_be16(h + 20) == 1 && !memcmp(h + 22, mac, 6) && uw_be32(h + 28) == ADDR);
		return;
	}
	if (h[23] == 17) {
		check_datagram(client, h, r);
		return;
	}
	CHECK(uw_be16(h + 12) == 0x0800 && uw_be32(h + 26) == ADDR && h[23] == 6);
	CHECK(r->tcp == 14 + (uint32_t)(h[14] & 15) * 4 && r->headers >= r->tcp + 20);
	CHECK(r->headers <= SWITCH_HEAD_MAX);
	CHECK(table.holder[uw_be16(h + r->tcp)] == client);
	CHECK((r->verdict == SWITCH_TO_CLIENT) == (uw_be32(h + 30) == ADDR));
}

static void classify(struct feed *f)
{
	bool out = feed_bool(f);
	uint8_t h[2000], answer[SWITCH_ANSWER_MAX], *copy;
	uint16_t client = (uint16_t)(feed_below(f, 3) + 1);
	uint32_t len = make_frame(f, h, out), head = len < SWITCH_HEAD_MAX ? len : SWITCH_HEAD_MAX;
	struct switch_frame frame = { .head_len = head, .len = len };
	struct switch_result r;

	frame.gso_size = out && feed_rarely(f, 3) ? feed_u16(f) : 0;
	frame.head = copy = fuzz_copy(h, head);
	r = out ? switch_out(&table, client, &frame) : switch_in(&table, &frame);
	CHECK(r.verdict <= SWITCH_ANSWER && r.why < SWITCH_WHY_COUNT);
	if (r.verdict == SWITCH_TO_CLIENT)
		CHECK(r.client && r.client < 4);
	if (out && r.verdict != SWITCH_DROP)
		check_out(client, h, &r);
	if (r.verdict == SWITCH_ANSWER)
		CHECK((out || table.own) &&
		      switch_answer(&table, &frame, answer) <= SWITCH_ANSWER_MAX);
	free(copy);
}

/* ---- a conduit ----------------------------------------------------------------------------------
 */

static void read_conduit(struct conduit *l, uint32_t octets)
{
	const uint8_t *at;
	struct conduit_meta meta;
	uint32_t len, n = 0;
	volatile uint8_t seen;

	while (n < octets && conduit_look(&l->in, &at, &len, &meta) == CONDUIT_OK) {
		CHECK(len >= CONDUIT_FRAME_MIN && len <= CONDUIT_FRAME_MAX);
		CHECK(at >= l->theirs + CONDUIT_PAGE && at + len <= l->theirs + CONDUIT_REGION);
		seen = at[0];
		seen = at[len - 1];
		(void)seen;
		conduit_step(&l->in);
		n += CONDUIT_LINE;
	}
	conduit_tell(&l->in);
}

static void any_conduit(struct feed *f)
{
	struct conduit ours, theirs;
	int mine, other;

	if (conduit_make(&ours, &mine) || conduit_make(&theirs, &other))
		return;
	close(mine);
	CHECK(conduit_attach(&ours, other) == UW_OK);
	for (unsigned n = feed_below(f, 32); n; n--) {
		uint32_t at = feed_below(f, 64) * CONDUIT_LINE, len = feed_u32(f),
			 head = feed_u32(f);

		if (!feed_rarely(f, 4))
			len &= 0xfff;
		memcpy(theirs.ours + CONDUIT_PAGE + at, &len, 4);
		atomic_store((_Atomic uint32_t *)(void *)theirs.ours,
			     feed_rarely(f, 4) ? head : head % 64 * CONDUIT_LINE);
		read_conduit(&ours, CONDUIT_OCTETS);
	}
	conduit_free(&ours);
	conduit_free(&theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };

	make_table(&f);
	if (feed_rarely(&f, 32))
		any_conduit(&f);
	while (f.n)
		classify(&f);
	return 0;
}
