/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma_cm/abi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SOON_MS 5000

int cm_node(void)
{
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

int cm_cmd(int fd, unsigned cmd, const void *in, size_t in_len, size_t out_len)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t octets[512];
	} buf = { { .cmd = cmd, .in = (uint16_t)in_len, .out = (uint16_t)out_len }, { 0 } };
	ssize_t n;

	if (in_len)
		memcpy(buf.octets, in, in_len);
	n = write(fd, &buf, sizeof(buf.hdr) + in_len);
	if (n < 0)
		return -errno;
	assert_int_equal(n, sizeof(buf.hdr) + in_len);
	return 0;
}

uint32_t cm_create(int fd, unsigned ps)
{
	struct rdma_ucm_create_id_resp r = { 0 };
	struct rdma_ucm_create_id c = { .response = (uintptr_t)&r, .ps = (uint16_t)ps };
	static uint64_t next_uid = 1000;

	c.uid = __atomic_add_fetch(&next_uid, 1, __ATOMIC_RELAXED);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), sizeof(r)), 0);
	assert_int_not_equal(r.id, 0);
	return r.id;
}

int cm_destroy(int fd, uint32_t id, uint32_t *reported)
{
	struct rdma_ucm_destroy_id_resp r = { .events_reported = ~0u };
	struct rdma_ucm_destroy_id c = { .response = (uintptr_t)&r, .id = id };
	int err = cm_cmd(fd, RDMA_USER_CM_CMD_DESTROY_ID, &c, sizeof(c), sizeof(r));

	if (reported)
		*reported = r.events_reported;
	return err;
}

struct sockaddr_in6 cm_addr(uint32_t a, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 room = { 0 };

	in.sin_addr.s_addr = htonl(a);
	in.sin_port = htons(port);
	memcpy(&room, &in, sizeof(in));
	return room;
}

int cm_bind(int fd, uint32_t id, uint32_t a, uint16_t port)
{
	struct rdma_ucm_bind_ip c = { .id = id, .addr = cm_addr(a, port) };

	return CM_CMD(fd, BIND_IP, c);
}

int cm_listen(int fd, uint32_t id, int backlog)
{
	struct rdma_ucm_listen c = { .id = id, .backlog = (uint32_t)backlog };

	return CM_CMD(fd, LISTEN, c);
}

int cm_resolve(int fd, uint32_t id, uint32_t a, uint16_t port, unsigned timeout_ms)
{
	struct rdma_ucm_resolve_ip c = { .id = id,
					 .dst_addr = cm_addr(a, port),
					 .timeout_ms = timeout_ms };

	return CM_CMD(fd, RESOLVE_IP, c);
}

int cm_route(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_route c = { .id = id, .timeout_ms = 1000 };

	return CM_CMD(fd, RESOLVE_ROUTE, c);
}

int cm_query(int fd, uint32_t id, struct rdma_ucm_query_route_resp *r)
{
	struct rdma_ucm_query c = { .id = id, .response = (uintptr_t)r };

	memset(r, 0xa5, sizeof(*r));
	return cm_cmd(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, &c, sizeof(c), sizeof(*r));
}

static struct rdma_ucm_conn_param param(uint32_t qpn, const char *data)
{
	struct rdma_ucm_conn_param p = { .qp_num = qpn, .valid = 1 };

	p.private_data_len = (uint8_t)(data ? strlen(data) : 0);
	memcpy(p.private_data, data ? data : "", p.private_data_len);
	return p;
}

int cm_connect(int fd, uint32_t id, uint32_t qpn, const char *data, unsigned ird, unsigned ord)
{
	struct rdma_ucm_connect c = { .id = id, .conn_param = param(qpn, data) };

	c.conn_param.responder_resources = (uint8_t)ird;
	c.conn_param.initiator_depth = (uint8_t)ord;
	return CM_CMD(fd, CONNECT, c);
}

int cm_accept(int fd, uint32_t id, uint64_t uid, uint32_t qpn, const char *data)
{
	struct rdma_ucm_accept c = { .id = id, .uid = uid, .conn_param = param(qpn, data) };

	c.conn_param.responder_resources = 3;
	c.conn_param.initiator_depth = 5;
	return CM_CMD(fd, ACCEPT, c);
}

int cm_establish(int fd, uint32_t id)
{
	struct rdma_ucm_accept c = { .id = id };

	return CM_CMD(fd, ACCEPT, c);
}

int cm_reject(int fd, uint32_t id, const char *data)
{
	struct rdma_ucm_reject c = { .id = id, .private_data_len = (uint8_t)strlen(data) };

	memcpy(c.private_data, data, strlen(data));
	return CM_CMD(fd, REJECT, c);
}

int cm_disconnect(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect c = { .id = id };

	return CM_CMD(fd, DISCONNECT, c);
}

int cm_event(int fd, struct rdma_ucm_event_resp *r)
{
	struct rdma_ucm_get_event c = { .response = (uintptr_t)r };

	memset(r, 0xa5, sizeof(*r));
	return cm_cmd(fd, RDMA_USER_CM_CMD_GET_EVENT, &c, sizeof(c), sizeof(*r));
}

bool cm_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}

struct rdma_ucm_event_resp cm_expect(int fd, unsigned event, int status)
{
	struct rdma_ucm_event_resp r;

	assert_true(cm_readable(fd, SOON_MS));
	assert_int_equal(cm_event(fd, &r), 0);
	assert_int_equal(r.event, event);
	assert_int_equal((int)r.status, status);
	return r;
}

void cm_expect_none(int fd, int ms)
{
	assert_false(cm_readable(fd, ms));
}

uint32_t cm_routed(int fd, uint16_t port)
{
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, port, 1000), 0);
	assert_int_equal(cm_expect(fd, EV_ADDR_RESOLVED, 0).id, id);
	assert_int_equal(cm_route(fd, id), 0);
	assert_int_equal(cm_expect(fd, EV_ROUTE_RESOLVED, 0).id, id);
	return id;
}

uint32_t cm_listener(int fd, uint16_t port, int backlog)
{
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	assert_int_equal(cm_bind(fd, id, INADDR_ANY, port), 0);
	assert_int_equal(cm_listen(fd, id, backlog), 0);
	return id;
}

static char state_of(int tid)
{
	char path[64], text[256];
	const char *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_true(n > 0);
	text[n] = 0;
	name_end = strrchr(text, ')');
	return name_end ? name_end[2] : 0;
}

void cm_until_asleep(const _Atomic int *tid)
{
	while (!*tid || state_of(*tid) != 'S')
		usleep(1000);
}
