/* SPDX-License-Identifier: BSD-3-Clause */
/* Which state of a connection, an endpoint, a CM-less QP may follow which. The tables here are
 * written down anew, from the pictures of what can happen. */
#include <arpa/inet.h>
#include <errno.h>

#include "conn/rc/rc.h"
#include "world.h"

struct change {
	unsigned from, to;
};

static bool has(const struct change *v, size_t n, unsigned from, unsigned to)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].from == from && v[i].to == to)
			return true;
	}
	return false;
}

/* ---- connections ------------------------------------------------------------------------------
 */

static const struct change conn_changes[] = {
	{ CONN_NEW, CONN_CONNECTING },	    /* TCP's SYN goes out */
	{ CONN_NEW, CONN_STARTING },	    /* it came in */
	{ CONN_CONNECTING, CONN_RETRY },    /* refused, and there is patience */
	{ CONN_CONNECTING, CONN_STARTING }, /* TCP is up */
	{ CONN_RETRY, CONN_CONNECTING },    /* once more */
	{ CONN_STARTING, CONN_REQUESTED },  /* responder: the Request came */
	{ CONN_STARTING, CONN_STREAMING },  /* initiator: the Reply came */
	{ CONN_REQUESTED, CONN_STREAMING }, /* the program accepts */
	{ CONN_STREAMING, CONN_CLOSING },   /* our FIN goes out */
	{ CONN_NEW, CONN_ENDED },	    { CONN_CONNECTING, CONN_ENDED },
	{ CONN_RETRY, CONN_ENDED },	    { CONN_STARTING, CONN_ENDED },
	{ CONN_REQUESTED, CONN_ENDED },	    { CONN_STREAMING, CONN_ENDED },
	{ CONN_CLOSING, CONN_ENDED },
};

static void a_connection_changes_as_the_table_says(void **state)
{
	(void)state;
	for (unsigned from = 0; from < CONN_STATES; from++) {
		for (unsigned to = 0; to < CONN_STATES; to++)
			assert_int_equal(conn_may_enter(from, to),
					 has(conn_changes, COUNT(conn_changes), from, to));
	}
}

static void another_change_is_counted_and_ends_it(void **state)
{
	struct world *w = world_open(1);
	struct conn *c = conn_create(world_stack(w, 0), CONN_INITIATOR);
	uint64_t *bad = &w->stack[0].s.sched.stats.conn_bad_state;

	(void)state;
	assert_int_equal(c->state, CONN_NEW);
	conn_enter(c, CONN_STARTING);
	conn_enter(c, CONN_STARTING); /* no change */
	assert_int_equal(*bad, 0);
	conn_enter(c, CONN_RETRY);
	assert_int_equal(*bad, 1);
	assert_int_equal(c->state, CONN_ENDED);
	conn_enter(c, CONN_STREAMING); /* nothing follows the end */
	assert_int_equal(*bad, 2);
	assert_int_equal(c->state, CONN_ENDED);
	world_close(w);
}

/* ---- endpoints --------------------------------------------------------------------------------
 */

static const struct change ep_changes[] = {
	{ EP_IDLE, EP_BOUND },		 { EP_IDLE, EP_RESOLVED },
	{ EP_IDLE, EP_NO_PEER_YET },	 { EP_IDLE, EP_HAS_CONN }, /* a Request */
	{ EP_BOUND, EP_RESOLVED },	 { EP_BOUND, EP_NO_PEER_YET },
	{ EP_BOUND, EP_LISTENING },	 { EP_LISTENING, EP_BOUND }, /* it could not */
	{ EP_RESOLVED, EP_RESOLVED },	 { EP_RESOLVED, EP_NO_PEER_YET },
	{ EP_NO_PEER_YET, EP_RESOLVED }, { EP_NO_PEER_YET, EP_NO_PEER_YET },
	{ EP_RESOLVED, EP_HAS_CONN },	 { EP_NO_PEER_YET, EP_HAS_CONN },
	{ EP_IDLE, EP_HAS_SIDR }, /* a request of datagrams */
	{ EP_RESOLVED, EP_HAS_SIDR },	 { EP_NO_PEER_YET, EP_HAS_SIDR },
};

static void an_endpoint_changes_as_the_table_says(void **state)
{
	(void)state;
	for (unsigned from = 0; from < EP_STATES; from++) {
		for (unsigned to = 0; to < EP_STATES; to++)
			assert_int_equal(ep_may_enter(from, to),
					 has(ep_changes, COUNT(ep_changes), from, to));
	}
}

static struct sockaddr_in addr4(uint32_t addr, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(addr) };
}

static struct uw_ep *make_ep(struct world *w)
{
	struct uw_ep *ep;

	assert_int_equal(ep_create(&w->d, NULL, NULL, &ep), 0);
	return ep;
}

/* The calls that an endpoint refuses in each state: none of them changes it. */
static void calls_out_of_order_change_nothing(void **state)
{
	struct sockaddr_in here = addr4(0x0a000001, 7000), there = addr4(0x0a000009, 7001);
	const struct uw_cm_param p = { 0 };
	struct world *w = world_open(1);
	struct world_qp *q = world_qp(w, 2, NULL);
	struct uw_ep *ep = make_ep(w);

	(void)state;
	assert_int_equal(uw_ep_connect(ep, 2, &p), -EINVAL); /* not resolved */
	assert_int_equal(uw_ep_accept(ep, 2, &p), -EINVAL);
	assert_int_equal(uw_ep_reject(ep, &p), -EINVAL);
	assert_int_equal(uw_ep_disconnect(ep), -ENOTCONN);
	assert_int_equal(ep->state, EP_IDLE);
	assert_int_equal(uw_ep_bind(ep, (struct sockaddr *)&here), 0);
	assert_int_equal(uw_ep_bind(ep, (struct sockaddr *)&here), -EINVAL);
	assert_int_equal(uw_ep_share_port(ep, true), -EINVAL);
	assert_int_equal(ep->state, EP_BOUND);
	assert_int_equal(uw_ep_listen(ep, 4), 0);
	assert_int_equal(ep->state, EP_LISTENING);
	assert_int_equal(uw_ep_listen(ep, 4), -EINVAL);
	assert_int_equal(uw_ep_only6(ep, true), -EINVAL);
	assert_int_equal(uw_ep_resolve(ep, NULL, (struct sockaddr *)&there, 100), -EINVAL);
	assert_int_equal(uw_ep_connect(ep, 2, &p), -EINVAL);
	assert_int_equal(ep->state, EP_LISTENING);
	assert_null(q->c.claimed_by);
	uw_ep_destroy(ep);
	world_qp_free(q);
	world_close(w);
}

/* RFC 1122 §3.3.1: no packet can go to an address without a route, so nobody waits for an answer.
 */
static void without_a_route_it_fails_at_once(void **state)
{
	struct sockaddr_in there = addr4(0x0a000009, 7001);
	struct world *w = world_open(1);
	struct uw_ep *ep = make_ep(w);

	(void)state;
	fake_llp.no_way = true;
	assert_int_equal(uw_ep_resolve(ep, NULL, (struct sockaddr *)&there, 100), -ENETUNREACH);
	assert_int_equal(ep->state, EP_IDLE);
	fake_llp.no_way = false; /* it may be tried again */
	assert_int_equal(uw_ep_resolve(ep, NULL, (struct sockaddr *)&there, 100), 0);
	uw_ep_destroy(ep);
	world_close(w);
}

static void the_port_of_the_source_is_taken(void **state)
{
	struct sockaddr_in from = addr4(0x0a000001, 7000), there = addr4(0x0a000009, 7001);
	struct world *w = world_open(1);
	struct uw_ep *ep = make_ep(w), *other = make_ep(w);
	struct sockaddr_storage name;

	(void)state;
	assert_int_equal(uw_ep_resolve(ep, (void *)&from, (void *)&there, 100), 0);
	uw_ep_local_addr(ep, &name);
	assert_memory_equal(&name, &from, sizeof(from));
	assert_int_equal(uw_ep_resolve(other, (void *)&from, (void *)&there, 100), -EADDRINUSE);
	assert_int_equal(other->state, EP_IDLE);
	from.sin_port = 0;
	assert_int_equal(uw_ep_resolve(other, (void *)&from, (void *)&there, 100), 0);
	uw_ep_destroy(other);
	uw_ep_destroy(ep);
	world_close(w);
}

static void an_endpoint_goes_from_state_to_state(void **state)
{
	struct sockaddr_in there = addr4(0x0a000009, 7001), other = addr4(0x0a000008, 7002);
	struct sockaddr_storage peer;
	const struct uw_cm_param p = { 0 };
	struct world *w = world_open(1);
	struct world_qp *q = world_qp(w, 2, NULL);
	struct uw_ep *ep = make_ep(w);

	(void)state;
	for (unsigned i = 0; i < 2; i++) { /* it may be resolved again */
		assert_int_equal(uw_ep_resolve(ep, NULL, (struct sockaddr *)&there, 100), 0);
		assert_int_equal(ep->state, EP_RESOLVED);
	}
	assert_int_equal(uw_ep_bind(ep, (struct sockaddr *)&there), -EINVAL);
	assert_int_equal(uw_ep_listen(ep, 4), -EINVAL);
	assert_int_equal(uw_ep_connect(ep, 2, &p), 0);
	assert_int_equal(ep->state, EP_HAS_CONN);
	assert_int_equal(ep->conn->state, CONN_CONNECTING);
	assert_int_equal(uw_ep_resolve(ep, NULL, (struct sockaddr *)&other, 100), -EINVAL);
	uw_ep_peer_addr(ep, &peer);
	assert_memory_equal(&peer, &there, sizeof(there)); /* it is connected to that one still */
	assert_int_equal(uw_ep_connect(ep, 2, &p), -EINVAL);
	assert_int_equal(uw_ep_accept(ep, 2, &p), -EINVAL); /* an initiator */
	uw_ep_destroy(ep);
	assert_null(q->c.claimed_by);
	world_qp_free(q);
	world_close(w);
}

/* ---- CM-less RC --------------------------------------------------------------------------------
 */

static const struct change rc_changes[] = {
	{ RC_WAITING, RC_RESOLVING }, { RC_WAITING, RC_CALLING },   { RC_WAITING, RC_UP },
	{ RC_WAITING, RC_LOST },      { RC_RESOLVING, RC_WAITING }, { RC_RESOLVING, RC_CALLING },
	{ RC_RESOLVING, RC_UP },      { RC_RESOLVING, RC_LOST },    { RC_CALLING, RC_WAITING },
	{ RC_CALLING, RC_UP },	      { RC_CALLING, RC_LOST },	    { RC_UP, RC_WAITING },
	{ RC_UP, RC_LOST },	      { RC_LOST, RC_LOST },
};

static void a_cm_less_qp_changes_as_the_table_says(void **state)
{
	(void)state;
	for (unsigned from = 0; from < RC_STATES; from++) {
		for (unsigned to = 0; to < RC_STATES; to++)
			assert_int_equal(rc_may_enter(from, to),
					 has(rc_changes, COUNT(rc_changes), from, to));
	}
}

static void another_change_of_it_is_counted(void **state)
{
	struct world *w = world_open(1);
	struct world_qp *q = world_qp(w, 2, NULL);
	struct rc rc = { .q = &q->c, .state = RC_LOST };
	uint64_t *bad = &w->stack[0].s.sched.stats.conn_bad_state;

	(void)state;
	rc_enter(&rc, RC_LOST);
	assert_int_equal(*bad, 0);
	rc_enter(&rc, RC_UP);
	assert_int_equal(*bad, 1);
	world_qp_free(q);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_changes_as_the_table_says),
		cmocka_unit_test(another_change_is_counted_and_ends_it),
		cmocka_unit_test(an_endpoint_changes_as_the_table_says),
		cmocka_unit_test(calls_out_of_order_change_nothing),
		cmocka_unit_test(without_a_route_it_fails_at_once),
		cmocka_unit_test(the_port_of_the_source_is_taken),
		cmocka_unit_test(an_endpoint_goes_from_state_to_state),
		cmocka_unit_test(a_cm_less_qp_changes_as_the_table_says),
		cmocka_unit_test(another_change_of_it_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
