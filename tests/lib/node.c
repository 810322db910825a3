/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"

static void event(void *ctx, enum uw_event ev)
{
	struct node *n = ctx;

	assert_in_range(n->events, 0, COUNT(n->event) - 1);
	n->event[n->events++] = ev;
}

static void cq_over(struct cq *cq, struct cqe *ring)
{
	*cq = (struct cq){ .ring = ring, .mask = NODE_WC - 1, .depth = NODE_WC };
}

void node_rq(struct rq *rq, uint8_t *slots, uint32_t depth)
{
	*rq = (struct rq){ .slots = slots,
			   .slot_size = rq_slot_size(NODE_SGE),
			   .mask = NODE_WR - 1,
			   .depth = depth,
			   .max_sge = NODE_SGE,
			   .pd = ARENA_PD };
}

void node_init(struct node *n, uint32_t num, const struct node_opts *opts)
{
	const struct node_opts none = { 0 };
	const struct node_opts *o = opts ? opts : &none;

	memset(n, 0, sizeof(*n));
	arena_init(&n->mem);
	n->confirmed = o->confirmed;
	n->stag = arena_add(&n->mem, n->m, sizeof(n->m), ARENA_ALL);
	cq_over(&n->scq, n->swc);
	cq_over(&n->rcq, n->rwc);
	n->qp.sq = (struct sq){ .slots = n->sq_slots,
				.slot_size = sq_slot_size(NODE_SGE, NODE_INLINE),
				.mask = NODE_WR - 1,
				.depth = o->sq_depth ? o->sq_depth : NODE_WR,
				.max_sge = NODE_SGE,
				.max_inline = NODE_INLINE,
				.sig_all = o->sig_all };
	assert_true(n->qp.sq.slot_size * NODE_WR <= sizeof(n->sq_slots));
	assert_true(rq_slot_size(NODE_SGE) * NODE_WR <= sizeof(n->rq_slots));
	if (!o->srq)
		node_rq(&n->qp.own_rq, n->rq_slots, o->rq_depth ? o->rq_depth : NODE_WR);
	n->qp.taken = n->taken;
	n->qp.event = event;
	n->qp.event_ctx = n;
	qp_init(&n->qp, &(struct qp_setup){ .num = num,
					    .pd = ARENA_PD,
					    .scq = &n->scq,
					    .rcq = &n->rcq,
					    .srq = o->srq,
					    .mem = &n->mem.t,
					    .stats = &n->stats });
}

struct mpa_agreed node_agreed(void)
{
	return (struct mpa_agreed){ .rev = 2, .crc = true, .ird = NODE_READS, .ord = NODE_READS };
}

void node_start(struct node *n, bool initiator, const struct mpa_agreed *a)
{
	const struct qp_stream s = { .agreed = a,
				     .queues = { .irq = a->ird ? n->irq : NULL,
						 .ird = a->ird,
						 .orq = a->ord ? n->orq : NULL,
						 .ord = a->ord,
						 .first_sink = 0x5100 },
				     .scratch = n->scratch,
				     .confirmed = n->confirmed,
				     .initiator = initiator };

	assert_status(qp_start(&n->qp, &s), UW_OK);
	assert_int_equal(n->qp.state, UW_QPS_RTS);
}

void nodes_start(struct node *a, struct node *b, const struct mpa_agreed *agreed)
{
	struct mpa_agreed other = *agreed;

	other.tx_markers = agreed->rx_markers;
	other.rx_markers = agreed->tx_markers;
	other.ird = agreed->ord;
	other.ord = agreed->ird;
	node_start(a, true, agreed);
	node_start(b, false, &other);
}

uw_status node_carry(struct node *from, struct node *to, size_t room)
{
	uint8_t *seg = malloc(room);
	uw_status st = UW_OK;
	size_t n, used;

	assert_non_null(seg);
	while (!st && (n = qp_tx(&from->qp, seg, room))) {
		const struct uw_span one = { seg, n };

		assert_in_range(n, 1, room);
		st = qp_rx(&to->qp, uw_rope_of(&one), &used);
		assert_int_equal(used, n);
	}
	free(seg);
	return st;
}

void nodes_run(struct node *a, struct node *b)
{
	for (unsigned i = 0; qp_tx_prepare(&a->qp) || qp_tx_prepare(&b->qp); i++) {
		assert_in_range(i, 0, 1000);
		assert_status(node_carry(a, b, NODE_ROOM), UW_OK);
		assert_status(node_carry(b, a, NODE_ROOM), UW_OK);
	}
}

struct uw_send_wr node_wr(struct node *n, unsigned opcode, size_t at, size_t len)
{
	static struct uw_sge v[16];
	static unsigned k;
	struct uw_sge *e = &v[k++ % COUNT(v)];

	*e = node_sge(n, at, len);
	return (struct uw_send_wr){ .opcode = opcode, .sg_list = e, .num_sge = 1 };
}

struct uw_send_wr node_wr_to(struct node *n, unsigned opcode, size_t at, size_t len,
			     const struct node *to, size_t to_at)
{
	struct uw_send_wr wr = node_wr(n, opcode, at, len);

	wr.rkey = to->stag;
	wr.remote_addr = to_of(to->m) + to_at;
	return wr;
}

void node_post(struct node *n, uint64_t wr_id, struct uw_send_wr wr)
{
	wr.wr_id = wr_id;
	assert_status(sq_post(&n->qp.sq, &wr), UW_OK);
}

void node_post_recv(struct node *n, uint64_t wr_id, size_t at, size_t len)
{
	const struct uw_sge e = node_sge(n, at, len);
	const struct uw_recv_wr wr = { .wr_id = wr_id, .sg_list = &e, .num_sge = 1 };

	assert_status(rq_post(n->qp.rq, &wr), UW_OK);
}

struct uw_wc node_wc(struct cq *cq, uint64_t wr_id, uint32_t status)
{
	struct uw_wc wc;

	assert_int_equal(cq_take(cq, 1, &wc, NULL), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	return wc;
}

void node_notify(void *node)
{
	((struct node *)node)->notified++;
}
