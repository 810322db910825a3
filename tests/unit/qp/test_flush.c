/* SPDX-License-Identifier: BSD-3-Clause */
/* FLUSH and ATOMIC WRITE as work requests: doc/adr/0033. */
#include "node.h"
#include "qp/qp.h"
#include "ulpdu.h"

#define ALL_RIGHTS                                                                                 \
	(UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ |                  \
	 UW_ACCESS_REMOTE_ATOMIC | UW_ACCESS_FLUSH_GLOBAL | UW_ACCESS_FLUSH_PERSISTENT)

static struct node a, b;

/* What was made persistent, and the octets that stood there at that moment. */
static struct {
	const uint8_t *va;
	uint64_t len;
	unsigned times;
	uint8_t first;
	bool fails;
} disk;

static bool persist(void *va, uint64_t len)
{
	disk.va = va;
	disk.len = len;
	disk.first = *(const uint8_t *)va;
	disk.times++;
	return !disk.fails;
}

static void pair(void)
{
	const struct mpa_agreed agreed = node_agreed();
	const struct node_opts all = { .sig_all = true };

	memset(&disk, 0, sizeof(disk));
	node_init(&a, 1, &all);
	node_init(&b, 2, &all);
	b.mem.r[0].rights = ALL_RIGHTS;
	b.mem.t.persist = persist;
	nodes_start(&a, &b, &agreed);
}

static struct uw_send_wr flush_of(size_t at, uint64_t len, unsigned type, unsigned level)
{
	return (struct uw_send_wr){ .opcode = UW_WR_FLUSH,
				    .remote_addr = to_of(b.m) + at,
				    .rkey = b.stag,
				    .compare_add = len,
				    .swap = UW_FLUSH_WISH(type, level) };
}

static struct uw_send_wr write_of(size_t at, const char *eight)
{
	struct uw_send_wr wr = { .opcode = UW_WR_ATOMIC_WRITE,
				 .remote_addr = to_of(b.m) + at,
				 .rkey = b.stag };

	memcpy(&wr.compare_add, eight, 8);
	return wr;
}

static void an_atomic_write_keeps_its_octets(void **state)
{
	struct uw_wc wc;

	(void)state;
	pair();
	node_post(&a, 1, write_of(16, "abcdefgh"));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	assert_no_wc(&a.scq);
	assert_memory_equal(b.m + 16, "abcdefgh", 8); /* before it is answered */
	nodes_run(&a, &b);
	wc = node_wc(&a.scq, 1, UW_WC_SUCCESS);
	assert_int_equal(wc.opcode, UW_WC_ATOMIC_WRITE);
}

/* A Write, its FLUSH and an ATOMIC WRITE posted together: one round trip, each finds the one before
 * it done. */
static void a_flush_finds_the_write_before_it(void **state)
{
	(void)state;
	pair();
	memset(a.m, 0x5a, 5000);
	node_post(&a, 1, node_wr_to(&a, UW_WR_RDMA_WRITE, 0, 5000, &b, 64));
	node_post(&a, 2, flush_of(64, 5000, UW_FLUSH_PERSISTENT, UW_FLUSH_RANGE));
	node_post(&a, 3, write_of(0, "durable!"));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	assert_int_equal(disk.times, 1);
	assert_ptr_equal(disk.va, b.m + 64);
	assert_int_equal(disk.len, 5000);
	assert_int_equal(disk.first, 0x5a);
	assert_memory_equal(b.m, "durable!", 8);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_OK);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	assert_int_equal(node_wc(&a.scq, 2, UW_WC_SUCCESS).opcode, UW_WC_FLUSH);
	node_wc(&a.scq, 3, UW_WC_SUCCESS);
}

/* A Send behind it is delivered when it is done. */
static void a_send_finds_the_flush_before_it(void **state)
{
	(void)state;
	pair();
	node_post_recv(&b, 9, 0, 64);
	node_post(&a, 1, flush_of(0, 64, UW_FLUSH_PERSISTENT, UW_FLUSH_RANGE));
	node_post(&a, 2, node_wr(&a, UW_WR_SEND, 0, 8));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	node_wc(&b.rcq, 9, UW_WC_SUCCESS);
	assert_int_equal(disk.times, 1);
}

static void level_mr_is_all_of_it(void **state)
{
	(void)state;
	pair();
	node_post(&a, 1,
		  flush_of(1u << 30, 77, UW_FLUSH_PERSISTENT | UW_FLUSH_GLOBAL, UW_FLUSH_MR));
	nodes_run(&a, &b);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	assert_ptr_equal(disk.va, b.m);
	assert_int_equal(disk.len, NODE_MEMORY);
}

static void global_alone_touches_no_disk(void **state)
{
	(void)state;
	pair();
	node_post(&a, 1, flush_of(0, 64, UW_FLUSH_GLOBAL, UW_FLUSH_RANGE));
	node_post(&a, 2, flush_of(0, 0, UW_FLUSH_PERSISTENT, UW_FLUSH_RANGE));
	nodes_run(&a, &b);
	node_wc(&a.scq, 1, UW_WC_SUCCESS);
	node_wc(&a.scq, 2, UW_WC_SUCCESS);
	assert_int_equal(disk.times, 0);
}

struct refusal {
	unsigned rights; /* of the region */
	struct uw_send_wr wr;
	uw_status why;
	uint32_t wc;
};

static void refused(const struct refusal *r)
{
	pair();
	b.mem.r[0].rights = r->rights;
	node_post(&a, 1, r->wr);
	assert_status(node_carry(&a, &b, NODE_ROOM), r->why);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
	node_wc(&a.scq, 1, r->wc);
	assert_int_equal(disk.times, 0);
	assert_int_equal(b.m[0], 0);
}

/* RFC 7306 §8.2: rights and bounds before anything is touched. */
static void what_the_peer_may_not_is_refused(void **state)
{
	const unsigned persistent = UW_FLUSH_PERSISTENT, range = UW_FLUSH_RANGE;
	const struct refusal cases[] = {
		{ UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_FLUSH_GLOBAL,
		  flush_of(0, 64, persistent, range), UW_E_RDMAP_ACCESS, UW_WC_REM_ACCESS_ERR },
		{ ALL_RIGHTS & ~(unsigned)UW_ACCESS_FLUSH_GLOBAL,
		  flush_of(0, 64, persistent | UW_FLUSH_GLOBAL, UW_FLUSH_MR), UW_E_RDMAP_ACCESS,
		  UW_WC_REM_ACCESS_ERR },
		{ ALL_RIGHTS, flush_of(NODE_MEMORY - 8, 9, persistent, range), UW_E_RDMAP_BOUNDS,
		  UW_WC_REM_ACCESS_ERR },
		{ ALL_RIGHTS & ~(unsigned)UW_ACCESS_REMOTE_WRITE, write_of(0, "abcdefgh"),
		  UW_E_RDMAP_ACCESS, UW_WC_REM_ACCESS_ERR },
		{ ALL_RIGHTS, write_of(4, "abcdefgh"), UW_E_RDMAP_STREAM_CATASTROPHIC,
		  UW_WC_REM_INV_REQ_ERR },
		{ ALL_RIGHTS, flush_of(0, 8, 0, range), UW_E_RDMAP_OPCODE, UW_WC_REM_INV_REQ_ERR },
		{ ALL_RIGHTS, flush_of(0, 8, 4, range), UW_E_RDMAP_OPCODE, UW_WC_REM_INV_REQ_ERR },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(&cases[i]);
}

static void a_qp_may_forbid_it(void **state)
{
	(void)state;
	pair();
	b.qp.rd.remote_rights = UW_ACCESS_REMOTE_WRITE | UW_ACCESS_FLUSH_GLOBAL;
	node_post(&a, 1, flush_of(0, 64, UW_FLUSH_PERSISTENT, UW_FLUSH_RANGE));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_RDMAP_ACCESS);
}

static void a_disk_that_fails_is_told(void **state)
{
	(void)state;
	pair();
	disk.fails = true;
	node_post(&a, 1, flush_of(0, 64, UW_FLUSH_PERSISTENT, UW_FLUSH_RANGE));
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_E_RDMAP_STREAM_CATASTROPHIC);
	assert_status(node_carry(&b, &a, NODE_ROOM), UW_E_TERMINATED);
	node_wc(&a.scq, 1, UW_WC_REM_OP_ERR);
}

/* They count against ORD as atomics do (RFC 7306 §5), and their answers come in order. */
static void they_are_reads_to_ord(void **state)
{
	(void)state;
	pair();
	for (unsigned i = 0; i < 2 * NODE_READS; i += 2) {
		node_post(&a, i, flush_of(0, 64, UW_FLUSH_GLOBAL, UW_FLUSH_RANGE));
		node_post(&a, i + 1, node_wr_to(&a, UW_WR_RDMA_READ, 64, 8, &b, 0));
	}
	assert_status(node_carry(&a, &b, NODE_ROOM), UW_OK);
	assert_int_equal(a.qp.rd.orq.count, NODE_READS);
	nodes_run(&a, &b);
	for (unsigned i = 0; i < 2 * NODE_READS; i++)
		node_wc(&a.scq, i, UW_WC_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_atomic_write_keeps_its_octets),
		cmocka_unit_test(a_flush_finds_the_write_before_it),
		cmocka_unit_test(a_send_finds_the_flush_before_it),
		cmocka_unit_test(level_mr_is_all_of_it),
		cmocka_unit_test(global_alone_touches_no_disk),
		cmocka_unit_test(what_the_peer_may_not_is_refused),
		cmocka_unit_test(a_qp_may_forbid_it),
		cmocka_unit_test(a_disk_that_fails_is_told),
		cmocka_unit_test(they_are_reads_to_ord),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
