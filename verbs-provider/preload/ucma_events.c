/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host_priv.h"
#include "next.h"
#include "shim.h"
#include "ucma.h"

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

static void insert(struct cm_event *e)
{
	e->resp.uid = e->id->uid;
	e->resp.id = e->id->handle;
	TAILQ_INSERT_TAIL(&e->id->file->events, e, link);
}

void cm_event_queue(struct cm_event *e)
{
	insert(e);
	cm_file_light(e->id->file);
}

static void light(void *arg)
{
	struct cm_file *file = arg;

	pthread_mutex_lock(&cm.lock);
	file->lighting = false;
	cm_file_light(file);
	pthread_mutex_unlock(&cm.lock);
	fd_obj_put(&file->obj);
}

/* In a callback of `stack`: who waits for events is woken when the stack has reported all that
 * it has, and holds no lock that he would wait for. */
static void queue_in_callback(struct cm_event *e, struct uw_stack *stack)
{
	struct cm_file *file = e->id->file;

	insert(e);
	if (file->lit || file->lighting)
		return;
	file->lighting = e->id->api->later(stack, light, file);
	if (file->lighting) /* its reference; the id's file is open, and has another */
		atomic_fetch_add_explicit(&file->obj.refs, 1, memory_order_relaxed);
	else
		cm_file_light(file);
}

void cm_events_take(struct cm_id *id, struct cm_events *to)
{
	struct cm_events *from = &id->file->events;
	struct cm_event *e, *next;

	for (e = TAILQ_FIRST(from); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->id != id)
			continue;
		TAILQ_REMOVE(from, e, link);
		TAILQ_INSERT_TAIL(to, e, link);
	}
}

/* One octet stands in the socket as long as the queue holds anything. */
void cm_file_light(struct cm_file *file)
{
	bool want = !TAILQ_EMPTY(&file->events);
	uint8_t octet = 0;

	if (want == file->lit)
		return;
	if (want)
		file->lit = fd_obj_send(&file->obj, &octet, sizeof(octet)) > 0;
	else if (fd_obj_recv(&file->obj, &octet, sizeof(octet)) >= 0)
		file->lit = false;
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

/* Callbacks may not call the stack, so requests that nobody wants are refused by a helper. */
static void *drop_all(void *arg)
{
	struct cm_event *e;

	(void)arg;
	pthread_mutex_lock(&cm.lock);
	while ((e = TAILQ_FIRST(&cm.drops))) {
		TAILQ_REMOVE(&cm.drops, e, link);
		pthread_mutex_unlock(&cm.lock);
		endpoint_refuse(e);
		pthread_mutex_lock(&cm.lock);
	}
	cm.dropping = false;
	pthread_mutex_unlock(&cm.lock);
	return NULL;
}

static void drop_later(struct cm_event *e)
{
	TAILQ_INSERT_TAIL(&cm.drops, e, link);
	if (!cm.dropping)
		cm.dropping = !shim_spawn(drop_all, NULL);
}

/* ---- what the stack reports ------------------------------------------------------------- */

/* The ABI has 256 octets and an 8-bit length. */
static void copy_data(struct rdma_ucm_conn_param *to, const struct uw_cm_param *from)
{
	uint16_t len = from->private_data_len < UINT8_MAX ? from->private_data_len : UINT8_MAX;

	if (len)
		memcpy(to->private_data, from->private_data, len);
	to->private_data_len = (uint8_t)len;
}

/* Seen from here, what the peer may ask us is what we must answer, and the reverse. */
static void copy_depths(struct rdma_ucm_conn_param *to, const struct uw_cm_param *from)
{
	to->responder_resources = (uint8_t)(from->ord < UINT8_MAX ? from->ord : UINT8_MAX);
	to->initiator_depth = (uint8_t)(from->ird < UINT8_MAX ? from->ird : UINT8_MAX);
}

static void on_request(struct cm_id *id, const struct uw_cm_event *ev, struct cm_event *e)
{
	e->ep = ev->ep;
	e->api = id->api;
	if (id->dying || !id->backlog) {
		drop_later(e);
		return;
	}
	id->backlog--;
	e->resp.event = CM_EV_CONNECT_REQUEST;
	copy_data(&e->resp.param.conn, &ev->param);
	copy_depths(&e->resp.param.conn, &ev->param);
	queue_in_callback(e, ev->stack);
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

/* True: e was queued. */
static bool on_outcome(struct cm_id *id, const struct uw_cm_event *ev, struct cm_event *e)
{
	const struct outcome *o = &outcomes[ev->type];
	int status = o->status ? o->status : ev->error ? ev->error : o->unknown;

	id->connecting = false;
	id->stands = ev->type == UW_CM_ESTABLISHED;
	pthread_cond_broadcast(&cm.changed);
	/* As in the kernel: a request that died before it was accepted says so in ACCEPT. */
	if (id->dying || !id->uid || id->state != CM_CONNECT)
		return false;
	e->resp.event = (uint32_t)(o->type < 0 ? (int)by_error(status) : o->type);
	e->resp.status = (uint32_t)status;
	/* As in the kernel: the accepting side has heard the peer's words with the request. */
	if (!id->passive)
		copy_data(&e->resp.param.conn, &ev->param);
	if (ev->type == UW_CM_ESTABLISHED)
		copy_depths(&e->resp.param.conn, &ev->param);
	queue_in_callback(e, ev->stack);
	return true;
}

void cm_on_event(void *ctx, const struct uw_cm_event *ev)
{
	struct cm_id *id = ctx;
	struct cm_event *e = cm_event_new(id, CM_EV_CONNECT_REQUEST, 0);
	bool taken = true;

	if (!e)
		return;
	pthread_mutex_lock(&cm.lock);
	if (ev->type == UW_CM_CONNECT_REQUEST)
		on_request(id, ev, e);
	else if ((size_t)ev->type < sizeof(outcomes) / sizeof(outcomes[0]))
		taken = on_outcome(id, ev, e);
	else
		taken = false;
	pthread_mutex_unlock(&cm.lock);
	if (!taken)
		free(e);
}

/* ---- the thread that fetches the events --------------------------------------------------- */

#define LINGER_MS 50

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool ends_connection(uint32_t type)
{
	return type == CM_EV_DISCONNECTED || type == CM_EV_REJECTED || type == CM_EV_UNREACHABLE ||
	       type == CM_EV_CONNECT_ERROR;
}

/* With cm.lock held: the calling thread was given e. */
static void note_reader(struct cm_file *file, const struct cm_event *e)
{
	file->ender = ends_connection(e->resp.event) ? (pid_t)syscall(SYS_gettid) : 0;
	file->ended_ms = file->ender ? now_ms() : 0;
}

static bool reader_is_away(struct cm_file *file)
{
	pid_t reader;

	pthread_mutex_lock(&cm.lock);
	reader = file->waiting || now_ms() > file->ended_ms + LINGER_MS ? 0 : file->ender;
	pthread_mutex_unlock(&cm.lock);
	return reader && reader != (pid_t)syscall(SYS_gettid) &&
	       !syscall(SYS_tgkill, getpid(), reader, 0);
}

/*
 * When a connection has ended, one thread of a program may tear everything down and close the
 * channel while another goes back to fetch the next event. The kernel takes so long to destroy an
 * id that the latter is waiting again by then, and goes on waiting. We do not; and to a thread that
 * comes too late the number names nothing any more, which rping, for one, takes for a failure. So
 * a thread that was told of the end just now and lives is given the time to come back.
 */
void cm_file_linger(struct cm_file *file)
{
	const struct timespec pause = { .tv_nsec = 100000 };

	while (reader_is_away(file))
		nanosleep(&pause, NULL);
}

/* ---- GET_EVENT -------------------------------------------------------------------------- */

/* The id of a connection request comes into being when the program fetches the request. */
static struct cm_id *adopt_locked(struct cm_file *file, struct cm_event *e)
{
	struct cm_id *id = cm_id_new(file, 0, e->id->ps, e->id->qp_type);

	if (!id)
		return NULL;
	id->ep = e->ep;
	id->api = e->api;
	id->state = CM_CONNECT;
	id->passive = true;
	id->unanswered = true;
	id->has_dev = true;
	id->refs = 1; /* the program may guess the handle before it is told */
	e->id->backlog++;
	e->resp.id = id->handle;
	return id;
}

/* The first event off the queue; -EAGAIN: none, -ESHUTDOWN: none any more. A connection request has
 * its new id in *child. */
static int take(struct cm_file *file, struct cm_event **out, struct cm_id **child)
{
	struct cm_event *e;
	int err = -EAGAIN;

	*child = NULL;
	pthread_mutex_lock(&cm.lock);
	e = TAILQ_FIRST(&file->events);
	if (file->closed)
		err = -ESHUTDOWN;
	else if (e && e->ep && !(*child = adopt_locked(file, e)))
		err = -ENOMEM;
	else if (e)
		err = 0;
	if (!err) {
		TAILQ_REMOVE(&file->events, e, link);
		e->id->events_reported++;
		cm_file_light(file);
		note_reader(file, e);
		*out = e;
	}
	pthread_mutex_unlock(&cm.lock);
	return err;
}

/* Wait until there is something in the queue, or as long as a blocking or non-blocking read of the
 * descriptor would: signals, O_NONBLOCK and thread cancellation act as on the kernel's. */
static int wait_for_event(struct cm_file *file, int fd)
{
	int was, err;
	uint8_t octet;
	ssize_t n;

	pthread_mutex_lock(&cm.lock);
	file->waiting++; /* for good if the wait is cancelled: then nobody comes back anyway */
	pthread_mutex_unlock(&cm.lock);
	was = shim_allow_cancel();
	n = next_fn()->recv(fd, &octet, sizeof(octet), MSG_PEEK);
	err = n < 0 ? -errno : 0;
	shim_forbid_cancel(was);
	pthread_mutex_lock(&cm.lock);
	file->waiting--;
	if (err && file->closed) /* between the look at the queue and the wait: look again */
		err = 0;
	pthread_mutex_unlock(&cm.lock);
	return err;
}

/* The channel was closed under a waiting thread: as in the kernel, which keeps the file for it, it
 * waits on. rping relies on that at its end: to its event thread an error is a failure. */
static int wait_for_ever(void)
{
	int was = shim_allow_cancel();
	int n = poll(NULL, 0, -1);

	shim_forbid_cancel(was);
	return n < 0 ? -errno : 0;
}

static bool is_blocking(int fd)
{
	int fl = raw_fcntl(fd, F_GETFL, 0);

	return fl >= 0 && !(fl & O_NONBLOCK);
}

/* As take(), but waits if the descriptor says so. */
static int take_or_wait(const struct cm_call *c, struct cm_event **out, struct cm_id **child)
{
	bool waiting = false;
	int err;

	while ((err = take(c->file, out, child))) {
		if (err == -EAGAIN) {
			waiting = waiting || is_blocking(c->fd);
			err = wait_for_event(c->file, c->fd);
		} else if (err == -ESHUTDOWN) {
			err = waiting ? wait_for_ever() : -EBADF;
		}
		if (err)
			return err;
	}
	return 0;
}

int cm_cmd_get_event(const struct cm_call *c)
{
	const struct rdma_ucm_get_event *cmd = c->in;
	/* Programs of before ECE leave out the last fields, 32-bit ones the padding before it. */
	const size_t least = offsetof(struct rdma_ucm_event_resp, reserved);
	struct sockaddr_storage src, dst;
	struct cm_id *child;
	struct cm_event *e;
	int err;

	if (c->out < least)
		return -ENOSPC;
	if (!cmd->response)
		return -EFAULT;
	err = take_or_wait(c, &e, &child);
	if (err)
		return err;
	if (child) {
		child->api->ep_local_addr(child->ep, &src);
		child->api->ep_peer_addr(child->ep, &dst);
		pthread_mutex_lock(&cm.lock);
		child->src = src;
		child->dst = dst;
		pthread_mutex_unlock(&cm.lock);
		child->api->ep_set_ctx(child->ep, child); /* from now on it has events */
		cm_id_put(child);
	}
	err = cm_answer(c, cmd->response, &e->resp, sizeof(e->resp), least);
	free(e);
	return err;
}
