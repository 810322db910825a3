/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the program has unmapped, or made read-only, before it deregistered it: the QP that
 * reaches for it fails, and nothing else does. A card would have it pinned (doc/adr/0029). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "base/guard.h"
#include "net.h"

#define ALL                                                                                        \
	(UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ |                  \
	 UW_ACCESS_REMOTE_ATOMIC)
#define ROOM 65536u

struct bench {
	struct sim s;
	struct sim_side c, d; /* another pair, which does not notice */
	uint8_t *pa, *pb;
	struct uw_mr *ma, *mb;
};

static uint8_t *map(void)
{
	uint8_t *p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void open_bench_as(struct bench *b, const struct sim_options *o)
{
	memset(b, 0, sizeof(*b));
	sim_open(&b->s, o);
	sim_listen(&b->s, 7);
	sim_connect(&b->s, 7);
	sim_open_side(&b->s, &b->c, NULL);
	sim_open_side(&b->s, &b->d, NULL);
	sim_connect_pair(&b->s, &b->c, &b->d, 7);
	b->pa = map();
	b->pb = map();
	b->ma = sim_mr(&b->s.a, b->pa, ROOM, ALL);
	b->mb = sim_mr(&b->s.b, b->pb, ROOM, ALL);
	uw_guard_install(); /* cmocka has taken the signals for this test */
}

static void open_bench(struct bench *b)
{
	open_bench_as(b, &(struct sim_options){ .seed = 16 });
}

/* The other pair's stream goes on. */
static void close_bench(struct bench *b)
{
	uint8_t octets[2] = { 7, 0 };
	struct uw_mr *mc = sim_mr(&b->c, octets, 1, ALL), *md = sim_mr(&b->d, octets + 1, 1, ALL);
	struct uw_sge sge = { (uintptr_t)octets, 1, uw_mr_stag(mc) };
	const struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};

	sim_post_recv(&b->d, 1, octets + 1, 1, md);
	sim_post_send(&b->c, &wr);
	assert_int_equal(sim_wc(&b->s, b->c.scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(&b->s, b->d.rcq).status, UW_WC_SUCCESS);
	assert_int_equal(octets[1], 7);
	assert_int_equal(uw_mr_dereg(mc) | uw_mr_dereg(md), 0);
	assert_int_equal(uw_mr_dereg(b->ma) | uw_mr_dereg(b->mb), 0);
	munmap(b->pa, ROOM);
	munmap(b->pb, ROOM);
	sim_close_side(&b->c);
	sim_close_side(&b->d);
	sim_close(&b->s);
}

static void post(struct bench *b, unsigned opcode, uint32_t n)
{
	struct uw_sge sge = { (uintptr_t)b->pa, n, uw_mr_stag(b->ma) };
	const struct uw_send_wr wr = { .wr_id = 5,
				       .sg_list = &sge,
				       .num_sge = opcode != UW_WR_ATOMIC_WRITE,
				       .opcode = opcode,
				       .flags = UW_SEND_SIGNALED,
				       .remote_addr = (uintptr_t)b->pb,
				       .rkey = uw_mr_stag(b->mb) };

	sim_post_send(&b->s.a, &wr);
}

struct row {
	unsigned opcode;
	uint32_t n;
	bool local;		 /* the requester's memory is gone, or else the responder's */
	bool read_only;		 /* not gone */
	unsigned sent, received; /* status of the request, of the receive (Send) */
};

static void take_away(const struct bench *b, const struct row *r)
{
	uint8_t *p = r->local ? b->pa : b->pb;

	if (r->read_only)
		assert_int_equal(mprotect(p, ROOM, PROT_READ), 0);
	else
		assert_int_equal(munmap(p, ROOM), 0);
}

static void memory_is_gone(const struct row *r)
{
	struct bench b;

	open_bench(&b);
	if (r->opcode == UW_WR_SEND)
		sim_post_recv(&b.s.b, 6, b.pb, ROOM, b.mb);
	sim_settle(&b.s);
	take_away(&b, r);
	post(&b, r->opcode, r->n);
	if (r->opcode == UW_WR_SEND)
		assert_int_equal(sim_wc(&b.s, b.s.b.rcq).status, r->received);
	/* iWARP: what TCP has taken has completed; the QP hears by a Terminate */
	assert_int_equal(sim_wc(&b.s, b.s.a.scq).status, r->sent);
	sim_settle(&b.s);
	assert_true(sim_had(&b.s.a, UW_CM_DISCONNECTED));
	assert_true(sim_had(&b.s.b, UW_CM_DISCONNECTED));
	close_bench(&b);
}

static void test_what_is_sent(void **state)
{
	(void)state;
	memory_is_gone(&(struct row){ UW_WR_SEND, 100, true, false, UW_WC_LOC_PROT_ERR,
				      UW_WC_WR_FLUSH_ERR });
	memory_is_gone(&(struct row){ UW_WR_SEND, 30000, true, false, UW_WC_LOC_PROT_ERR,
				      UW_WC_WR_FLUSH_ERR });
	memory_is_gone(&(struct row){ UW_WR_RDMA_WRITE, 5000, true, false, UW_WC_LOC_PROT_ERR, 0 });
}

static void test_where_it_is_received(void **state)
{
	(void)state;
	memory_is_gone(
		&(struct row){ UW_WR_SEND, 100, false, false, UW_WC_SUCCESS, UW_WC_LOC_PROT_ERR });
}

static void test_what_a_peer_writes(void **state)
{
	(void)state;
	memory_is_gone(&(struct row){ UW_WR_RDMA_WRITE, 100, false, false, UW_WC_SUCCESS, 0 });
	memory_is_gone(&(struct row){ UW_WR_RDMA_WRITE, 100, false, true, UW_WC_SUCCESS, 0 });
}

static void test_what_a_peer_reads(void **state)
{
	(void)state;
	memory_is_gone(
		&(struct row){ UW_WR_RDMA_READ, 100, false, false, UW_WC_REM_ACCESS_ERR, 0 });
	memory_is_gone(
		&(struct row){ UW_WR_RDMA_READ, 30000, false, false, UW_WC_REM_ACCESS_ERR, 0 });
}

static void test_what_is_read(void **state)
{
	(void)state;
	memory_is_gone(&(struct row){ UW_WR_RDMA_READ, 100, true, false, UW_WC_LOC_PROT_ERR, 0 });
}

/* RFC 7306 §5.1: atomics; doc/adr/0033: ATOMIC WRITE. */
static void test_what_an_atomic_changes(void **state)
{
	static const unsigned ops[] = { UW_WR_ATOMIC_FETCH_AND_ADD, UW_WR_ATOMIC_CMP_AND_SWP,
					UW_WR_ATOMIC_WRITE };

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		memory_is_gone(
			&(struct row){ ops[i / 2], 8, false, i & 1, UW_WC_REM_ACCESS_ERR, 0 });
}

/* Writes of 4 KiB, as many as the queue takes, over a link of 1 Gb/s; after `before` of them the
 * memory is deregistered. */
static void write_until_refused(uint64_t seed, unsigned before)
{
	enum { LEN = 4096, DEPTH = 64 };
	struct bench b;
	unsigned refused = 0, flushed = 0, done = 0;
	struct sim_options o = { .mtu = 1500, .bps = 1000000000, .seed = seed };

	open_bench_as(&b, &o);
	for (unsigned i = 0; i < DEPTH; i++)
		post(&b, UW_WR_RDMA_WRITE, LEN);
	while (refused + flushed < DEPTH) {
		struct uw_wc wc = sim_wc(&b.s, b.s.a.scq);

		done += wc.status == UW_WC_SUCCESS;
		refused += wc.status == UW_WC_REM_ACCESS_ERR;
		flushed += wc.status == UW_WC_WR_FLUSH_ERR;
		assert_in_range(done, 0, before + 10000);
		assert_false(flushed && !refused); /* the one to blame comes first */
		if (wc.status == UW_WC_SUCCESS)
			post(&b, UW_WR_RDMA_WRITE, LEN);
		if (done == before && wc.status == UW_WC_SUCCESS)
			assert_int_equal(uw_mr_dereg(b.mb), 0);
	}
	assert_int_equal(refused, 1);
	assert_int_equal(flushed, DEPTH - 1);
	b.mb = sim_mr(&b.s.b, b.pb, ROOM, ALL);
	close_bench(&b);
}

/* RFC 5040 §7.1: the requester whose Write is refused hears so, not only that its queue is flushed.
 */
static void test_memory_deregistered_under_writes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 40; i++)
		write_until_refused(i + 1, 100 + 7 * i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_sent),
		cmocka_unit_test(test_where_it_is_received),
		cmocka_unit_test(test_what_a_peer_writes),
		cmocka_unit_test(test_what_a_peer_reads),
		cmocka_unit_test(test_what_is_read),
		cmocka_unit_test(test_what_an_atomic_changes),
		cmocka_unit_test(test_memory_deregistered_under_writes),
	};

	return UW_GUARDED ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
