/* SPDX-License-Identifier: BSD-3-Clause */
/* Local ports: one endpoint each, unless all that have it share it and none listens. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cm/rc.h"
#include "net.h"

struct held_ports {
	struct sim sim;
	struct uw_ep *ep[3];
};

static int up(void **state)
{
	struct held_ports *p = calloc(1, sizeof(*p));

	sim_open(&p->sim, &(struct sim_options){ 0 });
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(uw_ep_create(p->sim.e, sim_event, &p->sim.a, &p->ep[i]), 0);
	*state = p;
	return 0;
}

static int down(void **state)
{
	struct held_ports *p = *state;

	for (unsigned i = 0; i < 3; i++) {
		if (p->ep[i])
			uw_ep_destroy(p->ep[i]);
	}
	sim_close(&p->sim);
	free(p);
	return 0;
}

static int bind_to(struct uw_ep *ep, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(SIM_A) };

	return uw_ep_bind(ep, (struct sockaddr *)&a);
}

static void drop(struct held_ports *p, unsigned i)
{
	uw_ep_destroy(p->ep[i]);
	p->ep[i] = NULL;
}

static void a_port_has_one_holder(void **state)
{
	struct held_ports *p = *state;

	assert_int_equal(bind_to(p->ep[0], 7000), 0);
	assert_int_equal(bind_to(p->ep[1], 7000), -EADDRINUSE);
	assert_int_equal(uw_ep_share_port(p->ep[1], true), 0);
	assert_int_equal(bind_to(p->ep[1], 7000), -EADDRINUSE); /* the other does not share */
	drop(p, 0);
	assert_int_equal(bind_to(p->ep[1], 7000), 0);
}

static void those_that_share_do(void **state)
{
	struct held_ports *p = *state;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(uw_ep_share_port(p->ep[i], true), 0);
		assert_int_equal(bind_to(p->ep[i], 7000), 0);
	}
	assert_int_equal(bind_to(p->ep[2], 7000), -EADDRINUSE);
	assert_int_equal(uw_ep_listen(p->ep[0], 1), -EADDRINUSE); /* not while another has it */
	drop(p, 0);
	assert_int_equal(bind_to(p->ep[2], 7000), -EADDRINUSE); /* still held */
	assert_int_equal(uw_ep_listen(p->ep[1], 1), 0);
	assert_int_equal(uw_ep_share_port(p->ep[2], true), 0);
	assert_int_equal(bind_to(p->ep[2], 7000), -EADDRINUSE); /* one listens */
	drop(p, 1);
	assert_int_equal(bind_to(p->ep[2], 7000), 0);
}

static void sharing_is_for_ports_to_come(void **state)
{
	struct held_ports *p = *state;

	assert_int_equal(bind_to(p->ep[0], 7000), 0);
	assert_int_equal(uw_ep_share_port(p->ep[0], true), -EINVAL);
	assert_int_equal(uw_ep_share_port(p->ep[0], false), 0);
	/* what the engine keeps for itself nobody shares */
	assert_int_equal(uw_ep_share_port(p->ep[1], true), 0);
	assert_int_equal(bind_to(p->ep[1], RC_PORT), -EADDRINUSE);
}

static bool parted(void *arg)
{
	struct sim *s = arg;

	return sim_had(&s->a, UW_CM_DISCONNECTED) && sim_had(&s->b, UW_CM_DISCONNECTED);
}

/* TIME_WAIT outlasts the engine, and the next one may begin with the same port. */
static void a_port_is_not_taken_before_its_last_connection_is_over(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct sim *s = calloc(1, sizeof(*s));

		sim_open(s, &(struct sim_options){ 0 });
		s->e->conn.ports.next_ephemeral = 1000;
		sim_connect(s, 7471);
		assert_int_equal(uw_ep_disconnect(s->a.ep), 0);
		assert_true(sim_until(s, parted, s, 60000000));
		sim_close(s);
		free(s);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_port_has_one_holder, up, down),
		cmocka_unit_test_setup_teardown(those_that_share_do, up, down),
		cmocka_unit_test_setup_teardown(sharing_is_for_ports_to_come, up, down),
		cmocka_unit_test(a_port_is_not_taken_before_its_last_connection_is_over),
	};

	return sim_run_tests(tests, argc, argv);
}
