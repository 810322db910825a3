/* SPDX-License-Identifier: BSD-3-Clause */
/* The rdma_cm node when there is no memory for an event. */
#include "rdma_cm/abi.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "rdma_cm/rdma_cm.h" /* of the library: how large an event is */

static _Atomic unsigned to_fail; /* so many of the next allocations of events */

void *__libc_calloc(size_t n, size_t size); /* NOLINT: glibc's own name of it */

/* The library's calls come here, as this is the program's. */
__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
	if (n == 1 && size == sizeof(struct cm_event) && atomic_load(&to_fail)) {
		atomic_fetch_sub(&to_fail, 1);
		return NULL;
	}
	return __libc_calloc(n, size);
}

/* The peer would wait for an answer until its time is over. */
static void a_request_is_rejected(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t client;

	(void)state;
	cm_listener(sfd, 8101, 1);
	client = cm_routed(cfd, 8101);
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

/* The program does not hear of it, and may still end the id. */
static void an_outcome_is_noted(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_routed(fd, 8999); /* where nobody listens */

	(void)state;
	to_fail = 1;
	assert_int_equal(cm_connect(fd, id, 1, "", 0, 0), 0);
	assert_int_equal(cm_disconnect(fd, id), 0); /* waits for the outcome */
	assert_int_equal(to_fail, 0);
	cm_expect_none(fd, 20);
	assert_int_equal(cm_destroy(fd, id, NULL), 0);
	close(fd);
}

static void a_command_says_so(void **state)
{
	int fd = cm_node();
	struct cm_write_event c = { .id = cm_create(fd, RDMA_PS_TCP), .event = CM_EV_USER };

	(void)state;
	to_fail = 1;
	assert_int_equal(cm_cmd(fd, CM_CMD_WRITE_EVENT, &c, sizeof(c), 0), -ENOMEM);
	assert_int_equal(cm_cmd(fd, CM_CMD_WRITE_EVENT, &c, sizeof(c), 0), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_rejected),
		cmocka_unit_test(an_outcome_is_noted),
		cmocka_unit_test(a_command_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
