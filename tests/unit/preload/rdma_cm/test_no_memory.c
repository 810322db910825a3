/* SPDX-License-Identifier: BSD-3-Clause */
/* The rdma_cm node when there is no memory for an event. */
#include "rdma_cm/abi.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "rdma_cm/rdma_cm.h" /* of the library: how large an event is */

static _Atomic unsigned to_pass, to_fail; /* so many of the next allocations of events */

void *__libc_calloc(size_t n, size_t size); /* NOLINT: glibc's own name of it */

/* The library's calls come here, as this is the program's. */
__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
	if (n != 1 || size != sizeof(struct cm_event))
		return __libc_calloc(n, size);
	if (atomic_load(&to_pass)) {
		atomic_fetch_sub(&to_pass, 1);
	} else if (atomic_load(&to_fail)) {
		atomic_fetch_sub(&to_fail, 1);
		return NULL;
	}
	return __libc_calloc(n, size);
}

/* CONNECT and ACCEPT have so many for what follows. */
enum { RESERVE = 2, ALL = 1000 };

/* The peer would wait for an answer until its time is over. */
static void a_request_is_rejected(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t client;

	(void)state;
	cm_listener(sfd, 8101, 1);
	client = cm_routed(cfd, 8101);
	to_pass = RESERVE;
	to_fail = 1;
	assert_int_equal(cm_connect(cfd, client, 1, "", 0, 0), 0);
	assert_int_equal(cm_expect(cfd, EV_REJECTED, -ECONNREFUSED).id, client);
	assert_int_equal(to_fail, 0);
	cm_expect_none(sfd, 20);

	client = cm_routed(cfd, 8101); /* its place in the backlog is free */
	assert_int_equal(cm_connect(cfd, client, 1, "", 0, 0), 0);
	cm_expect(sfd, EV_REQUEST, 0);
	close(cfd);
	close(sfd);
}

/* Programs wait for it. */
static void an_outcome_is_told(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t client, server;

	(void)state;
	cm_listener(sfd, 8102, 1);
	client = cm_routed(cfd, 8102);
	assert_int_equal(cm_connect(cfd, client, 1, "", 0, 0), 0);
	server = cm_expect(sfd, EV_REQUEST, 0).id;
	to_fail = ALL;
	assert_int_equal(cm_reject(sfd, server, "no"), 0);
	assert_int_equal(cm_expect(cfd, EV_REJECTED, -ECONNREFUSED).id, client);
	to_fail = 0;
	close(cfd);
	close(sfd);
}

static void an_end_is_told(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t client, server;

	(void)state;
	cm_listener(sfd, 8103, 1);
	client = cm_routed(cfd, 8103);
	assert_int_equal(cm_connect(cfd, client, 1, "", 0, 0), 0);
	server = cm_expect(sfd, EV_REQUEST, 0).id;
	to_pass = RESERVE;
	to_fail = ALL;
	assert_int_equal(cm_accept(sfd, server, 2000, 2, ""), 0);
	cm_expect(cfd, EV_ESTABLISHED, 0);
	cm_expect(sfd, EV_ESTABLISHED, 0);
	assert_int_equal(cm_disconnect(cfd, client), 0);
	assert_int_equal(cm_expect(cfd, EV_DISCONNECTED, 0).id, client);
	assert_int_equal(cm_expect(sfd, EV_DISCONNECTED, 0).id, server);
	to_fail = 0;
	close(cfd);
	close(sfd);
}

/* Also if it takes a while. */
static void an_address_is_told(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	to_pass = 1;
	to_fail = ALL;
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 8104, 1000), 0);
	assert_int_equal(cm_expect(fd, EV_ADDR_RESOLVED, 0).id, id);
	to_fail = 0;
	close(fd);
}

static void who_accepts_is_told(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t client, server;

	(void)state;
	cm_listener(sfd, 8105, 1);
	client = cm_routed(cfd, 8105);
	assert_int_equal(cm_connect(cfd, client, 1, "", 0, 0), 0);
	server = cm_expect(sfd, EV_REQUEST, 0).id;
	to_pass = 1;
	to_fail = 1;
	assert_int_equal(cm_accept(sfd, server, 2001, 2, ""), -ENOMEM);
	assert_int_equal(cm_expect(cfd, EV_REJECTED, -ECONNREFUSED).id, client);
	close(cfd);
	close(sfd);
}

static void a_command_says_so(void **state)
{
	int fd = cm_node();
	struct cm_write_event c = { .id = cm_create(fd, RDMA_PS_TCP), .event = CM_EV_USER };
	uint32_t id;

	(void)state;
	to_fail = 1;
	assert_int_equal(cm_resolve(fd, c.id, INADDR_LOOPBACK, 8106, 1000), -ENOMEM);
	id = cm_routed(fd, 8106);
	to_pass = 1;
	to_fail = 1;
	assert_int_equal(cm_connect(fd, id, 1, "", 0, 0), -ENOMEM);
	assert_int_equal(cm_connect(fd, id, 1, "", 0, 0), 0); /* nobody listens there */
	cm_expect(fd, EV_REJECTED, -ECONNREFUSED);
	to_fail = 1;
	assert_int_equal(cm_cmd(fd, CM_CMD_WRITE_EVENT, &c, sizeof(c), 0), -ENOMEM);
	assert_int_equal(cm_cmd(fd, CM_CMD_WRITE_EVENT, &c, sizeof(c), 0), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_rejected), cmocka_unit_test(an_outcome_is_told),
		cmocka_unit_test(an_end_is_told),	 cmocka_unit_test(an_address_is_told),
		cmocka_unit_test(who_accepts_is_told),	 cmocka_unit_test(a_command_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
