/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "server.h"
#include "worker.h"

#define BACKLOG 128
#define LOOK_MS 100
#define INLINE	256u

static _Atomic bool stop; /* a signal sets it; workers look at it */

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

bool server_stopped(void)
{
	return stop;
}

static int listen_on(struct server *s)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *at;
	int flags, err;

	s->channel = rdma_create_event_channel();
	if (!s->channel || rdma_create_id(s->channel, &s->listener, NULL, RDMA_PS_TCP))
		return log_errno("cannot use rdma_cm");
	if (rdma_getaddrinfo(s->config.host, s->config.port, &hints, &at))
		return log_errno("no address for port %s", s->config.port);
	err = rdma_bind_addr(s->listener, at->ai_src_addr) || rdma_listen(s->listener, BACKLOG);
	rdma_freeaddrinfo(at);
	if (err)
		return log_errno("cannot listen on port %s", s->config.port);
	flags = fcntl(s->channel->fd, F_GETFL);
	return fcntl(s->channel->fd, F_SETFL, flags | O_NONBLOCK) ? log_errno("fcntl") : 0;
}

int server_open(struct server *s, const struct server_config *config, const struct server_ops *ops)
{
	struct sigaction on_end = { .sa_handler = on_signal };
	int err;

	memset(s, 0, sizeof(*s));
	s->config = *config;
	s->ops = ops;
	sigaction(SIGTERM, &on_end, NULL);
	sigaction(SIGINT, &on_end, NULL);
	s->worker = calloc(config->workers, sizeof(*s->worker));
	if (!s->worker)
		return -ENOMEM;
	err = device_open_at(&s->device, config->host);
	if ((int)s->config.slots > s->device.attr.max_srq_wr)
		s->config.slots = (uint32_t)s->device.attr.max_srq_wr;
	if (2 * (int)s->config.slots > s->device.attr.max_qp_wr)
		s->config.slots = (uint32_t)s->device.attr.max_qp_wr / 2;
	return err ? err : listen_on(s);
}

/* ---- connections ------------------------------------------------------------------------- */

static int admit(struct session *s, const struct rdma_cm_event *ev)
{
	struct worker *w = s->worker;
	struct conn_wish wish = { .cq = w->comp.cq,
				  .srq = w->srq,
				  .sends = SENDS_EACH * s->server->config.slots,
				  .inline_data = INLINE };
	struct rdma_conn_param param;
	struct hello hello;
	int err;

	if (s->conn.id->verbs != s->server->device.verbs) {
		log_line("a connection came over another device than %s; name its address with "
			 "--host",
			 ibv_get_device_name(s->server->device.verbs->device));
		return -ENODEV;
	}
	conn_take_hello(&hello, &ev->param.conn);
	if (!hello_is_of(&hello, s->server->config.service))
		return -EPROTO;
	err = conn_make_qp(&s->conn, &s->server->device, &wish);
	if (!err)
		err = s->server->ops->join(s, &hello);
	if (err)
		return err;
	hello_mark(&hello, s->server->config.service);
	worker_add(w, s);
	param = conn_param(&s->server->device, &hello);
	if (!rdma_accept(s->conn.id, &param))
		return 0;
	/* it is the worker's by now */
	worker_end(s);
	return 0;
}

static void refuse(const struct server *sv, struct rdma_cm_id *id, int err)
{
	struct refusal r = { .magic = REFUSAL_MAGIC, .why = -err };

	snprintf(r.service, sizeof(r.service), "%s", sv->config.service.name);
	rdma_reject(id, &r, sizeof(r));
}

/* Is the id still ours to destroy, because nothing became of it? */
static bool on_request(struct server *sv, const struct rdma_cm_event *ev)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		refuse(sv, ev->id, -ENOMEM);
		return true;
	}
	s->server = sv;
	s->worker = &sv->worker[sv->next_worker++ % sv->config.workers];
	s->conn.id = ev->id;
	ev->id->context = s;
	err = admit(s, ev);
	if (!err)
		return false;
	refuse(sv, ev->id, err);
	if (s->conn.qp)
		rdma_destroy_qp(ev->id);
	free(s);
	return true;
}

static bool is_end(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_CONNECT_ERROR ||
	       type == RDMA_CM_EVENT_UNREACHABLE || type == RDMA_CM_EVENT_DEVICE_REMOVAL;
}

static void on_event(struct server *sv, struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->id, *refused = NULL;
	struct session *ended = NULL;

	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		refused = on_request(sv, ev) ? id : NULL;
	else if (is_end(ev->event))
		ended = id->context;
	rdma_ack_cm_event(ev);
	if (refused)
		rdma_destroy_id(refused);
	if (ended)
		worker_end(ended);
}

static void take_events(struct server *s)
{
	struct pollfd p = { .fd = s->channel->fd, .events = POLLIN };
	struct rdma_cm_event *ev;

	if (poll(&p, 1, LOOK_MS) <= 0)
		return;
	while (!stop && !rdma_get_cm_event(s->channel, &ev))
		on_event(s, ev);
}

static void end_workers(struct server *s)
{
	stop = 1;
	for (; s->started; s->started--)
		worker_close(&s->worker[s->started - 1]);
}

int server_run(struct server *s)
{
	int err = 0;

	for (; !err && s->started < s->config.workers; s->started += !err)
		err = worker_start(&s->worker[s->started], s, s->started);
	if (err) {
		end_workers(s);
		return err;
	}
	printf("%s: ready on port %u\n", program_invocation_short_name,
	       ntohs(rdma_get_src_port(s->listener)));
	fflush(stdout);
	while (!stop)
		take_events(s);
	end_workers(s);
	return 0;
}

void server_close(struct server *s)
{
	if (s->listener)
		rdma_destroy_id(s->listener);
	if (s->channel)
		rdma_destroy_event_channel(s->channel);
	free(s->worker);
	device_close(&s->device);
}
