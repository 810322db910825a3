/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole stack over links that cut long segments (doc/adr/0044): every octet arrives, and each
 * segment of the wire is whole FPDUs, while frames are lost, repeated and late, and while there is
 * no memory to cut a segment with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cutting.h"
#include "net.h"

#define ACCESS (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define SIZE   (1u << 20)
#define ROUNDS 12u

struct bed {
	struct sim s;
	uint8_t *a, *b;
	struct uw_mr *ma, *mb;
};

static void fill(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(seed >> 24);
	}
}

static struct bed *open_bed(struct sim_options o)
{
	struct bed *b = calloc(1, sizeof(*b));

	if (!o.cuts)
		o.cuts = 256;
	sim_open(&b->s, &o);
	sim_connect(&b->s, 7471);
	b->a = calloc(1, SIZE);
	b->b = calloc(1, SIZE);
	b->ma = sim_mr(&b->s.a, b->a, SIZE, ACCESS);
	b->mb = sim_mr(&b->s.b, b->b, SIZE, ACCESS);
	return b;
}

/* Returns what both ends have cut. No segment was broken, unless so many repeats were lost in a row
 * that the path was taken for one that swallows long packets (RFC 4821 §7.7): what was queued is
 * cut for it as it is. */
static struct cutting_stats close_bed(struct bed *b)
{
	struct cutting_stats one = cutting_stats(b->s.cutting[0]),
			     two = cutting_stats(b->s.cutting[1]);

	assert_true(!(one.broken + two.broken) || sim_stats(&b->s).tcp_black_holes);
	assert_int_equal(sim_stats(&b->s).tcp_assertions, 0);
	one.longs += two.longs;
	one.pieces += two.pieces;
	one.segments += two.segments;
	one.refused += two.refused;
	assert_int_equal(uw_mr_dereg(b->ma), 0);
	assert_int_equal(uw_mr_dereg(b->mb), 0);
	for (unsigned i = 0; i < 2; i++)
		loop_set_drop(b->s.link[i], 0);
	sim_close(&b->s);
	free(b->a);
	free(b->b);
	free(b);
	return one;
}

static struct uw_send_wr request(const struct bed *b, struct uw_sge *sge, uint32_t op)
{
	return (struct uw_send_wr){ .sg_list = sge,
				    .num_sge = 1,
				    .opcode = op,
				    .flags = UW_SEND_SIGNALED,
				    .remote_addr = (uintptr_t)b->b,
				    .rkey = uw_mr_stag(b->mb) };
}

/* From a's memory to b's, or back. */
static void carry_out(struct bed *b, uint32_t op, uint32_t n, uint32_t seed)
{
	struct uw_sge sge = { (uintptr_t)b->a, n, uw_mr_stag(b->ma) };
	struct uw_send_wr wr = request(b, &sge, op);
	bool reads = op == UW_WR_RDMA_READ;

	fill(reads ? b->b : b->a, n, seed);
	if (op == UW_WR_SEND)
		sim_post_recv(&b->s.b, seed, b->b, n, b->mb);
	sim_post_send(&b->s.a, &wr);
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	if (op == UW_WR_SEND)
		assert_int_equal(sim_wc(&b->s, b->s.b.rcq).byte_len, n);
	assert_memory_equal(b->a, b->b, n);
}

/* Lengths from one FPDU to many long segments. */
static struct cutting_stats carry_all(struct sim_options o, const uint32_t op[3])
{
	struct bed *b;

	o.roce = true; /* a Write is done when it has arrived */
	b = open_bed(o);
	for (unsigned i = 0; i < ROUNDS; i++) {
		carry_out(b, op[i % 3], SIZE - 4096 * (i % 5) - i, i + 1);
		carry_out(b, op[i % 3], 1 + i * 1000, i + 1);
	}
	return close_bed(b);
}

/* With all operations. */
static struct cutting_stats exchange(struct sim_options o)
{
	static const uint32_t all[] = { UW_WR_RDMA_WRITE, UW_WR_RDMA_READ, UW_WR_SEND };

	return carry_all(o, all);
}

static void without_loss(void **state)
{
	struct cutting_stats c = exchange((struct sim_options){ .mtu = 1500, .seed = 1 });

	(void)state;
	/* 12 MiB of which most goes in long ones */
	assert_in_range(c.pieces, 6000, 12000);
	assert_true(c.pieces > 10 * c.longs);
	c = exchange((struct sim_options){ .mtu = 1500, .seed = 2, .ip6 = true });
	assert_in_range(c.pieces, 6000, 12000);
	c = exchange((struct sim_options){ .mtu = 9000, .seed = 3 });
	assert_in_range(c.longs, 100, 2000);
}

static void frames_are_lost_repeated_and_late(void **state)
{
	static const uint32_t drop[] = { 1000, 10000, 50000 };

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		struct sim_options o = { .mtu = i & 1 ? 9000 : 1500,
					 .drop_ppm = drop[i % 3],
					 .dup_ppm = i & 2 ? 5000 : 0,
					 .reorder_ppm = i & 4 ? 10000 : 0,
					 .ip6 = i & 1,
					 .seed = 10 + i };

		assert_true(exchange(o).longs > 10);
	}
}

/* So few frames that segments cannot be cut when something is lost: they go again as they are. */
static void without_memory_to_cut(void **state)
{
	static const uint32_t there[] = { UW_WR_RDMA_WRITE, UW_WR_SEND, UW_WR_RDMA_WRITE };

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct sim_options o = {
			.mtu = 1500, .drop_ppm = 5000, .smalls = 40, .cuts = 4 + i, .seed = 30 + i
		};

		struct cutting_stats c = carry_all(o, there);

		assert_true(c.longs > 10 && c.refused > 10);
	}
}

/* Octets behind a hole keep the frames that ACKs and requests need: so few exist that all of them
 * wait there. They are copied out, and the hole is filled. */
static void whoever_receives_out_of_order_can_answer(void **state)
{
	static const uint32_t back[] = { UW_WR_RDMA_READ, UW_WR_SEND, UW_WR_RDMA_READ };
	uint64_t refused = 0;

	(void)state;
	for (unsigned i = 0; i < 12; i++) { /* 64 to 144 frames */
		struct sim_options o = { .mtu = 1500,
					 .drop_ppm = 5000,
					 .smalls = 64 + 16 * (i / 2),
					 .cuts = 1,
					 .ip6 = i & 1,
					 .seed = 70 + i };

		refused += carry_all(o, back).refused;
	}
	assert_true(refused > 100);
}

/* Frames to an address of our own do not come to the link, which would cut them. */
static void to_oneself_nothing_is_long(void **state)
{
	(void)state;
	assert_int_equal(
		exchange((struct sim_options){ .mtu = 1500, .seed = 60, .self = true }).longs, 0);
	assert_int_equal(
		exchange((struct sim_options){ .mtu = 1500, .seed = 61, .self = true, .ip6 = true })
			.longs,
		0);
}

/* Both ends send at the same time: ACKs ride on long segments. */
static void both_ways_at_once(void **state)
{
	struct bed *b = open_bed(
		(struct sim_options){ .mtu = 1500, .drop_ppm = 2000, .seed = 50, .roce = true });

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct uw_sge from_a = { (uintptr_t)b->a, SIZE / 2, uw_mr_stag(b->ma) },
			      from_b = { (uintptr_t)b->b + SIZE / 2, SIZE / 2, uw_mr_stag(b->mb) };
		struct uw_send_wr wa = { .sg_list = &from_a,
					 .num_sge = 1,
					 .opcode = UW_WR_RDMA_WRITE,
					 .flags = UW_SEND_SIGNALED,
					 .remote_addr = (uintptr_t)b->b,
					 .rkey = uw_mr_stag(b->mb) },
				  wb = wa;

		wb.sg_list = &from_b;
		wb.remote_addr = (uintptr_t)b->a + SIZE / 2;
		wb.rkey = uw_mr_stag(b->ma);
		fill(b->a, SIZE / 2, 7 * i + 1);
		fill(b->b + SIZE / 2, SIZE / 2, 7 * i + 2);
		sim_post_send(&b->s.a, &wa);
		sim_post_send(&b->s.b, &wb);
		assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
		assert_int_equal(sim_wc(&b->s, b->s.b.scq).status, UW_WC_SUCCESS);
		assert_memory_equal(b->a, b->b, SIZE);
	}
	assert_true(close_bed(b).longs > 10);
}

/* The peer works on the first part while the second is made. In a stream it has work anyway. */
static void a_message_alone_goes_as_two_thirds_and_one(void **state)
{
	struct bed *b = open_bed((struct sim_options){ .mtu = 1500, .seed = 10, .roce = true });
	struct uw_sge sge = { (uintptr_t)b->a, 65536, uw_mr_stag(b->ma) };
	struct uw_send_wr wr = request(b, &sge, UW_WR_RDMA_WRITE);
	struct cutting_stats c;

	(void)state;
	carry_out(b, UW_WR_RDMA_WRITE, SIZE, 1); /* the window opens */
	carry_out(b, UW_WR_RDMA_WRITE, 65536, 2);
	c = cutting_stats(b->s.cutting[0]);
	/* 46 segments of 1,440 octets of payload */
	assert_int_equal(c.last[1], 31);
	assert_int_equal(c.last[0], 15);
	sim_post_send(&b->s.a, &wr);
	sim_post_send(&b->s.a, &wr); /* while the first is under way */
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	c = cutting_stats(b->s.cutting[0]);
	assert_int_equal(c.last[1], 44);
	assert_int_equal(c.last[0], 2);
	close_bed(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_receives_out_of_order_can_answer),
		cmocka_unit_test(without_loss),
		cmocka_unit_test(frames_are_lost_repeated_and_late),
		cmocka_unit_test(without_memory_to_cut),
		cmocka_unit_test(both_ways_at_once),
		cmocka_unit_test(to_oneself_nothing_is_long),
		cmocka_unit_test(a_message_alone_goes_as_two_thirds_and_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
