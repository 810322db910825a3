/* SPDX-License-Identifier: BSD-3-Clause */
/* Two UC or UD queue pairs and the packets between them. */
#ifndef UWARP_TESTS_ROCE_PAIR_H
#define UWARP_TESTS_ROCE_PAIR_H

#include "node.h"
#include "roce/qp.h"

#define PAIR_MTU     256u
#define PAIR_QKEY    0x11111111u
#define PAIR_PACKETS 64u

struct pair_packet {
	uint8_t octets[ROCE_HEAD_MAX + ROCE_MTU_MAX + ROCE_TAIL_MAX];
	size_t n;
};

struct pair {
	struct node a, b;
	struct roce_qp ra, rb;
	struct pair_packet p[PAIR_PACKETS];
	unsigned n;
};

static inline void pair_up(struct node *n)
{
	assert_status(qp_modify(&n->qp, UW_QPS_INIT), UW_OK);
	assert_status(qp_modify(&n->qp, UW_QPS_RTR), UW_OK);
	assert_status(qp_modify(&n->qp, UW_QPS_RTS), UW_OK);
}

/* As the engine does: out of any state, and to RTS again. */
static inline void pair_reset(struct node *n, struct roce_qp *r)
{
	assert_status(qp_modify(&n->qp, UW_QPS_RESET), UW_OK);
	roce_rx_forget(r);
	n->qp.cm_less = true;
	pair_up(n);
}

static inline void pair_end(struct node *n, struct roce_qp *r, enum roce_transport t,
			    const struct roce_path *path)
{
	n->qp.cm_less = true;
	n->qp.sq.refused = (uint16_t)roce_refused_ops(t);
	*r = (struct roce_qp){ .qp = &n->qp,
			       .transport = (uint8_t)t,
			       .psn = 5,
			       .expected = 5,
			       .mtu = PAIR_MTU,
			       .qkey = PAIR_QKEY,
			       .path = *path };
	pair_up(n);
}

static inline struct pair *pair_new(enum roce_transport t, const struct node_opts *opts)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct roce_path ab = { .src = uw_ip_v4(0x0100000a),
				.dst = uw_ip_v4(0x0200000a),
				.hops = 64 },
			 ba = { .src = ab.dst, .dst = ab.src, .hops = 64 };

	assert_non_null(p);
	node_init(&p->a, 0x100, NULL);
	node_init(&p->b, 0x200, opts);
	pair_end(&p->a, &p->ra, t, &ab);
	pair_end(&p->b, &p->rb, t, &ba);
	p->ra.dest_qpn = 0x200;
	p->rb.dest_qpn = 0x100;
	return p;
}

/* To the UD QP at the other end. */
static inline struct uw_send_wr pair_to_b(struct pair *p, unsigned opcode, size_t at, size_t len)
{
	struct uw_send_wr wr = node_wr(&p->a, opcode, at, len);
	const struct roce_to to = { .dst = p->ra.path.dst, .hops = 64 };
	uint64_t dst[2];

	roce_to_pack(&to, &wr.remote_addr, dst);
	wr.remote_addr |= 0x200;
	wr.compare_add = dst[0];
	wr.swap = dst[1];
	wr.rkey = PAIR_QKEY;
	return wr;
}

/* All that a has to send, into p->p. */
static inline void pair_send(struct pair *p)
{
	p->n = 0;
	while (roce_tx_ready(&p->ra)) {
		struct pair_packet *k = &p->p[p->n];

		assert_in_range(p->n, 0, PAIR_PACKETS - 1);
		k->n = roce_tx(&p->ra, &p->ra.path, k->octets, 1500);
		if (!k->n)
			return;
		p->n++;
	}
}

static inline uw_status pair_receive(struct pair *p, unsigned i)
{
	struct uw_span s = { p->p[i].octets, p->p[i].n };
	struct roce_packet k;

	assert_int_equal(roce_packet_read(uw_rope_of(&s), &k), ROCE_GOOD);
	return roce_rx(&p->rb, &k);
}

static inline void pair_receive_all(struct pair *p)
{
	for (unsigned i = 0; i < p->n; i++)
		assert_status(pair_receive(p, i), UW_OK);
}

#endif
