/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: traffic server|client ADDRESS PORT SEED SECONDS OCTETS
 *
 * Both ends start operations of every kind and of sizes from 1 octet to 1 MiB at each other, up to
 * WINDOW at a time, until SECONDS are over or this end has OCTETS (0: no limit). Every octet that
 * arrives is compared with what must be there, and what lies behind it must be untouched. Every
 * completion must come once and in order. Nothing for HANG_S is a hang. Public verbs alone.
 *
 * An end confirms what it has checked by writing a number into the other's memory.
 */
#include "traffic.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HANG_S	 60.0
#define LINGER_S 0.05
void fail(const char *fmt, ...)
{
	va_list ap;

	printf("FAILED: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	_Exit(1);
}

double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static struct operation mine(const struct traffic *t, uint64_t number)
{
	return plan(t->seed, t->end, number);
}

static struct operation theirs(const struct traffic *t, uint64_t number)
{
	return plan(t->seed, !t->end, number);
}

/* The number of the other's next operation, from `number` on, that the receive queue hears of. */
static uint64_t next_received(const struct traffic *t, uint64_t number)
{
	while (!plan_receives(theirs(t, number).kind))
		number++;
	return number;
}

/* ---- receives ---------------------------------------------------------------------------- */

/* Receives hold one operation after the other, so which one a buffer is for is known: what lies
 * behind its octets is guarded. */
static void post_recv(struct traffic *t)
{
	unsigned slot = (unsigned)(t->recv_posted % WINDOW);
	struct ibv_sge v = { (uintptr_t)t->own->received[slot], SIZE_MAX_OCTETS, t->mr_own->lkey };
	struct ibv_recv_wr wr = { .wr_id = OF_RECEIVE | t->recv_posted,
				  .sg_list = &v,
				  .num_sge = 1 },
			   *bad;

	if (ibv_post_recv(t->id->qp, &wr, &bad))
		fail("ibv_post_recv: %m");
	t->recv_posted++;
}

void traffic_post_recvs(struct traffic *t)
{
	t->recv_posted = t->recv_completed = 0;
	for (unsigned i = 0; i < WINDOW; i++)
		post_recv(t);
}

/* ---- posting ----------------------------------------------------------------------------- */

static bool room(const struct traffic *t, unsigned n)
{
	return t->posted - t->completed + n <= SEND_WR;
}

static void post(struct traffic *t, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(t->id->qp, wr, &bad);

	if (err)
		fail("ibv_post_send: %s", strerror(err));
	t->ledger[t->posted++ % SEND_WR] = wr->wr_id;
}

static void aim(struct ibv_send_wr *wr, const struct traffic *t, size_t at)
{
	wr->wr.rdma.remote_addr = t->other.base + at;
	wr->wr.rdma.rkey = t->other.rkey;
}

static void write_word(struct traffic *t, uint64_t id, size_t at, uint64_t value)
{
	uint64_t *from = &t->own->confirm[t->confirms++ % SEND_WR];
	struct ibv_sge v = { (uintptr_t)from, 8, t->mr_own->lkey };
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &v,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_INLINE };

	*from = value;
	aim(&wr, t, at);
	post(t, &wr);
}

/* The key's lowest octet is the owner's to choose: one more each time (ibv_inc_rkey). */
static uint32_t window_key(uint32_t first, unsigned n)
{
	return (first & ~0xffu) | ((first + n) & 0xff);
}

/* The next SEND_WITH_INV invalidates it. */
static void bind_window(struct traffic *t)
{
	struct ibv_send_wr wr = { .wr_id = OF_BIND | t->n_bound, .opcode = IBV_WR_BIND_MW };

	wr.bind_mw.mw = t->mw;
	t->n_bound++;
	wr.bind_mw.rkey = ibv_inc_rkey(t->mw->rkey);
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ t->mr_shared, (uintptr_t)t->shared->window, SLOT,
					   IBV_ACCESS_REMOTE_WRITE };
	post(t, &wr);
}

static void post_atomic(struct traffic *t, const struct operation *op, unsigned slot)
{
	struct ibv_sge v = { (uintptr_t)&t->own->old[slot], 8, t->mr_own->lkey };
	struct ibv_send_wr wr = { .wr_id = OF_OPERATION | t->started, .sg_list = &v, .num_sge = 1 };

	wr.wr.atomic.rkey = t->other.rkey;
	t->own->old[slot] = ~0ull;
	if (op->kind == FETCH_ADD) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = t->other.base + offsetof(struct shared, added);
		wr.wr.atomic.compare_add = op->key;
	} else {
		wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.remote_addr = t->other.base + offsetof(struct shared, swapped);
		/* every fourth one compares with what is not there */
		wr.wr.atomic.compare_add = t->swapped + (op->key % 4 == 0);
		wr.wr.atomic.swap = op->key;
	}
	post(t, &wr);
}

/* A Write says nothing at the other end: a Send of no octets follows. */
static void post_tell(struct traffic *t)
{
	struct ibv_send_wr wr = { .wr_id = OF_TELL | t->started, .opcode = IBV_WR_SEND };

	post(t, &wr);
}

static void post_transfer(struct traffic *t, const struct operation *op, unsigned slot)
{
	static const enum ibv_wr_opcode codes[] = { [SEND] = IBV_WR_SEND,
						    [SEND_IMM] = IBV_WR_SEND_WITH_IMM,
						    [SEND_INV] = IBV_WR_SEND_WITH_INV,
						    [WRITE] = IBV_WR_RDMA_WRITE,
						    [WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
						    [READ] = IBV_WR_RDMA_READ };
	struct ibv_sge v = { (uintptr_t)t->own->slot[slot], op->size, t->mr_own->lkey };
	struct ibv_send_wr wr = { .wr_id = OF_OPERATION | t->started,
				  .sg_list = &v,
				  .num_sge = 1,
				  .opcode = codes[op->kind] };

	if (op->kind == READ) {
		pattern_fill(~op->key, t->own->slot[slot], op->size);
		guard_fill(t->own->slot[slot] + op->size);
		aim(&wr, t, offsetof(struct shared, readable));
	} else {
		pattern_fill(op->key, t->own->slot[slot], op->size);
		if (op->inlined && op->size <= 128)
			wr.send_flags |= IBV_SEND_INLINE;
	}
	if (op->kind == WRITE || op->kind == WRITE_IMM)
		aim(&wr, t, offsetof(struct shared, written) + slot * (size_t)SLOT);
	if (op->kind == SEND_INV) {
		wr.invalidate_rkey = window_key(t->other.mw_rkey, ++t->n_inv);
		t->last_inv = t->started + 1;
	} else {
		wr.imm_data = htonl((uint32_t)t->started);
	}
	post(t, &wr);
	if (op->kind == WRITE)
		post_tell(t);
}

/* ---- the one who starts ------------------------------------------------------------------ */

/* Its own completion and, where the other must look at it, the other's word. */
static bool is_over(const struct traffic *t, uint64_t number)
{
	return t->finished[number % WINDOW] &&
	       (!plan_receives(mine(t, number).kind) || load(&t->shared->checked) > number + 1);
}

static bool enough(const struct traffic *t)
{
	return seconds() - t->start > t->seconds ||
	       (t->octets_wanted && t->octets >= t->octets_wanted);
}

static void retire(struct traffic *t)
{
	while (t->done < t->started && is_over(t, t->done)) {
		t->finished[t->done % WINDOW] = false;
		t->done++;
	}
}

static void start_one(struct traffic *t, const struct operation *op)
{
	unsigned slot = (unsigned)(t->started % WINDOW);

	if (op->kind >= FETCH_ADD)
		post_atomic(t, op, slot);
	else
		post_transfer(t, op, slot);
	t->started++;
}

/* One swap, and one window to be invalidated, at a time: the next one's values depend on it. */
static bool may_start(const struct traffic *t, const struct operation *op)
{
	if (op->kind == SEND_INV)
		return t->last_inv <= t->done;
	return op->kind < FETCH_ADD || t->done == t->started;
}

static void start_more(struct traffic *t)
{
	retire(t);
	if (t->total == UINT64_MAX && enough(t))
		t->total = t->started;
	while (t->started < t->total && t->started - t->done < WINDOW && room(t, 2)) {
		struct operation op = mine(t, t->started);

		if (!may_start(t, &op))
			return;
		start_one(t, &op);
	}
	if (t->done == t->total && !t->told_total && room(t, 1)) {
		t->told_total = true;
		write_word(t, OF_CONFIRM, offsetof(struct shared, total), t->total + 1);
	}
}

static void check_octets(const struct operation *op, const char *where, uint64_t number,
			 uint64_t key, const uint8_t *p)
{
	size_t good = pattern_check(key, p, op->size);

	if (good != op->size)
		fail("wrong octet %zu of %u in %s of operation %lu (%s)", good, op->size, where,
		     (unsigned long)number, kind_name(op->kind));
}

static void check_guard(const struct operation *op, const char *where, uint64_t number,
			const uint8_t *p)
{
	if (!guard_intact(p + op->size))
		fail("octets behind the %u in %s of operation %lu (%s) were written", op->size,
		     where, (unsigned long)number, kind_name(op->kind));
}

static void count(struct traffic *t, const struct operation *op)
{
	t->octets += op->size;
	t->operations++;
	t->covered[op->cell] = true;
}

static void check_atomic(struct traffic *t, const struct operation *op, uint64_t number)
{
	uint64_t *expected = op->kind == FETCH_ADD ? &t->added : &t->swapped;
	uint64_t old = t->own->old[number % WINDOW];

	if (old != *expected)
		fail("operation %lu (%s): the word was %lx, not %lx: done twice or not at all",
		     (unsigned long)number, kind_name(op->kind), (unsigned long)old,
		     (unsigned long)*expected);
	if (op->kind == FETCH_ADD)
		*expected += op->key;
	else if (op->key % 4)
		*expected = op->key;
	count(t, op);
}

/* The completion of an operation of ours. */
static void finish(struct traffic *t, uint64_t number)
{
	struct operation op = mine(t, number);
	const uint8_t *p = t->own->slot[number % WINDOW];

	if (op.kind >= FETCH_ADD) {
		check_atomic(t, &op, number);
	} else if (op.kind == READ) {
		check_octets(&op, "the sink", number, mix(t->seed * 2 + !t->end), p);
		check_guard(&op, "the sink", number, p);
		count(t, &op);
	}
	t->finished[number % WINDOW] = true;
}

/* ---- the target -------------------------------------------------------------------------- */

/* The buffers that the other's operations may write to before the next one that is expected has
 * been confirmed: other octets in them, guards behind them. */
static void guard_buffers(struct traffic *t)
{
	for (; t->guarded < t->expected + WINDOW; t->guarded++) {
		struct operation op = theirs(t, t->guarded);
		uint8_t *p = t->shared->written[t->guarded % WINDOW];

		if (op.kind != WRITE && op.kind != WRITE_IMM)
			continue;
		pattern_fill(~op.key, p, op.size);
		guard_fill(p + op.size);
	}
}

static void check_message(const struct operation *op, const struct ibv_wc *wc, uint64_t number,
			  uint32_t key)
{
	bool imm = op->kind == SEND_IMM || op->kind == WRITE_IMM;
	enum ibv_wc_opcode code = op->kind == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	uint32_t len = op->kind == WRITE ? 0 : op->size;

	if (wc->opcode != code || wc->byte_len != len)
		fail("operation %lu (%s, %u octets): receive of kind %d with %u octets",
		     (unsigned long)number, kind_name(op->kind), len, wc->opcode, wc->byte_len);
	if (imm && (!(wc->wc_flags & IBV_WC_WITH_IMM) || ntohl(wc->imm_data) != (uint32_t)number))
		fail("operation %lu (%s): immediate data %x", (unsigned long)number,
		     kind_name(op->kind), ntohl(wc->imm_data));
	if (op->kind == SEND_INV &&
	    (!(wc->wc_flags & IBV_WC_WITH_INV) || wc->invalidated_rkey != key))
		fail("operation %lu: invalidated %x, not %x", (unsigned long)number,
		     wc->invalidated_rkey, key);
}

/* A receive: the other's next operation that one hears of. */
static void receive(struct traffic *t, const struct ibv_wc *wc)
{
	uint64_t number = t->expected;
	struct operation op = theirs(t, number);
	const uint8_t *p = t->own->received[NUMBER(wc->wr_id) % WINDOW];

	check_message(&op, wc, number, t->mw->rkey);
	if (op.kind == WRITE || op.kind == WRITE_IMM) {
		p = t->shared->written[number % WINDOW];
		check_guard(&op, "the target", number, p);
	}
	check_octets(&op, "what arrived", number, op.key, p);
	count(t, &op);
	t->expected = next_received(t, number + 1);
	guard_buffers(t);
	post_recv(t);
	if (op.kind == SEND_INV)
		bind_window(t);
}

/* Everything before the next one that is expected has been checked. */
static void confirm(struct traffic *t)
{
	if (t->confirmed == t->expected + 1 || !room(t, 3))
		return;
	t->confirmed = t->expected + 1;
	write_word(t, OF_CONFIRM, offsetof(struct shared, checked), t->confirmed);
}

/* ---- both -------------------------------------------------------------------------------- */

static void on_sent(struct traffic *t, const struct ibv_wc *wc)
{
	if (t->completed == t->posted || wc->wr_id != t->ledger[t->completed % SEND_WR])
		fail("completion of %lx out of order, lost or doubled: %lx is next",
		     (unsigned long)wc->wr_id,
		     (unsigned long)(t->completed == t->posted
					     ? 0
					     : t->ledger[t->completed % SEND_WR]));
	t->completed++;
	if (OF_WHAT(wc->wr_id) == OF_OPERATION)
		finish(t, NUMBER(wc->wr_id));
}

static void on_received(struct traffic *t, const struct ibv_wc *wc)
{
	if (NUMBER(wc->wr_id) != t->recv_completed)
		fail("receive %lu out of order, lost or doubled: %lu is next",
		     (unsigned long)NUMBER(wc->wr_id), (unsigned long)t->recv_completed);
	t->recv_completed++;
	receive(t, wc);
}

static bool poll_once(struct traffic *t)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(t->cq, 16, wc);

	if (n < 0)
		fail("ibv_poll_cq: %d", n);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			fail("completion of %lx: %s", (unsigned long)wc[i].wr_id,
			     ibv_wc_status_str(wc[i].status));
		if (OF_WHAT(wc[i].wr_id) == OF_RECEIVE)
			on_received(t, &wc[i]);
		else
			on_sent(t, &wc[i]);
	}
	return n;
}

static bool all_done(const struct traffic *t)
{
	uint64_t their_total = load(&t->shared->total);

	return t->told_total && t->completed == t->posted && their_total &&
	       t->expected == next_received(t, their_total - 1);
}

static void watch(struct traffic *t, bool work)
{
	double now = seconds();

	if (work)
		t->progress = now;
	if (now - t->progress > HANG_S)
		fail("hang: nothing for %.0f s; started %lu, over %lu, confirmed to us %lu; of "
		     "theirs %lu; WRs posted %lu completed %lu",
		     HANG_S, (unsigned long)t->started, (unsigned long)t->done,
		     (unsigned long)load(&t->shared->checked), (unsigned long)t->expected,
		     (unsigned long)t->posted, (unsigned long)t->completed);
	if (now - t->told > 1) {
		t->told = now;
		printf("progress %lu\n", (unsigned long)t->octets);
	}
}

static void exchange(struct traffic *t)
{
	t->start = t->progress = t->told = seconds();
	t->expected = next_received(t, 0);
	guard_buffers(t);
	bind_window(t);
	while (!all_done(t)) {
		uint64_t before = t->done + load(&t->shared->checked);
		bool work = poll_once(t);

		confirm(t);
		if (load(&t->shared->checked))
			start_more(t);
		watch(t, work || before != t->done + load(&t->shared->checked));
	}
}

/* Nothing more may come, and then the server says so: only then the client may end it. */
static void linger(struct traffic *t)
{
	double until = seconds() + LINGER_S;

	while (seconds() < until)
		poll_once(t);
	if (t->end)
		write_word(t, OF_CONFIRM, offsetof(struct shared, bye), 1);
	while (!t->end && !load(&t->shared->bye))
		watch(t, poll_once(t));
}

static void report(const struct traffic *t)
{
	unsigned covered = 0;

	for (unsigned i = 0; i < plan_cells(); i++)
		covered += t->covered[i];
	printf("octets %lu operations %lu covered %u of %u seconds %.1f\n",
	       (unsigned long)t->octets, (unsigned long)t->operations, covered, plan_cells(),
	       seconds() - t->start);
}

static void give_memory(struct traffic *t)
{
	t->shared = aligned_alloc(64, sizeof(*t->shared));
	t->own = aligned_alloc(64, sizeof(*t->own));
	t->covered = calloc(plan_cells(), sizeof(*t->covered));
	if (!t->shared || !t->own || !t->covered)
		fail("no memory");
	memset(t->shared, 0, sizeof(*t->shared));
	memset(t->own, 0, sizeof(*t->own));
	pattern_fill(mix(t->seed * 2 + t->end), t->shared->readable, SLOT);
}

int main(int argc, char **argv)
{
	struct traffic t = { .total = UINT64_MAX };

	if (argc != 7 || (strcmp(argv[1], "server") && strcmp(argv[1], "client"))) {
		fprintf(stderr, "usage: traffic server|client ADDRESS PORT SEED SECONDS OCTETS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	t.end = argv[1][0] == 's';
	t.seed = strtoull(argv[4], NULL, 10);
	t.seconds = strtod(argv[5], NULL);
	t.octets_wanted = strtoull(argv[6], NULL, 10);
	give_memory(&t);
	traffic_connect(&t, argv[2], argv[3]);
	exchange(&t);
	linger(&t);
	report(&t);
	traffic_disconnect(&t);
	free(t.shared);
	free(t.own);
	free(t.covered);
	return 0;
}
