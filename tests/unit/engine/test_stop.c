/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the engine's process: other threads, and destructors that come later, may still ask.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "conn/conn_qp.h"
#include "engine/engine.h"
#include "uwtest.h"

#define MTU 4242u

struct asker {
	struct uw_engine *e;
	_Atomic unsigned asked;
	_Atomic bool stop;
};

static struct uw_engine *start_engine(void)
{
	struct uw_engine *e;
	struct uw_config c;

	assert_int_equal(uw_config_from_env(&c), 0);
	strcpy(c.transport, "raw");
	strcpy(c.link, "loop");
	c.mtu = MTU;
	assert_int_equal(uw_engine_open(&c, &e), 0);
	assert_int_equal(uw_engine_start(e), 0);
	return e;
}

static void ask(struct uw_engine *e)
{
	struct uw_device_attr a;

	uw_engine_query(e, &a);
	assert_int_equal(a.mtu, MTU);
	assert_true(a.n_gids > 0 && a.guid);
}

/* The program holds nothing: the context that it has open is not the engine's to know. */
static void an_ended_engine_is_there_for_who_goes_on(void **state)
{
	struct uw_engine *e = start_engine();
	const struct uw_cq_attr ca = { .depth = 16 };
	struct uw_cq *cq;
	struct uw_pd *pd;

	(void)state;
	uw_engine_end(e);
	assert_true(uw_engine_started(e)); /* and is not started again */
	assert_int_equal(e->stack[0]->n_links, 0);
	ask(e);
	assert_int_equal(uw_pd_alloc(e, &pd), 0);
	assert_int_equal(uw_cq_create(e, &ca, &cq), 0);
	assert_int_equal(uw_cq_destroy(cq), 0);
	assert_int_equal(uw_pd_dealloc(pd), 0);
	engine_free(e);
}

static void *ask_often(void *arg)
{
	struct asker *k = arg;

	while (!atomic_load(&k->stop)) {
		ask(k->e);
		atomic_fetch_add(&k->asked, 1);
	}
	return NULL;
}

static void await_answers(struct asker *k)
{
	unsigned from = atomic_load(&k->asked);

	while (atomic_load(&k->asked) - from < 10)
		sched_yield();
}

/* The link goes while they look at it. */
static void who_asks_meanwhile_is_answered(void **state)
{
	struct asker k = { .e = start_engine() };
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, ask_often, &k), 0);
	await_answers(&k);
	uw_engine_end(k.e);
	await_answers(&k);
	atomic_store(&k.stop, true);
	assert_int_equal(pthread_join(t, NULL), 0);
	engine_free(k.e);
}

/* ---- a disk that hangs ------------------------------------------------------------------------
 */

static sem_t asked, mended;

static bool hang(void *va, uint64_t len)
{
	(void)va;
	(void)len;
	sem_post(&asked);
	while (sem_wait(&mended))
		;
	return true;
}

static void ignore(struct ring_entry *r)
{
	(void)r;
}

static void flush(struct uw_engine *e, struct conn_qp *q)
{
	struct sched *s = &e->stack[0]->sched;

	atomic_init(&q->ring.home, s);
	q->ring.fn = ignore;
	sched_lock_all(s);
	assert_int_equal(persister_start(&e->conn, hang), UW_OK);
	assert_int_equal(persist_for_qp(&q->qp, q, 1), UW_MORE);
	sched_unlock_all(s);
	while (sem_wait(&asked))
		;
}

/* Its process ends, and what the thread has is not freed. */
static void a_disk_may_hang_for_good(void **state)
{
	struct uw_engine *e = start_engine();
	static struct conn_qp q;

	(void)state;
	sem_init(&asked, 0, 0);
	sem_init(&mended, 0, 0);
	flush(e, &q);
	uw_engine_close(e);
	ask(e);
	assert_int_equal(persist_state(&q), PERSIST_WAITS);
	sem_post(&mended);
	assert_true(persister_stop(&e->conn, 60000000));
	assert_int_equal(persist_state(&q), PERSIST_DONE);
	engine_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ended_engine_is_there_for_who_goes_on),
		cmocka_unit_test(who_asks_meanwhile_is_answered),
		cmocka_unit_test(a_disk_may_hang_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
