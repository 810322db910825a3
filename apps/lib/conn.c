/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "conn.h"
#include "log.h"

#define FOREVER	   7	  /* RNR retries */
#define DEPTH_MAX  255u	  /* what the field holds */
#define RETRY_EACH 20000u /* us */

struct rdma_conn_param conn_param(const struct device *d, const struct hello *hello)
{
	unsigned out = (unsigned)d->attr.max_qp_init_rd_atom, in = (unsigned)d->attr.max_qp_rd_atom;

	return (struct rdma_conn_param){ .private_data = hello,
					 .private_data_len = sizeof(*hello),
					 .initiator_depth =
						 (uint8_t)(out < DEPTH_MAX ? out : DEPTH_MAX),
					 .responder_resources =
						 (uint8_t)(in < DEPTH_MAX ? in : DEPTH_MAX),
					 .retry_count = FOREVER,
					 .rnr_retry_count = FOREVER };
}

/* InfiniBand pads private data, iWARP carries what was sent. */
void conn_take_hello(struct hello *h, const struct rdma_conn_param *p)
{
	size_t n = p->private_data_len < sizeof(*h) ? p->private_data_len : sizeof(*h);

	memset(h, 0, sizeof(*h));
	if (p->private_data)
		memcpy(h, p->private_data, n);
}

void hello_mark(struct hello *h, struct service s)
{
	memcpy(h->octets, &s.magic, sizeof(s.magic));
}

bool hello_is_of(const struct hello *h, struct service s)
{
	uint32_t magic;

	memcpy(&magic, h->octets, sizeof(magic));
	return magic == s.magic;
}

/* Devices refuse more inline data than they have, and do not say how much that is. */
int conn_make_qp(struct conn *c, const struct device *d, const struct conn_wish *w)
{
	struct ibv_qp_init_attr init = { .send_cq = w->cq,
					 .recv_cq = w->cq,
					 .srq = w->srq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = w->sends,
						  .max_recv_wr = w->srq ? 0 : w->receives,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };

	for (uint32_t n = w->inline_data;; n /= 2) {
		init.cap.max_inline_data = n;
		if (!rdma_create_qp(c->id, d->pd, &init))
			break;
		if (!n)
			return log_errno("cannot make a QP with %u sends", w->sends);
		init.cap.max_send_wr = w->sends;
	}
	c->qp = c->id->qp;
	c->inline_max = init.cap.max_inline_data;
	return 0;
}

static int prepare(struct conn *c, const struct device *d, const struct server_name *to,
		   const struct conn_wish *w)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *at;
	int err;

	memset(c, 0, sizeof(*c));
	if (rdma_getaddrinfo(to->host, to->port, &hints, &at))
		return log_errno("no RDMA device reaches %s", to->host);
	err = rdma_create_ep(&c->id, at, NULL, NULL);
	rdma_freeaddrinfo(at);
	if (err)
		return log_errno("no RDMA device reaches %s", to->host);
	return conn_make_qp(c, d, w);
}

/* Nothing to disconnect: librdmacm would wait for an event that does not come. */
static void give_up(struct conn *c)
{
	if (!c->id)
		return;
	if (c->qp)
		rdma_destroy_qp(c->id);
	rdma_destroy_id(c->id);
	memset(c, 0, sizeof(*c));
}

/* Has a server of ours said why it does not want this connection? 0: nothing was said. */
static int refused(const struct conn *c, struct refusal *r)
{
	const struct rdma_cm_event *ev = c->id->event;

	if (!ev || ev->event != RDMA_CM_EVENT_REJECTED ||
	    ev->param.conn.private_data_len < sizeof(*r))
		return 0;
	memcpy(r, ev->param.conn.private_data, sizeof(*r));
	r->service[sizeof(r->service) - 1] = 0;
	return r->magic == REFUSAL_MAGIC && r->why > 0 ? -r->why : 0;
}

static void say_refused(const struct refusal *r, const struct server_name *to, struct service s)
{
	if (strcmp(r->service, s.name))
		log_line("port %s of %s is %s, and not %s", to->port, to->host, r->service, s.name);
	else if (r->why == EPROTO)
		log_line("%s on port %s of %s is of another version", s.name, to->port, to->host);
	else
		log_line("%s on port %s of %s refuses: %s", s.name, to->port, to->host,
			 strerror(r->why));
}

/* Again and again while nobody listens there, or the server has no place yet (EBUSY). */
static int connect_to(struct conn *c, const struct device *d, const struct server_name *to,
		      const struct conn_wish *w, struct hello *hello)
{
	uint64_t end = clock_ns() + (uint64_t)(to->patience * 1e9);
	struct rdma_conn_param param = conn_param(d, hello);
	struct refusal r;
	bool over;
	int err;

	for (;;) {
		err = prepare(c, d, to, w);
		if (!err && w->ready)
			err = w->ready(c, w->arg);
		if (err || !rdma_connect(c->id, &param))
			break;
		over = clock_ns() > end;
		err = refused(c, &r);
		if (err && (err != -EBUSY || over)) {
			say_refused(&r, to, w->service);
			break;
		}
		if (over) {
			err = log_errno("%s does not accept a connection on port %s", to->host,
					to->port);
			break;
		}
		give_up(c);
		usleep(RETRY_EACH);
	}
	return err;
}

int conn_open(struct conn *c, const struct device *d, const struct server_name *to,
	      const struct conn_wish *w, struct hello *hello)
{
	int err;

	hello_mark(hello, w->service);
	err = connect_to(c, d, to, w, hello);
	if (err) {
		give_up(c);
		return err;
	}
	conn_take_hello(hello, &c->id->event->param.conn);
	if (hello_is_of(hello, w->service))
		return 0;
	log_line("port %s of %s is not %s", to->port, to->host, w->service.name);
	conn_close(c);
	return -EPROTO;
}

int conn_flush(struct conn *c, unsigned *posted)
{
	unsigned n = c->listed;
	struct ibv_send_wr *bad = NULL;
	int err;

	if (!n)
		return 0;
	c->listed = 0;
	c->list[n - 1].next = NULL;
	err = -ibv_post_send(c->qp, c->list, &bad);
	if (posted)
		*posted = err ? (unsigned)(bad - c->list) : n;
	return err;
}

int conn_add(struct conn *c)
{
	return ++c->listed < CONN_LIST ? 0 : conn_flush(c, NULL);
}

void conn_close(struct conn *c)
{
	if (c->id && c->qp)
		rdma_disconnect(c->id);
	give_up(c);
}
