/* SPDX-License-Identifier: BSD-3-Clause */
#include "path.h"

#include "loss/seq.h"
#include "record_sound.h"
#include "uwtest.h"

#define HEADERS 78u	    /* Ethernet with preamble and gap, IPv4, TCP */
#define FIRST	0xfffff000u /* the sequence numbers soon wrap */
#define RECENT	8u

enum kind { DATA, ACK, DELAYED_ACK };

struct event {
	uint64_t at_ns, order;
	enum kind kind;
	unsigned index; /* DATA: which segment */
	bool ce;
	uint32_t ack; /* ACK */
	unsigned n;
	struct loss_block block[LOSS_BLOCKS];
	bool ece;
};

struct path {
	const struct path_config *cfg;
	struct path_result out;
	struct prng rng;
	uint64_t now_ns, order;
	struct event *heap;
	unsigned n, room;

	struct loss l;
	struct sent *slot;
	uint32_t *start; /* of each segment, and where the last ends */
	unsigned next;	 /* the first that was never sent */
	uint64_t pause_until_us;
	unsigned paused_at;

	uint64_t free_ns; /* the bottleneck: when it has sent all it holds */
	uint64_t packet_ns;

	bool *got;
	unsigned in_order; /* the receiver has all below */
	unsigned recent[RECENT], n_recent;
	unsigned unacked;
	bool delayed, ce_seen;
};

struct path_config path_default(void)
{
	struct path_config c = { .bps = 1000000000,
				 .rtt_us = 200,
				 .queue = 200,
				 .peer_sack = true,
				 .ack_every = 2,
				 .ack_delay_us = 10000,
				 .segments = 20000,
				 .limit_us = 600000000,
				 .seed = 1 };

	loss_config_default(&c.loss);
	return c;
}

double path_goodput(const struct path_result *r)
{
	return (double)r->octets * 1e6 / (double)r->us;
}

/* ---- events ------------------------------------------------------------------------------ */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void push(struct path *p, struct event e)
{
	unsigned i = p->n++;

	if (p->n > p->room) {
		p->room = p->room ? 2 * p->room : 1024;
		p->heap = realloc(p->heap, p->room * sizeof(*p->heap));
		assert_non_null(p->heap);
	}
	e.order = p->order++;
	for (; i && earlier(&e, &p->heap[(i - 1) / 2]); i = (i - 1) / 2)
		p->heap[i] = p->heap[(i - 1) / 2];
	p->heap[i] = e;
}

static struct event pop(struct path *p)
{
	struct event first = p->heap[0], last = p->heap[--p->n];
	unsigned i = 0, k;

	while ((k = 2 * i + 1) < p->n) {
		if (k + 1 < p->n && earlier(&p->heap[k + 1], &p->heap[k]))
			k++;
		if (!earlier(&p->heap[k], &last))
			break;
		p->heap[i] = p->heap[k];
		i = k;
	}
	p->heap[i] = last;
	return first;
}

static bool chance(struct path *p, uint32_t ppm)
{
	return ppm && prng_below(&p->rng, 1000000) < ppm;
}

static uint64_t now_us(const struct path *p)
{
	return p->now_ns / 1000;
}

static bool stalled(const struct path *p)
{
	return p->cfg->stall_us && now_us(p) >= p->cfg->stall_at_us &&
	       now_us(p) < p->cfg->stall_at_us + p->cfg->stall_us;
}

/* ---- the link ---------------------------------------------------------------------------- */

static void onto_link(struct path *p, unsigned index)
{
	uint64_t wire, queued, late = 0;
	struct event e = { .kind = DATA, .index = index };

	p->out.sent++;
	wire = (p->start[index + 1] - p->start[index] + HEADERS) * 8ull * 1000000000 / p->cfg->bps;
	if (p->free_ns < p->now_ns)
		p->free_ns = p->now_ns;
	queued = (p->free_ns - p->now_ns) / p->packet_ns;
	if (queued > p->out.worst_queue)
		p->out.worst_queue = queued;
	if (queued >= p->cfg->queue) {
		p->out.overflowed++;
		return;
	}
	p->free_ns += wire;
	if (p->cfg->mark_at && queued >= p->cfg->mark_at) {
		e.ce = true;
		p->out.marked++;
	}
	if (chance(p, p->cfg->drop_ppm)) {
		p->out.dropped++;
		return;
	}
	if (chance(p, p->cfg->reorder_ppm)) {
		late = p->cfg->reorder_us * 1000;
		p->out.reordered++;
	}
	e.at_ns = p->free_ns + p->cfg->rtt_us * 500 + late;
	if (stalled(p)) /* held up, not lost */
		e.at_ns += (p->cfg->stall_at_us + p->cfg->stall_us) * 1000 - p->now_ns;
	push(p, e);
}

/* ---- the sender -------------------------------------------------------------------------- */

static unsigned index_of(const struct sent *s)
{
	return (unsigned)(uintptr_t)s->tag - 1;
}

static bool send_new(struct path *p)
{
	uint32_t n;

	if (p->next == p->cfg->segments || now_us(p) < p->pause_until_us)
		return false;
	n = p->start[p->next + 1] - p->start[p->next];
	if (!loss_may_send(&p->l, n, now_us(p)))
		return false;
	assert_non_null(loss_sent(&p->l, n, (void *)(uintptr_t)(p->next + 1), now_us(p)));
	onto_link(p, p->next++);
	if (p->cfg->pause_every && p->next % p->cfg->pause_every == 0)
		p->pause_until_us = now_us(p) + p->cfg->pause_us;
	return true;
}

static void send_all(struct path *p)
{
	struct sent *s;

	while ((s = loss_next(&p->l, now_us(p)))) {
		onto_link(p, index_of(s));
		loss_resent(&p->l, s, now_us(p));
	}
	while (send_new(p))
		continue;
	frto_nothing_new(&p->l.frto);
	if (loss_room(&p->l) >= PATH_MSS)
		loss_idle(&p->l);
}

static void on_timer(struct path *p)
{
	struct sent *s;
	bool again = false;

	switch (loss_timer(&p->l, now_us(p))) {
	case LOSS_DUE_PROBE:
		if (!send_new(p)) {
			s = loss_last(&p->l);
			assert_non_null(s);
			onto_link(p, index_of(s));
			loss_resent(&p->l, s, now_us(p));
			again = true;
		}
		loss_probed(&p->l, again, now_us(p));
		break;
	default:
		break;
	}
	send_all(p);
}

static void on_ack(struct path *p, const struct event *e)
{
	struct loss_ack a = { .ack = e->ack,
			      .n_blocks = e->n,
			      .block = e->block,
			      .plain = e->ack == p->l.una,
			      .ece = e->ece };

	loss_acked(&p->l, &a, now_us(p));
	if (p->order % 64 == 0) /* it looks at all of it */
		assert_true(record_sound(&p->l.rec));
	send_all(p);
}

/* ---- the receiver ------------------------------------------------------------------------ */

static struct loss_block around(const struct path *p, unsigned i)
{
	unsigned from = i, to = i + 1;

	while (from > p->in_order && p->got[from - 1])
		from--;
	while (to < p->cfg->segments && p->got[to])
		to++;
	return (struct loss_block){ p->start[from], p->start[to] };
}

static void add_block(struct event *e, struct loss_block b)
{
	for (unsigned i = 0; i < e->n; i++) {
		if (e->block[i].left == b.left && e->block[i].right == b.right)
			return;
	}
	if (e->n < LOSS_BLOCKS)
		e->block[e->n++] = b;
}

/* RFC 2018 §4: the block of what came last first. */
static void put_blocks(struct path *p, struct event *e)
{
	unsigned k = 0;

	for (unsigned i = 0; i < p->n_recent; i++) {
		if (p->recent[i] < p->in_order)
			continue;
		add_block(e, around(p, p->recent[i]));
		p->recent[k++] = p->recent[i];
	}
	p->n_recent = k;
}

static void remember(struct path *p, unsigned i)
{
	if (p->n_recent < RECENT)
		p->n_recent++;
	memmove(p->recent + 1, p->recent, (p->n_recent - 1) * sizeof(p->recent[0]));
	p->recent[0] = i;
}

static void acknowledge(struct path *p, const struct loss_block *twice)
{
	struct event e = { .kind = ACK, .ack = p->start[p->in_order], .ece = p->ce_seen };

	p->unacked = 0;
	p->ce_seen = false;
	if (p->cfg->peer_sack && twice)
		e.block[e.n++] = *twice;
	if (p->cfg->peer_sack)
		put_blocks(p, &e);
	if (chance(p, p->cfg->ack_drop_ppm))
		return;
	e.at_ns = p->now_ns + p->cfg->rtt_us * 500;
	push(p, e);
}

static void on_data(struct path *p, const struct event *e)
{
	unsigned i = e->index;
	struct loss_block b = { p->start[i], p->start[i + 1] };
	bool hole = i != p->in_order, behind;

	if (p->got[i]) {
		p->out.twice++;
		acknowledge(p, &b);
		return;
	}
	p->got[i] = true;
	/* RFC 8257 §3.2: what is marked is told apart from what is not. */
	if (e->ce != p->ce_seen && p->unacked)
		acknowledge(p, NULL);
	p->ce_seen = e->ce;
	remember(p, i);
	while (p->in_order < p->cfg->segments && p->got[p->in_order])
		p->in_order++;
	behind = p->in_order > i + 1;
	if (hole || behind || ++p->unacked >= p->cfg->ack_every) {
		acknowledge(p, NULL);
	} else if (!p->delayed) {
		p->delayed = true;
		push(p, (struct event){ .kind = DELAYED_ACK,
					.at_ns = p->now_ns + p->cfg->ack_delay_us * 1000 });
	}
}

static void handle(struct path *p, const struct event *e)
{
	switch (e->kind) {
	case DATA:
		on_data(p, e);
		break;
	case ACK:
		on_ack(p, e);
		break;
	case DELAYED_ACK:
		p->delayed = false;
		if (p->unacked)
			acknowledge(p, NULL);
		break;
	}
}

/* ---- a run ------------------------------------------------------------------------------- */

static void open_path(struct path *p, const struct path_config *cfg)
{
	uint32_t n = 16384;

	*p = (struct path){ .cfg = cfg, .rng = { cfg->seed * 2654435761u + 1 } };
	p->packet_ns = (PATH_MSS + HEADERS) * 8ull * 1000000000 / cfg->bps;
	p->slot = calloc(n, sizeof(*p->slot));
	p->start = calloc(cfg->segments + 1, sizeof(*p->start));
	p->got = calloc(cfg->segments + 1, sizeof(*p->got));
	assert_true(p->slot && p->start && p->got);
	p->start[0] = FIRST;
	for (unsigned i = 0; i < cfg->segments; i++)
		p->start[i + 1] =
			p->start[i] + (cfg->vary ? prng_below(&p->rng, PATH_MSS) + 1 : PATH_MSS);
	p->now_ns = 1000000000;
	loss_init(&p->l, &cfg->loss, p->slot, n, FIRST, PATH_MSS);
	p->l.has_sack = cfg->peer_sack && cfg->loss.sack;
}

static void close_path(struct path *p)
{
	free(p->heap);
	free(p->slot);
	free(p->start);
	free(p->got);
}

/* The next thing that happens: an event, the sender's timer, or the end of its silence. */
static void step(struct path *p)
{
	uint64_t timer = loss_wake_us(&p->l), next;

	if (p->pause_until_us > now_us(p) && p->pause_until_us < timer)
		timer = p->pause_until_us;
	next = timer == UINT64_MAX ? UINT64_MAX : timer * 1000;
	if (p->n && p->heap[0].at_ns <= next) {
		struct event e = pop(p);

		p->now_ns = e.at_ns;
		handle(p, &e);
		return;
	}
	assert_int_not_equal(next, UINT64_MAX); /* nothing would ever happen again */
	if (next > p->now_ns)
		p->now_ns = next;
	on_timer(p);
}

struct path_result path_run(const struct path_config *cfg)
{
	static struct path p;
	uint64_t start;

	open_path(&p, cfg);
	start = p.now_ns;
	send_all(&p);
	while (p.l.una != p.start[cfg->segments] && now_us(&p) < cfg->limit_us)
		step(&p);
	p.out.done = p.l.una == p.start[cfg->segments];
	if (p.out.done) {
		assert_int_equal(p.in_order, cfg->segments);
		assert_int_equal(record_count(&p.l.rec), 0);
		assert_int_equal(p.l.deadline_us, UINT64_MAX);
	}
	p.out.us = (p.now_ns - start) / 1000;
	p.out.octets = p.l.una - FIRST;
	p.out.stats = p.l.stats;
	p.out.cwnd = p.l.cc.cwnd;
	p.out.ssthresh = p.l.cc.ssthresh;
	close_path(&p);
	return p.out;
}
