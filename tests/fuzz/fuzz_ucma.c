/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The emulated rdma_cm node: any octets written to it, most of them commands whose ids, addresses
 * and lengths fit; the stack's events in between. Responses go to blocks of exactly the size that
 * the command announced.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#include "engine_fake.h"
#include "rdma_cm/rdma_cm.h"
#include "shim_double.h"

#define FILES 3

/* ---- commands ---------------------------------------------------------------------------- */

/* Where a command has what: offsets, 0xffff none. */
#define NONE	       0xffffu
#define AT(cmd, field) offsetof(struct cmd, field)
#define LAYOUT(c, i, r, a)                                                                         \
	{                                                                                          \
		sizeof(struct c), i, r, a                                                          \
	}

static const struct layout {
	uint16_t size, id, response, addr;
} layouts[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] =
		LAYOUT(rdma_ucm_create_id, NONE, AT(rdma_ucm_create_id, response), NONE),
	[RDMA_USER_CM_CMD_DESTROY_ID] = LAYOUT(rdma_ucm_destroy_id, AT(rdma_ucm_destroy_id, id),
					       AT(rdma_ucm_destroy_id, response), NONE),
	[RDMA_USER_CM_CMD_BIND_IP] =
		LAYOUT(rdma_ucm_bind_ip, AT(rdma_ucm_bind_ip, id), AT(rdma_ucm_bind_ip, response),
		       AT(rdma_ucm_bind_ip, addr)),
	[RDMA_USER_CM_CMD_RESOLVE_IP] = LAYOUT(rdma_ucm_resolve_ip, AT(rdma_ucm_resolve_ip, id),
					       NONE, AT(rdma_ucm_resolve_ip, dst_addr)),
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] =
		LAYOUT(rdma_ucm_resolve_route, AT(rdma_ucm_resolve_route, id), NONE, NONE),
	[RDMA_USER_CM_CMD_QUERY_ROUTE] =
		LAYOUT(rdma_ucm_query, AT(rdma_ucm_query, id), AT(rdma_ucm_query, response), NONE),
	[RDMA_USER_CM_CMD_CONNECT] = LAYOUT(rdma_ucm_connect, AT(rdma_ucm_connect, id), NONE, NONE),
	[RDMA_USER_CM_CMD_LISTEN] = LAYOUT(rdma_ucm_listen, AT(rdma_ucm_listen, id), NONE, NONE),
	[RDMA_USER_CM_CMD_ACCEPT] = LAYOUT(rdma_ucm_accept, AT(rdma_ucm_accept, id), NONE, NONE),
	[RDMA_USER_CM_CMD_REJECT] = LAYOUT(rdma_ucm_reject, AT(rdma_ucm_reject, id), NONE, NONE),
	[RDMA_USER_CM_CMD_DISCONNECT] =
		LAYOUT(rdma_ucm_disconnect, AT(rdma_ucm_disconnect, id), NONE, NONE),
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] =
		LAYOUT(rdma_ucm_init_qp_attr, AT(rdma_ucm_init_qp_attr, id),
		       AT(rdma_ucm_init_qp_attr, response), NONE),
	[RDMA_USER_CM_CMD_GET_EVENT] =
		LAYOUT(rdma_ucm_get_event, NONE, AT(rdma_ucm_get_event, response), NONE),
	[RDMA_USER_CM_CMD_SET_OPTION] =
		LAYOUT(rdma_ucm_set_option, AT(rdma_ucm_set_option, id), NONE, NONE),
	[RDMA_USER_CM_CMD_NOTIFY] = LAYOUT(rdma_ucm_notify, AT(rdma_ucm_notify, id), NONE, NONE),
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] =
		LAYOUT(rdma_ucm_join_ip_mcast, AT(rdma_ucm_join_ip_mcast, id),
		       AT(rdma_ucm_join_ip_mcast, response), AT(rdma_ucm_join_ip_mcast, addr)),
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = LAYOUT(rdma_ucm_destroy_id, AT(rdma_ucm_destroy_id, id),
						AT(rdma_ucm_destroy_id, response), NONE),
	[RDMA_USER_CM_CMD_MIGRATE_ID] = LAYOUT(rdma_ucm_migrate_id, AT(rdma_ucm_migrate_id, id),
					       AT(rdma_ucm_migrate_id, response), NONE),
	[RDMA_USER_CM_CMD_QUERY] =
		LAYOUT(rdma_ucm_query, AT(rdma_ucm_query, id), AT(rdma_ucm_query, response), NONE),
	[RDMA_USER_CM_CMD_BIND] =
		LAYOUT(rdma_ucm_bind, AT(rdma_ucm_bind, id), NONE, AT(rdma_ucm_bind, addr)),
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] =
		LAYOUT(rdma_ucm_resolve_addr, AT(rdma_ucm_resolve_addr, id), NONE,
		       AT(rdma_ucm_resolve_addr, dst_addr)),
	[RDMA_USER_CM_CMD_JOIN_MCAST] =
		LAYOUT(rdma_ucm_join_mcast, AT(rdma_ucm_join_mcast, id),
		       AT(rdma_ucm_join_mcast, response), AT(rdma_ucm_join_mcast, addr)),
};

struct written {
	struct rdma_ucm_cmd_hdr hdr;
	uint8_t body[600];
	size_t n;	/* of body */
	void *response; /* hdr.out octets */
};

static void put_address(struct written *w, struct feed *f, unsigned at)
{
	static const uint16_t families[] = { AF_INET, AF_INET6, AF_INET, AF_IB };
	uint8_t pick = feed_u8(f);

	memcpy(w->body + at, &families[pick % 4], 2);
	if (pick & 8)
		memset(w->body + at + 2, 0, 26); /* a wildcard */
	if (w->hdr.cmd == RDMA_USER_CM_CMD_BIND || w->hdr.cmd == RDMA_USER_CM_CMD_RESOLVE_ADDR) {
		uint16_t size = pick % 4 == 1 ? 28 : 16;
		uint16_t zero = 0;
		bool bind = w->hdr.cmd == RDMA_USER_CM_CMD_BIND;

		if (pick & 16)
			return;
		memcpy(w->body + (bind ? AT(rdma_ucm_bind, addr_size)
				       : AT(rdma_ucm_resolve_addr, dst_size)),
		       &size, 2);
		if (bind)
			memcpy(w->body + AT(rdma_ucm_bind, reserved), &zero, 2);
		else
			memset(w->body + AT(rdma_ucm_resolve_addr, reserved), 0, 4);
		if (!bind && (pick & 32))
			memcpy(w->body + AT(rdma_ucm_resolve_addr, src_size), &zero, 2);
	}
}

static void put_conn_param(struct written *w, struct feed *f)
{
	unsigned at = w->hdr.cmd == RDMA_USER_CM_CMD_ACCEPT ? AT(rdma_ucm_accept, conn_param) : 0;

	w->body[at + AT(rdma_ucm_conn_param, valid)] = !feed_rarely(f, 32);
	w->body[at + AT(rdma_ucm_conn_param, private_data_len)] = feed_u8(f);
}

/* Make the command one that may get somewhere. */
static void fit(struct written *w, struct feed *f, uint32_t id)
{
	const struct layout *l = &layouts[w->hdr.cmd];

	if (!feed_rarely(f, 16))
		w->n = w->hdr.in = l->size;
	w->hdr.out = feed_bool(f) ? 1024 : (uint16_t)feed_length(f, 1024);
	if (l->id != NONE && !feed_rarely(f, 16))
		memcpy(w->body + l->id, &id, 4);
	if (l->addr != NONE)
		put_address(w, f, l->addr);
	if (w->hdr.cmd == RDMA_USER_CM_CMD_CONNECT || w->hdr.cmd == RDMA_USER_CM_CMD_ACCEPT)
		put_conn_param(w, f);
	if (w->hdr.cmd == RDMA_USER_CM_CMD_QUERY)
		w->body[AT(rdma_ucm_query, option)] = feed_below(f, 4);
	if (w->hdr.cmd == RDMA_USER_CM_CMD_MIGRATE_ID) {
		uint32_t fd = (uint32_t)double_some_fd(f);

		memcpy(w->body + AT(rdma_ucm_migrate_id, fd), &fd, 4);
	}
	if (w->hdr.cmd == RDMA_USER_CM_CMD_CREATE_ID && !feed_rarely(f, 16)) {
		static const uint16_t ps[] = { RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB,
					       RDMA_PS_IPOIB };

		memcpy(w->body + AT(rdma_ucm_create_id, ps), &ps[feed_below(f, COUNT(ps))], 2);
	}
}

/* The one pointer that a command has must be one. */
static void point(struct written *w, struct feed *f)
{
	const struct layout *l = w->hdr.cmd < COUNT(layouts) ? &layouts[w->hdr.cmd] : NULL;
	uint64_t to;

	w->response = fuzz_alloc(w->hdr.out);
	to = feed_rarely(f, 32) ? 0 : (uintptr_t)w->response;
	if (l && l->size && l->response != NONE)
		memcpy(w->body + l->response, &to, sizeof(to));
}

/* A negative errno; as RoCE a peer's refusal has the CM's reason; what the program wrote has
 * anything. */
static bool may_have_status(const struct rdma_ucm_event_resp *ev)
{
	return (int32_t)ev->status <= 0 || ev->event == CM_EV_REJECTED || ev->event == CM_EV_USER ||
	       ev->event == CM_EV_INTERNAL;
}

static void check_answer(const struct written *w, ssize_t ret, size_t len)
{
	const struct rdma_ucm_event_resp *ev = w->response;

	CHECK(ret == (ssize_t)len || (ret < 0 && ret > -4096));
	if (ret < 0 || w->hdr.cmd != RDMA_USER_CM_CMD_GET_EVENT)
		return;
	CHECK(ev->event <= CM_EV_DISCONNECTED || ev->event == CM_EV_MULTICAST_JOIN ||
	      ev->event == CM_EV_USER || ev->event == CM_EV_INTERNAL);
	CHECK(may_have_status(ev));
	CHECK(ev->id);
}

static void command(struct feed *f, int fd, uint32_t cmd, uint32_t id)
{
	struct fd_obj *o = double_obj(fd);
	struct written w = { .hdr = { .cmd = cmd } };
	size_t len;
	uint8_t *all;
	ssize_t ret;

	w.n = w.hdr.in = (uint16_t)feed_length(f, sizeof(w.body));
	if (feed_rarely(f, 16))
		w.hdr.in = feed_u16(f);
	feed_fill(f, w.body, feed_below(f, 64));
	if (w.hdr.cmd < COUNT(layouts) && layouts[w.hdr.cmd].size)
		fit(&w, f, id);
	point(&w, f);
	len = sizeof(w.hdr) + w.n;
	if (feed_rarely(f, 32))
		len = feed_below(f, (uint32_t)len);
	all = fuzz_alloc(len);
	memcpy(all, &w.hdr, len < sizeof(w.hdr) ? len : sizeof(w.hdr));
	if (len > sizeof(w.hdr))
		memcpy(all + sizeof(w.hdr), w.body, len - sizeof(w.hdr));
	ret = o->cls->write(o, fd, all, len);
	check_answer(&w, ret, len);
	free(all);
	free(w.response);
}

/* The usual way of an id, at least some of it. */
static void walk(struct feed *f, int fd)
{
	static const uint8_t active[] = {
		RDMA_USER_CM_CMD_RESOLVE_IP,	RDMA_USER_CM_CMD_GET_EVENT,
		RDMA_USER_CM_CMD_RESOLVE_ROUTE, RDMA_USER_CM_CMD_GET_EVENT,
		RDMA_USER_CM_CMD_CONNECT,	RDMA_USER_CM_CMD_GET_EVENT,
		RDMA_USER_CM_CMD_DISCONNECT,	RDMA_USER_CM_CMD_GET_EVENT,
		RDMA_USER_CM_CMD_DESTROY_ID,
	};
	static const uint8_t passive[] = {
		RDMA_USER_CM_CMD_BIND_IP, RDMA_USER_CM_CMD_LISTEN,    RDMA_USER_CM_CMD_GET_EVENT,
		RDMA_USER_CM_CMD_ACCEPT,  RDMA_USER_CM_CMD_GET_EVENT, RDMA_USER_CM_CMD_DISCONNECT,
	};
	uint32_t id = 1 + feed_below(f, 4);
	bool listens = feed_bool(f);
	unsigned most = listens ? COUNT(passive) : COUNT(active), n = feed_below(f, most + 1);

	for (unsigned i = 0; i < n && double_obj(fd); i++) {
		/* A request's id is the next free one. */
		command(f, fd, listens ? passive[i] : active[i], id + (listens && i > 2));
		double_run_helpers();
		if (feed_bool(f))
			fuzz_stack_event(f);
	}
}

/* ---- the run ----------------------------------------------------------------------------- */

static void one(struct feed *f)
{
	int fd = double_some_fd(f);

	switch (feed_below(f, 16)) {
	case 0:
		if (feed_rarely(f, 4) && fd >= 0)
			double_close(fd);
		break;
	case 1:
		(void)cm_open(O_NONBLOCK);
		break;
	case 2:
		double_run_helpers();
		break;
	case 3:
	case 4:
	case 5:
		fuzz_stack_event(f);
		break;
	case 6:
	case 7:
		if (fd >= 0)
			walk(f, fd);
		break;
	default:
		if (fd >= 0)
			command(f, fd, feed_below(f, COUNT(layouts) + 1), 1 + feed_below(f, 6));
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };

	double_begin(&f);
	fuzz_stack_begin(&f);
	(void)cm_open(O_CLOEXEC);
	while (f.n)
		one(&f);
	double_end();
	fuzz_stack_end();
	for (uint32_t i = 0; i < cm.room; i++)
		CHECK(!cm.ids[i]);
	return 0;
}
