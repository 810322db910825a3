/* SPDX-License-Identifier: BSD-3-Clause */
/* The stock librdmacm, unchanged, on the shim: the sequences that programs use. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rdma/rdma_cma.h>

static struct sockaddr_in at(uint32_t a, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	in.sin_addr.s_addr = htonl(a);
	return in;
}

/* The next event, checked; the caller acknowledges it. */
static struct rdma_cm_event *next(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;

	assert_int_equal(rdma_get_cm_event(ch, &ev), 0);
	assert_string_equal(rdma_event_str(ev->event), rdma_event_str(type));
	return ev;
}

static void pass(struct rdma_event_channel *ch, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *ev = next(ch, type);

	assert_int_equal(ev->status, status);
	rdma_ack_cm_event(ev);
}

static struct rdma_cm_id *listener(struct rdma_event_channel *ch, uint16_t port, void *context)
{
	struct sockaddr_in any = at(INADDR_ANY, port);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(ch, &id, context, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&any), 0);
	assert_null(id->verbs); /* a wildcard has no device */
	assert_int_equal(rdma_listen(id, 4), 0);
	return id;
}

static struct rdma_cm_id *routed(struct rdma_event_channel *ch, uint16_t port)
{
	struct sockaddr_in to = at(INADDR_LOOPBACK, port);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	pass(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_non_null(id->verbs);
	assert_string_equal(ibv_get_device_name(id->verbs->device), "uwarp0");
	assert_int_equal(id->verbs->device->transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	pass(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(ntohs(rdma_get_dst_port(id)), port);
	return id;
}

static struct rdma_conn_param param(uint32_t qpn, const char *data, int depth)
{
	return (struct rdma_conn_param){ .qp_num = qpn,
					 .private_data = data,
					 .private_data_len = (uint8_t)strlen(data),
					 .responder_resources = (uint8_t)depth,
					 .initiator_depth = (uint8_t)(depth + 1) };
}

static void connecting(void **state)
{
	struct rdma_event_channel *cch = rdma_create_event_channel();
	struct rdma_event_channel *sch = rdma_create_event_channel();
	struct rdma_conn_param p = param(1, "ping", 4);
	struct rdma_cm_id *lid, *cid, *sid;
	struct rdma_cm_event *ev;

	(void)state;
	lid = listener(sch, 9001, &lid);
	cid = routed(cch, 9001);
	assert_int_equal(rdma_connect(cid, &p), 0);
	ev = next(sch, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_equal(ev->listen_id, lid);
	assert_ptr_equal(ev->id->context, &lid); /* inherited */
	assert_non_null(ev->id->verbs);
	assert_memory_equal(ev->param.conn.private_data, "ping", 4);
	assert_int_equal(ev->param.conn.responder_resources, 5);
	assert_int_equal(ev->param.conn.initiator_depth, 4);
	sid = ev->id;
	rdma_ack_cm_event(ev);
	assert_int_equal(ntohs(rdma_get_src_port(sid)), 9001);
	p = param(2, "pong", 3);
	assert_int_equal(rdma_accept(sid, &p), 0);
	pass(sch, RDMA_CM_EVENT_ESTABLISHED, 0);
	ev = next(cch, RDMA_CM_EVENT_ESTABLISHED);
	assert_memory_equal(ev->param.conn.private_data, "pong", 4);
	rdma_ack_cm_event(ev);
	assert_int_equal(rdma_disconnect(cid), 0);
	pass(cch, RDMA_CM_EVENT_DISCONNECTED, 0);
	pass(sch, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(sid), 0);
	assert_int_equal(rdma_destroy_id(sid), 0);
	assert_int_equal(rdma_destroy_id(cid), 0);
	assert_int_equal(rdma_destroy_id(lid), 0);
	rdma_destroy_event_channel(cch);
	rdma_destroy_event_channel(sch);
}

static void rejecting(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param p = param(1, "", 1);
	struct rdma_cm_id *lid = listener(ch, 9002, NULL), *cid = routed(ch, 9002), *sid;
	struct rdma_cm_event *ev;

	(void)state;
	assert_int_equal(rdma_connect(cid, &p), 0);
	ev = next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	sid = ev->id;
	rdma_ack_cm_event(ev);
	assert_int_equal(rdma_reject(sid, "busy", 4), 0);
	assert_int_equal(rdma_destroy_id(sid), 0);
	ev = next(ch, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(ev->status, -ECONNREFUSED);
	assert_int_equal(ev->param.conn.private_data_len, 4);
	assert_memory_equal(ev->param.conn.private_data, "busy", 4);
	rdma_ack_cm_event(ev);
	rdma_destroy_id(cid);
	rdma_destroy_id(lid);
	rdma_destroy_event_channel(ch);
}

static void failing(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in nowhere = at(0xc0000202, 1), odd = at(0x0a000001, 0);
	struct rdma_conn_param p = param(1, "", 1);
	struct rdma_cm_id *id = routed(ch, 9003);

	(void)state;
	assert_int_equal(rdma_connect(id, &p), 0);
	pass(ch, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	rdma_destroy_id(id);
	id = routed(ch, 9);
	assert_int_equal(rdma_connect(id, &p), 0);
	pass(ch, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	rdma_destroy_id(id);
	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&odd), -1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&nowhere, 10), 0);
	pass(ch, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

/* Unfetched and unacknowledged events: rdma_destroy_id() waits for the latter only. */
static void *ack_later(void *arg)
{
	usleep(50000);
	rdma_ack_cm_event(arg);
	return NULL;
}

static void destroy_counts_events(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in to = at(INADDR_LOOPBACK, 1);
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	pthread_t t;

	(void)state;
	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	ev = next(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 1000), 0); /* this event stays in the queue */
	pthread_create(&t, NULL, ack_later, ev);
	assert_int_equal(rdma_destroy_id(id), 0);
	pthread_join(t, NULL);
	rdma_destroy_event_channel(ch);
}

static void *serve_sync(void *arg)
{
	struct rdma_conn_param p = param(2, "", 1);
	struct rdma_cm_id *lid = arg, *id;

	assert_int_equal(rdma_get_request(lid, &id), 0);
	assert_int_equal(rdma_accept(id, &p), 0);
	assert_int_equal(rdma_disconnect(id), 0);
	rdma_destroy_id(id);
	return NULL;
}

/* Ids without a channel of the program's: librdmacm waits inside each call, and moves the ids of
 * requests to channels of their own. */
static void synchronous_ids(void **state)
{
	struct sockaddr_in any = at(INADDR_ANY, 9004), to = at(INADDR_LOOPBACK, 9004);
	struct rdma_conn_param p = param(1, "", 1);
	struct rdma_cm_id *lid, *cid;
	pthread_t t;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &lid, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(lid, (struct sockaddr *)&any), 0);
	assert_int_equal(rdma_listen(lid, 1), 0);
	pthread_create(&t, NULL, serve_sync, lid);
	assert_int_equal(rdma_create_id(NULL, &cid, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(cid, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_int_equal(rdma_resolve_route(cid, 1000), 0);
	assert_int_equal(rdma_connect(cid, &p), 0);
	pthread_join(t, NULL);
	assert_int_equal(rdma_disconnect(cid), 0);
	rdma_destroy_id(cid);
	rdma_destroy_id(lid);
}

static void addrinfo_and_create_ep(void **state)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE };
	struct rdma_addrinfo *res;
	struct rdma_cm_id *lid, *cid;

	(void)state;
	assert_int_equal(rdma_getaddrinfo(NULL, "9005", &hints, &res), 0);
	assert_int_equal(rdma_create_ep(&lid, res, NULL, NULL), 0);
	rdma_freeaddrinfo(res);
	assert_int_equal(rdma_listen(lid, 0), 0);
	hints.ai_flags = RAI_NUMERICHOST;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "9005", &hints, &res), 0);
	assert_int_equal(rdma_create_ep(&cid, res, NULL, NULL), 0); /* resolves it all */
	rdma_freeaddrinfo(res);
	assert_non_null(cid->verbs);
	rdma_destroy_ep(cid);
	rdma_destroy_ep(lid);
}

/* With QPs, as most programs have it: librdmacm takes them through their states. */
static void with_queue_pairs(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ibv_qp_init_attr attr = { .cap = { .max_send_wr = 1, .max_recv_wr = 1 },
					 .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *lid = listener(ch, 9007, NULL), *cid = routed(ch, 9007), *sid;
	struct rdma_conn_param p = param(0, "", 1);
	struct rdma_cm_event *ev;

	(void)state;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	assert_int_equal(rdma_create_qp(cid, NULL, &attr), 0);
	assert_int_equal(rdma_connect(cid, &p), 0);
	ev = next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	sid = ev->id;
	rdma_ack_cm_event(ev);
	assert_int_equal(rdma_create_qp(sid, NULL, &attr), 0);
	assert_int_equal(rdma_accept(sid, &p), 0);
	for (int i = 0; i < 2; i++)
		pass(ch, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(rdma_disconnect(cid), 0);
	for (int i = 0; i < 2; i++)
		pass(ch, RDMA_CM_EVENT_DISCONNECTED, 0);
	rdma_destroy_qp(sid);
	rdma_destroy_qp(cid);
	rdma_destroy_id(sid);
	rdma_destroy_id(cid);
	rdma_destroy_id(lid);
	rdma_destroy_event_channel(ch);
}

static void migrating(void **state)
{
	struct rdma_event_channel *a = rdma_create_event_channel();
	struct rdma_event_channel *b = rdma_create_event_channel();
	struct rdma_conn_param p = param(1, "", 1);
	struct rdma_cm_id *id = routed(a, 9006);
	struct pollfd poll_b = { .fd = b->fd, .events = POLLIN };
	struct rdma_cm_event *ev;

	(void)state;
	assert_int_equal(rdma_connect(id, &p), 0);
	assert_int_equal(rdma_migrate_id(id, b), 0);
	assert_int_equal(poll(&poll_b, 1, 5000), 1);
	pass(b, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	fcntl(a->fd, F_SETFL, fcntl(a->fd, F_GETFL) | O_NONBLOCK);
	assert_int_equal(rdma_get_cm_event(a, &ev), -1);
	assert_int_equal(errno, EAGAIN);
	rdma_destroy_event_channel(a);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(b);
}

static void resolve(struct rdma_cm_id *id)
{
	struct sockaddr_in to = at(INADDR_LOOPBACK, 9006);

	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
}

static void is_event_of(struct rdma_event_channel *ch, const struct rdma_cm_id *id)
{
	struct rdma_cm_event *ev = next(ch, RDMA_CM_EVENT_ADDR_RESOLVED);

	assert_ptr_equal(ev->id, id);
	rdma_ack_cm_event(ev);
}

static void has_no_event(struct rdma_event_channel *ch)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 0), 0);
}

/* Of several ids that have events in one channel, one leaves it, and one ends. */
static void events_of_others_stay(void **state)
{
	struct rdma_event_channel *a = rdma_create_event_channel();
	struct rdma_event_channel *b = rdma_create_event_channel();
	struct pollfd both = { .fd = a->fd, .events = POLLIN };
	struct rdma_cm_id *id[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rdma_create_id(a, &id[i], NULL, RDMA_PS_TCP), 0);
		resolve(id[i]);
		assert_int_equal(poll(&both, 1, 5000), 1);
	}
	assert_int_equal(rdma_migrate_id(id[1], b), 0);
	rdma_destroy_id(id[2]);
	is_event_of(a, id[0]);
	is_event_of(a, id[3]);
	has_no_event(a);
	is_event_of(b, id[1]);
	has_no_event(b);
	assert_int_equal(rdma_migrate_id(id[1], a), 0); /* without events */
	has_no_event(a);
	for (int i = 0; i < 4; i++) {
		if (i != 2)
			rdma_destroy_id(id[i]);
	}
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
}

static void setting_options(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;
	uint8_t tos = 4;
	int on = 1;

	(void)state;
	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	assert_int_equal(
		rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connecting),	    cmocka_unit_test(rejecting),
		cmocka_unit_test(failing),	    cmocka_unit_test(destroy_counts_events),
		cmocka_unit_test(synchronous_ids),  cmocka_unit_test(addrinfo_and_create_ep),
		cmocka_unit_test(with_queue_pairs), cmocka_unit_test(migrating),
		cmocka_unit_test(setting_options),  cmocka_unit_test(events_of_others_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
