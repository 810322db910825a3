/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <arpa/inet.h>

#include "io/addr.h"

/* ---- what the rooms around it do ---------------------------------------------------------- */

static unsigned run(void *stack, bool comes_back)
{
	stack_transmit(stack, comes_back ? LLP_ACKS_URGENT : LLP_ACKS_ALL);
	return 0;
}

static void flush(void *stack)
{
	stack_flush(stack);
}

static void timers(void *stack, uint64_t now_us)
{
	stack_timers(stack, now_us);
}

static bool pending(void *stack, bool links)
{
	return stack_pending(stack, links);
}

static uint64_t next_timer_us(void *stack, uint64_t now_us)
{
	return stack_next_timer_us(stack, now_us);
}

static const struct sched_ops ops = { .run = run,
				      .flush = flush,
				      .timers = timers,
				      .pending = pending,
				      .next_timer_us = next_timer_us };

static uint64_t now_us(void *arg)
{
	return ((struct world *)arg)->now_us;
}

static void fill(void *arg, void *p, size_t n)
{
	struct prng r = { ++*(uint64_t *)arg };

	for (unsigned i = 0; i < 8; i++)
		prng_next(&r);
	prng_fill(&r, p, n);
}

static struct conn_qp *find_qp(void *arg, uint32_t qpn)
{
	struct world *w = arg;

	return qpn < COUNT(w->qp) ? w->qp[qpn] : NULL;
}

static void steer(void *arg, bool ip6, uint16_t port, int to)
{
	struct world *w = arg;

	w->steered[w->n_steered++ % COUNT(w->steered)] = (struct steered){ ip6, port, to };
}

/* ---- stacks ------------------------------------------------------------------------------- */

static const struct io_ops no_ops = { .name = "none" };

static void open_links(struct world_stack *ws)
{
	for (unsigned i = 0; i < STACK_LINKS; i++) {
		ws->link[i].ops = &no_ops;
		ws->link[i].addr = htonl(0x0a000001 + i);
		ws->link[i].mask = htonl(0xffffff00);
		ws->s.links[i] = &ws->link[i];
	}
	ws->s.n_links = STACK_LINKS;
}

static void open_stack(struct world *w, unsigned i)
{
	struct world_stack *ws = &w->stack[i];
	struct sched *sched = &ws->s.sched;

	ws->w = w;
	ws->random = 7 + i;
	ws->s.random.fill = fill;
	ws->s.random.arg = &ws->random;
	sched->ops = &ops;
	sched->stack = &ws->s;
	sched->model = sched_thread_model(UW_THREADS_C3);
	sched->index = i;
	sched->first = &w->stack[0].s.sched;
	sched->next = i + 1 < w->n ? &w->stack[i + 1].s.sched : NULL;
	sched->now_us = now_us;
	sched->now_arg = w;
	sched_init(sched);
	stack_set_up(&ws->s, &w->d, &fake_llp_ops);
	open_links(ws);
}

struct world *world_open(unsigned n_stacks)
{
	struct world *w = aligned_alloc(64, (sizeof(*w) + 63) & ~(size_t)63);
	struct conn_hooks hooks = { .find_qp = find_qp, .find_qp_arg = w };

	assert_non_null(w);
	memset(w, 0, sizeof(*w));
	fake_llp_reset();
	assert_int_equal(uw_config_from_env(&w->cfg), 0);
	w->cfg.stacks = n_stacks;
	w->cfg.connect_ms = 1000;
	w->cfg.rnr_ms = 2000;
	w->n = n_stacks;
	w->now_us = 1000000;
	if (n_stacks > 1) {
		hooks.steer = steer;
		hooks.steer_arg = w;
	}
	mem_table_init(&w->mem, w->regions, COUNT(w->regions));
	w->d.manual = true;
	w->d.first = &w->stack[0].s;
	assert_status(conn_domain_init(&w->d, &w->cfg, &hooks), UW_OK);
	for (unsigned i = 0; i < n_stacks; i++)
		open_stack(w, i);
	return w;
}

void world_close(struct world *w)
{
	while (w->d.eps)
		ep_free(w->d.eps);
	for (unsigned i = 0; i < w->n; i++) {
		while (w->stack[i].s.conns)
			conn_free(w->stack[i].s.conns);
	}
	conn_domain_free(&w->d);
	free(w);
	fake_llp_reset();
}

/* ---- QPs ---------------------------------------------------------------------------------- */

static void on_event(void *ctx, enum uw_event ev)
{
	((struct world_qp *)ctx)->events[ev]++;
}

static void set_rq(struct rq *rq, uint8_t *slots)
{
	rq->slots = slots;
	rq->depth = WORLD_QUEUE;
	rq->mask = WORLD_QUEUE - 1;
	rq->max_sge = 1;
	rq->slot_size = rq_slot_size(1);
	assert_true(rq->slot_size <= 64);
}

void world_srq(struct rnr_srq *srq, uint8_t *slots)
{
	memset(srq, 0, sizeof(*srq));
	set_rq(&srq->rq, slots);
}

static void set_cq(struct cq *cq, struct cqe *ring)
{
	cq->ring = ring;
	cq->depth = 4 * WORLD_QUEUE;
	cq->mask = cq->depth - 1;
}

struct world_qp *world_qp(struct world *w, unsigned num, struct rnr_srq *srq)
{
	struct world_qp *q = aligned_alloc(64, (sizeof(*q) + 63) & ~(size_t)63);
	struct qp_setup setup = { .num = num,
				  .pd = 1,
				  .srq = srq ? &srq->rq : NULL,
				  .rnr_wait = true,
				  .mem = &w->mem,
				  .stats = &w->stack[0].s.sched.stats };

	assert_non_null(q);
	memset(q, 0, sizeof(*q));
	setup.scq = &q->scq;
	setup.rcq = &q->rcq;
	set_cq(&q->scq, q->swc);
	set_cq(&q->rcq, q->rwc);
	q->c.qp.sq.slots = q->sq_slots;
	q->c.qp.sq.depth = WORLD_QUEUE;
	q->c.qp.sq.mask = WORLD_QUEUE - 1;
	q->c.qp.sq.max_sge = 1;
	q->c.qp.sq.max_inline = 32;
	q->c.qp.sq.slot_size = sq_slot_size(1, 32);
	assert_true(q->c.qp.sq.slot_size <= 128);
	if (!srq)
		set_rq(&q->c.qp.own_rq, q->rq_slots);
	q->c.qp.taken = q->taken;
	q->c.srq = srq;
	qp_init(&q->c.qp, &setup);
	q->c.qp.event = on_event;
	q->c.qp.event_ctx = q;
	q->c.ring.fn = conn_qp_posted;
	atomic_init(&q->c.ring.home, &w->stack[0].s.sched);
	if (num < COUNT(w->qp))
		w->qp[num] = &q->c;
	return q;
}

void world_qp_free(struct world_qp *q)
{
	if (q->c.conn)
		conn_qp_down(&q->c, UW_E_FLUSHED);
	conn_qp_forget(&q->c);
	free(q->c.stream);
	free(q->c.scratch);
	free(q);
}

void world_post_recv(struct rq *rq, uint64_t wr_id)
{
	const struct uw_recv_wr wr = { .wr_id = wr_id };

	assert_status(rq_post(rq, &wr), UW_OK);
}

void world_post_write(struct world_qp *q, uint64_t wr_id, unsigned n)
{
	static uint8_t data[32];
	const struct uw_sge sge = { (uintptr_t)data, n, 0 };
	const struct uw_send_wr wr = { .wr_id = wr_id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = UW_WR_RDMA_WRITE,
				       .flags = UW_SEND_INLINE };

	assert_status(sq_post(&q->c.qp.sq, &wr), UW_OK);
}

/* ---- connections -------------------------------------------------------------------------- */

struct conn *world_streaming(struct world *w, unsigned stack, struct world_qp *q)
{
	struct conn *c = conn_create(&w->stack[stack].s, CONN_INITIATOR);
	const struct mpa_agreed agreed = { .rev = 2, .crc = true };
	const struct qp_stream s = { .agreed = &agreed, .initiator = true };

	assert_non_null(c);
	c->l = c->stack->links[0];
	conn_qp_move(&q->c, c->stack);
	c->llp = fake_llp_conn(c);
	assert_status(qp_start(&q->c.qp, &s), UW_OK);
	conn_enter(c, CONN_STARTING);
	conn_enter(c, CONN_STREAMING);
	c->qp = &q->c;
	q->c.conn = c;
	return c;
}
