/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames are mbufs and mbufs are frames. */
#include "node.h"

#include "io/dpdk/eal.h"
#include "io/dpdk/frame.h"

enum { NRX = 64, NTX = 128, ROOM = 2048 };

static int setup(void **state)
{
	*state = board_new();
	return 0;
}

static int teardown(void **state)
{
	board_free(*state);
	return 0;
}

static const struct io_ops ops = { .free = frame_free };

static void pools(struct frame_pools *p, struct io_link *l)
{
	l->ops = &ops;
	struct eal_need need = { .bytes = 4 * frame_pools_bytes(NRX, NTX, ROOM) };

	*p = (struct frame_pools){ .nrx = NRX, .ntx = NTX };
	CHECK(eal_start(&need) == UW_OK);
	CHECK(frame_pools_open(p, l, ROOM) == UW_OK);
}

/* What a driver hands over: three segments, the middle one empty. */
static int from_mbufs(struct node *n, int arg)
{
	static const uint16_t seg[] = { 100, 0, 7 };
	struct rte_mbuf *m[3];
	struct frame_pools p;
	struct io_link l;
	uint32_t len;

	(void)n;
	(void)arg;
	pools(&p, &l);
	CHECK(rte_pktmbuf_alloc_bulk(p.rx, m, 3) == 0);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(rte_pktmbuf_append(m[i], seg[i]));
		memset(rte_pktmbuf_mtod(m[i], void *), (int)i + 1, seg[i]);
	}
	CHECK(rte_pktmbuf_chain(m[1], m[2]) == 0 && rte_pktmbuf_chain(m[0], m[1]) == 0);
	struct io_frame *f = frame_from_mbuf(m[0], &len);
	CHECK(len == 107 && frame_len(f) == 107);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(f && f == frame_of(m[i]) && mbuf_of(f) == m[i]);
		CHECK(f->link == &l && f->len == seg[i] && f->data == f->buf + FRAME_HEADROOM);
		CHECK(m[i]->next == NULL && m[i]->nb_segs == 1); /* each stands alone */
		if (seg[i])
			CHECK(f->data[0] == i + 1 && f->data[seg[i] - 1] == i + 1);
		f = f->next;
	}
	CHECK(f == NULL);
	/* Handed back one by one, in any order. */
	frame_free(frame_of(m[1]));
	frame_free(frame_of(m[0]));
	CHECK(rte_mempool_avail_count(p.rx) == NRX - 1);
	frame_free(frame_of(m[2]));
	CHECK(rte_mempool_full(p.rx));
	frame_pools_close(&p);
	return 0;
}

/* What TCP sends: a header before a payload that it keeps for later. */
static int to_mbufs(struct node *n, int arg)
{
	struct frame_pools p;
	struct io_link l;

	(void)n;
	(void)arg;
	pools(&p, &l);
	struct io_frame *head = frame_alloc(p.tx), *body = frame_alloc(p.tx);
	CHECK(head && body && ((uintptr_t)head->buf & 63) == 0);
	CHECK(head->room >= FRAME_HEADROOM + ROOM && head->link == &l);
	head->data -= 54; /* into the headroom, as headers go */
	head->len = 54;
	body->len = ROOM;
	head->next = body;
	for (int again = 0; again < 2; again++) {
		frame_ref(body);
		frame_ref(head);
		struct rte_mbuf *m = frame_to_mbuf(head, frame_len(head));
		CHECK(m == mbuf_of(head) && m->pkt_len == 54 + ROOM && m->nb_segs == 2);
		CHECK(m->data_len == 54 && rte_pktmbuf_mtod(m, uint8_t *) == head->data);
		CHECK(m->next == mbuf_of(body) && m->next->next == NULL);
		CHECK(m->next->data_len == ROOM);
		rte_mbuf_sanity_check(m, 1);
		rte_pktmbuf_free(m); /* the driver is done */
		CHECK(frame_refs(head) == 1 && frame_refs(body) == 1);
		CHECK(head->next == body && head->len == 54 && body->len == ROOM);
	}
	/* Alone again, the mbuf must not drag the old chain along. */
	struct rte_mbuf *m = frame_to_mbuf(body, body->len);
	CHECK(m->next == NULL && m->nb_segs == 1 && m->pkt_len == ROOM);
	io_free_chain(head);
	CHECK(rte_mempool_full(p.tx));
	frame_pools_close(&p);
	return 0;
}

static int reuse(struct node *n, int arg)
{
	struct frame_pools p, q;
	struct io_link l, other;

	(void)n;
	(void)arg;
	pools(&p, &l);
	struct rte_mempool *rx, *tx = p.tx;
	CHECK(frame_alloc(p.tx)->link == &l); /* never comes back */
	frame_pools_close(&p);
	CHECK(p.rx == NULL && p.tx == NULL);
	pools(&p, &l); /* so this one is new */
	CHECK(p.tx != tx && rte_mempool_full(p.tx));
	rx = p.rx;
	frame_pools_close(&p);
	pools(&p, &other); /* and these are not */
	CHECK(p.rx == rx);
	struct io_frame *f = frame_alloc(p.tx);
	CHECK(f->link == &other);
	frame_free(f);
	frame_pools_close(&p);
	/* Of another size: the spare ones make room. */
	q = (struct frame_pools){ .nrx = NRX, .ntx = NTX };
	CHECK(frame_pools_open(&q, &l, ROOM / 2) == UW_OK);
	CHECK(rte_pktmbuf_data_room_size(q.rx) == ROOM / 2 + FRAME_HEADROOM);
	frame_pools_close(&q);
	return 0;
}

/* Of a link with one lock: each buffer is to be had, also those that wait outside of their pool, a
 * frame is free when its last reference is dropped, and none is missing at the end. */
static int alone(struct node *n, int arg)
{
	struct io_frame *held[NTX + 1];
	struct frame_pools p;
	struct io_link l = { .ops = &ops };
	struct eal_need need = { .bytes = 4 * frame_pools_bytes(NRX, NTX, ROOM) };

	(void)n;
	(void)arg;
	CHECK(eal_start(&need) == UW_OK);
	for (unsigned again = 0; again < 3; again++) {
		p = (struct frame_pools){ .nrx = NRX, .ntx = NTX, .alone = true };
		CHECK(frame_pools_open(&p, &l, ROOM) == UW_OK);
		for (unsigned i = 0; i < NTX; i++) {
			CHECK(frame_spare_tx(&p) == NTX - i);
			held[i] = frame_take(p.tx, p.tx_cache);
			CHECK(held[i] && held[i]->link == &l && !held[i]->next && !held[i]->len);
			CHECK(held[i]->data == held[i]->buf + FRAME_HEADROOM);
			CHECK(frame_refs(held[i]) == 1);
		}
		CHECK(!frame_take(p.tx, p.tx_cache));
		held[NTX] = frame_take(p.rx, p.rx_cache);
		frame_keep(held[0]);
		for (unsigned i = 0; i <= NTX; i++)
			frame_drop(&p, held[i]);
		CHECK(frame_spare_tx(&p) == NTX - 1 && frame_refs(held[0]) == 1);
		frame_drop(&p, held[0]);
		CHECK(frame_spare_tx(&p) == NTX);
		CHECK(frame_take(p.tx, p.tx_cache) == held[0]); /* the warmest */
		frame_drop(&p, held[0]);
		struct rte_mempool *rx = p.rx, *tx = p.tx;
		frame_pools_close(&p); /* whole, so kept for the next one */
		CHECK(rte_mempool_full(rx) && rte_mempool_full(tx));
	}
	return 0;
}

static void in_a_child(void **state, node_fn fn)
{
	assert_int_equal(reap(spawn(*state, fn, 0), WAIT_MS), 0);
}

static void received_mbufs_become_frames(void **state)
{
	in_a_child(state, from_mbufs);
}

static void frames_become_mbufs_to_send(void **state)
{
	in_a_child(state, to_mbufs);
}

static void pools_serve_again(void **state)
{
	in_a_child(state, reuse);
}

static void frames_of_one_lock(void **state)
{
	in_a_child(state, alone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(received_mbufs_become_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_become_mbufs_to_send, setup, teardown),
		cmocka_unit_test_setup_teardown(pools_serve_again, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_of_one_lock, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
