/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include "io/addr.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cutting.h"
#include "io/impair/link.h"
#include "io/rate.h"
#include "queues.h"

#ifdef __SANITIZE_THREAD__
/* lwIP's sequential API: netconn.flags has one bit that lwIP's thread clears and another that its
 * users read, which never changes; and whether anybody else still holds a segment is asked without
 * its lock: who finds one held sends it again later. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race_top:sent_tcp\nrace_top:netconn_write_vectors_partly\n"
	       "race_top:tcp_output_segment_busy\n";
}
#endif

uint64_t sim_real_us(void *arg)
{
	struct timespec t;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void sim_threads_start(struct sim *s)
{
	s->real = sim_real_us;
	if (!s->wall)
		s->real_offset_us = s->now_us - sim_real_us(NULL);
	for (unsigned i = 0; i < s->e->n_stacks; i++) {
		struct sched *sched = &s->e->stack[i]->sched;

		assert_int_equal(sched_thread_start(sched, true), 0);
		atomic_store(&sched->started, true);
	}
}

void sim_threads_stop(struct sim *s)
{
	for (unsigned i = 0; i < s->e->n_stacks; i++) {
		sched_thread_stop(&s->e->stack[i]->sched);
		atomic_store(&s->e->stack[i]->sched.started, false);
	}
	s->now_us = sim_real_us(NULL) + s->real_offset_us;
	if (!s->wall)
		s->real = NULL;
}

static uint64_t sim_now(void *arg)
{
	struct sim *s = arg;

	return s->real ? s->real(NULL) + s->real_offset_us : s->now_us;
}

static uint64_t sim_now_ns(void *arg)
{
	return sim_now(arg) * 1000;
}

bool sim_event(void *ctx, const struct uw_cm_event *ev)
{
	struct sim_side *side = ctx;

	if (side->n_events < SIM_EVENTS) {
		side->events[side->n_events] = ev->type;
		side->errors[side->n_events++] = ev->error;
	}
	side->param = ev->param;
	if (ev->param.private_data_len) {
		side->pd_len = ev->param.private_data_len;
		memcpy(side->pd_got, ev->param.private_data, side->pd_len);
	}
	if (ev->type != UW_CM_CONNECT_REQUEST)
		return true;
	if (!side->declines)
		side->request = ev->ep;
	return !side->declines;
}

void sim_async(void *ctx, enum uw_event ev)
{
	((struct sim_side *)ctx)->async[ev]++;
}

void sim_open_side(struct sim *s, struct sim_side *side, struct uw_srq *srq)
{
	const struct sim_options *o = &s->opt;
	uint32_t depth = o->depth ? o->depth : 64;
	struct uw_cq_attr ca = { .depth = o->cq_depth ? o->cq_depth : 4 * depth,
				 .notify = o->notify,
				 .ctx = side };
	struct uw_qp_attr qa = { .max_send_wr = depth,
				 .max_recv_wr = depth,
				 .max_send_sge = 4,
				 .max_recv_sge = 4,
				 .max_inline = 128,
				 .srq = srq,
				 .event = sim_async,
				 .ctx = side };

	if (!side->pd) /* an SRQ has brought its own */
		assert_int_equal(uw_pd_alloc(s->e, &side->pd), 0);
	assert_int_equal(uw_cq_create(s->e, &ca, &side->scq), 0);
	assert_int_equal(uw_cq_create(s->e, &ca, &side->rcq), 0);
	qa.send_cq = side->scq;
	qa.recv_cq = side->rcq;
	assert_int_equal(uw_qp_create(side->pd, &qa, &side->qp), 0);
}

static struct uw_ip ip6_of(uint32_t end)
{
	return (struct uw_ip){ .b = { 0xfd, [15] = (uint8_t)end } };
}

/* UWARP_STACKS: each has a queue of each end. */
static void show_all(struct io_link *const *links, struct io_link *const *shown, unsigned stacks,
		     struct io_link **all)
{
	struct io_link *queue[QUEUES_MAX];

	for (unsigned i = 0; i < 2; i++) {
		if (stacks == 1)
			queue[0] = shown[i];
		else
			queues_open(shown[i], links[i], stacks, queue);
		for (unsigned k = 0; k < stacks; k++)
			all[2 * k + i] = queue[k];
	}
}

static struct io_link *impair(struct sim *s, struct io_link *l, const char *text)
{
	struct impair_link_config c = { .now_ns = sim_now_ns, .arg = s };
	struct io_link *out;
	char why[256];

	assert_null(impair_parse(text, &c.options, why, sizeof(why)));
	assert_int_equal(impair_open(l, &c, &out), UW_OK);
	return out;
}

#define BEGINNING_US 1000000u

/* When the next run begins: lwIP's clock is the process's, and goes on. In whole seconds, so that
 * the ticks of each run are the same. */
static uint64_t begins_us = BEGINNING_US;

void sim_rewind(void)
{
	begins_us = BEGINNING_US;
}

void sim_open(struct sim *s, const struct sim_options *o)
{
	struct loop_config lc = { .mtu = o->mtu ? o->mtu : 1500,
				  .addr = { htonl(SIM_A), htonl(SIM_B) },
				  .mask = htonl(0xffffff00),
				  .now_us = sim_now,
				  .arg = s,
				  .flags = o->direct ? IO_P2P : 0,
				  .delay_us = o->delay_us ? o->delay_us : 50,
				  .drop_ppm = o->drop_ppm,
				  .dup_ppm = o->dup_ppm,
				  .reorder_ppm = o->reorder_ppm,
				  .reorder_us = 400,
				  .seed = o->seed,
				  .max_frames = o->frames };
	struct io_link *shown[2], *all[2 * QUEUES_MAX];
	struct uw_config cfg;

	memset(s, 0, sizeof(*s));
	s->opt = *o;
	s->now_us = begins_us;
	assert_int_equal(uw_config_from_env(&cfg), 0);
	s->wall = cfg.transport[0] && strcmp(cfg.transport, "raw");
	if (s->wall) {
		s->real = sim_real_us;
		s->now_us = sim_real_us(NULL);
	}
	cfg.crc = o->no_crc ? UW_CRC_OFF : UW_CRC_ON;
	cfg.mpa_rev = o->rev1 ? 1 : 2;
	cfg.p2p = !o->no_p2p;
	cfg.markers = o->markers;
	cfg.roce = o->roce;
	if (o->rnr_ms)
		cfg.rnr_ms = o->rnr_ms;
	cfg.speak_first_ms = o->speak_first_ms;
	cfg.threads = o->threads;
	cfg.connect_ms = o->connect_ms ? o->connect_ms : 30000;
	assert_int_equal(loop_open_pair(&lc, NULL, s->link), 0);
	for (unsigned i = 0; o->ip6 && i < 2; i++) {
		const struct uw_net six = { ip6_of(SIM_A + i), 64 };

		io_set_ip6(s->link[i], &six, 1);
	}
	for (unsigned i = 0; i < 2; i++) {
		shown[i] = s->link[i];
		if (o->bps)
			assert_int_equal(rate_open(s->link[i], o->bps, sim_now_ns, s, &shown[i]),
					 UW_OK);
		if (o->impair[i])
			shown[i] = s->impaired[i] = impair(s, shown[i], o->impair[i]);
		if (o->cuts)
			shown[i] = s->cutting[i] =
				cutting_open(shown[i], s->link[i], o->cuts, i ? 0 : o->smalls);
	}
	show_all(s->link, shown, cfg.stacks, all);
	assert_int_equal(engine_open_manual(&cfg, all, 2, sim_now, s, &s->e), 0);
	if (s->wall) /* other ports than those that are in TIME_WAIT */
		*(uint64_t *)s->e->stack[0]->random.arg = s->now_us;
	sim_open_side(s, &s->a, NULL);
	sim_open_side(s, &s->b, NULL);
}

void sim_close_side(struct sim_side *side)
{
	if (side->qp)
		assert_int_equal(uw_qp_destroy(side->qp), 0);
	if (side->ep)
		uw_ep_destroy(side->ep);
	assert_int_equal(uw_cq_destroy(side->scq), 0);
	assert_int_equal(uw_cq_destroy(side->rcq), 0);
	assert_int_equal(uw_pd_dealloc(side->pd), 0);
}

static bool all_back(void *arg)
{
	struct sim *s = arg;
	bool all;

	sched_lock_all(&s->e->stack[0]->sched);
	all = !loop_frames_out(s->link[0]) && !loop_frames_out(s->link[1]);
	for (unsigned i = 0; i < s->e->n_stacks; i++)
		all = all && !s->e->stack[i]->llp->lingering();
	sched_unlock_all(&s->e->stack[0]->sched);
	return all;
}

void sim_close(struct sim *s)
{
	sim_close_side(&s->a);
	sim_close_side(&s->b);
	if (s->listener.ep)
		uw_ep_destroy(s->listener.ep);
	if (s->wall)
		sim_until(s, all_back, s, 30000000);
	else
		sim_run_us(s, 30000000); /* FINs, TIME_WAIT */
	assert_int_equal(loop_frames_out(s->link[0]), 0);
	assert_int_equal(loop_frames_out(s->link[1]), 0);
	uw_engine_close(s->e);
	if (!s->wall)
		begins_us = (s->now_us / 1000000 + 1) * 1000000;
}

struct uw_stats sim_stats(const struct sim *s)
{
	struct uw_stats sum = { 0 };
	uint64_t *to = (uint64_t *)&sum;

	static_assert(sizeof(sum) % sizeof(*to) == 0, "counters alone");
	for (unsigned k = 0; k < s->e->n_stacks; k++) {
		for (size_t i = 0; i < sizeof(sum) / sizeof(*to); i++)
			to[i] += ((const uint64_t *)&s->e->stack[k]->sched.stats)[i];
	}
	return sum;
}

/* ---- time -------------------------------------------------------------------------------- */

static void step_real(struct sim *s, bool idle)
{
	struct timespec t = { .tv_nsec = 20000 };

	if (idle)
		nanosleep(&t, NULL);
	s->now_us = sim_now(s);
}

static uint64_t handed(const struct stack *s)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < s->n_links; i++)
		n += s->links[i]->stats.handed;
	return n;
}

/* What one stack takes in or hands over may be another's to go on with. */
static uint64_t run_all(struct sim *s)
{
	uint64_t work = 0;

	for (unsigned i = 0; i < s->e->n_stacks; i++) {
		struct stack *stack = s->e->stack[i];
		uint64_t before;

		sched_lock(&stack->sched);
		before = handed(stack); /* threads may run it, too */
		work += sched_run(&stack->sched) + handed(stack) - before;
		sched_unlock(&stack->sched);
	}
	return work;
}

static void step(struct sim *s)
{
	uint64_t next = s->now_us + 1000, at;
	bool idle = true;

	while (run_all(s))
		idle = false;
	if (s->real) {
		step_real(s, idle);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		at = loop_next_us(s->link[i]);
		if (at < next)
			next = at;
		at = s->impaired[i] ? impair_next_ns(s->impaired[i]) / 1000 + 1 : next;
		if (at < next)
			next = at;
	}
	s->now_us = next > s->now_us ? next : s->now_us + 1;
}

void sim_run_us(struct sim *s, uint64_t us)
{
	uint64_t end = s->now_us + us;

	while (s->now_us < end)
		step(s);
}

void sim_settle(struct sim *s)
{
	sim_run_us(s, s->wall ? 100000 : 1000000);
}

bool sim_until(struct sim *s, bool (*cond)(void *arg), void *arg, uint64_t limit_us)
{
	uint64_t end = s->now_us + limit_us;

	while (!cond(arg)) {
		if (s->now_us >= end)
			return false;
		step(s);
	}
	return true;
}

/* ---- connections -------------------------------------------------------------------------- */

struct sockaddr_storage sim_addr(const struct sim *s, uint32_t end, uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *four = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&a;
	struct uw_ip ip = ip6_of(end);

	if (s->opt.ip6) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		memcpy(&six->sin6_addr, &ip, sizeof(ip));
	} else {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		four->sin_addr.s_addr = htonl(end);
	}
	return a;
}

void sim_listen(struct sim *s, uint16_t port)
{
	struct sockaddr_storage any = sim_addr(s, SIM_B, port);

	assert_int_equal(uw_ep_create(s->e, sim_event, &s->listener, &s->listener.ep), 0);
	assert_int_equal(uw_ep_bind(s->listener.ep, (struct sockaddr *)&any), 0);
	assert_int_equal(uw_ep_listen(s->listener.ep, 16), 0);
}

bool sim_had(const struct sim_side *side, enum uw_cm_event_type type)
{
	for (unsigned i = 0; i < side->n_events; i++) {
		if (side->events[i] == type)
			return true;
	}
	return false;
}

static bool requested(void *arg)
{
	return ((struct sim *)arg)->listener.request != NULL;
}

static bool established(void *arg)
{
	return sim_had(arg, UW_CM_ESTABLISHED);
}

void sim_connect(struct sim *s, uint16_t port)
{
	sim_connect_pair(s, &s->a, &s->b, port);
}

void sim_connect_pair(struct sim *s, struct sim_side *a, struct sim_side *b, uint16_t port)
{
	struct sockaddr_storage from = sim_addr(s, s->opt.self ? SIM_B : SIM_A, s->opt.from_port),
				to = sim_addr(s, SIM_B, port);
	uint8_t reads = s->opt.reads ? s->opt.reads : 4;
	struct uw_cm_param p = { .private_data = "hello",
				 .private_data_len = 5,
				 .ird = reads,
				 .ord = reads,
				 .rnr_for_ever = s->opt.rnr_for_ever };

	if (!s->listener.ep)
		sim_listen(s, port);
	s->listener.request = NULL;
	assert_int_equal(uw_ep_create(s->e, sim_event, a, &a->ep), 0);
	assert_int_equal(uw_ep_bind(a->ep, (struct sockaddr *)&from), 0);
	assert_int_equal(uw_ep_resolve(a->ep, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(uw_ep_connect(a->ep, uw_qp_num(a->qp), &p), 0);
	assert_true(sim_until(s, requested, s, 60000000));
	b->ep = s->listener.request;
	uw_ep_set_ctx(b->ep, b);
	p.private_data = "welcome";
	p.private_data_len = 7;
	assert_int_equal(uw_ep_accept(b->ep, uw_qp_num(b->qp), &p), 0);
	assert_true(sim_had(b, UW_CM_ESTABLISHED));
	assert_true(sim_until(s, established, a, 60000000));
}

/* ---- verbs ------------------------------------------------------------------------------- */

int sim_name_peer(struct uw_qp *qp, uint32_t own, uint32_t addr, uint32_t qpn)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(addr) };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(own) };
	struct uw_peer p = { .addr = (struct sockaddr *)&to,
			     .from = (struct sockaddr *)&from,
			     .qpn = qpn,
			     .ird = 4 };

	return uw_qp_name_peer(qp, &p);
}

struct uw_mr *sim_mr(struct sim_side *side, void *p, size_t n, unsigned access)
{
	struct uw_mr *mr = NULL;

	assert_int_equal(uw_mr_reg(side->pd, p, n, (uintptr_t)p, access, &mr), 0);
	return mr;
}

struct waiting {
	struct uw_cq *cq;
	struct uw_wc wc;
};

static bool completed(void *arg)
{
	struct waiting *w = arg;

	return uw_cq_poll(w->cq, 1, &w->wc) == 1;
}

struct uw_wc sim_wc(struct sim *s, struct uw_cq *cq)
{
	struct waiting w = { .cq = cq };

	assert_true(sim_until(s, completed, &w, 60000000));
	return w.wc;
}

void sim_post_send(struct sim_side *side, const struct uw_send_wr *wr)
{
	unsigned done;

	assert_int_equal(uw_post_send(side->qp, wr, 1, &done), 0);
	assert_int_equal(done, 1);
}

void sim_post_recv(struct sim_side *side, uint64_t id, void *p, uint32_t n, struct uw_mr *mr)
{
	struct uw_sge sge = { (uintptr_t)p, n, uw_mr_stag(mr) };
	struct uw_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	unsigned done;

	assert_int_equal(uw_post_recv(side->qp, &wr, 1, &done), 0);
}

/* ---- the tests of a file ------------------------------------------------------------------- */

static bool passes(const struct CMUnitTest *t)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		exit(_cmocka_run_group_tests("tests", t, 1, NULL, NULL));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status))
		print_error("%s ended by signal %d\n", t->name, WTERMSIG(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

int sim_run_each(const struct CMUnitTest *tests, size_t n, int argc, char **argv)
{
	int failed = 0;

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (argc > 1 || !getenv("UWARP_TRANSPORT"))
		return _cmocka_run_group_tests("tests", tests, n, NULL, NULL);
	for (size_t i = 0; i < n; i++)
		failed += !passes(&tests[i]);
	return failed;
}
