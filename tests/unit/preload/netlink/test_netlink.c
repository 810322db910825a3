/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA netlink: what libibverbs, librdmacm and rdma(8) ask, and how they may receive it. */
#include "rdma_cm/abi.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#define OUR_INDEX 30071u
#define SEQ	  4711

struct request {
	struct nlmsghdr hdr;
	uint8_t attrs[128];
};

struct reply {
	_Alignas(struct nlmsghdr) uint8_t buf[8192];
	ssize_t len;
};

static int rdma_socket(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static struct request req(unsigned op, unsigned flags)
{
	return (struct request){ .hdr = { .nlmsg_len = NLMSG_HDRLEN,
					  .nlmsg_type =
						  (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op),
					  .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
					  .nlmsg_seq = SEQ } };
}

static void put(struct request *r, unsigned type, const void *data, size_t len)
{
	struct nlattr a = { .nla_type = (uint16_t)type, .nla_len = (uint16_t)(NLA_HDRLEN + len) };
	uint8_t *at = (uint8_t *)r + r->hdr.nlmsg_len;

	memcpy(at, &a, sizeof(a));
	memcpy(at + NLA_HDRLEN, data, len);
	r->hdr.nlmsg_len += (uint32_t)NLA_ALIGN(a.nla_len);
}

static void put_index(struct request *r, uint32_t index)
{
	put(r, RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
}

static void put_type(struct request *r, const char *type)
{
	put(r, RDMA_NLDEV_ATTR_CHARDEV_TYPE, type, strlen(type) + 1);
}

static void ask(int fd, const struct request *r)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct iovec iov = { .iov_base = (void *)r, .iov_len = r->hdr.nlmsg_len };
	struct msghdr m = {
		.msg_name = &kernel, .msg_namelen = sizeof(kernel), .msg_iov = &iov, .msg_iovlen = 1
	};

	assert_int_equal(sendmsg(fd, &m, 0), r->hdr.nlmsg_len);
}

static struct nlmsghdr *get(int fd, struct reply *r)
{
	struct sockaddr_nl from;
	struct iovec iov = { .iov_base = r->buf, .iov_len = sizeof(r->buf) };
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1
	};
	struct nlmsghdr *h = (struct nlmsghdr *)r->buf;

	r->len = recvmsg(fd, &m, MSG_DONTWAIT);
	assert_true(r->len >= (ssize_t)sizeof(*h));
	assert_int_equal(m.msg_namelen, sizeof(from)); /* libnl insists */
	assert_int_equal(from.nl_family, AF_NETLINK);
	assert_int_equal(h->nlmsg_len, r->len);
	assert_int_equal(h->nlmsg_seq, SEQ);
	return h;
}

static const void *attr(const struct nlmsghdr *h, unsigned type, size_t *len)
{
	const uint8_t *p = (const uint8_t *)h + NLMSG_HDRLEN,
		      *end = (const uint8_t *)h + h->nlmsg_len;
	struct nlattr a;

	for (; p + sizeof(a) <= end; p += NLA_ALIGN(a.nla_len)) {
		memcpy(&a, p, sizeof(a));
		*len = a.nla_len - NLA_HDRLEN;
		if (a.nla_type == type)
			return p + NLA_HDRLEN;
	}
	fail_msg("no attribute %u", type);
	return NULL;
}

static uint64_t number(const struct nlmsghdr *h, unsigned type, size_t size)
{
	size_t len = 0;
	const void *p = attr(h, type, &len);
	uint64_t v64 = 0;
	uint32_t v32 = 0;

	assert_int_equal(len, size);
	if (size == sizeof(uint8_t))
		return *(const uint8_t *)p;
	memcpy(size == sizeof(v32) ? (void *)&v32 : &v64, p, size);
	return v32 | v64;
}

static const char *text(const struct nlmsghdr *h, unsigned type)
{
	size_t len = 0;
	const char *s = attr(h, type, &len);

	assert_int_equal(s[len - 1], 0);
	return s;
}

static void check_device(const struct nlmsghdr *h)
{
	assert_string_equal(text(h, RDMA_NLDEV_ATTR_DEV_NAME), "uwarp0");
	assert_int_equal(number(h, RDMA_NLDEV_ATTR_DEV_INDEX, 4), OUR_INDEX);
	assert_int_equal(number(h, RDMA_NLDEV_ATTR_PORT_INDEX, 4), 1);
	assert_int_equal(number(h, RDMA_NLDEV_ATTR_NODE_GUID, 8), ENGINE_GUID);
	assert_int_equal(number(h, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, 1), 4);
}

static void nothing_more(int fd)
{
	uint8_t octet;

	assert_int_equal(recv(fd, &octet, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

/* Our device is the last of a dump; a kernel with RDMA has its own before it. */
static void device_list(void **state)
{
	int fd = rdma_socket(), ours = 0;
	struct request q = req(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	struct nlmsghdr *h;
	struct reply r;

	(void)state;
	ask(fd, &q);
	for (h = get(fd, &r); h->nlmsg_type != NLMSG_DONE; h = get(fd, &r)) {
		assert_true(h->nlmsg_flags & NLM_F_MULTI);
		if (number(h, RDMA_NLDEV_ATTR_DEV_INDEX, 4) != OUR_INDEX)
			continue;
		check_device(h);
		ours++;
	}
	assert_int_equal(ours, 1);
	nothing_more(fd);
	close(fd);
}

static void one_device(void **state)
{
	int fd = rdma_socket();
	struct request q = req(RDMA_NLDEV_CMD_GET, NLM_F_ACK);
	struct nlmsghdr *h;
	struct reply r;

	(void)state;
	put_index(&q, OUR_INDEX);
	ask(fd, &q);
	h = get(fd, &r);
	assert_false(h->nlmsg_flags & NLM_F_MULTI);
	check_device(h);
	h = get(fd, &r);
	assert_int_equal(h->nlmsg_type, NLMSG_ERROR);
	assert_int_equal(((struct nlmsgerr *)NLMSG_DATA(h))->error, 0);
	nothing_more(fd);
	close(fd);
}

/* UWARP_IDENTITY: an InfiniBand device, which is node type 1, with this protocol. */
static void an_infiniband_device_if_asked(void **state)
{
	static const char *const kind[] = { "roce", "ib" };
	int fd = rdma_socket();
	struct request q = req(RDMA_NLDEV_CMD_GET, 0);
	struct reply r, before;
	struct nlmsghdr *h;

	(void)state;
	put_index(&q, OUR_INDEX);
	ask(fd, &q);
	assert_string_equal(text(get(fd, &before), RDMA_NLDEV_ATTR_DEV_PROTOCOL), "iw");
	for (unsigned i = 0; i < 2; i++) {
		setenv("UWARP_IDENTITY", kind[i], 1);
		ask(fd, &q);
		h = get(fd, &r);
		unsetenv("UWARP_IDENTITY");
		assert_int_equal(number(h, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, 1), 1);
		assert_string_equal(text(h, RDMA_NLDEV_ATTR_DEV_PROTOCOL), kind[i]);
	}
	close(fd);
}

static void chardevs(void **state)
{
	int fd = rdma_socket();
	struct request uverbs = req(RDMA_NLDEV_CMD_GET_CHARDEV, 0), cm = uverbs, issm = uverbs;
	struct nlmsghdr *h;
	struct reply r;

	(void)state;
	put_index(&uverbs, OUR_INDEX);
	put_type(&uverbs, "uverbs");
	ask(fd, &uverbs);
	h = get(fd, &r);
	assert_string_equal(text(h, RDMA_NLDEV_ATTR_CHARDEV_NAME), "uverbs30071");
	assert_int_equal(number(h, RDMA_NLDEV_ATTR_CHARDEV_ABI, 8), 1);
	assert_int_equal(number(h, RDMA_NLDEV_ATTR_CHARDEV, 8), makedev(1, 3));
	put_type(&cm, "rdma_cm");
	ask(fd, &cm);
	h = get(fd, &r);
	assert_string_equal(text(h, RDMA_NLDEV_ATTR_CHARDEV_NAME), "rdma_cm");
	assert_int_equal(number(h, RDMA_NLDEV_ATTR_CHARDEV_ABI, 8), 4);
	put_index(&issm, OUR_INDEX);
	put_type(&issm, "issm");
	ask(fd, &issm);
	h = get(fd, &r);
	assert_int_equal(h->nlmsg_type, NLMSG_ERROR);
	assert_int_equal(((struct nlmsgerr *)NLMSG_DATA(h))->error, -EOPNOTSUPP);
	nothing_more(fd);
	close(fd);
}

static void unknown_requests(void **state)
{
	int fd = rdma_socket();
	struct request q = req(RDMA_NLDEV_CMD_RES_GET, 0);
	struct nlmsghdr *h;
	struct reply r;

	(void)state;
	put_index(&q, OUR_INDEX);
	ask(fd, &q);
	h = get(fd, &r);
	assert_int_equal(h->nlmsg_type, NLMSG_ERROR);
	assert_int_equal(((struct nlmsgerr *)NLMSG_DATA(h))->error, -EOPNOTSUPP);
	close(fd);
}

static void port_and_system(void **state)
{
	int fd = rdma_socket();
	struct request port = req(RDMA_NLDEV_CMD_PORT_GET, 0), sys = req(RDMA_NLDEV_CMD_SYS_GET, 0);
	struct reply r;

	(void)state;
	put_index(&port, OUR_INDEX);
	ask(fd, &port);
	assert_int_equal(number(get(fd, &r), RDMA_NLDEV_ATTR_PORT_STATE, 1), 4);
	ask(fd, &sys); /* by the kernel if it has RDMA */
	assert_int_equal(number(get(fd, &r), RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1), 1);
	close(fd);
}

/* libnl peeks for the size first, others poll, some read with a buffer too small. */
static void ways_to_receive(void **state)
{
	int fd = rdma_socket();
	struct request q = req(RDMA_NLDEV_CMD_GET, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t small[8];
	struct reply r;
	ssize_t n;

	(void)state;
	put_index(&q, OUR_INDEX);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(sendto(fd, &q, q.hdr.nlmsg_len, 0, NULL, 0), q.hdr.nlmsg_len);
	assert_int_equal(poll(&p, 1, 0), 1);
	n = recv(fd, small, sizeof(small), MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	assert_true(n > (ssize_t)sizeof(small));
	check_device(get(fd, &r));
	assert_int_equal(r.len, n);
	close(fd);
}

static void malformed_requests(void **state)
{
	int fd = rdma_socket();
	struct request q = req(RDMA_NLDEV_CMD_GET_CHARDEV, 0);
	uint8_t many[8192] = { 0 };
	struct iovec iov = { .iov_base = many, .iov_len = sizeof(many) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	(void)state;
	assert_int_equal(sendmsg(fd, &m, 0), -1);
	assert_int_equal(errno, EMSGSIZE);
	iov.iov_len = 5;
	assert_int_equal(sendmsg(fd, &m, 0), 5); /* no whole header: ignored */
	put_type(&q, "uverbs");
	q.attrs[0] = 200; /* an attribute longer than the message */
	ask(fd, &q);
	q = req(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	q.hdr.nlmsg_len += 2; /* half an attribute */
	ask(fd, &q);
	close(fd);
}

static void other_netlink_is_the_kernels(void **state)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), proto = -1;
	socklen_t len = sizeof(proto);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &proto, &len), 0);
	assert_int_equal(proto, NETLINK_ROUTE);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_list),
		cmocka_unit_test(one_device),
		cmocka_unit_test(an_infiniband_device_if_asked),
		cmocka_unit_test(chardevs),
		cmocka_unit_test(unknown_requests),
		cmocka_unit_test(port_and_system),
		cmocka_unit_test(ways_to_receive),
		cmocka_unit_test(malformed_requests),
		cmocka_unit_test(other_netlink_is_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
