/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the engine's process: other threads, and destructors that come later, may still ask.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "conn/conn_qp.h"
#include "conn/dgram/dgram.h"
#include "conn/endpoint.h"
#include "engine/engine.h"
#include "uwtest.h"

#define MTU   4242u
#define SCOPE 7u

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

/* ---- calls into a link ------------------------------------------------------------------------
 */

static struct io_ops ops;
static void (*close_loop)(struct io_link *l);
static _Atomic unsigned within, closed_within, closed;

/* Long enough for the engine's end to come meanwhile. */
static uw_status dawdle(void)
{
	const struct timespec pause = { .tv_nsec = 300000000 };

	atomic_fetch_add(&within, 1);
	nanosleep(&pause, NULL);
	atomic_fetch_sub(&within, 1);
	return UW_OK;
}

static uw_status slow_resolve(struct io_link *l, struct uw_ip *to, uint16_t port, unsigned ms)
{
	(void)l;
	(void)to;
	(void)port;
	(void)ms;
	return dawdle();
}

static uw_status slow_claim(struct io_link *l, uint16_t port, unsigned versions)
{
	(void)l;
	(void)port;
	(void)versions;
	return dawdle();
}

static void slow_release(struct io_link *l, uint16_t port, unsigned versions)
{
	(void)slow_claim(l, port, versions);
}

static uw_status slow_group(struct io_link *l, const struct uw_ip *group, bool in)
{
	(void)l;
	(void)group;
	(void)in;
	return dawdle();
}

static void close_slow(struct io_link *l)
{
	closed_within += within;
	closed++;
	close_loop(l);
}

/* Its links' calls are slow. */
static struct uw_engine *start_slow_engine(void)
{
	struct uw_engine *e = start_engine();
	struct io_link *l = e->stack[0]->links[0];

	sched_lock_all(&e->stack[0]->sched);
	ops = *l->ops;
	close_loop = ops.close;
	ops.resolve = slow_resolve;
	ops.claim_port = slow_claim;
	ops.release_port = slow_release;
	ops.group = slow_group;
	ops.close = close_slow;
	l->ops = &ops;
	closed = closed_within = 0;
	sched_unlock_all(&e->stack[0]->sched);
	return e;
}

static bool ignore_event(void *ctx, const struct uw_cm_event *ev)
{
	(void)ctx;
	(void)ev;
	return false;
}

static const struct sockaddr_in own = { .sin_family = AF_INET,
					.sin_addr = { 0x0100007f } /* 127.0.0.1 */ };
static const struct sockaddr_in other = { .sin_family = AF_INET,
					  .sin_port = 0x1234,
					  .sin_addr = { 0x0101a8c0 } };

static struct uw_ep *endpoint(struct uw_engine *e)
{
	struct uw_ep *ep;

	assert_int_equal(uw_ep_create(e, ignore_event, NULL, &ep), 0);
	return ep;
}

/* What a thread asks of a link is answered, or refused; only the first answer is looked at. */
static void *listens(void *arg)
{
	struct uw_ep *ep = endpoint(arg);

	assert_int_equal(uw_ep_bind(ep, (const struct sockaddr *)&own), 0);
	uw_ep_listen(ep, 1);
	uw_ep_destroy(ep);
	return NULL;
}

static void *unlistens(void *arg)
{
	uw_ep_destroy(arg);
	return NULL;
}

static void *resolves(void *arg)
{
	struct uw_ep *ep = endpoint(arg);

	uw_ep_resolve(ep, NULL, (const struct sockaddr *)&other, 1000);
	uw_ep_destroy(ep);
	return NULL;
}

static void *addresses(void *arg)
{
	const struct uw_ah_attr a = { .addr = (const struct sockaddr *)&other };
	struct uw_ah ah;
	struct uw_pd *pd;

	assert_int_equal(uw_pd_alloc(arg, &pd), 0);
	uw_ah_make(pd, &a, &ah);
	uw_pd_dealloc(pd);
	return NULL;
}

static void *joins(void *arg)
{
	const struct uw_ip group = uw_ip_v4(0x010203ef);
	struct uw_engine *e = arg;
	uw_status st = dgram_tell_links(e->stack[0], &group, true);

	(void)st;
	return NULL;
}

static void end_within(struct uw_engine *e, void *(*fn)(void *), void *arg)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, fn, arg), 0);
	while (!atomic_load(&within))
		sched_yield();
	uw_engine_end(e);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(closed, 1);
	assert_int_equal(closed_within, 0);
	engine_free(e);
}

static void a_link_is_not_closed_within_a_call(void **state)
{
	static void *(*const calls[])(void *) = { listens, resolves, addresses, joins };
	struct uw_engine *e;
	struct uw_ep *ep;

	(void)state;
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		e = start_slow_engine();
		end_within(e, calls[i], e);
	}
	e = start_slow_engine();
	ep = endpoint(e);
	assert_int_equal(uw_ep_bind(ep, (const struct sockaddr *)&own), 0);
	assert_int_equal(uw_ep_listen(ep, 1), 0);
	end_within(e, unlistens, ep);
}

/* Who asks what an endpoint's address is does not look at a link that has gone. */
static void an_endpoint_knows_its_address(void **state)
{
	struct uw_engine *e = start_engine();
	struct uw_ep *ep = endpoint(e);
	struct sockaddr_storage a = { 0 };

	(void)state;
	e->stack[0]->links[0]->scope = SCOPE;
	assert_int_equal(uw_ep_bind(ep, (const struct sockaddr *)&own), 0);
	ep->local = (struct uw_ip){ { 0xfe, 0x80 } };
	uw_engine_end(e);
	uw_ep_local_addr(ep, &a);
	assert_int_equal(((struct sockaddr_in6 *)&a)->sin6_scope_id, SCOPE);
	uw_ep_destroy(ep);
	engine_free(e);
}

/* The process ends all the same. */
static void a_call_may_hang_for_good(void **state)
{
	struct uw_engine *e = start_slow_engine();
	struct io_link *l = e->stack[0]->links[0];

	(void)state;
	sched_lock_all(&e->stack[0]->sched);
	assert_true(stack_hold_links(e->stack[0]));
	sched_unlock_all(&e->stack[0]->sched);
	uw_engine_end(e);
	assert_int_equal(closed, 0);
	assert_int_equal(e->stack[0]->n_links, 0);
	ask(e);
	stack_let_links_go(e->stack[0]);
	close_loop(l); /* what the end of a process does */
	engine_free(e);
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
		cmocka_unit_test(a_link_is_not_closed_within_a_call),
		cmocka_unit_test(an_endpoint_knows_its_address),
		cmocka_unit_test(a_call_may_hang_for_good),
		cmocka_unit_test(a_disk_may_hang_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
