/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes through a hop of 1 Gb/s whose queue has room for 512 frames, 10 ms of round trip, whole
 * stack on a virtual clock: what is in flight grows to what path and queue hold, and a queue that
 * runs over costs a part of the speed, no collapse (RFC 9438, RFC 9406, RFC 8985).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net.h"

#define ACCESS	  (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE)
#define SIZE	  (1u << 20)
#define AT_ONCE	  16u
#define MEGABYTES 96u

static void post_write(struct sim *s, struct uw_sge *from, uint64_t to, uint32_t rkey)
{
	struct uw_send_wr wr = { .sg_list = from,
				 .num_sge = 1,
				 .opcode = UW_WR_RDMA_WRITE,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = to,
				 .rkey = rkey };

	sim_post_send(&s->a, &wr);
}

struct outcome {
	double gbps;
	uint64_t longest_us;   /* between two completions */
	double sent_again_ppm; /* of the segments */
};

static struct outcome transfer(const char *hop)
{
	struct sim *s = calloc(1, sizeof(*s));
	uint8_t *a = calloc(1, SIZE), *b = calloc(1, SIZE);
	struct outcome out = { 0 };
	struct uw_stats stats;
	struct uw_sge from;
	struct uw_mr *ma, *mb;
	uint64_t start, last;

	sim_open(s, &(struct sim_options){ .mtu = 1500,
					   .delay_us = 10,
					   .impair = { hop, "delay=5ms,dir=out" },
					   .roce = true });
	sim_connect(s, 7471);
	ma = sim_mr(&s->a, a, SIZE, ACCESS);
	mb = sim_mr(&s->b, b, SIZE, ACCESS);
	from = (struct uw_sge){ (uintptr_t)a, SIZE, uw_mr_stag(ma) };
	start = last = s->now_us;
	for (unsigned posted = 0, done = 0; done < MEGABYTES; done++) {
		for (; posted < MEGABYTES && posted - done < AT_ONCE; posted++)
			post_write(s, &from, (uintptr_t)b, uw_mr_stag(mb));
		assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
		if (s->now_us - last > out.longest_us)
			out.longest_us = s->now_us - last;
		last = s->now_us;
	}
	stats = sim_stats(s);
	out.gbps = MEGABYTES * 8.388608e3 / (double)(s->now_us - start);
	out.sent_again_ppm = 1e6 * (double)stats.tcp_tx_again / (double)stats.tcp_tx_segments;
	assert_int_equal(uw_mr_dereg(ma), 0);
	assert_int_equal(uw_mr_dereg(mb), 0);
	sim_close(s);
	free(a);
	free(b);
	free(s);
	return out;
}

/* 512 frames of 1,514 octets are 60 % of what the path itself holds. */
static void a_short_queue_is_no_collapse(void **state)
{
	static const char *const hop[] = { "rate=1G,queue=768K,delay=5ms,dir=out",
					   "rate=1G,queue=384K,delay=5ms,dir=out",
					   "rate=1G,queue=2M,delay=5ms,dir=out" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct outcome o = transfer(hop[i]);

		assert_true(o.gbps > 0.7);
		assert_in_range(o.longest_us, 0, 400000);
		assert_true(o.sent_again_ppm < 20000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_short_queue_is_no_collapse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
