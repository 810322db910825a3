/* SPDX-License-Identifier: BSD-3-Clause */
/* A FLUSH that waits for its disk: its connection waits, and nobody else does (doc/adr/0033). */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "net.h"

#define SIZE	  4096u
#define FILE_SIZE (3 * SIZE) /* the region begins as its first page */
#define RNR_MS	  100u	     /* shorter than disks take here: not for FLUSHes */
#define PORT	  7471
#define RIGHTS	  (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define FLUSHES	  (UW_ACCESS_FLUSH_GLOBAL | UW_ACCESS_FLUSH_PERSISTENT)

/* The disk, in place of msync(). */
static struct {
	sem_t asked, done;
	_Atomic unsigned times;
	_Atomic bool hung; /* nobody let it go on */
	bool fails;
	void *_Atomic va; /* of the last one; before asked */
	_Atomic uint64_t len;
} disk;

static bool comes(sem_t *s)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += 60;
	return !sem_clockwait(s, CLOCK_MONOTONIC, &t);
}

static bool persist(void *va, uint64_t len)
{
	disk.va = va;
	disk.len = len;
	disk.times++;
	sem_post(&disk.asked);
	if (!comes(&disk.done))
		disk.hung = true;
	return !disk.fails;
}

struct bench {
	struct sim s;
	struct sim_side c, d; /* one more pair */
	uint8_t *file, *m;
	struct uw_mr *m_file, *m_file_d, *m_a, *m_b, *m_c, *m_d;
};

static void map_file(struct bench *t)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), FILE_SIZE), 0);
	t->file = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	fclose(f);
	assert_true(t->file != MAP_FAILED);
}

/* Makes the thread, as where nobody runs the stacks by hand. */
static void register_file(struct bench *t)
{
	struct conn_domain *d = &t->s.e->conn;

	d->manual = false;
	t->m_file = sim_mr(&t->s.b, t->file, SIZE, RIGHTS | UW_ACCESS_FLUSH_GLOBAL);
	assert_null(d->persister);
	assert_int_equal(uw_mr_dereg(t->m_file), 0);
	t->m_file = sim_mr(&t->s.b, t->file, SIZE, RIGHTS | FLUSHES);
	assert_non_null(d->persister);
	t->m_file_d = sim_mr(&t->d, t->file, SIZE, RIGHTS | FLUSHES);
	d->manual = true;
}

static struct bench *start(void)
{
	struct bench *t = calloc(1, sizeof(*t));
	struct sim *s = &t->s;

	disk.times = 0;
	disk.hung = disk.fails = false;
	sem_init(&disk.asked, 0, 0);
	sem_init(&disk.done, 0, 0);
	sim_open(s, &(struct sim_options){ .mtu = 1500, .rnr_ms = RNR_MS });
	sim_connect(s, PORT);
	sim_open_side(s, &t->c, NULL);
	sim_open_side(s, &t->d, NULL);
	sim_connect_pair(s, &t->c, &t->d, PORT);
	map_file(t);
	t->m = calloc(1, SIZE);
	s->e->verbs.mem.persist = persist;
	register_file(t);
	t->m_a = sim_mr(&s->a, t->m, SIZE, RIGHTS);
	t->m_b = sim_mr(&s->b, t->m, SIZE, RIGHTS);
	t->m_c = sim_mr(&t->c, t->m, SIZE, RIGHTS);
	t->m_d = sim_mr(&t->d, t->m, SIZE, RIGHTS);
	sim_threads_start(s);
	return t;
}

static void stop(struct bench *t)
{
	sim_threads_stop(&t->s);
	if (t->m_file)
		assert_int_equal(uw_mr_dereg(t->m_file), 0);
	assert_int_equal(uw_mr_dereg(t->m_file_d), 0);
	assert_int_equal(uw_mr_dereg(t->m_a), 0);
	assert_int_equal(uw_mr_dereg(t->m_b), 0);
	assert_int_equal(uw_mr_dereg(t->m_c), 0);
	assert_int_equal(uw_mr_dereg(t->m_d), 0);
	sim_close_side(&t->c);
	sim_close_side(&t->d);
	sim_close(&t->s);
	assert_false(disk.hung);
	munmap(t->file, FILE_SIZE);
	free(t->m);
	free(t);
}

static void flush_from(struct sim_side *from, struct uw_mr *mr, uint8_t *at, uint64_t id,
		       unsigned what)
{
	struct uw_send_wr wr = { .wr_id = id,
				 .opcode = UW_WR_FLUSH,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)at,
				 .rkey = uw_mr_stag(mr),
				 .compare_add = SIZE,
				 .swap = UW_FLUSH_WISH(UW_FLUSH_PERSISTENT, what) };

	sim_post_send(from, &wr);
}

static void flush(struct bench *t, uint64_t id)
{
	flush_from(&t->s.a, t->m_file, t->file, id, UW_FLUSH_RANGE);
}

/* The thread, or on defective stacks whoever has the lock, waits for the disk from here on. */
static void until_asked(void)
{
	assert_true(comes(&disk.asked));
}

static void send_to(struct sim_side *from, struct uw_mr *mr, uint8_t *p)
{
	struct uw_sge sge = { (uintptr_t)p, 8, uw_mr_stag(mr) };
	struct uw_send_wr wr = { .wr_id = 77,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_SEND,
				 .flags = UW_SEND_SIGNALED };

	sim_post_send(from, &wr);
}

static struct uw_wc poll_one(struct uw_cq *cq)
{
	struct uw_wc wc;

	while (!uw_cq_poll(cq, 1, &wc))
		;
	return wc;
}

static void turn_of_others(struct bench *t)
{
	sim_post_recv(&t->d, 5, t->m + 64, 8, t->m_d);
	send_to(&t->c, t->m_c, t->m);
	assert_int_equal(poll_one(t->d.rcq).status, UW_WC_SUCCESS);
	assert_int_equal(poll_one(t->c.scq).status, UW_WC_SUCCESS);
}

/* Others exchange messages; what came behind the FLUSH is delivered after it, and its answer too.
 */
static void others_go_on(void **state)
{
	struct bench *t = start();
	struct uw_wc wc;

	(void)state;
	sim_post_recv(&t->s.b, 9, t->m + 128, 8, t->m_b);
	flush(t, 1);
	send_to(&t->s.a, t->m_a, t->m);
	flush(t, 2);
	until_asked();
	for (unsigned i = 0; i < 20; i++)
		turn_of_others(t);
	assert_false(disk.hung);
	assert_int_equal(uw_cq_poll(t->s.b.rcq, 1, &wc), 0);
	assert_int_equal(disk.times, 1);
	sem_post(&disk.done);
	assert_int_equal(poll_one(t->s.b.rcq).wr_id, 9);
	wc = poll_one(t->s.a.scq);
	if (wc.wr_id == 77) /* a Send is complete when TCP has it */
		wc = poll_one(t->s.a.scq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, UW_WC_SUCCESS);
	until_asked();
	turn_of_others(t);
	sem_post(&disk.done);
	wc = poll_one(t->s.a.scq);
	if (wc.wr_id == 77)
		wc = poll_one(t->s.a.scq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, UW_WC_SUCCESS);
	assert_int_equal(disk.times, 2);
	stop(t);
}

static bool is_never(void *arg)
{
	(void)arg;
	return false;
}

static void a_disk_takes_as_long_as_it_takes(void **state)
{
	struct bench *t = start();

	(void)state;
	flush(t, 1);
	until_asked();
	assert_false(sim_until(&t->s, is_never, NULL, 3 * RNR_MS * 1000));
	sem_post(&disk.done);
	assert_int_equal(poll_one(t->s.a.scq).status, UW_WC_SUCCESS);
	stop(t);
}

static void a_disk_that_fails_is_told(void **state)
{
	struct bench *t = start();

	(void)state;
	disk.fails = true;
	flush(t, 1);
	until_asked();
	turn_of_others(t);
	sem_post(&disk.done);
	assert_int_equal(poll_one(t->s.a.scq).status, UW_WC_REM_OP_ERR);
	stop(t);
}

/* What was not begun is forgotten, and what was tells nobody. */
static void the_qp_goes_meanwhile(void **state)
{
	struct bench *t = start();

	(void)state;
	flush(t, 1);
	until_asked();
	assert_int_equal(uw_qp_destroy(t->s.b.qp), 0);
	t->s.b.qp = NULL;
	assert_false(disk.hung);
	assert_true(poll_one(t->s.a.scq).status != UW_WC_SUCCESS);
	sem_post(&disk.done);
	turn_of_others(t);
	stop(t);
}

static bool waits(void *arg)
{
	struct bench *t = arg;
	bool yes;

	sched_lock_all(&t->s.e->stack[0]->sched);
	yes = persist_state((struct conn_qp *)t->d.qp) == PERSIST_WAITS;
	sched_unlock_all(&t->s.e->stack[0]->sched);
	return yes;
}

/* What was not begun is never begun. */
static void the_qp_goes_before_its_turn(void **state)
{
	struct bench *t = start();

	(void)state;
	flush(t, 1);
	until_asked();
	flush_from(&t->c, t->m_file_d, t->file, 1, UW_FLUSH_RANGE);
	assert_true(sim_until(&t->s, waits, t, 20000000));
	assert_int_equal(uw_qp_destroy(t->d.qp), 0);
	t->d.qp = NULL;
	assert_true(poll_one(t->c.scq).status != UW_WC_SUCCESS);
	for (unsigned i = 0; i < 3; i++)
		sem_post(&disk.done);
	flush(t, 2);
	assert_int_equal(poll_one(t->s.a.scq).wr_id, 1);
	assert_int_equal(poll_one(t->s.a.scq).wr_id, 2);
	assert_int_equal(disk.times, 2);
	stop(t);
}

static void until_asked_for(uint8_t *va, uint64_t len)
{
	until_asked();
	assert_ptr_equal(disk.va, va);
	assert_int_equal(disk.len, len);
}

static void change(struct bench *t, uint8_t *to, uint64_t len)
{
	const struct uw_mr_change c = {
		.move = true, .addr = to, .len = len, .iova = (uintptr_t)t->file
	};

	assert_int_equal(uw_mr_change(t->m_file, &c), 0);
}

/* What the region is when the answer is given is on the disk. */
static void the_region_moves_meanwhile(void **state)
{
	struct bench *t = start();

	(void)state;
	flush_from(&t->s.a, t->m_file, t->file, 1, UW_FLUSH_MR);
	until_asked_for(t->file, SIZE);
	change(t, t->file + SIZE, SIZE);
	sem_post(&disk.done);
	until_asked_for(t->file + SIZE, SIZE);
	change(t, t->file + SIZE, 2 * SIZE);
	sem_post(&disk.done);
	until_asked_for(t->file + SIZE, 2 * SIZE);
	sem_post(&disk.done);
	assert_int_equal(poll_one(t->s.a.scq).status, UW_WC_SUCCESS);
	assert_int_equal(disk.times, 3);
	stop(t);
}

static void the_region_goes_meanwhile(void **state)
{
	struct bench *t = start();

	(void)state;
	flush(t, 1);
	until_asked();
	assert_int_equal(uw_mr_dereg(t->m_file), 0);
	t->m_file = NULL;
	assert_false(disk.hung);
	sem_post(&disk.done);
	assert_int_equal(poll_one(t->s.a.scq).status, UW_WC_REM_ACCESS_ERR);
	stop(t);
}

static bool ended(void *arg)
{
	const struct sim *s = arg;
	bool had;

	sched_lock_all(&s->e->stack[0]->sched); /* its events are entered under one of them */
	had = sim_had(&s->b, UW_CM_DISCONNECTED);
	sched_unlock_all(&s->e->stack[0]->sched);
	return had;
}

/* Who closes behind it: the program hears of the end after the FLUSH. */
static void the_peer_closes_behind_it(void **state)
{
	struct bench *t = start();

	(void)state;
	flush(t, 1);
	until_asked();
	assert_int_equal(uw_qp_destroy(t->s.a.qp), 0);
	t->s.a.qp = NULL;
	turn_of_others(t);
	/* Longer than a FIN waits behind a Send without a receive. */
	assert_false(sim_until(&t->s, ended, &t->s, 1500000));
	sem_post(&disk.done);
	assert_true(sim_until(&t->s, ended, &t->s, 20000000));
	stop(t);
}

/* Our Read's answer stands behind the peer's FLUSH: it is our disk that takes its time. */
static void a_disconnect_waits_for_it(void **state)
{
	struct bench *t = start();
	struct uw_sge sge = { (uintptr_t)t->m + 128, 8, uw_mr_stag(t->m_b) };
	const struct uw_send_wr wr = { .wr_id = 6,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = UW_WR_RDMA_READ,
				       .flags = UW_SEND_SIGNALED,
				       .remote_addr = (uintptr_t)t->m,
				       .rkey = uw_mr_stag(t->m_a) };

	(void)state;
	flush(t, 1);
	until_asked();
	sim_post_send(&t->s.b, &wr);
	assert_int_equal(uw_ep_disconnect(t->s.b.ep), 0);
	assert_false(sim_until(&t->s, ended, &t->s, 2500000));
	sem_post(&disk.done);
	assert_int_equal(poll_one(t->s.b.scq).status, UW_WC_SUCCESS);
	assert_int_equal(poll_one(t->s.a.scq).status, UW_WC_SUCCESS);
	assert_true(sim_until(&t->s, ended, &t->s, 20000000));
	stop(t);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_go_on),
		cmocka_unit_test(a_disk_takes_as_long_as_it_takes),
		cmocka_unit_test(a_disk_that_fails_is_told),
		cmocka_unit_test(the_qp_goes_meanwhile),
		cmocka_unit_test(the_qp_goes_before_its_turn),
		cmocka_unit_test(the_region_moves_meanwhile),
		cmocka_unit_test(the_region_goes_meanwhile),
		cmocka_unit_test(the_peer_closes_behind_it),
		cmocka_unit_test(a_disconnect_waits_for_it),
	};

	return sim_run_tests(tests, argc, argv);
}
