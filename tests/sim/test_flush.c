/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FLUSH and ATOMIC WRITE over the whole stack (doc/adr/0033). A log: each record is a Write, its
 * FLUSH and an ATOMIC WRITE of its number, posted together. Whatever happens below TCP, whoever
 * sees the number finds the record, and finds it flushed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "net.h"

#define SIZE	(1u << 20)
#define RECORD	100000u
#define RECORDS 40u
#define PLACES	8u /* used in turn */
#define RIGHTS	(UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define FLUSHES (UW_ACCESS_FLUSH_GLOBAL | UW_ACCESS_FLUSH_PERSISTENT)

struct log {
	struct sim *s;
	uint8_t *from, *file; /* in the file: the number, then the records */
	struct uw_mr *m_from, *m_file;
	unsigned flushed; /* the number of the last record that was made persistent */
};

static struct log *now;

static size_t place_of(unsigned n)
{
	return 64 + n % PLACES * (size_t)RECORD;
}

static bool is_record(const struct log *l, unsigned n)
{
	for (unsigned i = 0; i < RECORD; i++)
		if (l->file[place_of(n) + i] != (uint8_t)(n + i))
			return false;
	return true;
}

/* In place of msync(): the record is there when it is made persistent. */
static bool persist(void *va, uint64_t len)
{
	now->flushed++;
	assert_ptr_equal(va, now->file + place_of(now->flushed));
	assert_int_equal(len, RECORD);
	assert_true(is_record(now, now->flushed));
	return true;
}

static uint64_t number(const struct log *l)
{
	uint64_t n;

	memcpy(&n, l->file, sizeof(n));
	return n;
}

static void *map_file(size_t n)
{
	FILE *f = tmpfile();
	void *p;

	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), (off_t)n), 0);
	p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	fclose(f);
	assert_true(p != MAP_FAILED);
	return p;
}

static void open_log(struct log *l, const struct sim_options *o)
{
	memset(l, 0, sizeof(*l));
	l->s = calloc(1, sizeof(*l->s));
	sim_open(l->s, o);
	sim_connect(l->s, 7471);
	l->from = calloc(1, SIZE);
	l->file = map_file(SIZE);
	l->m_from = sim_mr(&l->s->a, l->from, SIZE, RIGHTS);
	l->m_file = sim_mr(&l->s->b, l->file, SIZE, RIGHTS | FLUSHES);
	now = l;
}

static void close_log(struct log *l)
{
	assert_int_equal(uw_mr_dereg(l->m_from), 0);
	assert_int_equal(uw_mr_dereg(l->m_file), 0);
	munmap(l->file, SIZE);
	free(l->from);
	sim_close(l->s);
	free(l->s);
}

static void post(struct log *l, struct uw_send_wr wr, size_t to)
{
	wr.remote_addr = (uintptr_t)l->file + to;
	wr.rkey = uw_mr_stag(l->m_file);
	sim_post_send(&l->s->a, &wr);
}

static void append(struct log *l, unsigned n)
{
	struct uw_sge sge = { (uintptr_t)l->from, RECORD, uw_mr_stag(l->m_from) };
	const uint64_t value = n;
	struct uw_send_wr last = { .wr_id = n,
				   .opcode = UW_WR_ATOMIC_WRITE,
				   .flags = UW_SEND_SIGNALED };

	for (unsigned i = 0; i < RECORD; i++)
		l->from[i] = (uint8_t)(n + i);
	memcpy(&last.compare_add, &value, sizeof(value));
	post(l, (struct uw_send_wr){ .opcode = UW_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
	     place_of(n));
	post(l,
	     (struct uw_send_wr){ .opcode = UW_WR_FLUSH,
				  .compare_add = RECORD,
				  .swap = UW_FLUSH_WISH(UW_FLUSH_PERSISTENT, UW_FLUSH_RANGE) },
	     place_of(n));
	post(l, last, 0);
}

/* Asked again and again while time goes by. */
static bool is_there(void *arg)
{
	struct log *l = arg;
	uint64_t n = number(l);

	if (n != l->flushed)
		assert_int_equal(n + 1, l->flushed);
	else if (n)
		assert_true(is_record(l, (unsigned)n));
	return uw_cq_poll(l->s->a.scq, 1, &(struct uw_wc){ 0 }) == 1;
}

static void keep_log(const struct sim_options *o)
{
	struct log l;

	open_log(&l, o);
	l.s->a.pd->v->mem.persist = persist;
	for (unsigned n = 1; n <= RECORDS; n++) {
		append(&l, n);
		assert_true(sim_until(l.s, is_there, &l, 60000000));
		assert_int_equal(l.flushed, n);
		assert_int_equal(number(&l), n);
	}
	close_log(&l);
}

static void a_number_stands_behind_its_flushed_record(void **state)
{
	(void)state;
	keep_log(&(struct sim_options){ .mtu = 1500 });
	keep_log(&(struct sim_options){ .mtu = 9000, .roce = true });
}

static void also_with_faults(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		keep_log(&(struct sim_options){ .mtu = 1500,
						.drop_ppm = 10000,
						.dup_ppm = 10000,
						.reorder_ppm = 20000,
						.seed = seed });
}

/* The real one: a file on the disk; and only a file may be registered for it. */
static void a_file_is_written_back(void **state)
{
	struct uw_mr *mr;
	struct log l;
	struct uw_wc wc;

	(void)state;
	open_log(&l, &(struct sim_options){ .mtu = 1500 });
	append(&l, 1);
	wc = sim_wc(l.s, l.s->a.scq);
	assert_int_equal(wc.status, UW_WC_SUCCESS);
	assert_int_equal(wc.opcode, UW_WC_ATOMIC_WRITE);
	assert_true(is_record(&l, 1));
	assert_int_equal(uw_mr_reg(l.s->a.pd, l.from, SIZE, 0, RIGHTS | FLUSHES, &mr), -EINVAL);
	assert_int_equal(
		uw_mr_reg(l.s->a.pd, l.from, SIZE, 0, RIGHTS | UW_ACCESS_FLUSH_GLOBAL, &mr), 0);
	assert_int_equal(uw_mr_dereg(mr), 0);
	close_log(&l);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_stands_behind_its_flushed_record),
		cmocka_unit_test(also_with_faults),
		cmocka_unit_test(a_file_is_written_back),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
