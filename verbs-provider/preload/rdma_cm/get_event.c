/* SPDX-License-Identifier: BSD-3-Clause */
/* GET_EVENT: the program fetches an event, and waits for one if its descriptor is a blocking one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "libc/clock.h"
#include "libc/next.h"
#include "libc/raw.h"
#include "libc/threads.h"
#include "rdma_cm.h"

#define LINGER_MS     50
#define LOOKS	      8u      /* before a wait */
#define LONG_YIELD_US 200u    /* somebody needs the core who does not give it back soon: ... */
#define NO_LOOK_US    100000u /* ... no looks for so long, since a sleeper is woken sooner */

static uint64_t now_ms(void)
{
	return preload_now_us() / 1000;
}

static bool ends_connection(uint32_t type)
{
	return type == CM_EV_DISCONNECTED || type == CM_EV_REJECTED || type == CM_EV_UNREACHABLE ||
	       type == CM_EV_CONNECT_ERROR;
}

/* The calling thread was given e. The caller holds cm.lock. */
static void note_reader(struct cm_file *file, const struct cm_event *e)
{
	file->ended_tid = ends_connection(e->resp.event) ? (pid_t)syscall(SYS_gettid) : 0;
	file->ended_ms = file->ended_tid ? now_ms() : 0;
}

static bool reader_is_away(struct cm_file *file)
{
	pid_t reader;

	cm_lock();
	reader = file->waiting || now_ms() > file->ended_ms + LINGER_MS ? 0 : file->ended_tid;
	cm_unlock();
	return reader && reader != (pid_t)syscall(SYS_gettid) &&
	       !syscall(SYS_tgkill, getpid(), reader, 0);
}

/*
 * After the end of a connection one thread of a program may destroy everything and close the
 * channel, while another thread is on its way back to fetch the next event. The kernel takes so
 * long to destroy an id that the second thread is waiting again by then, and goes on waiting. Here
 * the id is destroyed at once, the second thread would find its descriptor closed, and rping takes
 * that for a failure. So close() waits up to LINGER_MS for a live thread that fetched the end of a
 * connection last.
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
	cm_lock();
	e = TAILQ_FIRST(&file->events);
	if (file->closed)
		err = -ESHUTDOWN;
	else if (e && e->ep && !(*child = adopt_locked(file, e)))
		err = -ENOMEM;
	else if (e)
		err = 0;
	if (!err) {
		cm_event_unlink(e);
		e->id->events_reported++;
		if (e->mc)
			e->mc->events_reported++;
		note_reader(file, e);
		*out = e;
	}
	cm_file_signal(file);
	cm_unlock();
	return err;
}

/* Of a forked child nothing is counted (file_forked()), also where a handler of this thread forked
 * and this is the child. */
static void count_down(unsigned *n)
{
	if (*n)
		--*n;
}

/* Wait until there is something in the queue, or as long as a blocking or non-blocking read of the
 * descriptor would: signals, O_NONBLOCK and thread cancellation act as on the kernel's. The octet
 * is out of the pipe then. take() comes next, and puts one back if events are left: before it, that
 * would be an octet to write and to read again for each event. */
static int wait_for_event(struct cm_file *file, int fd)
{
	int was, err;
	uint8_t octet;
	ssize_t n;

	cm_lock();
	file->waiting++; /* for good if the wait is cancelled: then nobody comes back anyway */
	cm_unlock();
	was = cancel_allow();
	n = next_fn()->read(fd, &octet, sizeof(octet));
	err = n < 0 ? -errno : 0;
	cancel_forbid(was);
	if (!n)
		fd_obj_revive(&file->obj);
	cm_lock();
	count_down(&file->waiting);
	if (n > 0)
		file->signalled = false;
	if (err && file->closed) /* between the look at the queue and the wait: look again */
		err = 0;
	cm_unlock();
	return err;
}

/* The channel was closed while this thread waited. With the kernel, which keeps the file for it,
 * the thread would go on waiting, and rping relies on that: its event thread takes an error for a
 * failure. */
static int wait_for_ever(void)
{
	int was = cancel_allow();
	int n = poll(NULL, 0, -1);

	cancel_forbid(was);
	return n < 0 ? -errno : 0;
}

static bool is_blocking(int fd)
{
	int fl = raw_fcntl(fd, F_GETFL, 0);

	return fl >= 0 && !(fl & O_NONBLOCK);
}

static _Thread_local uint64_t no_look_until_us;

/* True: it was short. */
static bool yield(void)
{
	uint64_t before = preload_now_us(), after;

	syscall(SYS_sched_yield);
	after = preload_now_us();
	if (after - before <= LONG_YIELD_US)
		return true;
	no_look_until_us = after + NO_LOOK_US;
	return false;
}

/* As take(), a few times, before a wait. What happens next may be under way, and where others need
 * this core they make several events meanwhile. None of them needs an octet, nor somebody woken. */
static int look(struct cm_file *file, struct cm_event **out, struct cm_id **child)
{
	int err = -EAGAIN;

	if (preload_now_us() < no_look_until_us)
		return err;
	cm_lock();
	file->looking++;
	cm_unlock();
	for (unsigned i = 0; i < LOOKS && err == -EAGAIN && yield(); i++)
		err = take(file, out, child);
	cm_lock();
	count_down(&file->looking);
	cm_file_signal(file); /* for whoever waits, also for the caller */
	cm_unlock();
	return err;
}

/* As take(), but waits if the descriptor says so. */
static int take_or_wait(const struct cm_call *c, struct cm_event **out, struct cm_id **child)
{
	bool waiting = false;
	int err;

	while ((err = take(c->file, out, child))) {
		waiting = waiting || (err == -EAGAIN && is_blocking(c->fd));
		if (err == -EAGAIN && waiting)
			err = look(c->file, out, child);
		if (!err)
			return 0;
		if (err == -EAGAIN)
			err = wait_for_event(c->file, c->fd);
		else if (err == -ESHUTDOWN)
			err = waiting ? wait_for_ever() : -EBADF;
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
		cm_lock();
		child->src = src;
		child->dst = dst;
		cm_unlock();
		child->api->ep_set_ctx(child->ep, child); /* from now on it has events */
		cm_id_put(child);
	}
	cm_event_fill_ah(e);
	err = cm_answer(c, cmd->response, &e->resp, sizeof(e->resp), least);
	free(e);
	return err;
}
