/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_S	 60
#define ATTEMPTS 5
#define ACCESS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* The next event; its connection request's data, if any, goes to *words. */
static enum rdma_cm_event_type next_event(struct traffic *t, struct words *words,
					  struct rdma_cm_id **id)
{
	struct pollfd fd = { t->ch->fd, POLLIN, 0 };
	enum rdma_cm_event_type type;
	struct rdma_cm_event *ev;

	if (poll(&fd, 1, EVENT_S * 1000) != 1)
		fail("hang: no event of the connection for %d s", EVENT_S);
	if (rdma_get_cm_event(t->ch, &ev))
		fail("rdma_get_cm_event: %m");
	type = ev->event;
	if (words && ev->param.conn.private_data_len >= sizeof(*words))
		memcpy(words, ev->param.conn.private_data, sizeof(*words));
	if (id)
		*id = ev->id;
	rdma_ack_cm_event(ev);
	return type;
}

static void want_event(struct traffic *t, enum rdma_cm_event_type want, struct words *words)
{
	enum rdma_cm_event_type type = next_event(t, words, NULL);

	if (type != want)
		fail("%s instead of %s", rdma_event_str(type), rdma_event_str(want));
}

static void make_objects(struct traffic *t)
{
	struct ibv_qp_init_attr a = { .cap = { SEND_WR, 2 * WINDOW, 2, 2, 128 },
				      .qp_type = IBV_QPT_RC,
				      .sq_sig_all = 1 };

	t->pd = ibv_alloc_pd(t->id->verbs);
	t->cq = ibv_create_cq(t->id->verbs, SEND_WR + 4 * WINDOW, NULL, NULL, 0);
	if (!t->pd || !t->cq)
		fail("no PD or CQ: %m");
	t->mr_shared = ibv_reg_mr(t->pd, t->shared, sizeof(*t->shared), ACCESS);
	t->mr_own = ibv_reg_mr(t->pd, t->own, sizeof(*t->own), ACCESS);
	t->mw = ibv_alloc_mw(t->pd, IBV_MW_TYPE_2);
	if (!t->mr_shared || !t->mr_own || !t->mw)
		fail("no MR or MW: %m");
	a.send_cq = a.recv_cq = t->cq;
	if (rdma_create_qp(t->id, t->pd, &a))
		fail("rdma_create_qp: %m");
	traffic_post_recvs(t);
}

static void destroy_objects(struct traffic *t)
{
	rdma_destroy_qp(t->id);
	if (ibv_dealloc_mw(t->mw) || ibv_dereg_mr(t->mr_shared) || ibv_dereg_mr(t->mr_own) ||
	    ibv_destroy_cq(t->cq) || ibv_dealloc_pd(t->pd))
		fail("an object cannot be destroyed: %m");
	if (rdma_destroy_id(t->id))
		fail("rdma_destroy_id: %m");
}

static struct rdma_conn_param param_of(const struct words *mine)
{
	return (struct rdma_conn_param){ .private_data = mine,
					 .private_data_len = sizeof(*mine),
					 .responder_resources = 16,
					 .initiator_depth = 16,
					 .rnr_retry_count = 7 };
}

static struct words words_of(const struct traffic *t)
{
	return (struct words){ (uintptr_t)t->shared, t->mr_shared->rkey, t->mw->rkey };
}

static struct addrinfo *lookup(const char *address, const char *port)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *ai;

	if (getaddrinfo(address, port, &hints, &ai))
		fail("%s:%s is no address and port", address, port);
	return ai;
}

static void serve(struct traffic *t, const struct addrinfo *ai)
{
	struct rdma_conn_param p;
	struct words mine;

	if (rdma_create_id(t->ch, &t->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(t->listener, ai->ai_addr) || rdma_listen(t->listener, 4))
		fail("cannot listen: %m");
	printf("listening\n");
	for (;;) {
		enum rdma_cm_event_type type = next_event(t, &t->other, &t->id);

		if (type != RDMA_CM_EVENT_CONNECT_REQUEST)
			fail("%s instead of a connection request", rdma_event_str(type));
		make_objects(t);
		mine = words_of(t);
		p = param_of(&mine);
		if (rdma_accept(t->id, &p))
			fail("rdma_accept: %m");
		type = next_event(t, NULL, NULL);
		if (type == RDMA_CM_EVENT_ESTABLISHED)
			return;
		destroy_objects(t); /* the client gave up; it comes again */
	}
}

/* Under losses a start-up may run into its timeout: that is no fault, so it may try again. */
static bool call(struct traffic *t, const struct addrinfo *ai)
{
	struct rdma_conn_param p;
	struct words mine;

	if (rdma_create_id(t->ch, &t->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(t->id, NULL, ai->ai_addr, 5000))
		fail("cannot resolve: %m");
	want_event(t, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	if (rdma_resolve_route(t->id, 5000))
		fail("rdma_resolve_route: %m");
	want_event(t, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	make_objects(t);
	mine = words_of(t);
	p = param_of(&mine);
	if (rdma_connect(t->id, &p))
		fail("rdma_connect: %m");
	if (next_event(t, &t->other, NULL) == RDMA_CM_EVENT_ESTABLISHED)
		return true;
	destroy_objects(t);
	return false;
}

void traffic_connect(struct traffic *t, const char *address, const char *port)
{
	struct addrinfo *ai = lookup(address, port);
	unsigned attempts = 1;

	t->ch = rdma_create_event_channel();
	if (!t->ch)
		fail("no event channel: %m");
	if (t->end)
		serve(t, ai);
	while (!t->end && !call(t, ai)) {
		if (++attempts > ATTEMPTS)
			fail("no connection in %d attempts", ATTEMPTS);
	}
	if (attempts > 1)
		printf("connected at attempt %u\n", attempts);
	freeaddrinfo(ai);
}

/* What is left after the end: receives come back flushed, the server's last word as it likes. */
static void take_back(struct traffic *t, const struct ibv_wc *wc)
{
	if (OF_WHAT(wc->wr_id) != OF_RECEIVE) {
		if (t->completed == t->posted || wc->wr_id != t->ledger[t->completed % SEND_WR])
			fail("after the end: completion of %lx, lost or doubled",
			     (unsigned long)wc->wr_id);
		t->completed++;
		return;
	}
	if (wc->status != IBV_WC_WR_FLUSH_ERR || NUMBER(wc->wr_id) != t->recv_completed)
		fail("after the end: receive %lu: %s, and %lu flushed is next",
		     (unsigned long)NUMBER(wc->wr_id), ibv_wc_status_str(wc->status),
		     (unsigned long)t->recv_completed);
	t->recv_completed++;
}

void traffic_disconnect(struct traffic *t)
{
	double until;
	struct ibv_wc wc;

	if (!t->end && rdma_disconnect(t->id))
		fail("rdma_disconnect: %m");
	want_event(t, RDMA_CM_EVENT_DISCONNECTED, NULL);
	until = seconds() + EVENT_S;
	while (t->recv_completed < t->recv_posted || t->completed < t->posted) {
		if (ibv_poll_cq(t->cq, 1, &wc))
			take_back(t, &wc);
		if (seconds() > until)
			fail("lost: %lu receives and %lu other WRs never came back",
			     (unsigned long)(t->recv_posted - t->recv_completed),
			     (unsigned long)(t->posted - t->completed));
	}
	if (ibv_poll_cq(t->cq, 1, &wc))
		fail("doubled: a completion of %lx more than was posted", (unsigned long)wc.wr_id);
	destroy_objects(t);
	if (t->listener)
		rdma_destroy_id(t->listener);
	rdma_destroy_event_channel(t->ch);
}
