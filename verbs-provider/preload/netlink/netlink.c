/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program gets a NETLINK_USERSOCK socket. Its requests are caught in sendmsg(); the answers are
 * sent to it from another such socket, so that every way to receive (peeking, polling, a timeout)
 * works by itself.
 */
#include "netlink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "facts.h"
#include "libc/fdtab.h"
#include "libc/raw.h"
#include "loader/loader.h"
#include "sysfs/netdev.h"

#define NL_BUF 32768

/* One request and where its answer goes. */
struct nl_call {
	int fd;	      /* the program's socket */
	uint32_t pid; /* its port */
	const struct nlmsghdr *req;
	int dev;	  /* RDMA_NLDEV_ATTR_DEV_INDEX, -1: none */
	const char *type; /* RDMA_NLDEV_ATTR_CHARDEV_TYPE, "": none */
	size_t len;	  /* of what is in out */
	union {
		struct nlmsghdr hdr;
		uint8_t buf[2048];
	} out;
};

/* ---- building answers ------------------------------------------------------------------- */

static void out_begin(struct nl_call *c, uint16_t type, uint16_t flags)
{
	memset(&c->out, 0, NLMSG_HDRLEN);
	c->out.hdr.nlmsg_type = type;
	c->out.hdr.nlmsg_flags = flags;
	c->out.hdr.nlmsg_seq = c->req->nlmsg_seq;
	c->out.hdr.nlmsg_pid = c->pid;
	c->len = NLMSG_HDRLEN;
}

static void out_raw(struct nl_call *c, const void *data, size_t len)
{
	memset(c->out.buf + c->len, 0, NLMSG_ALIGN(len));
	memcpy(c->out.buf + c->len, data, len);
	c->len += NLMSG_ALIGN(len);
}

static void out_attr(struct nl_call *c, uint16_t type, const void *data, size_t len)
{
	struct nlattr a = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type };

	out_raw(c, &a, sizeof(a));
	out_raw(c, data, len);
}

static void out_u8(struct nl_call *c, uint16_t type, uint8_t v)
{
	out_attr(c, type, &v, sizeof(v));
}

static void out_u32(struct nl_call *c, uint16_t type, uint32_t v)
{
	out_attr(c, type, &v, sizeof(v));
}

static void out_u64(struct nl_call *c, uint16_t type, uint64_t v)
{
	out_attr(c, type, &v, sizeof(v));
}

static void out_str(struct nl_call *c, uint16_t type, const char *s)
{
	out_attr(c, type, s, strlen(s) + 1);
}

/* Deliver one datagram. Full buffers lose it, as the kernel would. */
static void deliver(const struct nl_call *c, const void *buf, size_t len)
{
	struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_pid = c->pid };
	int s = raw_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);

	if (s < 0)
		return;
	raw_sendto(s, buf, len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
	raw_close(s);
}

static void out_end(struct nl_call *c)
{
	c->out.hdr.nlmsg_len = (uint32_t)c->len;
	deliver(c, c->out.buf, c->len);
}

static bool is_dump(const struct nl_call *c)
{
	return c->req->nlmsg_flags & NLM_F_DUMP;
}

static void answer_begin(struct nl_call *c)
{
	out_begin(c, c->req->nlmsg_type, is_dump(c) ? NLM_F_MULTI : 0);
}

static void answer_error(struct nl_call *c, int err)
{
	struct nlmsgerr e = { .error = err, .msg = *c->req };

	out_begin(c, NLMSG_ERROR, 0);
	out_raw(c, &e, sizeof(e));
	out_end(c);
}

static void answer_done(struct nl_call *c)
{
	int zero = 0;

	out_begin(c, NLMSG_DONE, NLM_F_MULTI);
	out_raw(c, &zero, sizeof(zero));
	out_end(c);
}

/* What the kernel sends after an answer of ours. */
static void answer_finish(struct nl_call *c)
{
	if (is_dump(c))
		answer_done(c);
	else if (c->req->nlmsg_flags & NLM_F_ACK)
		answer_error(c, 0);
}

/* ---- our device ------------------------------------------------------------------------- */

static void answer_device(struct nl_call *c)
{
	struct uwarp_facts f;

	if (!loader_facts(&f))
		return;
	answer_begin(c);
	out_u32(c, RDMA_NLDEV_ATTR_DEV_INDEX, UWARP_DEV_INDEX);
	out_str(c, RDMA_NLDEV_ATTR_DEV_NAME, uwarp_device_name());
	out_u32(c, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	out_u64(c, RDMA_NLDEV_ATTR_NODE_GUID, f.node_guid);
	out_u64(c, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, f.node_guid);
	out_str(c, RDMA_NLDEV_ATTR_FW_VERSION, f.fw_ver);
	out_u8(c, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, f.node_type);
	out_str(c, RDMA_NLDEV_ATTR_DEV_PROTOCOL, f.protocol);
	out_end(c);
}

static void answer_port(struct nl_call *c)
{
	struct uwarp_facts f;
	struct netdev dev;

	if (!loader_facts(&f))
		return;
	netdev_find(&dev);
	answer_begin(c);
	out_u32(c, RDMA_NLDEV_ATTR_DEV_INDEX, UWARP_DEV_INDEX);
	out_str(c, RDMA_NLDEV_ATTR_DEV_NAME, uwarp_device_name());
	out_u32(c, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	out_u8(c, RDMA_NLDEV_ATTR_PORT_STATE, f.state);
	out_u8(c, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, f.phys_state);
	if (dev.index) {
		out_u32(c, RDMA_NLDEV_ATTR_NDEV_INDEX, dev.index);
		out_str(c, RDMA_NLDEV_ATTR_NDEV_NAME, dev.name);
	}
	out_end(c);
}

static void answer_chardev(struct nl_call *c, const char *name, uint64_t abi, dev_t number)
{
	answer_begin(c);
	out_str(c, RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
	out_u64(c, RDMA_NLDEV_ATTR_CHARDEV_ABI, abi);
	out_u64(c, RDMA_NLDEV_ATTR_CHARDEV, number); /* 0: the name is all there is to check */
	out_end(c);
}

/* Without kernel RDMA: one network namespace mode, and memory that a fork leaves usable, because
 * nothing is pinned and everything is copied by the process itself. */
static void answer_sys(struct nl_call *c)
{
	answer_begin(c);
	out_u8(c, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
	out_u8(c, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
	out_end(c);
}

/* The message at *off, and *off moved beyond it; NULL at the end or at half a message. (The
 * kernel's own macros count with signed lengths and stop being right when a message ends
 * unaligned.) */
static struct nlmsghdr *next_message(uint8_t *buf, size_t len, size_t *off)
{
	struct nlmsghdr *h = (struct nlmsghdr *)(buf + *off);

	if (*off > len || len - *off < sizeof(*h))
		return NULL;
	if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > len - *off)
		return NULL;
	*off += NLMSG_ALIGN((size_t)h->nlmsg_len);
	return h;
}

/* ---- the kernel's answers --------------------------------------------------------------- */

/* Pass on what the kernel sent; `hold` keeps back the end of a dump, which is ours to send. */
static void forward(struct nl_call *c, uint8_t *buf, size_t len, bool hold, bool *end)
{
	struct nlmsghdr *h;
	size_t off = 0, keep = 0;

	while ((h = next_message(buf, len, &off))) {
		*end |= h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
		if (*end && hold)
			break;
		h->nlmsg_pid = c->pid;
		keep = off;
	}
	if (keep)
		deliver(c, buf, keep < len ? keep : len);
}

/* Ask the kernel. False: it has no RDMA. It answers within send() (dumps within recv()), so there
 * is nothing to wait for. */
static bool relay(struct nl_call *c, bool hold)
{
	int s = raw_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), big = 1 << 20;
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	uint8_t *buf;
	bool end = false;
	ssize_t n;

	if (s < 0)
		return false;
	buf = malloc(NL_BUF);
	syscall(SYS_setsockopt, c->fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
	n = raw_sendto(s, c->req, c->req->nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel));
	while (buf && n > 0 && !end) {
		n = raw_recv(s, buf, NL_BUF, MSG_DONTWAIT);
		if (n > 0)
			forward(c, buf, (size_t)n, hold, &end);
	}
	free(buf);
	raw_close(s);
	return true;
}

/* ---- requests --------------------------------------------------------------------------- */

static void req_get(struct nl_call *c)
{
	if (is_dump(c))
		relay(c, true);
	answer_device(c);
	answer_finish(c);
}

static void req_port(struct nl_call *c)
{
	answer_port(c);
	answer_finish(c);
}

static void req_chardev(struct nl_call *c)
{
	if (!strcmp(c->type, "rdma_cm"))
		answer_chardev(c, UWARP_UCMA_NODE, UWARP_UCMA_ABI, 0);
	else if (!strcmp(c->type, "uverbs"))
		/* what fstat() says of the open node, by which ibv_import_device() finds it */
		answer_chardev(c, UWARP_UVERBS_NODE, UWARP_UVERBS_ABI,
			       makedev(UWARP_NODE_MAJOR, UWARP_NODE_MINOR));
	else
		answer_error(c, -EOPNOTSUPP);
	answer_finish(c);
}

static void req_sys(struct nl_call *c)
{
	if (relay(c, false))
		return;
	answer_sys(c);
	answer_finish(c);
}

static void req_other(struct nl_call *c)
{
	if (c->dev == (int)UWARP_DEV_INDEX)
		answer_error(c, -EOPNOTSUPP);
	else if (relay(c, false))
		return;
	else if (is_dump(c))
		answer_done(c);
	else
		answer_error(c, -EOPNOTSUPP);
}

static bool about_us(const struct nl_call *c)
{
	return c->dev == (int)UWARP_DEV_INDEX;
}

static bool device_list_or_us(const struct nl_call *c)
{
	return about_us(c) || (c->dev < 0 && is_dump(c));
}

/* librdmacm asks for rdma_cm without naming a device. */
static bool chardev_of_us(const struct nl_call *c)
{
	return about_us(c) || !strcmp(c->type, "rdma_cm");
}

static bool always(const struct nl_call *c)
{
	(void)c;
	return true;
}

static const struct nl_request {
	uint16_t op;
	bool (*ours)(const struct nl_call *c);
	void (*fn)(struct nl_call *c);
} requests[] = {
	{ RDMA_NLDEV_CMD_GET, device_list_or_us, req_get },
	{ RDMA_NLDEV_CMD_PORT_GET, about_us, req_port },
	{ RDMA_NLDEV_CMD_GET_CHARDEV, chardev_of_us, req_chardev },
	{ RDMA_NLDEV_CMD_SYS_GET, always, req_sys },
};

static void parse_attrs(struct nl_call *c)
{
	const uint8_t *p = (const uint8_t *)c->req + NLMSG_HDRLEN;
	size_t left = c->req->nlmsg_len - NLMSG_HDRLEN, step;
	struct nlattr a;
	uint32_t dev;

	while (left >= sizeof(a)) {
		memcpy(&a, p, sizeof(a));
		if (a.nla_len < NLA_HDRLEN || a.nla_len > left)
			return;
		if (a.nla_type == RDMA_NLDEV_ATTR_DEV_INDEX && a.nla_len >= NLA_HDRLEN + 4) {
			memcpy(&dev, p + NLA_HDRLEN, sizeof(dev));
			c->dev = (int)dev;
		}
		if (a.nla_type == RDMA_NLDEV_ATTR_CHARDEV_TYPE && a.nla_len > NLA_HDRLEN &&
		    !p[a.nla_len - 1])
			c->type = (const char *)p + NLA_HDRLEN;
		step = NLA_ALIGN((size_t)a.nla_len);
		if (step >= left)
			return;
		p += step;
		left -= step;
	}
}

static void handle(struct nl_call *c)
{
	uint16_t op = RDMA_NL_GET_OP(c->req->nlmsg_type);

	parse_attrs(c);
	if (RDMA_NL_GET_CLIENT(c->req->nlmsg_type) == RDMA_NL_NLDEV)
		for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
			if (requests[i].op == op && requests[i].ours(c)) {
				requests[i].fn(c);
				return;
			}
	req_other(c);
}

/* ---- the socket ------------------------------------------------------------------------- */

/* The port of the program's socket; a socket that was not bound yet gets one, as sending would. */
static uint32_t port_of(int fd)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(a);

	if (!syscall(SYS_getsockname, fd, &a, &len) && a.nl_pid)
		return a.nl_pid;
	a = (struct sockaddr_nl){ .nl_family = AF_NETLINK };
	syscall(SYS_bind, fd, &a, sizeof(a));
	len = sizeof(a);
	return syscall(SYS_getsockname, fd, &a, &len) ? 0 : a.nl_pid;
}

static ssize_t gather(const struct msghdr *m, uint8_t *buf, size_t room)
{
	size_t len = 0;

	for (size_t i = 0; i < m->msg_iovlen; i++) {
		if (m->msg_iov[i].iov_len > room - len)
			return -EMSGSIZE;
		memcpy(buf + len, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
		len += m->msg_iov[i].iov_len;
	}
	return (ssize_t)len;
}

static ssize_t nl_sendmsg(struct fd_obj *o, int fd, const struct msghdr *m)
{
	_Alignas(struct nlmsghdr) uint8_t buf[4096];
	ssize_t len = gather(m, buf, sizeof(buf));
	struct nlmsghdr *h;
	struct nl_call c;
	size_t off = 0;

	(void)o;
	while (len > 0 && (h = next_message(buf, (size_t)len, &off))) {
		c.fd = fd;
		c.pid = port_of(fd);
		c.req = h;
		c.dev = -1;
		c.type = "";
		handle(&c);
	}
	return len;
}

static void nl_free(struct fd_obj *o)
{
	free(o);
}

static const struct fd_class nl_class = {
	.sendmsg = nl_sendmsg,
	.free = nl_free,
};

static _Atomic(void (*)(void)) on_open;

void netlink_on_open(void (*fn)(void))
{
	on_open = fn;
}

int netlink_open(int type)
{
	struct fd_obj *o = malloc(sizeof(*o));
	void (*fn)(void) = on_open;
	int fd, err;

	if (fn)
		fn();
	if (!o)
		return -ENOMEM;
	fd = raw_socket(AF_NETLINK, type, NETLINK_USERSOCK);
	if (fd < 0) {
		err = fdtab_no_descriptor(-errno);
		free(o);
		return err;
	}
	fd_obj_init(o, &nl_class);
	err = fdtab_add(fd, o);
	fd_obj_put(o);
	if (err)
		raw_close(fd);
	return err ? err : fd;
}
