/* SPDX-License-Identifier: BSD-3-Clause */
/* A listener's parts, one on each stack. */
#include <arpa/inet.h>

#include "conn/listener.h"
#include "world.h"

#define STACKS WORLD_STACKS

static const struct llp_place place = { .port = 0x2f1d, .own = true };
static unsigned requests;

static void on_request(struct listener *ls, struct conn *c, struct uw_cm_event *ev)
{
	(void)ls;
	(void)c;
	assert_int_equal(ev->type, UW_CM_CONNECT_REQUEST);
	requests++;
}

static uw_status start(struct world *w, struct listener *ls, unsigned home, unsigned link,
		       enum listener_stacks stacks)
{
	memset(ls, 0, sizeof(*ls));
	ls->requested = on_request;
	return listener_start(ls, world_stack(w, home), &w->stack[home].link[link], &place, 5,
			      stacks);
}

static unsigned listening(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < FAKE_LISTENERS; i++)
		n += fake_llp.listener[i].on;
	return n;
}

static void it_has_a_part_on_each_stack(void **state)
{
	struct world *w = world_open(STACKS);
	struct listener ls;

	(void)state;
	assert_status(start(w, &ls, 1, 1, LISTENER_ON_ALL), UW_OK);
	assert_int_equal(ls.n_parts, STACKS);
	for (unsigned i = 0; i < STACKS; i++) {
		assert_ptr_equal(ls.part[i].stack, world_stack(w, i));
		assert_ptr_equal(ls.part[i].l, &w->stack[i].link[1]); /* the same link there */
		assert_ptr_equal(fake_llp.listener[i].ctx, &ls.part[i]);
		assert_int_equal(fake_llp.listener[i].at.port, place.port);
	}
	assert_ptr_equal(w->d.listeners, &ls);
	listener_stop(&ls);
	assert_int_equal(listening(), 0);
	assert_null(w->d.listeners);
	world_close(w);
}

static void or_on_its_home_alone(void **state)
{
	struct world *w = world_open(STACKS);
	struct listener ls;

	(void)state;
	assert_status(start(w, &ls, 2, 0, LISTENER_AT_HOME), UW_OK);
	assert_int_equal(ls.n_parts, 1);
	assert_ptr_equal(ls.part[0].stack, world_stack(w, 2));
	listener_stop(&ls);
	world_close(w);
}

static void if_one_part_cannot_none_listens(void **state)
{
	struct world *w = world_open(STACKS);
	struct listener first, ls;

	(void)state;
	assert_status(start(w, &first, 0, 0, LISTENER_ON_ALL), UW_OK);
	fake_llp.listen_fails_at = STACKS + 3;
	assert_status(start(w, &ls, 0, 1, LISTENER_ON_ALL), UW_E_ADDR_IN_USE);
	assert_int_equal(listening(), STACKS);
	assert_ptr_equal(w->d.listeners, &first);
	assert_null(first.next);
	listener_stop(&first);
	world_close(w);
}

static struct conn *comes_in(struct listener *ls, unsigned part)
{
	struct llp_conn *llp = fake_llp_conn(NULL);

	llp->ctx = conn_llp_user.accepted(&ls->part[part], llp);
	assert_non_null(llp->ctx);
	return llp->ctx;
}

/* Those whose Request has come are their program's; those whose Request is to come go. */
static void when_it_stops_connections_without_a_request_go(void **state)
{
	struct world *w = world_open(STACKS);
	struct listener ls, other;
	struct conn *mine, *others, *asked;

	(void)state;
	assert_status(start(w, &ls, 0, 0, LISTENER_ON_ALL), UW_OK);
	assert_status(start(w, &other, 0, 1, LISTENER_ON_ALL), UW_OK);
	mine = comes_in(&ls, 2);
	others = comes_in(&other, 2);
	asked = comes_in(&ls, 1);
	assert_ptr_equal(mine->stack, world_stack(w, 2));
	assert_int_equal(mine->state, CONN_STARTING);
	assert_int_equal(mine->role, CONN_RESPONDER);
	conn_enter(asked, CONN_REQUESTED);
	listener_stop(&ls);
	assert_ptr_equal(w->stack[2].s.conns, others);
	assert_null(others->next);
	assert_ptr_equal(others->listener, &other);
	assert_ptr_equal(w->stack[1].s.conns, asked);
	assert_null(asked->listener);
	assert_false(asked->llp->closed);
	listener_stop(&other);
	assert_null(w->stack[2].s.conns);
	world_close(w);
}

static void a_stack_that_ends_stops_its_parts(void **state)
{
	struct world *w = world_open(STACKS);
	struct listener ls;

	(void)state;
	assert_status(start(w, &ls, 0, 0, LISTENER_ON_ALL), UW_OK);
	listeners_stop(world_stack(w, 1));
	assert_int_equal(listening(), STACKS - 1);
	assert_false(fake_llp.listener[1].on);
	listener_stop(&ls); /* and no part twice */
	assert_int_equal(listening(), 0);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_a_part_on_each_stack),
		cmocka_unit_test(or_on_its_home_alone),
		cmocka_unit_test(if_one_part_cannot_none_listens),
		cmocka_unit_test(when_it_stops_connections_without_a_request_go),
		cmocka_unit_test(a_stack_that_ends_stops_its_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
