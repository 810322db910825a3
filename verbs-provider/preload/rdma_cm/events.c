/* SPDX-License-Identifier: BSD-3-Clause */
/* What the stack reports, and the queues of events that the program has still to fetch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_cm.h"

/* ---- queues ----------------------------------------------------------------------------- */

struct cm_event *cm_event_new(struct cm_id *id, enum cm_event_type type, int status)
{
	struct cm_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->id = id;
	e->resp.event = type;
	e->resp.status = (uint32_t)status;
	return e;
}

#define RESERVE 2 /* the outcome, and DISCONNECTED */

int cm_events_reserve(struct cm_id *id)
{
	struct cm_event *e;
	unsigned n = 0;

	cm_lock();
	TAILQ_FOREACH(e, &id->reserve, link)
	n++;
	for (; n < RESERVE; n++) {
		e = cm_event_new(id, CM_EV_CONNECT_ERROR, 0);
		if (!e)
			break;
		TAILQ_INSERT_TAIL(&id->reserve, e, link);
	}
	cm_unlock();
	return n < RESERVE ? -ENOMEM : 0;
}

static void link_event(struct cm_event *e)
{
	TAILQ_INSERT_TAIL(&e->id->file->events, e, link);
	TAILQ_INSERT_TAIL(&e->id->events, e, of_id);
}

static void insert(struct cm_event *e)
{
	e->resp.uid = e->id->uid;
	e->resp.id = e->id->handle;
	if (e->mc) {
		e->resp.uid = e->mc->uid;
		e->resp.id = e->mc->handle;
	}
	link_event(e);
}

void cm_event_queue(struct cm_event *e)
{
	insert(e);
	cm_file_signal(e->id->file);
}

static void signal_file(void *arg)
{
	struct cm_file *file = arg;

	cm_lock();
	file->signalling = false;
	cm_file_signal(file);
	cm_unlock();
	fd_obj_put(&file->obj);
}

/* As cm_event_queue(), in a callback of `stack`. The thread that waits for events is woken after
 * the stack has reported everything and released its lock, which that thread will want. */
static void queue_in_callback(struct cm_event *e, struct uw_stack *stack)
{
	struct cm_file *file = e->id->file;

	insert(e);
	if (file->signalled || file->signalling || file->looking)
		return;
	file->signalling = e->id->api->later(stack, signal_file, file);
	if (file->signalling) /* a reference for signal_file() */
		atomic_fetch_add_explicit(&file->obj.refs, 1, memory_order_relaxed);
	else
		cm_file_signal(file);
}

void cm_event_unlink(struct cm_event *e)
{
	TAILQ_REMOVE(&e->id->file->events, e, link);
	TAILQ_REMOVE(&e->id->events, e, of_id);
}

/* The file may hold an event of each of thousands of other ids. */
void cm_events_take(struct cm_id *id, struct cm_events *to)
{
	struct cm_event *e;

	while ((e = TAILQ_FIRST(&id->events))) {
		cm_event_unlink(e);
		TAILQ_INSERT_TAIL(to, e, link);
	}
}

void cm_events_put_back(struct cm_events *from)
{
	struct cm_event *e;

	while ((e = TAILQ_FIRST(from))) {
		TAILQ_REMOVE(from, e, link);
		link_event(e);
	}
}

/* The pipe holds an octet while the queue holds events. A thread that waits takes it out
 * (get_event.c) and calls this again, so there may be none, or for a moment two. */
void cm_file_signal(struct cm_file *file)
{
	bool want = !TAILQ_EMPTY(&file->events);
	uint8_t octets[8] = { 0 };

	if (want == file->signalled || (want && file->looking))
		return;
	if (want) {
		file->signalled = fd_obj_send(&file->obj, octets, 1) > 0;
		return;
	}
	fd_obj_recv(&file->obj, octets, sizeof(octets));
	file->signalled = false;
}

static void endpoint_refuse(struct cm_event *e)
{
	static const struct uw_cm_param nothing;

	if (e->ep) {
		e->api->ep_reject(e->ep, &nothing);
		e->api->ep_destroy(e->ep);
	}
	free(e);
}

void cm_events_discard(struct cm_events *list)
{
	struct cm_event *e;

	while ((e = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, e, link);
		endpoint_refuse(e);
	}
}

/* ---- what the stack reports ------------------------------------------------------------- */

/* The ABI has 256 octets and an 8-bit length. */
static uint8_t data_length(const struct uw_cm_param *from)
{
	return (uint8_t)(from->private_data_len < UINT8_MAX ? from->private_data_len : UINT8_MAX);
}

static void copy_data(struct rdma_ucm_conn_param *to, const struct uw_cm_param *from)
{
	to->private_data_len = data_length(from);
	if (to->private_data_len)
		memcpy(to->private_data, from->private_data, to->private_data_len);
}

/* Seen from here, what the peer may ask us is what we must answer, and the reverse. */
static void copy_depths(struct rdma_ucm_conn_param *to, const struct uw_cm_param *from)
{
	to->responder_resources = (uint8_t)(from->ord < UINT8_MAX ? from->ord : UINT8_MAX);
	to->initiator_depth = (uint8_t)(from->ird < UINT8_MAX ? from->ird : UINT8_MAX);
}

/* The address handle is made when the program fetches the event: here no function of the stack may
 * be called. */
static void copy_datagram(struct cm_event *e, const struct uw_cm_param *from)
{
	struct rdma_ucm_ud_param *to = &e->resp.param.ud;

	to->private_data_len = data_length(from);
	if (to->private_data_len)
		memcpy(to->private_data, from->private_data, to->private_data_len);
	to->qp_num = from->qpn;
	to->qkey = from->qkey;
	memcpy(e->own_gid, from->own_gid, sizeof(e->own_gid));
	memcpy(e->peer_gid, from->peer_gid, sizeof(e->peer_gid));
	e->tos = e->id->tos;
	e->has_ah = to->qp_num != 0;
}

/* Without memory for the event the peer is rejected, as when the backlog is full. True: the event
 * was queued, and has the endpoint. */
static bool on_request(struct cm_id *id, const struct uw_cm_event *ev)
{
	struct cm_event *e;

	if (id->dying || !id->backlog)
		return false;
	e = cm_event_new(id, CM_EV_CONNECT_REQUEST, 0);
	if (!e)
		return false;
	e->ep = ev->ep;
	e->api = id->api;
	id->backlog--;
	if (cm_id_is_ud(id)) {
		copy_datagram(e, &ev->param);
	} else {
		copy_data(&e->resp.param.conn, &ev->param);
		copy_depths(&e->resp.param.conn, &ev->param);
	}
	queue_in_callback(e, ev->stack);
	return true;
}

/* The kernel's cma tells these apart by the errno value of the connect reply. */
static enum cm_event_type by_error(int error)
{
	switch (error) {
	case -ECONNRESET:
	case -ECONNREFUSED:
		return CM_EV_REJECTED;
	case -ETIMEDOUT:
		return CM_EV_UNREACHABLE;
	default:
		return CM_EV_CONNECT_ERROR;
	}
}

static const struct outcome {
	int type;    /* -1: by_error() */
	int status;  /* 0: the event's own */
	int unknown; /* if that is 0 too */
} outcomes[] = {
	[UW_CM_ESTABLISHED] = { CM_EV_ESTABLISHED, 0, 0 },
	[UW_CM_REJECTED] = { CM_EV_REJECTED, -ECONNREFUSED, 0 },
	[UW_CM_REFUSED] = { CM_EV_REJECTED, -ECONNREFUSED, 0 },
	[UW_CM_UNREACHABLE] = { CM_EV_UNREACHABLE, 0, -EHOSTUNREACH },
	[UW_CM_CONNECT_ERROR] = { -1, 0, -EPROTO },
	[UW_CM_DISCONNECTED] = { CM_EV_DISCONNECTED, 0, 0 },
};

/* As in the kernel: the accepting side has heard the peer's words with the request. */
static void copy_outcome(const struct cm_id *id, const struct uw_cm_event *ev,
			 struct rdma_ucm_conn_param *to)
{
	if (!id->passive)
		copy_data(to, &ev->param);
	if (ev->type == UW_CM_ESTABLISHED)
		copy_depths(to, &ev->param);
}

static bool is_outcome(const struct uw_cm_event *ev)
{
	return (size_t)ev->type < sizeof(outcomes) / sizeof(outcomes[0]);
}

/* Also where the program is not told: rdma_disconnect waits for this. */
static void note_outcome(struct cm_id *id, const struct uw_cm_event *ev)
{
	id->connecting = false;
	cm_id_under_way(id, false);
	id->established = ev->type == UW_CM_ESTABLISHED;
	pthread_cond_broadcast(&cm.changed);
}

/* InfiniBand's CM says why it rejects (IBA §12.6.7.2, the kernel's enum ib_cm_rej_reason). */
static int reason_of(const struct uw_cm_event *ev)
{
	enum { INVALID_SERVICE_ID = 8, CONSUMER_DEFINED = 28 };

	return ev->type == UW_CM_REFUSED ? INVALID_SERVICE_ID : CONSUMER_DEFINED;
}

/* True: an event was queued. */
static bool on_outcome(struct cm_id *id, const struct uw_cm_event *ev)
{
	const struct outcome *o = &outcomes[ev->type];
	int status = o->status ? o->status : ev->error ? ev->error : o->unknown;
	struct cm_event *e = TAILQ_FIRST(&id->reserve);

	note_outcome(id, ev);
	/* As in the kernel: a request that died before it was accepted says so in ACCEPT. */
	if (id->dying || !id->uid || id->state != CM_CONNECT || !e)
		return false;
	TAILQ_REMOVE(&id->reserve, e, link);
	e->resp.event = (uint32_t)(o->type < 0 ? (int)by_error(status) : o->type);
	/* InfiniBand leaves the last step to the program (rdma_establish), and librdmacm takes it
	 * for an id that has a QP. */
	if (e->resp.event == CM_EV_ESTABLISHED && id->as_roce && !id->passive) {
		e->resp.event = CM_EV_CONNECT_RESPONSE;
		id->unconfirmed = true;
	}
	if (e->resp.event == CM_EV_REJECTED && id->as_roce)
		status = reason_of(ev);
	e->resp.status = (uint32_t)status;
	if (cm_id_is_ud(id))
		copy_datagram(e, &ev->param);
	else
		copy_outcome(id, ev, &e->resp.param.conn);
	queue_in_callback(e, ev->stack);
	return true;
}

bool cm_on_event(void *ctx, const struct uw_cm_event *ev)
{
	struct cm_id *id = ctx;
	bool taken = false;

	cm_lock();
	if (ev->type == UW_CM_CONNECT_REQUEST)
		taken = on_request(id, ev);
	else if (is_outcome(ev))
		taken = on_outcome(id, ev);
	cm_unlock();
	return taken;
}

/* As the kernel since 6.17: rdma_resolve_addrinfo tells of its result so. */
int cm_cmd_write_event(const struct cm_call *c)
{
	const struct cm_write_event *cmd = c->in;
	struct cm_event *e;

	if (cmd->event != CM_EV_USER && cmd->event != CM_EV_INTERNAL)
		return -EINVAL;
	e = cm_event_new(c->id, (enum cm_event_type)cmd->event, (int)cmd->status);
	if (!e)
		return -ENOMEM;
	memcpy(&e->resp.param, cmd->arg, sizeof(cmd->arg));
	cm_lock();
	cm_event_queue(e);
	cm_unlock();
	return 0;
}
