/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attacks of RFC 5042 §6 by a peer that speaks verbs: it names any STag, address and length.
 * Each attack gets an error, changes and reads nothing that it may not, and ends its own connection
 * alone: a third connection of the victim's process goes on. doc/security.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "net.h"

#define LOCAL  UW_ACCESS_LOCAL_WRITE
#define WRITE  UW_ACCESS_REMOTE_WRITE
#define READ   UW_ACCESS_REMOTE_READ
#define ATOMIC UW_ACCESS_REMOTE_ATOMIC
#define ALL    (LOCAL | WRITE | READ | ATOMIC | UW_ACCESS_MW_BIND)

#define AREA   4096u /* octets that the victim registers, between two areas that it does not */
#define LONG   300000u
#define PORT   7471
#define SECRET 0x5e
#define MINE   0x11 /* what the attacker's memory holds */

/* s.a attacks s.b. Another pair of the same process, in a protection domain of its own, looks on.
 */
struct scene {
	struct sim s;
	struct sim_side friend[2];
	uint8_t *mine, *memory; /* the attacker's; the victim's, 3 areas */
	struct uw_mr *ma, *mb;	/* mb: the middle area, with all rights */
	uint8_t word[8];
	struct uw_mr *mword[2];
};

static struct scene *open_scene(const struct sim_options *o)
{
	struct scene *t = calloc(1, sizeof(*t));

	sim_open(&t->s, o);
	sim_connect(&t->s, PORT);
	for (unsigned i = 0; i < 2; i++)
		sim_open_side(&t->s, &t->friend[i], NULL);
	sim_connect_pair(&t->s, &t->friend[0], &t -> friend[1], PORT);
	t->mine = malloc(LONG);
	t->memory = malloc(3 * AREA);
	memset(t->mine, MINE, LONG);
	memset(t->memory, SECRET, 3 * AREA);
	t->ma = sim_mr(&t->s.a, t->mine, LONG, ALL);
	t->mb = sim_mr(&t->s.b, t->memory + AREA, AREA, ALL);
	for (unsigned i = 0; i < 2; i++)
		t->mword[i] = sim_mr(&t->friend[i], t -> word, sizeof(t->word), ALL);
	return t;
}

static void close_scene(struct scene *t)
{
	assert_int_equal(uw_mr_dereg(t->ma), 0);
	assert_int_equal(uw_mr_dereg(t->mb), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uw_mr_dereg(t->mword[i]), 0);
		sim_close_side(&t->friend[i]);
	}
	sim_close(&t->s);
	free(t->mine);
	free(t->memory);
	free(t);
}

static struct uw_wc attack(struct scene *t, struct uw_send_wr wr, uint32_t n)
{
	struct uw_sge sge = { (uintptr_t)t->mine, n, uw_mr_stag(t->ma) };

	wr.sg_list = &sge;
	wr.num_sge = n ? 1 : 0;
	wr.flags = UW_SEND_SIGNALED;
	sim_post_send(&t->s.a, &wr);
	return sim_wc(&t->s, t->s.a.scq);
}

static void friends_go_on(struct scene *t)
{
	struct uw_sge sge = { (uintptr_t)t->word, sizeof(t->word), uw_mr_stag(t->mword[0]) };
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};

	sim_post_recv(&t->friend[1], 1, t -> word, sizeof(t->word), t->mword[1]);
	sim_post_send(&t->friend[0], &wr);
	assert_int_equal(sim_wc(&t->s, t->friend[0].scq).status, UW_WC_SUCCESS);
	assert_int_equal(sim_wc(&t->s, t->friend[1].rcq).status, UW_WC_SUCCESS);
}

static void all_are(const uint8_t *p, size_t n, uint8_t value)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i], value);
}

/* The attack failed: the connection is gone, nothing was written or learnt, and nobody else
 * noticed. */
static void nothing_came_of_it(struct scene *t)
{
	sim_settle(&t->s);
	assert_int_equal(uw_qp_state(t->s.a.qp), UW_QPS_ERR);
	assert_int_equal(uw_qp_state(t->s.b.qp), UW_QPS_ERR);
	all_are(t->memory, 3 * AREA, SECRET);
	all_are(t->mine, LONG, MINE);
	friends_go_on(t);
}

/* ---- one request each ---------------------------------------------------------------------- */

enum aim {
	AT_REGION,	  /* the region with all rights */
	AT_OTHER_DOMAIN,  /* a region of the same memory in another protection domain */
	AT_OTHERS_WINDOW, /* a window of the same memory bound for another stream of this domain */
	AT_DEREGISTERED,  /* a region that was deregistered */
	AT_INVALIDATED,	  /* a window of this stream that was invalidated */
	AT_READ_ONLY,	  /* other STags of the same memory, with fewer rights */
	AT_WRITE_ONLY,
	AT_LOCAL_ONLY,
	AT_NOTHING, /* an STag that nobody registered */
};

struct attempt {
	const char *name;
	enum aim aim;
	uint32_t opcode;
	int64_t at; /* from the start of the area */
	uint32_t n;
};

static const struct attempt attempts[] = {
	/* RFC 5042 §6.1.1: an STag on a stream that it was not given to */
	{ "write, other domain", AT_OTHER_DOMAIN, UW_WR_RDMA_WRITE, 0, 8 },
	{ "read, other domain", AT_OTHER_DOMAIN, UW_WR_RDMA_READ, 0, 8 },
	{ "atomic, other domain", AT_OTHER_DOMAIN, UW_WR_ATOMIC_FETCH_AND_ADD, 0, 8 },
	{ "write, other's window", AT_OTHERS_WINDOW, UW_WR_RDMA_WRITE, 0, 8 },
	{ "read, other's window", AT_OTHERS_WINDOW, UW_WR_RDMA_READ, 0, 8 },
	/* RFC 5042 §6.2.1: writing beyond the buffer */
	{ "write, one octet too far", AT_REGION, UW_WR_RDMA_WRITE, AREA - 7, 8 },
	{ "write, from one before", AT_REGION, UW_WR_RDMA_WRITE, -1, 8 },
	{ "write, behind", AT_REGION, UW_WR_RDMA_WRITE, AREA, 8 },
	{ "write, far behind", AT_REGION, UW_WR_RDMA_WRITE, INT64_MAX, 8 },
	{ "write, no right", AT_READ_ONLY, UW_WR_RDMA_WRITE, 0, 8 },
	{ "atomic, across the end", AT_REGION, UW_WR_ATOMIC_FETCH_AND_ADD, AREA - 4, 8 },
	{ "atomic, no right", AT_READ_ONLY, UW_WR_ATOMIC_FETCH_AND_ADD, 0, 8 },
	/* RFC 5042 §6.2.2, §6.3.3: using the buffer after it was taken back */
	{ "write, deregistered", AT_DEREGISTERED, UW_WR_RDMA_WRITE, 0, 8 },
	{ "read, deregistered", AT_DEREGISTERED, UW_WR_RDMA_READ, 0, 8 },
	{ "write, invalidated", AT_INVALIDATED, UW_WR_RDMA_WRITE, 0, 8 },
	{ "read, invalidated", AT_INVALIDATED, UW_WR_RDMA_READ, 0, 8 },
	/* RFC 5042 §6.3.1: probing beyond the buffer */
	{ "read, one octet too far", AT_REGION, UW_WR_RDMA_READ, 1, AREA },
	{ "read, from one before", AT_REGION, UW_WR_RDMA_READ, -1, 8 },
	{ "read, behind", AT_REGION, UW_WR_RDMA_READ, AREA, 8 },
	{ "read, far too long", AT_REGION, UW_WR_RDMA_READ, 0, LONG },
	/* RFC 5042 §6.3.5: reading what is for writing alone */
	{ "read, write only", AT_WRITE_ONLY, UW_WR_RDMA_READ, 0, 8 },
	{ "read, local only", AT_LOCAL_ONLY, UW_WR_RDMA_READ, 0, 8 },
	{ "write, local only", AT_LOCAL_ONLY, UW_WR_RDMA_WRITE, 0, 8 },
	/* RFC 5040 §8.1.1: guessing an STag */
	{ "write, a guess", AT_NOTHING, UW_WR_RDMA_WRITE, 0, 8 },
	{ "read, a guess", AT_NOTHING, UW_WR_RDMA_READ, 0, 8 },
};

static uint32_t bound_to(struct scene *t, struct sim_side *owner, struct uw_mw *w)
{
	struct uw_send_wr wr = { .opcode = UW_WR_BIND_MW,
				 .flags = UW_SEND_SIGNALED,
				 .rkey = uw_mw_rkey(w) + 1,
				 .imm_or_inv = uw_mr_stag(t->mb),
				 .remote_addr = (uintptr_t)t->memory + AREA,
				 .swap = AREA,
				 .compare_add = WRITE | READ };

	sim_post_send(owner, &wr);
	assert_int_equal(sim_wc(&t->s, owner->scq).status, UW_WC_SUCCESS);
	return uw_mw_rkey(w);
}

static void invalidate(struct scene *t, struct sim_side *owner, uint32_t rkey)
{
	struct uw_send_wr wr = { .opcode = UW_WR_LOCAL_INV,
				 .flags = UW_SEND_SIGNALED,
				 .imm_or_inv = rkey };

	sim_post_send(owner, &wr);
	assert_int_equal(sim_wc(&t->s, owner->scq).status, UW_WC_SUCCESS);
}

/* What an attempt needs besides the scene. */
struct target {
	struct uw_mr *mr;
	struct uw_mw *mw;
	struct sim_side pair[2]; /* a second connection in the victim's domain */
	uint32_t rkey;
};

static void open_pair(struct scene *t, struct target *g)
{
	g->pair[1].pd = t->s.b.pd;
	for (unsigned i = 0; i < 2; i++)
		sim_open_side(&t->s, &g->pair[i], NULL);
	sim_connect_pair(&t->s, &g->pair[0], &g->pair[1], PORT);
}

static void close_pair(struct target *g)
{
	struct sim_side *second = &g->pair[1];

	sim_close_side(&g->pair[0]);
	assert_int_equal(uw_qp_destroy(second->qp), 0);
	uw_ep_destroy(second->ep);
	assert_int_equal(uw_cq_destroy(second->scq), 0);
	assert_int_equal(uw_cq_destroy(second->rcq), 0);
}

static struct uw_mr *area(struct scene *t, struct sim_side *side, unsigned rights)
{
	return sim_mr(side, t->memory + AREA, AREA, rights);
}

static void aim_at(struct scene *t, enum aim aim, struct target *g)
{
	static const unsigned rights[] = {
		[AT_READ_ONLY] = READ, [AT_WRITE_ONLY] = LOCAL | WRITE, [AT_LOCAL_ONLY] = LOCAL
	};

	memset(g, 0, sizeof(*g));
	switch (aim) {
	case AT_REGION:
		g->rkey = uw_mr_stag(t->mb);
		return;
	case AT_OTHER_DOMAIN:
		g->mr = area(t, &t->friend[1], ALL);
		break;
	case AT_OTHERS_WINDOW:
		open_pair(t, g);
		assert_int_equal(uw_mw_alloc(t->s.b.pd, 2, &g->mw), 0);
		g->rkey = bound_to(t, &g->pair[1], g->mw);
		return;
	case AT_DEREGISTERED:
		g->mr = area(t, &t->s.b, ALL);
		g->rkey = uw_mr_stag(g->mr);
		assert_int_equal(uw_mr_dereg(g->mr), 0);
		g->mr = NULL;
		return;
	case AT_INVALIDATED:
		assert_int_equal(uw_mw_alloc(t->s.b.pd, 2, &g->mw), 0);
		g->rkey = bound_to(t, &t->s.b, g->mw);
		invalidate(t, &t->s.b, g->rkey);
		return;
	case AT_READ_ONLY:
	case AT_WRITE_ONLY:
	case AT_LOCAL_ONLY:
		g->mr = area(t, &t->s.b, rights[aim]);
		break;
	case AT_NOTHING:
		g->rkey = uw_mr_stag(t->mb) ^ 0x100;
		return;
	}
	g->rkey = uw_mr_stag(g->mr);
}

static void forget(struct target *g)
{
	if (g->mw)
		assert_int_equal(uw_mw_dealloc(g->mw), 0);
	if (g->pair[1].qp)
		close_pair(g);
	if (g->mr)
		assert_int_equal(uw_mr_dereg(g->mr), 0);
}

static void one_request_at_what_it_may_not(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		const struct attempt *a = &attempts[i];
		struct scene *t = open_scene(&(struct sim_options){ 0 });
		struct target g;
		struct uw_wc wc;

		aim_at(t, a->aim, &g);
		wc = attack(t,
			    (struct uw_send_wr){ .opcode = a->opcode,
						 .rkey = g.rkey,
						 .remote_addr = (uintptr_t)t->memory + AREA +
								(uint64_t)a->at,
						 .compare_add = 1 },
			    a->n);
		/* A Write completes when it is sent: its refusal ends the connection behind it. */
		if (wc.status != UW_WC_REM_ACCESS_ERR && a->opcode != UW_WR_RDMA_WRITE)
			fail_msg("%s: status %u", a->name, wc.status);
		nothing_came_of_it(t);
		forget(&g);
		close_scene(t);
	}
}

/* The same requests, where they are allowed: what refuses them above is not the scene. */
static void what_is_allowed_works(void **state)
{
	struct scene *t = open_scene(&(struct sim_options){ 0 });
	struct uw_send_wr wr = { .opcode = UW_WR_RDMA_READ,
				 .rkey = uw_mr_stag(t->mb),
				 .remote_addr = (uintptr_t)t->memory + AREA };

	(void)state;
	assert_int_equal(attack(t, wr, AREA).status, UW_WC_SUCCESS);
	all_are(t->mine, AREA, SECRET);
	memset(t->mine, MINE, AREA);
	wr.opcode = UW_WR_RDMA_WRITE;
	assert_int_equal(attack(t, wr, AREA).status, UW_WC_SUCCESS);
	sim_settle(&t->s);
	all_are(t->memory + AREA, AREA, MINE);
	assert_int_equal(uw_qp_state(t->s.b.qp), UW_QPS_RTS);
	close_scene(t);
}

/* RFC 5042 §6.2.1: of a Write that begins in the buffer and goes on beyond its end, no octet is
 * placed beyond. */
static void a_long_write_stops_at_the_end(void **state)
{
	struct scene *t = open_scene(&(struct sim_options){ 0 });

	(void)state;
	attack(t,
	       (struct uw_send_wr){ .opcode = UW_WR_RDMA_WRITE,
				    .rkey = uw_mr_stag(t->mb),
				    .remote_addr = (uintptr_t)t->memory + AREA },
	       LONG);
	sim_settle(&t->s);
	assert_int_equal(t->memory[AREA], MINE);
	memset(t->memory + AREA, SECRET, AREA);
	nothing_came_of_it(t);
	close_scene(t);
}

/* ---- rights that are taken away ------------------------------------------------------------ */

/* RFC 5042 §6.2.3, §6.3.6: two STags for one buffer. Each has its own rights, and its own end. */
static void an_stag_that_goes_leaves_the_other_its_rights(void **state)
{
	struct scene *t = open_scene(&(struct sim_options){ 0 });
	struct uw_mr *second = area(t, &t->s.b, ALL);
	struct uw_send_wr wr = { .opcode = UW_WR_RDMA_READ,
				 .rkey = uw_mr_stag(second),
				 .remote_addr = (uintptr_t)t->memory + AREA };

	(void)state;
	assert_int_not_equal(uw_mr_stag(second), uw_mr_stag(t->mb));
	assert_int_equal(uw_mr_dereg(second), 0);
	wr.rkey = uw_mr_stag(t->mb);
	assert_int_equal(attack(t, wr, 8).status, UW_WC_SUCCESS);
	memset(t->mine, MINE, 8);
	wr.rkey ^= 0x80; /* the same region by another key */
	assert_int_equal(attack(t, wr, 8).status, UW_WC_REM_ACCESS_ERR);
	nothing_came_of_it(t);
	close_scene(t);
}

/* Pages of the victim's that can be unmapped, filled with a value. */
static uint8_t *long_area(struct scene *t, uint8_t value, struct uw_mr **mr)
{
	uint8_t *pages =
		mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	memset(pages, value, LONG);
	*mr = sim_mr(&t->s.b, pages, LONG, ALL);
	return pages;
}

/* The attacker's request for all of them; it is not waited for. */
static void post_long(struct scene *t, uint32_t opcode, const uint8_t *pages,
		      const struct uw_mr *mr)
{
	struct uw_sge sge = { (uintptr_t)t->mine, LONG, uw_mr_stag(t->ma) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .rkey = uw_mr_stag(mr),
				 .remote_addr = (uintptr_t)pages };

	if (opcode == UW_WR_RDMA_READ)
		wr.flags = UW_SEND_SIGNALED;
	sim_post_send(&t->s.a, &wr);
}

/* RFC 5042 §6.2.2: the victim takes a buffer back while a Write into it is under way, and its pages
 * away with it: whatever comes later would be a SIGSEGV. */
static void a_write_under_way_stops_with_the_deregistration(void **state)
{
	struct scene *t = open_scene(&(struct sim_options){ .delay_us = 500 });
	struct uw_mr *mr;
	uint8_t *pages = long_area(t, 0, &mr);

	(void)state;
	post_long(t, UW_WR_RDMA_WRITE, pages, mr);
	while (!pages[0])
		sim_run_us(&t->s, 100);
	assert_int_equal(pages[LONG - 1], 0); /* not all of it yet */
	assert_int_equal(uw_mr_dereg(mr), 0);
	assert_int_equal(munmap(pages, LONG), 0);
	nothing_came_of_it(t);
	close_scene(t);
}

/* RFC 5042 §6.3.3: a Read that waits for its answer does not get what was deregistered meanwhile.
 */
static void a_read_under_way_stops_with_the_deregistration(void **state)
{
	struct scene *t = open_scene(&(struct sim_options){ .delay_us = 500 });
	struct uw_mr *mr;
	uint8_t *pages = long_area(t, SECRET, &mr);

	(void)state;
	post_long(t, UW_WR_RDMA_READ, pages, mr);
	while (t->mine[0] == MINE)
		sim_run_us(&t->s, 100);
	assert_int_equal(uw_mr_dereg(mr), 0);
	assert_int_equal(munmap(pages, LONG), 0);
	assert_int_equal(sim_wc(&t->s, t->s.a.scq).status, UW_WC_REM_ACCESS_ERR);
	all_are(t->mine + LONG - 1, 1, MINE);
	friends_go_on(t);
	close_scene(t);
}

/* RFC 5042 §6.2.1: the sink of a Read is for its Response alone. The peer knows the sink's STag,
 * since the Request bears it, and writes to it. */
static void the_sink_of_a_read_takes_no_write(void **state)
{
	struct scene *t = open_scene(&(struct sim_options){ .delay_us = 2000 });
	struct uw_sge sge = { (uintptr_t)t->memory + AREA, AREA, uw_mr_stag(t->mb) };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_RDMA_READ,
				 .flags = UW_SEND_SIGNALED,
				 .rkey = uw_mr_stag(t->ma),
				 .remote_addr = (uintptr_t)t->mine };
	const struct rdmap_orq *orq = &t->s.b.qp->c.qp.rd.orq;

	(void)state;
	sim_post_send(&t->s.b, &wr);
	sim_run_us(&t->s, 100); /* the Request is on its way */
	assert_int_equal(orq->count, 1);
	attack(t, (struct uw_send_wr){ .opcode = UW_WR_RDMA_WRITE, .rkey = orq->v[orq->head].stag },
	       8);
	assert_int_equal(sim_wc(&t->s, t->s.b.scq).status, UW_WC_WR_FLUSH_ERR);
	nothing_came_of_it(t);
	close_scene(t);
}

/* RFC 5042 §6.5: rights that the program takes from a stream are gone, whatever its regions allow.
 */
static void a_stream_has_no_more_rights_than_its_qp(void **state)
{
	static const uint32_t opcodes[] = { UW_WR_RDMA_WRITE, UW_WR_RDMA_READ,
					    UW_WR_ATOMIC_FETCH_AND_ADD };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct scene *t = open_scene(&(struct sim_options){ 0 });

		assert_int_equal(uw_qp_set_access(t->s.b.qp, 0), 0);
		attack(t,
		       (struct uw_send_wr){ .opcode = opcodes[i],
					    .rkey = uw_mr_stag(t->mb),
					    .remote_addr = (uintptr_t)t->memory + AREA,
					    .compare_add = 1 },
		       8);
		nothing_came_of_it(t);
		close_scene(t);
	}
}

/* ---- remote invalidation --------------------------------------------------------------------- */

/* RFC 5042 §6.4.5: what more than one stream may use is not the peer's to invalidate: a region, a
 * window of another stream. */
static void remote_invalidation_reaches_its_own_window_alone(void **state)
{
	static const enum aim aims[] = { AT_REGION, AT_OTHER_DOMAIN, AT_OTHERS_WINDOW, AT_NOTHING };

	(void)state;
	for (unsigned i = 0; i < sizeof(aims) / sizeof(aims[0]); i++) {
		struct scene *t = open_scene(&(struct sim_options){ 0 });
		struct target g;
		struct uw_send_wr wr = { .opcode = UW_WR_SEND_WITH_INV };

		aim_at(t, aims[i], &g);
		wr.imm_or_inv = g.rkey;
		sim_post_recv(&t->s.b, 1, t->memory + AREA, 8, t->mb);
		attack(t, wr, 0);
		nothing_came_of_it(t);
		/* and it can still be used by whom it is for */
		if (g.mw)
			invalidate(t, &g.pair[1], g.rkey);
		forget(&g);
		close_scene(t);
	}
}

/* ---- what is shared -------------------------------------------------------------------------- */

static void on_overflow(void *ctx)
{
	++*(unsigned *)ctx;
}

/* RFC 5042 §6.4.3.2, §6.4.6: a peer floods a completion queue that the victim does not empty. Its
 * streams end; those of other queues do not notice. */
static void a_full_completion_queue_ends_its_own_streams(void **state)
{
	struct scene *t = open_scene(&(struct sim_options){ 0 });
	struct target g = { 0 };
	unsigned overflows = 0, done;
	struct uw_cq_attr ca = { .depth = 4, .error = on_overflow, .ctx = &overflows };
	struct uw_qp_attr qa = { .max_send_wr = 4, .max_recv_wr = 32, .max_recv_sge = 1 };
	struct sim_side *victim = &g.pair[1];
	struct uw_recv_wr rwr = { 0 };
	struct uw_send_wr wr = { .opcode = UW_WR_SEND };

	(void)state;
	sim_open_side(&t->s, &g.pair[0], NULL);
	victim->pd = t->s.b.pd;
	assert_int_equal(uw_cq_create(t->s.e, &ca, &victim->rcq), 0);
	ca.depth = 64;
	assert_int_equal(uw_cq_create(t->s.e, &ca, &victim->scq), 0);
	qa.send_cq = victim->scq;
	qa.recv_cq = victim->rcq;
	assert_int_equal(uw_qp_create(victim->pd, &qa, &victim->qp), 0);
	sim_connect_pair(&t->s, &g.pair[0], victim, PORT);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(uw_post_recv(victim->qp, &rwr, 1, &done), 0);
	for (unsigned i = 0; i < 32; i++)
		sim_post_send(&g.pair[0], &wr);
	sim_settle(&t->s);
	assert_int_equal(overflows, 1);
	assert_int_equal(uw_qp_state(victim->qp), UW_QPS_ERR);
	assert_int_equal(uw_qp_state(t->s.b.qp), UW_QPS_RTS);
	friends_go_on(t);
	close_pair(&g);
	close_scene(t);
}

/* RFC 5042 §6.4.3.1: one peer takes all receives of a shared queue. The program is told in time,
 * and the other stream waits until there are more. */
static void a_shared_receive_queue_tells_when_one_takes_all(void **state)
{
	struct scene *t = open_scene(&(struct sim_options){ 0 });
	struct sim_side from[2] = { 0 }, to[2] = { 0 };
	struct uw_srq_attr attr = { .max_wr = 16, .max_sge = 1, .event = sim_async };
	struct uw_send_wr wr = { .opcode = UW_WR_SEND };
	struct uw_recv_wr rwr = { 0 };
	struct sim_side told = { 0 };
	struct uw_srq *srq;
	struct uw_pd *pd;
	unsigned done;

	(void)state;
	attr.ctx = &told;
	assert_int_equal(uw_pd_alloc(t->s.e, &pd), 0);
	assert_int_equal(uw_srq_create(pd, &attr, &srq), 0);
	for (unsigned i = 0; i < 2; i++) {
		to[i].pd = pd;
		sim_open_side(&t->s, &from[i], NULL);
		sim_open_side(&t->s, &to[i], srq);
		sim_connect_pair(&t->s, &from[i], &to[i], PORT);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(uw_srq_post_recv(srq, &rwr, 1, &done), 0);
	assert_int_equal(uw_srq_set_limit(srq, 4), 0);
	for (unsigned i = 0; i < 20; i++) /* the greedy one */
		sim_post_send(&from[0], &wr);
	sim_run_us(&t->s, 100000);
	assert_int_equal(told.async[UW_EVENT_SRQ_LIMIT_REACHED], 1);
	sim_post_send(&from[1], &wr);
	sim_run_us(&t->s, 100000);
	for (unsigned i = 0; i < 4; i++) /* it has its turn among the greedy one's */
		assert_int_equal(uw_srq_post_recv(srq, &rwr, 1, &done), 0);
	assert_int_equal(sim_wc(&t->s, to[1].rcq).status, UW_WC_SUCCESS);
	friends_go_on(t);
	for (unsigned i = 0; i < 2; i++) {
		struct target g = { 0 };

		g.pair[0] = from[i];
		g.pair[1] = to[i];
		close_pair(&g);
	}
	assert_int_equal(uw_srq_destroy(srq), 0);
	assert_int_equal(uw_pd_dealloc(pd), 0);
	close_scene(t);
}

/* ---- STags ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

#define STAGS 4096u

/* RFC 5040 §8.1.1: sparse, no arithmetic between one and the next, not used again soon. */
static void stags_cannot_be_guessed(void **state)
{
	static uint32_t seen[2 * STAGS], step[2 * STAGS];
	struct scene *t = open_scene(&(struct sim_options){ 0 });
	unsigned high = 0, equal = 0;

	(void)state;
	for (unsigned i = 0; i < 2 * STAGS; i++) { /* each is gone before the next is there */
		struct uw_mr *mr = area(t, &t->s.b, ALL);

		seen[i] = uw_mr_stag(mr);
		step[i] = i ? seen[i] - seen[i - 1] : 0;
		high += seen[i] >> 31;
		assert_int_equal(uw_mr_dereg(mr), 0);
	}
	/* half of them in the upper half, within six standard deviations */
	assert_in_range(high, STAGS - 6 * 46, STAGS + 6 * 46);
	qsort(step, 2 * STAGS, sizeof(step[0]), by_value);
	for (unsigned i = 1; i < 2 * STAGS; i++)
		equal += step[i] == step[i - 1];
	assert_true(equal < 8); /* a counter has one step, or few */
	qsort(seen, 2 * STAGS, sizeof(seen[0]), by_value);
	for (unsigned i = equal = 0; i + 1 < 2 * STAGS; i++)
		equal += seen[i] >> 8 == seen[i + 1] >> 8;
	assert_true(equal < 16); /* of 2^24: two are expected by chance */
	close_scene(t);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_allowed_works),
		cmocka_unit_test(one_request_at_what_it_may_not),
		cmocka_unit_test(a_long_write_stops_at_the_end),
		cmocka_unit_test(an_stag_that_goes_leaves_the_other_its_rights),
		cmocka_unit_test(a_write_under_way_stops_with_the_deregistration),
		cmocka_unit_test(a_read_under_way_stops_with_the_deregistration),
		cmocka_unit_test(the_sink_of_a_read_takes_no_write),
		cmocka_unit_test(a_stream_has_no_more_rights_than_its_qp),
		cmocka_unit_test(remote_invalidation_reaches_its_own_window_alone),
		cmocka_unit_test(a_full_completion_queue_ends_its_own_streams),
		cmocka_unit_test(a_shared_receive_queue_tells_when_one_takes_all),
		cmocka_unit_test(stags_cannot_be_guessed),
	};

	if (argc > 1) /* one test alone, for looking closely */
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
