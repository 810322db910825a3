/* SPDX-License-Identifier: BSD-3-Clause */
/* Local ports: who may have which, and which one is next. */
#include <arpa/inet.h>
#include <errno.h>

#include "cm/rc.h"
#include "world.h"

#define FIRST 32768u /* ephemeral ports, as Linux has them */
#define LAST  60999u
#define PORT  7471u

static const struct uw_ip six = { .b = { 0xfd, [15] = 1 } };
static const struct uw_ip any6 = { .b = { 0 } };

static struct uw_ep *ep_at(struct world *w, unsigned stack, struct uw_ip local)
{
	struct uw_ep *ep = ep_new(&w->d, world_stack(w, stack));

	assert_non_null(ep);
	ep->local = local;
	return ep;
}

static struct uw_ep *ep4(struct world *w)
{
	return ep_at(w, 0, uw_ip_v4(htonl(0x0a000001)));
}

static uw_status take(struct world *w, struct uw_ep *ep, unsigned port)
{
	return ports_take(&w->d, ep, port);
}

static void a_port_has_one_endpoint(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *a = ep4(w), *b = ep4(w);

	(void)state;
	assert_status(take(w, a, PORT), UW_OK);
	assert_int_equal(ntohs(a->lport), PORT);
	assert_true(ports_is_alone(&w->d, a));
	assert_status(take(w, b, PORT), UW_E_ADDR_IN_USE);
	assert_null(b->port_link);
	ports_release(a);
	ports_release(a); /* it has none */
	assert_status(take(w, b, PORT), UW_OK);
	world_close(w);
}

/* ---- links on which a port is claimed first ----- */

static int claims, claims6;

static uw_status count_claim(struct io_link *l, uint16_t port, unsigned versions)
{
	assert_int_equal(versions & ~(io_shared_versions(l) | IO_NAMED), 0);
	assert_int_equal(ntohs(port), PORT);
	claims += (versions & IO_V4) != 0;
	claims6 += (versions & IO_V6) != 0;
	return UW_OK;
}

static void count_release(struct io_link *l, uint16_t port, unsigned versions)
{
	assert_int_equal(versions & ~io_shared_versions(l), 0);
	assert_int_equal(ntohs(port), PORT);
	claims -= (versions & IO_V4) != 0;
	claims6 -= (versions & IO_V6) != 0;
}

static const struct io_ops shared = { .name = "shared",
				      .claim_port = count_claim,
				      .release_port = count_release };

/* What an endpoint has claimed it gives back, whatever became of its address. */
static void each_version_of_ip_is_claimed_by_itself(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *four = ep4(w), *v6 = ep_at(w, 0, six), *both = ep_at(w, 0, any6);
	struct io_link *l = world_stack(w, 0)->links[0];

	(void)state;
	l->ops = &shared;
	l->flags |= IO_SHARED | IO_SHARED6;
	claims = claims6 = 0;
	assert_status(take(w, four, PORT), UW_OK);
	assert_true(claims == 1 && claims6 == 0);
	assert_status(take(w, v6, PORT), UW_OK);
	assert_true(claims == 1 && claims6 == 1);
	ports_release(four);
	assert_true(claims == 0 && claims6 == 1);
	ports_release(v6);
	assert_status(take(w, both, PORT), UW_OK);
	assert_true(claims == 1 && claims6 == 1);
	both->local = six;
	ports_release(both);
	assert_true(claims == 0 && claims6 == 0);
	world_close(w);
}

static unsigned asked, named;
static uw_status answer;

static uw_status refuse(struct io_link *l, uint16_t port, unsigned versions)
{
	(void)l;
	(void)port;
	asked++;
	named += (versions & IO_NAMED) != 0;
	return answer;
}

/* Only a port that another program has is a reason to try the next one. */
static void what_no_port_can_mend_ends_the_search(void **state)
{
	static const struct io_ops refusing = { .name = "refusing", .claim_port = refuse };
	static const uw_status why[] = { UW_E_NOMEM, UW_E_ADDR, UW_E_PERM };
	struct world *w = world_open(1);
	struct uw_ep *ep = ep4(w);
	struct io_link *l = world_stack(w, 0)->links[0];
	unsigned port;

	(void)state;
	l->ops = &refusing;
	l->flags |= IO_SHARED;
	asked = named = 0;
	for (unsigned i = 0; i < COUNT(why); i++) {
		answer = why[i];
		assert_status(take(w, ep, 0), why[i]);
		assert_status(take(w, ep, PORT), why[i]);
		assert_status(ports_borrow(&w->d, IO_V4, &port), why[i]);
		assert_int_equal(port, 0);
		assert_int_equal(asked, 3 * (i + 1));
		assert_int_equal(named, i + 1); /* PORT */
	}
	answer = UW_E_ADDR_IN_USE;
	asked = 0;
	assert_status(take(w, ep, 0), UW_E_ADDR_IN_USE);
	assert_int_equal(asked, LAST - FIRST + 1);
	assert_null(ep->port_link);
	world_close(w);
}

/* As of rdma_bind_addr() over a kernel's device. */
static void and_the_program_hears_why(void **state)
{
	static const struct io_ops refusing = { .name = "refusing", .claim_port = refuse };
	static const struct {
		uw_status answer;
		int err;
	} cases[] = { { UW_E_PERM, -EACCES },
		      { UW_E_ADDR, -EADDRNOTAVAIL },
		      { UW_E_ADDR_IN_USE, -EADDRINUSE },
		      { UW_E_NOMEM, -ENOMEM } };
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_port = htons(80),
				    .sin_addr.s_addr = htonl(0x0a000001) };
	struct world *w = world_open(1);
	struct io_link *l = world_stack(w, 0)->links[0];
	struct uw_ep *ep;

	(void)state;
	l->ops = &refusing;
	l->flags |= IO_SHARED;
	assert_int_equal(ep_create(&w->d, NULL, NULL, &ep), 0);
	for (unsigned i = 0; i < COUNT(cases); i++) {
		answer = cases[i].answer;
		assert_int_equal(uw_ep_bind(ep, (struct sockaddr *)&here), cases[i].err);
	}
	uw_ep_destroy(ep);
	world_close(w);
}

/* The listener may go, its connections stay. */
static void a_connection_keeps_the_port_of_its_listener(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *listening = ep4(w), *came = ep4(w);
	struct io_link *l = world_stack(w, 0)->links[0];

	(void)state;
	l->ops = &shared;
	l->flags |= IO_SHARED;
	claims = 0;
	assert_status(take(w, listening, PORT), UW_OK);
	assert_int_equal(claims, 1);
	came->lport = listening->lport;
	ports_hold(came);
	assert_int_equal(claims, 2);
	ports_release(listening);
	assert_int_equal(claims, 1);
	ports_release(came);
	ports_release(came);
	assert_int_equal(claims, 0);
	world_close(w);
}

static void each_version_of_ip_has_its_own(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *four = ep4(w), *v6 = ep_at(w, 0, six), *both = ep_at(w, 0, any6);

	(void)state;
	assert_status(take(w, four, PORT), UW_OK);
	assert_status(take(w, v6, PORT), UW_OK);
	assert_true(ports_is_alone(&w->d, four));
	assert_true(ports_is_alone(&w->d, v6));
	/* :: stands for both, unless it is told not to */
	assert_status(take(w, both, PORT), UW_E_ADDR_IN_USE);
	both->only6 = true;
	assert_status(take(w, both, PORT), UW_E_ADDR_IN_USE);
	ports_release(v6);
	assert_status(take(w, both, PORT), UW_OK);
	ports_release(both);
	both->only6 = false;
	assert_status(take(w, both, PORT), UW_E_ADDR_IN_USE); /* of 0.0.0.0 */
	ports_release(four);
	assert_status(take(w, both, PORT), UW_OK);
	assert_status(take(w, four, PORT), UW_E_ADDR_IN_USE);
	world_close(w);
}

static void who_agrees_shares(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *v[4] = { ep4(w), ep4(w), ep4(w), ep4(w) };
	struct listener ls = { 0 };

	(void)state;
	v[0]->share_port = v[1]->share_port = v[3]->share_port = true;
	assert_status(take(w, v[0], PORT), UW_OK);
	assert_status(take(w, v[1], PORT), UW_OK);
	assert_status(take(w, v[2], PORT), UW_E_ADDR_IN_USE); /* does not share */
	assert_false(ports_is_alone(&w->d, v[0]));
	ports_release(v[0]);
	assert_true(ports_is_alone(&w->d, v[1]));
	v[1]->listener = &ls;
	assert_status(take(w, v[3], PORT), UW_E_ADDR_IN_USE); /* who listens shares with nobody */
	v[1]->listener = NULL;
	assert_status(take(w, v[3], PORT), UW_OK);
	/* the one in the middle, the first and the last go */
	assert_status(take(w, v[0], PORT), UW_OK);
	ports_release(v[3]);
	ports_release(v[0]);
	assert_ptr_equal(w->d.ports.holders[PORT], v[1]);
	ports_release(v[1]);
	assert_null(w->d.ports.holders[PORT]);
	world_close(w);
}

static void reserved_ports_are_nobodys(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *ep = ep4(w);

	(void)state;
	assert_status(take(w, ep, RC_PORT), UW_E_ADDR_IN_USE);
	ports_reserve(&w->d.ports, PORT);
	assert_status(take(w, ep, PORT), UW_E_ADDR_IN_USE);
	world_close(w);
}

/* ---- ephemeral ports (RFC 6056 §3.3.1) --------------------------------------------------------
 */

static unsigned next_free(struct world *w)
{
	struct uw_ep *ep = ep4(w);

	assert_status(take(w, ep, 0), UW_OK);
	return ntohs(ep->lport);
}

static void the_first_is_random_and_the_others_follow(void **state)
{
	struct world *w = world_open(1), *again;
	unsigned first = next_free(w), other;

	(void)state;
	assert_in_range(first, FIRST, LAST);
	for (unsigned i = 1; i < 10; i++)
		assert_int_equal(next_free(w), FIRST + (first - FIRST + i) % (LAST - FIRST + 1));
	world_close(w);
	again = world_open(1);
	again->stack[0].random = 99;
	other = next_free(again);
	assert_in_range(other, FIRST, LAST);
	assert_int_not_equal(other, first);
	world_close(again);
}

static void a_port_that_was_given_back_is_not_the_next(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *ep = ep4(w);
	uint16_t first;

	(void)state;
	assert_status(take(w, ep, 0), UW_OK);
	first = ep->lport;
	ports_release(ep);
	assert_status(take(w, ep, 0), UW_OK);
	assert_int_not_equal(ep->lport, first); /* it may be in TIME_WAIT */
	world_close(w);
}

static void they_begin_anew_behind_the_last(void **state)
{
	struct world *w = world_open(1);

	(void)state;
	w->d.ports.next_ephemeral = LAST - FIRST; /* the last but none */
	assert_int_equal(next_free(w), LAST);
	assert_int_equal(next_free(w), FIRST);
	assert_int_equal(next_free(w), FIRST + 1);
	world_close(w);
}

static void what_is_in_use_is_left_out(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *ep = ep4(w);

	(void)state;
	w->d.ports.next_ephemeral = 10;
	assert_status(take(w, ep, FIRST + 10), UW_OK);
	ports_reserve(&w->d.ports, FIRST + 11);
	fake_llp.taken_port = htons(FIRST + 12); /* the transport knows of another user */
	assert_int_equal(next_free(w), FIRST + 13);
	world_close(w);
}

static void there_may_be_none(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *ep = ep4(w);
	unsigned port;

	(void)state;
	for (unsigned p = FIRST; p <= LAST; p++)
		ports_reserve(&w->d.ports, p);
	assert_status(take(w, ep, 0), UW_E_ADDR_IN_USE);
	assert_status(ports_borrow(&w->d, IO_V4, &port), UW_E_ADDR_IN_USE);
	ports_give_back(&w->d, FIRST + 5, IO_V4);
	assert_int_equal(next_free(w), FIRST + 5);
	world_close(w);
}

static void a_borrowed_port_is_nobody_elses(void **state)
{
	struct world *w = world_open(1);
	struct uw_ep *ep = ep4(w);
	unsigned port, other;

	(void)state;
	assert_status(ports_borrow(&w->d, IO_V4, &port), UW_OK);
	assert_status(ports_borrow(&w->d, IO_V4, &other), UW_OK);
	assert_in_range(port, FIRST, LAST);
	assert_in_range(other, FIRST, LAST);
	assert_int_not_equal(port, other);
	assert_status(take(w, ep, port), UW_E_ADDR_IN_USE);
	ports_give_back(&w->d, port, IO_V4);
	assert_status(take(w, ep, port), UW_OK);
	world_close(w);
}

/* ---- several stacks ----------------------------------------------------------------------------
 */

static void all_of_a_port_are_on_one_stack(void **state)
{
	struct world *w = world_open(3);
	struct uw_ep *a = ep_at(w, 1, uw_ip_v4(htonl(0x0a000001))),
		     *b = ep_at(w, 2, uw_ip_v4(htonl(0x0a000001)));

	(void)state;
	a->share_port = b->share_port = true;
	b->l = &w->stack[2].link[1];
	assert_status(take(w, a, PORT), UW_OK);
	assert_status(take(w, b, PORT), UW_OK);
	assert_ptr_equal(b->stack, world_stack(w, 1));
	assert_ptr_equal(b->l, &w->stack[1].link[1]); /* the same link of that stack */
	world_close(w);
}

static void segments_are_steered_by_version(void **state)
{
	struct world *w = world_open(3);
	struct uw_ep *both = ep_at(w, 0, any6), *one = ep_at(w, 0, six);

	(void)state;
	assert_status(take(w, both, PORT), UW_OK);
	ports_steer(&w->d, both, -1);
	assert_int_equal(w->n_steered, 2);
	assert_int_equal(w->steered[0].ip6 + w->steered[1].ip6, 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ntohs(w->steered[i].port), PORT);
		assert_int_equal(w->steered[i].to, -1);
	}
	assert_status(take(w, one, PORT + 1), UW_OK);
	ports_steer(&w->d, one, 2);
	assert_int_equal(w->n_steered, 3);
	assert_true(w->steered[2].ip6);
	assert_int_equal(w->steered[2].to, 2);
	world_close(w);
	w = world_open(1); /* one stack: nobody to steer */
	one = ep_at(w, 0, six);
	assert_status(take(w, one, PORT), UW_OK);
	ports_steer(&w->d, one, -1);
	assert_int_equal(w->n_steered, 0);
	world_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_has_one_endpoint),
		cmocka_unit_test(a_connection_keeps_the_port_of_its_listener),
		cmocka_unit_test(each_version_of_ip_is_claimed_by_itself),
		cmocka_unit_test(what_no_port_can_mend_ends_the_search),
		cmocka_unit_test(and_the_program_hears_why),
		cmocka_unit_test(each_version_of_ip_has_its_own),
		cmocka_unit_test(who_agrees_shares),
		cmocka_unit_test(reserved_ports_are_nobodys),
		cmocka_unit_test(the_first_is_random_and_the_others_follow),
		cmocka_unit_test(a_port_that_was_given_back_is_not_the_next),
		cmocka_unit_test(they_begin_anew_behind_the_last),
		cmocka_unit_test(what_is_in_use_is_left_out),
		cmocka_unit_test(there_may_be_none),
		cmocka_unit_test(a_borrowed_port_is_nobody_elses),
		cmocka_unit_test(all_of_a_port_are_on_one_stack),
		cmocka_unit_test(segments_are_steered_by_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
