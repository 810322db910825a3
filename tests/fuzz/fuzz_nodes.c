/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other two doors of the preloaded shim: the uverbs node (ioctl and write, completion channels)
 * and RDMA netlink, whose requests and whose kernel's answers are any octets.
 */
#include <errno.h>
#include <sys/uio.h>

#include <linux/netlink.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "engine_fake.h"
#include "netlink/netlink.h"
#include "shim_double.h"
#include "uverbs/channel.h"
#include "uverbs/uverbs.h"

#define ATTRS 6u

/* ---- uverbs ioctl ------------------------------------------------------------------------ */

static bool is_output(const struct ib_uverbs_ioctl_hdr *h, uint16_t id)
{
	if (h->method_id == UVERBS_METHOD_QUERY_GID_ENTRY)
		return id == UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY;
	return id == UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES ||
	       id == UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES;
}

/* Outputs are blocks of exactly the length that the attribute says. */
static void make_attr(struct ib_uverbs_ioctl_hdr *h, unsigned i, struct feed *f)
{
	struct ib_uverbs_attr *a = &h->attrs[i];

	a->attr_id = feed_rarely(f, 8) ? feed_u16(f) : feed_below(f, 5);
	a->len = (uint16_t)feed_length(f, 128);
	a->flags = feed_u8(f);
	a->data = feed_rarely(f, 4) ? feed_u64(f) : feed_below(f, 64);
	if (is_output(h, a->attr_id))
		a->data = feed_rarely(f, 16) ? 0 : (uintptr_t)fuzz_alloc(a->len);
}

static void free_attrs(struct ib_uverbs_ioctl_hdr *h)
{
	for (unsigned i = 0; i < h->num_attrs; i++)
		if (is_output(h, h->attrs[i].attr_id))
			free((void *)(uintptr_t)h->attrs[i].data);
}

static void ioctl_call(struct fd_obj *o, struct feed *f)
{
	static const uint16_t methods[] = { UVERBS_METHOD_QUERY_GID_ENTRY,
					    UVERBS_METHOD_QUERY_GID_TABLE,
					    UVERBS_METHOD_QUERY_PORT };
	unsigned n = feed_below(f, ATTRS + 1);
	size_t size = sizeof(struct ib_uverbs_ioctl_hdr) + n * sizeof(struct ib_uverbs_attr);
	struct ib_uverbs_ioctl_hdr *h = fuzz_alloc(size);
	unsigned long request = feed_rarely(f, 32) ? feed_u32(f) : RDMA_VERBS_IOCTL;
	int ret;

	memset(h, 0, size);
	h->length = feed_rarely(f, 16) ? feed_u16(f) : (uint16_t)size;
	h->object_id = UVERBS_OBJECT_DEVICE;
	h->method_id = methods[feed_below(f, COUNT(methods))];
	h->num_attrs = (uint16_t)n;
	for (unsigned i = 0; i < n; i++)
		make_attr(h, i, f);
	ret = o->cls->ioctl(o, request, feed_rarely(f, 32) ? NULL : h);
	CHECK(ret <= 0 && ret > -4096);
	free_attrs(h);
	free(h);
}

/* ---- uverbs write ------------------------------------------------------------------------ */

static void write_call(struct fd_obj *o, int fd, struct feed *f)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_comp_channel cmd;
		uint8_t more[64];
	} in = { .hdr.command = IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL };
	size_t len = sizeof(in.hdr) + sizeof(in.cmd);
	void *out, *exact;
	ssize_t ret;

	if (feed_rarely(f, 8))
		in.hdr.command = feed_u32(f);
	if (feed_rarely(f, 8))
		len = feed_below(f, sizeof(in));
	in.hdr.in_words = (uint16_t)(feed_rarely(f, 16) ? feed_u16(f) : len / 4);
	in.hdr.out_words = feed_below(f, 4);
	out = fuzz_alloc((size_t)in.hdr.out_words * 4);
	in.cmd.response = feed_rarely(f, 16) ? 0 : (uintptr_t)out;
	exact = fuzz_copy(&in, len);
	ret = o->cls->write(o, fd, exact, len);
	CHECK(ret == (ssize_t)len || (ret < 0 && ret > -4096));
	free(exact);
	free(out);
}

static void channel_call(int fd, struct feed *f)
{
	struct ib_uverbs_comp_event_desc d = { .cq_handle = feed_below(f, 4) };
	uint8_t other[100];
	size_t n = feed_length(f, sizeof(other));
	struct channel *c = channel_hold(fd);
	int ret;

	if (!c)
		return;
	switch (feed_below(f, 4)) {
	case 0:
		ret = channel_drop(c, d.cq_handle);
		CHECK(ret >= 0 || ret == -EBADF);
		break;
	case 1:
		feed_fill(f, other, n);
		ret = channel_post(c, other, n);
		CHECK(ret <= 0 && ret > -4096);
		break;
	default:
		ret = channel_post(c, &d, sizeof(d));
		CHECK(ret == 0 || ret == -EAGAIN || ret == -EBADF);
		break;
	}
	channel_let_go(c);
}

/* ---- netlink ----------------------------------------------------------------------------- */

static size_t put_attr(uint8_t *p, struct feed *f)
{
	struct nlattr a = { .nla_type = feed_below(f, 100) };
	size_t n = feed_below(f, 24);

	if (feed_bool(f))
		a.nla_type =
			feed_bool(f) ? RDMA_NLDEV_ATTR_CHARDEV_TYPE : RDMA_NLDEV_ATTR_DEV_INDEX;
	a.nla_len = (uint16_t)(feed_rarely(f, 16) ? feed_u16(f) : NLA_HDRLEN + n);
	memcpy(p, &a, sizeof(a));
	memset(p + NLA_HDRLEN, 0, NLA_ALIGN(n));
	switch (feed_below(f, 4)) {
	case 0:
		strcpy((char *)p + NLA_HDRLEN, "rdma_cm");
		break;
	case 1:
		memcpy(p + NLA_HDRLEN, &(uint32_t){ 30071 }, 4);
		break;
	default:
		feed_fill(f, p + NLA_HDRLEN, n);
		break;
	}
	return NLA_HDRLEN + NLA_ALIGN(n);
}

static size_t put_message(uint8_t *p, struct feed *f)
{
	static const uint16_t ops[] = { RDMA_NLDEV_CMD_GET, RDMA_NLDEV_CMD_PORT_GET,
					RDMA_NLDEV_CMD_GET_CHARDEV, RDMA_NLDEV_CMD_SYS_GET };
	struct nlmsghdr h = { .nlmsg_flags = feed_u16(f), .nlmsg_seq = feed_u8(f) };
	unsigned attrs = feed_below(f, 4), op = feed_below(f, 8);
	size_t n = NLMSG_HDRLEN;

	op = op < COUNT(ops) ? ops[op] : op;
	h.nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op);
	while (attrs--)
		n += put_attr(p + n, f);
	h.nlmsg_len = feed_rarely(f, 8) ? feed_u16(f) : (uint32_t)n;
	memcpy(p, &h, sizeof(h));
	return n;
}

static void netlink_call(struct fd_obj *o, int fd, struct feed *f)
{
	uint8_t buf[1024];
	size_t n = 0, cut;
	struct iovec v[2];
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t ret;

	if (feed_rarely(f, 4)) {
		n = feed_length(f, sizeof(buf));
		feed_fill(f, buf, n);
	} else {
		for (unsigned i = feed_below(f, 3) + 1; i; i--)
			n += put_message(buf + n, f);
	}
	cut = feed_length(f, (uint32_t)n);
	v[0] = (struct iovec){ fuzz_copy(buf, cut), cut };
	v[1] = (struct iovec){ fuzz_copy(buf + cut, n - cut), n - cut };
	ret = o->cls->sendmsg(o, fd, &m);
	CHECK(ret == (ssize_t)n || (ret < 0 && ret > -4096));
	free(v[0].iov_base);
	free(v[1].iov_base);
}

/* ---- the run ----------------------------------------------------------------------------- */

static void on_fd(int fd, struct feed *f)
{
	struct fd_obj *o = double_obj(fd);

	if (o->cls->sendmsg)
		netlink_call(o, fd, f);
	else if (o->cls->ioctl && feed_bool(f))
		ioctl_call(o, f);
	else if (o->cls->write)
		write_call(o, fd, f);
	else
		channel_call(fd, f);
}

static void one(struct feed *f)
{
	int fd = double_some_fd(f);

	switch (feed_below(f, 16)) {
	case 0:
		(void)uverbs_open(0);
		break;
	case 1:
		(void)netlink_open(3);
		break;
	case 2:
		if (fd >= 0 && feed_rarely(f, 4))
			double_close(fd);
		break;
	case 3:
		if (fd >= 0)
			double_read(fd);
		break;
	case 4:
		double_run_helpers();
		break;
	default:
		if (fd >= 0)
			on_fd(fd, f);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };

	double_begin(&f);
	fuzz_stack_begin(&f);
	(void)uverbs_open(0);
	(void)netlink_open(3);
	while (f.n)
		one(&f);
	double_end();
	return 0;
}
