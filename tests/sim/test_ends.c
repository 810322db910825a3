/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends of a connection that doc/failures.md has bounds for, on a virtual clock: a FIN or an RST in
 * the middle of a message between processes, and a path that was out for longer than the
 * retransmission timeout may become.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/be.h"
#include "net.h"

#define ALL	 (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE)
#define SIZE	 (4u << 20)
#define PORT	 7471
#define NOTHING	 0u
#define ALL_LOST 1000000u

enum { TCP_AT = 14 + 20, FLAGS_AT = TCP_AT + 13, FIN = 1, RST = 4 };

struct bed {
	struct sim s;
	uint8_t *from, *to;
	struct uw_mr *ma, *mb;
};

static struct bed *open_bed(const struct sim_options *o)
{
	struct bed *b = calloc(1, sizeof(*b));

	sim_open(&b->s, o);
	sim_connect(&b->s, PORT);
	b->from = calloc(1, SIZE);
	b->to = calloc(1, SIZE);
	b->ma = sim_mr(&b->s.a, b->from, SIZE, ALL);
	b->mb = sim_mr(&b->s.b, b->to, SIZE, ALL);
	memset(b->from, 0x5a, SIZE);
	return b;
}

static void close_bed(struct bed *b)
{
	assert_int_equal(uw_mr_dereg(b->ma), 0);
	assert_int_equal(uw_mr_dereg(b->mb), 0);
	sim_close(&b->s);
	free(b->from);
	free(b->to);
	free(b);
}

static void post(struct bed *b, uint32_t opcode)
{
	struct uw_sge sge = { (uintptr_t)b->from, SIZE, uw_mr_stag(b->ma) };
	const struct uw_send_wr wr = { .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = opcode,
				       .flags = UW_SEND_SIGNALED,
				       .remote_addr = (uintptr_t)b->to,
				       .rkey = uw_mr_stag(b->mb) };

	sim_post_send(&b->s.a, &wr);
}

/* ---- FIN and RST ------------------------------------------------------------------------- */

static struct {
	struct io_ops ops;
	const struct io_ops *under;
	unsigned left; /* long frames until the one that is marked */
	uint8_t flag;
} marker;

static unsigned mark_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	for (unsigned i = 0; i < n && marker.left; i++) {
		if (v[i]->len > 1000 && !--marker.left)
			v[i]->data[FLAGS_AT] |= marker.flag;
	}
	return marker.under->tx(l, v, n);
}

/* A segment in the middle of what the end sends gets a flag. Nothing is checksummed here. */
static void mark(struct io_link *l, uint8_t flag)
{
	marker.under = l->ops;
	marker.ops = *l->ops;
	marker.ops.tx = mark_tx;
	marker.left = 100;
	marker.flag = flag;
	l->ops = &marker.ops;
}

static bool both_heard(void *arg)
{
	const struct sim *s = arg;

	return sim_had(&s->a, UW_CM_DISCONNECTED) && sim_had(&s->b, UW_CM_DISCONNECTED);
}

/* Both hear at once, and each request completes once. */
static void in_the_middle(uint8_t flag)
{
	struct bed *b =
		open_bed(&(struct sim_options){ .direct = true, .delay_us = 1, .roce = true });
	const struct io_ops *ops = b->s.link[0]->ops;
	struct uw_wc wc;

	for (unsigned i = 0; i < 2; i++)
		sim_post_recv(&b->s.b, i, b->to, SIZE, b->mb);
	mark(b->s.link[0], flag);
	for (unsigned i = 0; i < 3; i++)
		post(b, UW_WR_SEND);
	assert_true(sim_until(&b->s, both_heard, &b->s, 500000));
	assert_int_equal(marker.left, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_not_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		wc = sim_wc(&b->s, b->s.b.rcq);
		assert_int_equal(wc.status, UW_WC_WR_FLUSH_ERR);
		assert_int_equal(wc.wr_id, i);
	}
	sim_settle(&b->s);
	assert_int_equal(uw_cq_poll(b->s.a.scq, 1, &wc), 0);
	assert_int_equal(uw_cq_poll(b->s.b.rcq, 1, &wc), 0);
	assert_true(b->to[0] == 0x5a && !b->to[SIZE - 1]);
	b->s.link[0]->ops = ops;
	close_bed(b);
}

/* RFC 5044 §6: a stream that ends within an FPDU is an error. */
static void a_fin_in_the_middle(void **state)
{
	(void)state;
	in_the_middle(FIN);
}

static void an_rst_in_the_middle(void **state)
{
	(void)state;
	in_the_middle(RST);
}

/* ---- a path that was out ----------------------------------------------------------------- */

static void set_drop(struct bed *b, uint32_t ppm)
{
	for (unsigned i = 0; i < 2; i++)
		loop_set_drop(b->s.link[i], ppm);
}

/* RFC 6298 §5.5 lets the timeout double, §2.5 lets it have a limit: 8 s. */
static void after_a_long_outage_it_goes_on_within_8_s(void **state)
{
	static const unsigned out_s[] = { 3, 9, 25, 60, 150 };

	(void)state;
	setenv("UWARP_KEEPALIVE_MS", "100000", 1);
	for (unsigned i = 0; i < sizeof(out_s) / sizeof(out_s[0]); i++) {
		struct bed *b = open_bed(&(struct sim_options){ .roce = true });
		uint64_t up;

		post(b, UW_WR_RDMA_WRITE);
		sim_run_us(&b->s, 300);
		set_drop(b, ALL_LOST);
		sim_run_us(&b->s, out_s[i] * 1000000);
		assert_int_equal(uw_qp_state(b->s.a.qp), UW_QPS_RTS);
		assert_false(b->to[SIZE - 1]);
		set_drop(b, NOTHING);
		up = b->s.now_us;
		assert_int_equal(sim_wc(&b->s, b->s.a.scq).status, UW_WC_SUCCESS);
		assert_in_range(b->s.now_us - up, 0, 8200000);
		if (out_s[i] < 8) /* as long again as it was out */
			assert_in_range(b->s.now_us - up, 0, out_s[i] * 1000000 + 200000);
		assert_memory_equal(b->from, b->to, SIZE);
		close_bed(b);
	}
	unsetenv("UWARP_KEEPALIVE_MS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fin_in_the_middle),
		cmocka_unit_test(an_rst_in_the_middle),
		cmocka_unit_test(after_a_long_outage_it_goes_on_within_8_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
