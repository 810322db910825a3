/* SPDX-License-Identifier: BSD-3-Clause */
/* Which segments go merged, and what the kernel is told of them. What it makes of them again:
 * test_link.c. */
#include "io/packet/segments.h"

#include <netinet/in.h>

#include "base/be.h"
#include "io/loop/loop.h"
#include "made.h"

enum { N = 60, MSS = 1448 };

static uint64_t no_time(void *arg)
{
	(void)arg;
	return 0;
}

struct place {
	struct io_link *l;
	struct made m[N];
	struct io_frame *v[N];
};

/* Segments that follow each other. */
static void fill(struct place *p, bool ip6)
{
	for (unsigned i = 0; i < N; i++)
		p->m[i] = (struct made){ .ip6 = ip6,
					 .src_port = 5,
					 .dst_port = 6,
					 .ip_id = (uint16_t)(65530 + i),
					 .seq = 0xfffff000u + i * MSS,
					 .flags = ACK,
					 .payload = MSS };
}

static void make(struct place *p)
{
	for (unsigned i = 0; i < N; i++) {
		if (p->v[i])
			p->l->ops->free(p->v[i]);
		p->v[i] = made_frame(p->l, &p->m[i]);
		p->v[i]->marks = IO_FRAME_SUM;
	}
}

static int up(void **state)
{
	const struct loop_config cfg = { .mtu = 9000, .now_us = no_time };
	struct place *p = calloc(1, sizeof(*p));

	assert_status(loop_open_single(&cfg, NULL, &p->l), UW_OK);
	fill(p, false);
	make(p);
	*state = p;
	return 0;
}

static int down(void **state)
{
	struct place *p = *state;

	for (unsigned i = 0; i < N; i++)
		p->l->ops->free(p->v[i]);
	p->l->ops->close(p->l);
	free(p);
	return 0;
}

/* As many as fit in one IP packet that a pbuf can count with its Ethernet header. */
static void segments_in_order_go_as_one(void **state)
{
	struct place *p = *state;

	assert_int_equal(segments_run(p->v, N), (65535 - 14 - 40) / MSS);
	assert_int_equal(segments_run(p->v, 7), 7);
	assert_int_equal(segments_run(p->v, 1), 1);
	fill(p, true);
	make(p);
	assert_int_equal(segments_run(p->v, N), (65535 - 14 - 60) / MSS);
}

static void a_shorter_one_and_psh_are_the_last(void **state)
{
	struct place *p = *state;

	p->m[3].payload = 100;
	make(p);
	assert_int_equal(segments_run(p->v, N), 4);
	fill(p, false);
	p->m[5].flags |= PSH;
	make(p);
	assert_int_equal(segments_run(p->v, N), 6);
	/* and the next has to follow it by its own */
	assert_int_equal(segments_run(p->v + 5, N - 5), 1);
}

static void what_the_cut_would_not_give_goes_apart(void **state)
{
	struct place *p = *state;
	static const uint8_t flags[] = { ACK | FIN, ACK | SYN, ACK | RST, 0,
					 ACK | 32,  ACK | ECE, ACK | CWR };

	for (unsigned i = 0; i < 6; i++) {
		fill(p, false);
		switch (i) {
		case 0:
			p->m[2].seq++;
			break;
		case 1:
			p->m[2].ack++;
			break;
		case 2:
			p->m[2].ip_id++;
			break;
		case 3:
			p->m[2].dst_port++;
			break;
		case 4:
			p->m[2].payload++;
			break;
		default:
			p->m[2].src_mac[0]++;
		}
		make(p);
		assert_int_equal(segments_run(p->v, N), 2);
	}
	for (unsigned i = 0; i < COUNT(flags); i++) {
		fill(p, false);
		p->m[2].flags = flags[i];
		make(p);
		assert_int_equal(segments_run(p->v, N), 2);
		assert_int_equal(segments_run(p->v + 2, N - 2), 1);
	}
}

static void a_checksum_that_is_not_the_kernels_stays(void **state)
{
	struct place *p = *state;

	p->v[4]->marks = 0;
	assert_int_equal(segments_run(p->v, N), 4);
	assert_int_equal(segments_run(p->v + 4, N - 4), 1);
}

static void no_frame_is_read_beyond_its_end(void **state)
{
	struct place *p = *state;
	uint32_t len = p->v[0]->len;
	struct segment s;

	for (uint32_t n = 0; n < len; n++) {
		p->v[0]->len = n;
		assert_false(segment_read(p->v[0], &s));
	}
	p->v[0]->len = len;
	assert_true(segment_read(p->v[0], &s));
	p->v[0]->data[14 + 20 + 12] = 0xf0; /* a TCP header of 60 octets is all there */
	assert_true(segment_read(p->v[0], &s));
	assert_int_equal(s.headers, 14 + 20 + 60);
	p->v[0]->data[14 + 20 + 12] = 0x40; /* RFC 9293 §3.1: five words at least */
	assert_false(segment_read(p->v[0], &s));
}

static void the_kernel_is_told_how_to_cut(void **state)
{
	struct place *p = *state;
	uint8_t h[SEGMENT_HEADERS], before[54];
	struct virtio_net_hdr vnet;

	p->m[3].payload = 100;
	p->m[3].flags |= PSH;
	make(p);
	memcpy(before, p->v[0]->data, sizeof(before));
	assert_int_equal(segments_head(p->v, 4, h, &vnet), 54);
	assert_int_equal(vnet.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(vnet.gso_type, VIRTIO_NET_HDR_GSO_TCPV4);
	assert_int_equal(vnet.gso_size, MSS);
	assert_int_equal(vnet.hdr_len, 54);
	assert_int_equal(vnet.csum_start, 34);
	assert_int_equal(vnet.csum_offset, 16);
	assert_int_equal(uw_be16(h + 16), 40 + 3 * MSS + 100);
	assert_int_equal(h[47], ACK | PSH);
	assert_memory_equal(before, p->v[0]->data, sizeof(before)); /* TCP sends it again */
}

/* What the kernel is told of a part, and the flags in it. */
static void part_is(const struct io_frame *f, unsigned i, unsigned n, uint8_t flags, uint8_t gso)
{
	uint8_t h[SEGMENT_HEADERS];
	struct virtio_net_hdr vnet = { 0 };
	struct uw_span payload;
	unsigned headers = segment_part(f, i, n, h, &vnet, &payload);

	assert_true(headers);
	assert_int_equal(h[headers - 20 + 13], flags);
	assert_int_equal(vnet.gso_type, gso);
}

/* RFC 3168 §6.1.2: CWR is on the first new segment. Linux leaves it there alone when it cuts, and
 * is told of it, so that a card that would repeat it is not asked to (SKB_GSO_TCP_ECN). ECE is on
 * all of them (§6.1.3). */
static void cwr_is_on_the_first_of_the_cut(void **state)
{
	static const uint8_t flags[] = { ACK, ACK | ECE, ACK | CWR, ACK | CWR | ECE };
	struct place *p = *state;

	for (unsigned i = 0; i < 2 * COUNT(flags); i++) {
		const uint8_t with = flags[i / 2], rest = with & (uint8_t)~CWR;
		const uint8_t tcp = i & 1 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
		const uint8_t gso = tcp | (with & CWR ? VIRTIO_NET_HDR_GSO_ECN : 0);
		struct virtio_net_hdr vnet = { 0 };

		fill(p, i & 1);
		p->m[0].flags = with;
		p->m[0].payload = 4 * MSS;
		make(p);
		p->v[0]->cut = MSS;
		segment_ask_cut(p->v[0], &vnet);
		assert_int_equal(vnet.gso_type, gso);
		part_is(p->v[0], 0, 1, with, 0);
		part_is(p->v[0], 1, 1, rest, 0);
		part_is(p->v[0], 3, 1, rest, 0);
		part_is(p->v[0], 0, 2, with, gso);
		part_is(p->v[0], 2, 2, rest, tcp);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(segments_in_order_go_as_one, up, down),
		cmocka_unit_test_setup_teardown(a_shorter_one_and_psh_are_the_last, up, down),
		cmocka_unit_test_setup_teardown(what_the_cut_would_not_give_goes_apart, up, down),
		cmocka_unit_test_setup_teardown(a_checksum_that_is_not_the_kernels_stays, up, down),
		cmocka_unit_test_setup_teardown(no_frame_is_read_beyond_its_end, up, down),
		cmocka_unit_test_setup_teardown(the_kernel_is_told_how_to_cut, up, down),
		cmocka_unit_test_setup_teardown(cwr_is_on_the_first_of_the_cut, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
