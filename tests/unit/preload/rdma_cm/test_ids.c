/* SPDX-License-Identifier: BSD-3-Clause */
/* The rdma_cm node: framing of commands, ids, binding, resolving, queries, options. */
#include "rdma_cm/abi.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTR_STATE_ACCESS 9 /* IBV_QP_STATE | IBV_QP_ACCESS_FLAGS */

static const struct sockaddr_in *in4(const void *a)
{
	return a;
}

static void node_looks_like_a_device(void **state)
{
	struct stat st;
	int fd = cm_node();

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(stat("/dev/infiniband/rdma_cm", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access("/dev/infiniband/rdma_cm", R_OK | W_OK), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	cm_expect_none(fd, 0);
	close(fd);
}

static void framing(void **state)
{
	struct rdma_ucm_cmd_hdr h = { .cmd = RDMA_USER_CM_CMD_LISTEN, .in = 8 };
	struct rdma_ucm_listen l = { 0 };
	struct rdma_ucm_create_id c = { .uid = 1, .ps = RDMA_PS_TCP };
	int fd = cm_node();

	(void)state;
	assert_int_equal(write(fd, &h, 7), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(write(fd, &h, sizeof(h)), -1); /* promises more than there is */
	assert_int_equal(errno, EINVAL);
	assert_int_equal(cm_cmd(fd, 23, &l, sizeof(l), 0), -ENOSYS); /* services of a subnet */
	assert_int_equal(cm_cmd(fd, 25, &l, sizeof(l), 0), -EINVAL);
	assert_int_equal(cm_cmd(fd, ~0u, &l, sizeof(l), 0), -EINVAL);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_LISTEN, &l, sizeof(l) - 1, 0), -EINVAL);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_GET_OPTION, &l, sizeof(l), 0), -ENOSYS);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), 3), -ENOSPC);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), 4), -EFAULT);
	c.ps = 0x1234;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), 4), -EINVAL);
	close(fd);
}

static void ids(void **state)
{
	int fd = cm_node(), other = cm_node();
	uint32_t a = cm_create(fd, RDMA_PS_TCP), b = cm_create(fd, RDMA_PS_UDP), reported;

	(void)state;
	assert_int_not_equal(a, b);
	assert_int_equal(cm_destroy(fd, 4000000000u, NULL), -ENOENT);
	assert_int_equal(cm_destroy(other, a, NULL), -EINVAL);
	assert_int_equal(cm_listen(other, a, 1), -EINVAL);
	assert_int_equal(cm_destroy(fd, a, &reported), 0);
	assert_int_equal(reported, 0);
	assert_int_equal(cm_destroy(fd, a, NULL), -ENOENT);
	assert_int_equal(cm_create(fd, RDMA_PS_TCP), a); /* librdmacm needs small handles */
	close(fd);
	close(other);
}

/* librdmacm's handle index ends at 64 Ki; the table must also grow. */
static void many_ids(void **state)
{
	int fd = cm_node();
	uint32_t id = 0;

	(void)state;
	for (int i = 0; i < 500; i++)
		id = cm_create(fd, RDMA_PS_TCP);
	assert_in_range(id, 500, 600);
	close(fd);
	fd = cm_node();
	assert_in_range(cm_create(fd, RDMA_PS_TCP), 1, 100); /* the closed file's are free */
	close(fd);
}

static void bind_refusals(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP), second = cm_create(fd, RDMA_PS_TCP);
	uint32_t third = cm_create(fd, RDMA_PS_TCP);
	struct rdma_ucm_bind b = { .id = id, .addr_size = 48 };
	struct rdma_ucm_bind_ip ip = { .id = id };

	(void)state;
	b.addr.ss_family = AF_IB; /* librdmacm's probe */
	assert_int_equal(CM_CMD(fd, BIND, b), -EINVAL);
	b.addr.ss_family = AF_INET;
	assert_int_equal(CM_CMD(fd, BIND, b), -EINVAL); /* another family's size */
	assert_int_equal(CM_CMD(fd, BIND_IP, ip), -EINVAL);
	assert_int_equal(cm_bind(fd, id, 0x0a000001, 0), -EADDRNOTAVAIL);
	assert_int_equal(cm_bind(fd, id, INADDR_LOOPBACK, 7001), 0);
	assert_int_equal(cm_bind(fd, id, INADDR_LOOPBACK, 7002), -EINVAL);
	/* as Linux has it: where either is a wildcard the address is not available */
	assert_int_equal(cm_bind(fd, second, INADDR_LOOPBACK, 7001), -EADDRINUSE);
	assert_int_equal(cm_bind(fd, second, INADDR_ANY, 7001), -EADDRNOTAVAIL);
	assert_int_equal(cm_bind(fd, second, INADDR_ANY, 7002), 0);
	assert_int_equal(cm_bind(fd, third, INADDR_LOOPBACK, 7002), -EADDRNOTAVAIL);
	assert_int_equal(cm_bind(fd, third, INADDR_ANY, 7002), -EADDRNOTAVAIL);
	close(fd);
}

static void bound_addresses(void **state)
{
	struct rdma_ucm_query_route_resp r;
	int fd = cm_node();
	uint32_t any = cm_create(fd, RDMA_PS_TCP), lo = cm_create(fd, RDMA_PS_TCP);
	uint32_t own = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(cm_bind(fd, any, INADDR_ANY, 0), 0);
	assert_int_equal(cm_query(fd, any, &r), 0);
	assert_int_equal(in4(&r.src_addr)->sin_addr.s_addr, INADDR_ANY);
	assert_int_not_equal(in4(&r.src_addr)->sin_port, 0);
	assert_int_equal(r.node_guid, 0); /* a wildcard names no device */
	assert_int_equal(r.port_num, 0);
	assert_int_equal(cm_bind(fd, lo, INADDR_LOOPBACK, 7003), 0);
	assert_int_equal(cm_query(fd, lo, &r), 0);
	assert_int_equal(ntohl(in4(&r.src_addr)->sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_equal(ntohs(in4(&r.src_addr)->sin_port), 7003);
	assert_int_equal(r.node_guid, 0); /* nor does what every host has */
	assert_int_equal(cm_bind(fd, own, 0x7f070001, 7009), 0);
	assert_int_equal(cm_query(fd, own, &r), 0);
	assert_int_equal(ntohl(in4(&r.src_addr)->sin_addr.s_addr), 0x7f070001);
	assert_int_equal(be64toh(r.node_guid), ENGINE_GUID);
	assert_int_equal(r.port_num, 1);
	assert_int_equal(r.ibdev_index, UINT32_MAX);
	close(fd);
}

static void resolving(void **state)
{
	struct rdma_ucm_query_route_resp r;
	struct rdma_ucm_event_resp e;
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(cm_route(fd, id), -EINVAL);
	assert_int_equal(cm_connect(fd, id, 1, "", 0, 0), -EINVAL);
	assert_int_equal(cm_resolve(fd, id, INADDR_ANY, 7004, 1000), 0); /* means this machine */
	e = cm_expect(fd, EV_ADDR_RESOLVED, 0);
	assert_int_equal(e.id, id);
	assert_true(e.uid > 1000);
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 7004, 1000), -EINVAL);
	assert_int_equal(cm_listen(fd, id, 1), -EINVAL);
	assert_int_equal(cm_connect(fd, id, 1, "", 0, 0), -EINVAL); /* no route yet */
	assert_int_equal(cm_query(fd, id, &r), 0);
	assert_int_equal(ntohl(in4(&r.src_addr)->sin_addr.s_addr), ENGINE_ADDR);
	assert_int_equal(ntohl(in4(&r.dst_addr)->sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_equal(ntohs(in4(&r.dst_addr)->sin_port), 7004);
	assert_int_equal(be64toh(r.node_guid), ENGINE_GUID);
	assert_int_equal(r.num_paths, 0);
	assert_int_equal(cm_route(fd, id), 0);
	assert_int_equal(cm_expect(fd, EV_ROUTE_RESOLVED, 0).uid, e.uid);
	assert_int_equal(cm_route(fd, id), -EINVAL);
	close(fd);
}

static void resolve_with_source(void **state)
{
	struct rdma_ucm_resolve_addr c = { .timeout_ms = 1000, .src_size = 16, .dst_size = 16 };
	struct rdma_ucm_query_route_resp r;
	struct sockaddr_in6 src = cm_addr(INADDR_ANY, 7100), dst = cm_addr(INADDR_LOOPBACK, 7101);
	int fd = cm_node();

	(void)state;
	c.id = cm_create(fd, RDMA_PS_TCP);
	memcpy(&c.src_addr, &src, 16);
	memcpy(&c.dst_addr, &dst, 16);
	c.dst_size = 28;
	assert_int_equal(CM_CMD(fd, RESOLVE_ADDR, c), -EINVAL);
	c.dst_size = 0;
	assert_int_equal(CM_CMD(fd, RESOLVE_ADDR, c), -EINVAL);
	c.dst_size = 16;
	assert_int_equal(CM_CMD(fd, RESOLVE_ADDR, c), 0);
	cm_expect(fd, EV_ADDR_RESOLVED, 0);
	assert_int_equal(cm_query(fd, c.id, &r), 0);
	assert_int_equal(ntohs(in4(&r.src_addr)->sin_port), 7100);
	close(fd);
}

/* As Linux's cma_bind_addr(): what is wrong with the source is told by the call itself. */
static void a_source_is_bound(void **state)
{
	struct rdma_ucm_resolve_ip c = { .timeout_ms = 1000,
					 .src_addr = cm_addr(INADDR_LOOPBACK, 7100),
					 .dst_addr = cm_addr(INADDR_LOOPBACK, 7101) };
	int fd = cm_node();

	(void)state;
	assert_int_equal(cm_bind(fd, cm_create(fd, RDMA_PS_TCP), INADDR_LOOPBACK, 7100), 0);
	c.id = cm_create(fd, RDMA_PS_TCP);
	assert_int_equal(CM_CMD(fd, RESOLVE_IP, c), -EADDRINUSE);
	c.src_addr = cm_addr(0xc0000205, 0);
	assert_int_equal(CM_CMD(fd, RESOLVE_IP, c), -EADDRNOTAVAIL);
	cm_expect_none(fd, 0);
	c.src_addr = cm_addr(INADDR_LOOPBACK, 7102); /* it is idle still */
	assert_int_equal(CM_CMD(fd, RESOLVE_IP, c), 0);
	cm_expect(fd, EV_ADDR_RESOLVED, 0);
	close(fd);
}

static void mixed_families(void **state)
{
	struct rdma_ucm_resolve_ip c = { .dst_addr = cm_addr(INADDR_LOOPBACK, 1) };
	int fd = cm_node();

	(void)state;
	c.id = cm_create(fd, RDMA_PS_TCP);
	c.src_addr.sin6_family = AF_INET6;
	assert_int_equal(CM_CMD(fd, RESOLVE_IP, c), -EINVAL);
	c.src_addr.sin6_family = AF_UNIX;
	assert_int_equal(CM_CMD(fd, RESOLVE_IP, c), -EINVAL);
	assert_int_equal(cm_bind(fd, c.id, INADDR_ANY, 0), 0);
	memset(&c.src_addr, 0, sizeof(c.src_addr));
	c.dst_addr = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = 1 };
	assert_int_equal(CM_CMD(fd, RESOLVE_IP, c), -EINVAL); /* bound to the other family */
	cm_expect_none(fd, 0);
	close(fd);
}

static struct sockaddr_in6 addr6(const char *text, uint16_t port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET6, text, &a.sin6_addr), 1);
	return a;
}

/* The stack names its IPv4 address; beside an IPv6 destination it stands as an IPv6 one. */
static void one_family_per_id(void **state)
{
	struct rdma_ucm_resolve_ip c = { .dst_addr = addr6("::1", 7009), .timeout_ms = 100 };
	const struct sockaddr_in6 mapped = addr6("::ffff:127.7.0.1", 0);
	struct rdma_ucm_query_route_resp r;
	int fd = cm_node();

	(void)state;
	c.id = cm_create(fd, RDMA_PS_TCP);
	assert_int_equal(CM_CMD(fd, RESOLVE_IP, c), 0);
	cm_expect(fd, EV_ADDR_RESOLVED, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cm_query(fd, c.id, &r), 0);
		assert_int_equal(r.dst_addr.sin6_family, AF_INET6);
		assert_int_equal(r.src_addr.sin6_family, AF_INET6);
		assert_memory_equal(&r.src_addr.sin6_addr, &mapped.sin6_addr, 16);
		assert_int_not_equal(r.src_addr.sin6_port, 0);
		if (!i) {
			assert_int_equal(cm_route(fd, c.id), 0);
			cm_expect(fd, EV_ROUTE_RESOLVED, 0);
		}
	}
	close(fd);
}

static void resolve_failures(void **state)
{
	static const struct {
		unsigned ps;
		uint32_t addr;
		int status;
	} cases[] = {
		{ RDMA_PS_TCP, 0xc0000201, -ETIMEDOUT },
		{ RDMA_PS_TCP, 0xc0000202, -EHOSTUNREACH },
		{ RDMA_PS_IPOIB, INADDR_LOOPBACK, -EINVAL },
	};
	int fd = cm_node();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t id = cm_create(fd, cases[i].ps);

		assert_int_equal(cm_resolve(fd, id, cases[i].addr, 1, 20), 0);
		assert_int_equal(cm_expect(fd, EV_ADDR_ERROR, cases[i].status).id, id);
		assert_int_equal(cm_route(fd, id), -EINVAL);
		assert_int_equal(cm_resolve(fd, id, cases[i].addr, 1, 20), 0); /* again */
		cm_expect(fd, EV_ADDR_ERROR, cases[i].status);
		assert_int_equal(cm_destroy(fd, id, NULL), 0);
	}
	close(fd);
}

static void resolve_after_failure(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	assert_int_equal(cm_resolve(fd, id, 0xc0000202, 1, 20), 0);
	cm_expect(fd, EV_ADDR_ERROR, -EHOSTUNREACH);
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 1, 20), 0);
	cm_expect(fd, EV_ADDR_RESOLVED, 0);
	close(fd);
}

static void query_kinds(void **state)
{
	struct rdma_ucm_query_addr_resp a;
	struct rdma_ucm_query_path_resp p = { .num_paths = 7 };
	struct rdma_ucm_query c = { .option = RDMA_USER_CM_QUERY_ADDR, .response = (uintptr_t)&a };
	const size_t old = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);
	int fd = cm_node();

	(void)state;
	c.id = cm_routed(fd, 7005);
	memset(&a, 0xa5, sizeof(a));
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_QUERY, &c, sizeof(c), old - 1), -ENOSPC);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_QUERY, &c, sizeof(c), old), 0);
	assert_int_equal(a.ibdev_index, 0xa5a5a5a5); /* not written beyond the room */
	assert_int_equal(a.src_size, sizeof(struct sockaddr_in));
	assert_int_equal(a.dst_size, sizeof(struct sockaddr_in));
	assert_int_equal(ntohs(in4(&a.dst_addr)->sin_port), 7005);
	assert_int_equal(be64toh(a.node_guid), ENGINE_GUID);
	c.option = RDMA_USER_CM_QUERY_PATH;
	c.response = (uintptr_t)&p;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_QUERY, &c, sizeof(c), sizeof(p)), 0);
	assert_int_equal(p.num_paths, 0);
	c.option = RDMA_USER_CM_QUERY_GID;
	c.response = (uintptr_t)&a;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_QUERY, &c, sizeof(c), sizeof(a)), 0);
	assert_int_equal(a.src_addr.ss_family, AF_IB);
	c.option = 9;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_QUERY, &c, sizeof(c), sizeof(a)), -ENOSYS);
	close(fd);
}

static int init_qp(int fd, uint32_t id, unsigned qp_state, struct ib_uverbs_qp_attr *r)
{
	struct rdma_ucm_init_qp_attr c = { .id = id,
					   .qp_state = qp_state,
					   .response = (uintptr_t)r };

	memset(r, 0xa5, sizeof(*r));
	return cm_cmd(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &c, sizeof(c), sizeof(*r));
}

static void qp_attributes(void **state)
{
	struct ib_uverbs_qp_attr r;
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP), routed = cm_routed(fd, 7006);

	(void)state;
	assert_int_equal(init_qp(fd, id, 1, &r), -EINVAL); /* no device */
	for (unsigned s = 1; s <= 2; s++) {		   /* INIT, RTR */
		assert_int_equal(init_qp(fd, routed, s, &r), 0);
		assert_int_equal(r.qp_attr_mask, ATTR_STATE_ACCESS);
		assert_int_equal(r.qp_state, s);
		assert_int_equal(r.qp_access_flags, 2 | 4 | 8 | 256 | 512); /* FLUSH, too */
	}
	assert_int_equal(init_qp(fd, routed, 3, &r), 0); /* RTS */
	assert_int_equal(r.qp_attr_mask, 0);
	assert_int_equal(init_qp(fd, routed, 7, &r), -EINVAL);
	close(fd);
}

/* RDMA_OPTION_ID_ACK_TIMEOUT is what ibv_query_qp() shall say of the id's QP. */
static void ack_timeout(void **state)
{
	uint8_t value = 17;
	struct rdma_ucm_set_option c = { .level = RDMA_OPTION_ID,
					 .optname = RDMA_OPTION_ID_ACK_TIMEOUT,
					 .optval = (uintptr_t)&value,
					 .optlen = sizeof(value) };
	struct ib_uverbs_qp_attr r;
	int fd = cm_node();

	(void)state;
	c.id = cm_routed(fd, 7016);
	assert_int_equal(CM_CMD(fd, SET_OPTION, c), 0);
	for (unsigned s = 1; s <= 3; s++) {
		assert_int_equal(init_qp(fd, c.id, s, &r), 0);
		assert_int_equal(r.qp_attr_mask & (1 << 9), 1 << 9);
		assert_int_equal(r.timeout, 17);
	}
	close(fd);
}

/* What a program needs that connects a QP of its own: UCX reads it. */
static void the_path_of_an_id(void **state)
{
	static const uint8_t self[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	struct ib_uverbs_qp_attr r;
	int fd = cm_node();

	(void)state;
	assert_int_equal(init_qp(fd, cm_routed(fd, 7017), 2, &r), 0);
	assert_int_equal(r.path_mtu, 3); /* 1,024: MULPDU is 1,444 */
	assert_int_equal(r.ah_attr.is_global, 1);
	assert_memory_equal(r.ah_attr.grh.dgid, self, 16);
	close(fd);
}

static int option(int fd, uint32_t id, uint32_t level, uint32_t name, uint32_t len)
{
	uint64_t value = 1;
	struct rdma_ucm_set_option c = { .id = id, .level = level, .optname = name, .optlen = len };

	c.optval = (uintptr_t)&value;
	return CM_CMD(fd, SET_OPTION, c);
}

/* As the kernel has it: REUSEADDR before the id is bound, AFONLY before it does more. */
static void ids_share_a_port_if_they_all_say_so(void **state)
{
	int fd = cm_node();
	uint32_t id[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		id[i] = cm_create(fd, RDMA_PS_TCP);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(option(fd, id[i], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4), 0);
		assert_int_equal(cm_bind(fd, id[i], INADDR_LOOPBACK, 7003), 0);
	}
	assert_int_equal(cm_bind(fd, id[2], INADDR_LOOPBACK, 7003), -EADDRINUSE);
	assert_int_equal(cm_bind(fd, id[2], INADDR_LOOPBACK, 7004), 0);
	assert_int_equal(option(fd, id[2], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4), -EINVAL);
	assert_int_equal(option(fd, id[2], RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4), 0);
	assert_int_equal(cm_listen(fd, id[2], 1), 0);
	assert_int_equal(option(fd, id[2], RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4), -EINVAL);
	close(fd);
}

static void options(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP), ud = cm_create(fd, RDMA_PS_UDP);

	(void)state;
	assert_int_equal(option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1), 0);
	assert_int_equal(option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4), -EINVAL);
	assert_int_equal(option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4), 0);
	assert_int_equal(option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4), 0);
	assert_int_equal(option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1), 0);
	assert_int_equal(option(fd, ud, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1), -EINVAL);
	assert_int_equal(option(fd, id, RDMA_OPTION_ID, 99, 4), -ENOSYS);
	assert_int_equal(option(fd, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 64), -EINVAL);
	assert_int_equal(option(fd, id, 5, 0, 4), -ENOSYS);
	close(fd);
}

static uint8_t told_tos(void)
{
	void *stack = dlopen(getenv("UWARP_LIB"), RTLD_NOW | RTLD_NOLOAD);
	const _Atomic uint8_t *tos;

	assert_non_null(stack);
	tos = dlsym(stack, "fake_tos");
	assert_non_null(tos);
	dlclose(stack);
	return *tos;
}

static int set_tos(int fd, uint32_t id, uint8_t tos)
{
	struct rdma_ucm_set_option c = { .id = id,
					 .level = RDMA_OPTION_ID,
					 .optname = RDMA_OPTION_ID_TOS,
					 .optlen = 1,
					 .optval = (uintptr_t)&tos };

	return CM_CMD(fd, SET_OPTION, c);
}

static void the_stack_hears_of_the_type_of_service(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP), ud = cm_create(fd, RDMA_PS_UDP);

	(void)state;
	assert_int_equal(set_tos(fd, id, 0x68), 0);
	assert_int_equal(told_tos(), 0); /* there is no endpoint yet */
	assert_int_equal(cm_bind(fd, id, INADDR_LOOPBACK, 7010), 0);
	assert_int_equal(told_tos(), 0x68);
	assert_int_equal(set_tos(fd, id, 0x20), 0);
	assert_int_equal(told_tos(), 0x20);
	assert_int_equal(set_tos(fd, ud, 0x30), 0);
	assert_int_equal(told_tos(), 0x20);
	close(fd);
}

static void datagram_ids(void **state)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_join_ip_mcast j = { .response = (uintptr_t)&resp, .uid = 1 };
	struct rdma_ucm_destroy_id leave = { .response = (uintptr_t)&resp, .id = 1 };
	int fd = cm_node();
	uint32_t ud = cm_create(fd, RDMA_PS_UDP), rc = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	j.id = ud;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &j, sizeof(j), 4), -EINVAL);
	assert_int_equal(cm_bind(fd, ud, INADDR_LOOPBACK, 7007), 0);
	assert_int_equal(cm_listen(fd, ud, 1), 0);
	j.id = rc;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &j, sizeof(j), 4), -EINVAL);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof(leave), 4),
			 -ENOENT);
	close(fd);
}

static int join(int fd, uint32_t id, uint32_t group, uint32_t *handle)
{
	struct rdma_ucm_create_id_resp r;
	struct rdma_ucm_join_ip_mcast j = { .response = (uintptr_t)&r, .uid = 77, .id = id };
	struct sockaddr_in *to = (struct sockaddr_in *)&j.addr;
	int err;

	to->sin_family = AF_INET;
	to->sin_addr.s_addr = htonl(group);
	err = cm_cmd(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &j, sizeof(j), sizeof(r));
	*handle = r.id;
	return err;
}

static void leave(int fd, uint32_t handle, unsigned reported)
{
	struct rdma_ucm_destroy_id_resp r;
	struct rdma_ucm_destroy_id l = { .response = (uintptr_t)&r, .id = handle };

	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, &l, sizeof(l), sizeof(r)), 0);
	assert_int_equal(r.events_reported, reported);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, &l, sizeof(l), sizeof(r)),
			 -ENOENT);
}

/* The event names the membership, the group's GID, and what datagrams to it need. */
static void a_group_is_joined(void **state)
{
	static const uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 };
	uint32_t id, one, two;
	struct rdma_ucm_event_resp e;
	int fd = cm_node();

	(void)state;
	id = cm_create(fd, RDMA_PS_UDP);
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 7174, 100), 0);
	cm_expect(fd, EV_ADDR_RESOLVED, 0);
	assert_int_equal(join(fd, id, 0x0a000001, &one), -EINVAL); /* no group */
	assert_int_equal(join(fd, id, 0xef010203, &one), 0);
	assert_int_equal(join(fd, id, 0xef010204, &two), 0);
	assert_int_not_equal(one, two);
	e = cm_expect(fd, 12, 0);
	assert_int_equal(e.id, one);
	assert_int_equal(e.uid, 77);
	assert_int_equal(e.param.ud.qp_num, 0xffffff);
	assert_int_equal(e.param.ud.qkey, 0x01234567);
	assert_memory_equal(e.param.ud.ah_attr.grh.dgid, gid, 16);
	leave(fd, one, 1);
	leave(fd, two, 0); /* and its event is gone */
	cm_expect_none(fd, 0);
	assert_int_equal(join(fd, id, 0xef010203, &one), 0);
	assert_int_equal(cm_destroy(fd, id, NULL), 0);
	close(fd);
}

/* getaddrinfo() maps an address of IPv4 where the kernel has none of its own. */
static void a_group_is_joined_by_its_mapped_address(void **state)
{
	struct rdma_ucm_create_id_resp r;
	struct rdma_ucm_join_ip_mcast c = { .response = (uintptr_t)&r, .uid = 77 };
	int fd = cm_node();

	(void)state;
	c.id = cm_create(fd, RDMA_PS_UDP);
	assert_int_equal(cm_resolve(fd, c.id, INADDR_LOOPBACK, 7174, 100), 0);
	cm_expect(fd, EV_ADDR_RESOLVED, 0);
	c.addr = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	memcpy(&c.addr.sin6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x01\x02\x03", 16);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &c, sizeof(c), sizeof(r)),
			 -EINVAL);
	c.addr.sin6_addr.s6_addr[12] = 239;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &c, sizeof(c), sizeof(r)), 0);
	assert_memory_equal(cm_expect(fd, 12, 0).param.ud.ah_attr.grh.dgid, &c.addr.sin6_addr, 16);
	close(fd);
}

/* rdma_write_cm_event and rdma_resolve_addrinfo of librdmacm 60 and later. */
static void events_that_programs_write(void **state)
{
	struct {
		uint32_t id, reserved, event, status, arg[2];
		uint8_t rest[280]; /* as long as the kernel's structure */
	} c = { .status = 5, .arg = { 0x11111111, 0x22222222 } };
	int fd = cm_node(), other = cm_node();
	struct rdma_ucm_event_resp e;

	(void)state;
	c.id = cm_create(fd, RDMA_PS_TCP);
	for (c.event = 18; c.event < 20; c.event++) {
		assert_int_equal(cm_cmd(fd, 24, &c, sizeof(c), 0), 0);
		e = cm_expect(fd, c.event, 5);
		assert_int_equal(e.id, c.id);
		assert_memory_equal(&e.param, c.arg, 8);
	}
	assert_int_equal(cm_cmd(fd, 24, &c, sizeof(c), 0), -EINVAL);
	c.event = EV_ESTABLISHED;
	assert_int_equal(cm_cmd(fd, 24, &c, sizeof(c), 0), -EINVAL);
	c.event = 18;
	assert_int_equal(cm_cmd(fd, 24, &c, 23, 0), -EINVAL);
	assert_int_equal(cm_cmd(other, 24, &c, sizeof(c), 0), -EINVAL);
	cm_expect_none(fd, 0);
	assert_int_equal(cm_cmd(fd, 24, &c, sizeof(c), 0), 0); /* nobody fetches it */
	assert_int_equal(cm_destroy(fd, c.id, NULL), 0);
	close(fd);
	close(other);
}

/* As with RoCE: rsockets makes an address handle of the path. An RNIC's RC id has none. */
static void a_route_of_datagrams_has_a_path(void **state)
{
	struct rdma_ucm_query_route_resp r;
	struct rdma_ucm_query q = { .response = (uintptr_t)&r };
	int fd = cm_node();

	(void)state;
	q.id = cm_create(fd, RDMA_PS_UDP);
	assert_int_equal(cm_resolve(fd, q.id, INADDR_LOOPBACK, 7174, 100), 0);
	cm_expect(fd, EV_ADDR_RESOLVED, 0);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, &q, sizeof(q), sizeof(r)), 0);
	assert_int_equal(r.num_paths, 0);
	assert_int_equal(cm_route(fd, q.id), 0);
	cm_expect(fd, EV_ROUTE_RESOLVED, 0);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, &q, sizeof(q), sizeof(r)), 0);
	assert_int_equal(r.num_paths, 1);
	assert_in_range(r.ib_route[0].hop_limit, 2, 255);
	assert_int_equal(r.ib_route[0].pkey, 0xffff);
	close(fd);
}

/* What librdmacm takes a QP of datagrams through INIT with. */
static void attributes_of_a_datagram_qp(void **state)
{
	struct ib_uverbs_qp_attr a;
	struct rdma_ucm_init_qp_attr q = { .response = (uintptr_t)&a, .qp_state = 1 };
	int fd = cm_node();

	(void)state;
	q.id = cm_create(fd, RDMA_PS_UDP);
	assert_int_equal(cm_resolve(fd, q.id, INADDR_LOOPBACK, 7174, 100), 0);
	cm_expect(fd, EV_ADDR_RESOLVED, 0);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &q, sizeof(q), sizeof(a)), 0);
	assert_int_equal(a.qp_attr_mask,
			 1 << 0 | 1 << 4 | 1 << 5 | 1 << 6); /* STATE, PKEY_INDEX, PORT, QKEY */
	assert_int_equal(a.qkey, 0x01234567);
	assert_int_equal(a.port_num, 1);
	close(fd);
}

static void notices(void **state)
{
	struct rdma_ucm_notify n = { .event = 4 };
	int fd = cm_node();

	(void)state;
	n.id = cm_create(fd, RDMA_PS_TCP);
	assert_int_equal(CM_CMD(fd, NOTIFY, n), -EINVAL);
	n.id = cm_routed(fd, 7008);
	assert_int_equal(CM_CMD(fd, NOTIFY, n), 0);
	close(fd);
}

/* What the link has to say comes back as the errno of the first command that needs it. */
static void start_failure(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP);

	(void)state;
	setenv("FAKE_START_ERRNO", "13", 1);
	assert_int_equal(cm_bind(fd, id, INADDR_ANY, 0), -EACCES);
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 1, 10), -EACCES);
	unsetenv("FAKE_START_ERRNO");
	assert_int_equal(cm_bind(fd, id, INADDR_ANY, 0), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_failure),
		cmocka_unit_test(node_looks_like_a_device),
		cmocka_unit_test(framing),
		cmocka_unit_test(ids),
		cmocka_unit_test(many_ids),
		cmocka_unit_test(bind_refusals),
		cmocka_unit_test(bound_addresses),
		cmocka_unit_test(resolving),
		cmocka_unit_test(resolve_with_source),
		cmocka_unit_test(a_source_is_bound),
		cmocka_unit_test(mixed_families),
		cmocka_unit_test(one_family_per_id),
		cmocka_unit_test(resolve_failures),
		cmocka_unit_test(resolve_after_failure),
		cmocka_unit_test(query_kinds),
		cmocka_unit_test(qp_attributes),
		cmocka_unit_test(ack_timeout),
		cmocka_unit_test(the_path_of_an_id),
		cmocka_unit_test(options),
		cmocka_unit_test(the_stack_hears_of_the_type_of_service),
		cmocka_unit_test(ids_share_a_port_if_they_all_say_so),
		cmocka_unit_test(datagram_ids),
		cmocka_unit_test(a_group_is_joined),
		cmocka_unit_test(a_group_is_joined_by_its_mapped_address),
		cmocka_unit_test(events_that_programs_write),
		cmocka_unit_test(a_route_of_datagrams_has_a_path),
		cmocka_unit_test(attributes_of_a_datagram_qp),
		cmocka_unit_test(notices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
