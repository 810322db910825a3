/* SPDX-License-Identifier: BSD-3-Clause */
/* The rdma_cm node with the identity RoCE: how a connection comes up. */
#include "rdma_cm/abi.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define SERVER_UID 77

/* The server's id; the client has not heard yet that it was accepted. */
static uint32_t accepted_as_roce(int cfd, int sfd, uint32_t client, uint16_t port)
{
	uint32_t server;

	setenv("UWARP_IDENTITY", "roce", 1);
	cm_listener(sfd, port, 8);
	assert_int_equal(cm_connect(cfd, client, 1, "", 1, 1), 0);
	server = cm_expect(sfd, EV_REQUEST, 0).id;
	assert_int_equal(cm_accept(sfd, server, SERVER_UID, 2, ""), 0);
	cm_expect(sfd, EV_ESTABLISHED, 0);
	return server;
}

/* As RoCE the connecting side hears what InfiniBand's hears, and confirms: librdmacm for an id that
 * has a QP, the program for one that has not. */
static void roce_leaves_the_last_step_to_the_program(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t client = cm_routed(cfd, 8021);

	(void)state;
	accepted_as_roce(cfd, sfd, client, 8021);
	cm_expect(cfd, EV_CONNECT_RESPONSE, 0);
	assert_int_equal(cm_establish(cfd, client), 0);
	unsetenv("UWARP_IDENTITY");
	close(cfd);
	close(sfd);
}

/* With InfiniBand nobody leaves before the confirmation. */
static void roce_confirms_though_the_peer_has_left(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t client = cm_routed(cfd, 8022), server;

	(void)state;
	server = accepted_as_roce(cfd, sfd, client, 8022);
	assert_int_equal(cm_disconnect(sfd, server), 0);
	cm_expect(cfd, EV_CONNECT_RESPONSE, 0);
	cm_expect(cfd, EV_DISCONNECTED, 0); /* the program has not looked yet */
	assert_int_equal(cm_establish(cfd, client), 0);
	assert_int_equal(cm_establish(cfd, client), -EINVAL);
	unsetenv("UWARP_IDENTITY");
	close(cfd);
	close(sfd);
}

/* UCX names a UD QP, or none, and uses the connection for its private data alone. */
static void roce_takes_any_number_for_a_qp(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t client = cm_routed(cfd, 8023), server;

	(void)state;
	setenv("UWARP_IDENTITY", "roce", 1);
	cm_listener(sfd, 8023, 8);
	assert_int_equal(cm_connect(cfd, client, 0, "hello", 1, 1), 0);
	server = cm_expect(sfd, EV_REQUEST, 0).id;
	assert_int_equal(cm_accept(sfd, server, SERVER_UID, 0, "yes"), 0);
	cm_expect(sfd, EV_ESTABLISHED, 0);
	cm_expect(cfd, EV_CONNECT_RESPONSE, 0);
	assert_int_equal(cm_establish(cfd, client), 0);
	assert_int_equal(cm_disconnect(cfd, client), 0);
	cm_expect(sfd, EV_DISCONNECTED, 0);
	unsetenv("UWARP_IDENTITY");
	close(cfd);
	close(sfd);
}

/* IBA §12.6.7.2: a reason of the CM's instead of iwcm's errno values. A full backlog is as a
 * program's word. */
static void roce_says_why_it_rejects(void **state)
{
	enum { INVALID_SERVICE_ID = 8, CONSUMER_DEFINED = 28 };
	int cfd = cm_node(), sfd = cm_node();
	uint32_t nobody = cm_routed(cfd, 8999), reset = cm_routed(cfd, 11),
		 lost = cm_routed(cfd, 9);
	uint32_t client = cm_routed(cfd, 8024), late = cm_routed(cfd, 8024);

	(void)state;
	setenv("UWARP_IDENTITY", "roce", 1);
	assert_int_equal(cm_connect(cfd, nobody, 1, "", 1, 1), 0);
	assert_int_equal(cm_expect(cfd, EV_REJECTED, INVALID_SERVICE_ID).id, nobody);
	assert_int_equal(cm_connect(cfd, reset, 1, "", 1, 1), 0);
	assert_int_equal(cm_expect(cfd, EV_REJECTED, CONSUMER_DEFINED).id, reset);
	assert_int_equal(cm_connect(cfd, lost, 1, "", 1, 1), 0);
	assert_int_equal(cm_expect(cfd, EV_UNREACHABLE, -ETIMEDOUT).id, lost);
	cm_listener(sfd, 8024, 1);
	assert_int_equal(cm_connect(cfd, client, 1, "", 1, 1), 0);
	assert_int_equal(cm_connect(cfd, late, 1, "", 1, 1), 0);
	assert_int_equal(cm_expect(cfd, EV_REJECTED, CONSUMER_DEFINED).id, late);
	assert_int_equal(cm_reject(sfd, cm_expect(sfd, EV_REQUEST, 0).id, "no"), 0);
	assert_int_equal(cm_expect(cfd, EV_REJECTED, CONSUMER_DEFINED).id, client);
	unsetenv("UWARP_IDENTITY");
	close(cfd);
	close(sfd);
}

/* With which librdmacm takes an id's QP to INIT and RTR: InfiniBand's step to INIT has a P_Key and
 * a port. */
static void roce_hands_out_infinibands_init(void **state)
{
	struct ib_uverbs_qp_attr r;
	int fd = cm_node();
	struct rdma_ucm_init_qp_attr c = { .id = cm_routed(fd, 8025), .response = (uintptr_t)&r };

	(void)state;
	setenv("UWARP_IDENTITY", "roce", 1);
	c.qp_state = 1;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &c, sizeof(c), sizeof(r)), 0);
	assert_int_equal(r.qp_attr_mask, 1 << 0 | 1 << 3 | 1 << 4 | 1 << 5);
	assert_int_equal(r.port_num, 1);
	c.qp_state = 2;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &c, sizeof(c), sizeof(r)), 0);
	assert_int_equal(r.qp_attr_mask, 1 << 0 | 1 << 3);
	unsetenv("UWARP_IDENTITY");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roce_leaves_the_last_step_to_the_program),
		cmocka_unit_test(roce_confirms_though_the_peer_has_left),
		cmocka_unit_test(roce_takes_any_number_for_a_qp),
		cmocka_unit_test(roce_says_why_it_rejects),
		cmocka_unit_test(roce_hands_out_infinibands_init),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
