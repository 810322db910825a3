/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/queue.h>

#include <rdma/ib_user_verbs.h>

#include "libc/fdtab.h"
#include "libc/raw.h"
#include "libc/threads.h"
#include "libc/waits.h"
#include "uverbs/kept.h"
#include "uverbs/watch.h"

#define FLUSH_POLL_MS 100

/* As the kernel's completion channels have them; so many octets go through a pipe whole. */
typedef struct ib_uverbs_comp_event_desc event_t;
static_assert(sizeof(event_t) == sizeof(((struct waits_reader *)NULL)->event), "waits_give()");

struct record {
	STAILQ_ENTRY(record) link;
	event_t event;
};
STAILQ_HEAD(records, record);

/* What the pipe has no room for waits in `later`: a program that misses a completion event hangs,
 * and the kernel loses none either. Both: fdtab_lock(). */
struct channel {
	struct fd_obj obj;
	struct records later;
	bool flushing; /* a helper moves `later` into the pipe as the program reads */
	bool piped;    /* an event was written to the pipe; it may have been read */
	struct watch watch;
	struct kept kept;
	_Atomic unsigned cqs; /* that hold it */
};

static void forget_later(struct channel *c)
{
	struct record *r;

	while ((r = STAILQ_FIRST(&c->later))) {
		STAILQ_REMOVE_HEAD(&c->later, link);
		free(r);
	}
}

static void channel_free(struct fd_obj *o)
{
	uint64_t event;

	fdtab_lock();
	kept_take_locked(&((struct channel *)o)->kept, &event);
	watch_forget_locked(&((struct channel *)o)->watch);
	fdtab_unlock();
	forget_later((struct channel *)o);
	free(o);
}

static void channel_closing(struct fd_obj *o)
{
	fdtab_lock();
	watch_settle_locked(&((struct channel *)o)->watch);
	((struct channel *)o)->watch.checked_us = 0;
	fdtab_unlock();
}

/* The file may live on under a number that this library does not know. */
static void channel_closed(struct fd_obj *o)
{
	fdtab_lock();
	watch_forget_locked(&((struct channel *)o)->watch);
	kept_out_locked(&((struct channel *)o)->kept);
	fdtab_unlock();
}

/* What waited in the parent is the parent's, and so was the helper. */
static void channel_forked(struct fd_obj *o)
{
	struct channel *c = (struct channel *)o;
	uint64_t event;

	kept_take_locked(&c->kept, &event);
	watch_forget_locked(&c->watch);
	c->piped = false;
	forget_later(c);
	c->flushing = false;
}

static const struct fd_class channel_class = {
	.free = channel_free,
	.closing = channel_closing,
	.closed = channel_closed,
	.forked = channel_forked,
	.is_pipe = true,
	.outlives = true,
};

static bool to_pipe(struct fd_obj *o, uint64_t event);

int channel_open(void)
{
	struct channel *c = calloc(1, sizeof(*c));
	int fd, err;

	if (!c)
		return -ENOMEM;
	STAILQ_INIT(&c->later);
	fd_obj_init(&c->obj, &channel_class);
	c->watch = (struct watch){ .channel = &c->obj };
	c->kept = (struct kept){ .channel = &c->obj, .to_pipe = to_pipe, .watch = &c->watch };
	fd = fd_obj_pipe(&c->obj);
	if (fd < 0) {
		free(c);
		return fd;
	}
	err = fdtab_add(fd, &c->obj);
	if (err) {
		raw_close(fd);
		raw_close(c->obj.wfd);
	} else {
		waits_note(fd);
	}
	fd_obj_put(&c->obj);
	return err ? err : fd;
}

struct channel *channel_hold(int fd)
{
	struct fd_obj *o = fdtab_get(fd);

	if (o && o->cls != &channel_class) {
		fd_obj_put(o);
		o = NULL;
	}
	if (o)
		atomic_fetch_add_explicit(&((struct channel *)o)->cqs, 1, memory_order_relaxed);
	return (struct channel *)o;
}

void channel_let_go(struct channel *c)
{
	atomic_fetch_sub_explicit(&c->cqs, 1, memory_order_relaxed);
	fd_obj_put(&c->obj);
}

void channel_revive(struct channel *c)
{
	fd_obj_revive(&c->obj);
}

/* ---- posting ---------------------------------------------------------------------------- */

static bool is_full(ssize_t n)
{
	return n == -EAGAIN || n == -ENOBUFS || n == -ENOMEM;
}

/* True: there is more, and the socket is full. */
static bool flush_locked(struct channel *c)
{
	struct record *r;
	ssize_t n;

	while ((r = STAILQ_FIRST(&c->later))) {
		c->piped = true; /* also where all that was written before was read */
		n = fd_obj_send_locked(&c->obj, &r->event, sizeof(r->event));
		if (is_full(n))
			return true;
		STAILQ_REMOVE_HEAD(&c->later, link);
		free(r);
	}
	return false;
}

static void *flush(void *arg)
{
	struct channel *c = arg;
	struct pollfd p = { .events = POLLOUT };

	fdtab_lock();
	while (flush_locked(c)) {
		p.fd = c->obj.wfd;
		fdtab_unlock();
		poll(&p, 1, FLUSH_POLL_MS);
		fdtab_lock();
	}
	c->flushing = false;
	fdtab_unlock();
	fd_obj_put(&c->obj);
	return NULL;
}

/* Have a helper see to `later`; false: no thread to be had. */
static bool flush_later_locked(struct channel *c)
{
	if (c->flushing)
		return true;
	/* the helper's reference; the caller holds another */
	atomic_fetch_add_explicit(&c->obj.refs, 1, memory_order_relaxed);
	c->flushing = !helper_start(flush, c);
	if (!c->flushing)
		atomic_fetch_sub_explicit(&c->obj.refs, 1, memory_order_relaxed);
	return c->flushing;
}

static int post_later_locked(struct channel *c, const event_t *event)
{
	struct record *r = malloc(sizeof(*r));

	if (!r)
		return -EAGAIN;
	r->event = *event;
	STAILQ_INSERT_TAIL(&c->later, r, link);
	if (flush_later_locked(c))
		return 0;
	STAILQ_REMOVE(&c->later, r, record, link);
	free(r);
	return -EAGAIN;
}

static int pipe_locked(struct channel *c, const event_t *event)
{
	ssize_t n = -EAGAIN;

	c->piped = true;
	if (STAILQ_EMPTY(&c->later))
		n = fd_obj_send_locked(&c->obj, event, sizeof(*event));
	if (is_full(n))
		return post_later_locked(c, event);
	return n < 0 ? (int)n : 0;
}

static bool to_pipe(struct fd_obj *o, uint64_t event)
{
	const event_t e = { .cq_handle = event };

	return pipe_locked((struct channel *)o, &e) != -EAGAIN;
}

static bool is_empty_locked(struct channel *c)
{
	int octets = 0;

	if (c->piped)
		c->piped = syscall(SYS_ioctl, c->obj.fd, FIONREAD, &octets) || octets;
	return !c->piped && !c->kept.has && STAILQ_EMPTY(&c->later);
}

/* Of several CQs, the older event is the one that the program is to have first. */
static bool is_first_locked(struct channel *c)
{
	return (atomic_load_explicit(&c->cqs, memory_order_relaxed) < 2 && !c->kept.has) ||
	       is_empty_locked(c);
}

static int post_locked(struct channel *c, const event_t *event)
{
	if (!c->obj.nfds && !STAILQ_EMPTY(&c->later)) /* closed, as far as is known, and full */
		return -EBADF;
	if (waits_reads(c->obj.fd, sizeof(*event)) && fd_obj_is_programs_locked(&c->obj) &&
	    is_first_locked(c)) {
		waits_give(event, sizeof(*event));
		return 0;
	}
	if (kept_wants_locked(&c->kept) && is_empty_locked(c) &&
	    kept_put_locked(&c->kept, event->cq_handle)) {
		waits_change();
		waits_count();
		return 0;
	}
	kept_out_locked(&c->kept); /* which is older */
	return c->kept.has ? -EAGAIN : pipe_locked(c, event);
}

int channel_post(struct channel *c, const void *event, size_t len)
{
	event_t e;
	int err;

	if (len != sizeof(e))
		return -EINVAL;
	memcpy(&e, event, sizeof(e));
	fdtab_lock();
	err = post_locked(c, &e);
	fdtab_unlock();
	return err;
}

/* ---- dropping --------------------------------------------------------------------------- */

/* Everything out of the pipe, in its order and before what waits for room in it. */
static void take_all_locked(struct channel *c)
{
	struct records out = STAILQ_HEAD_INITIALIZER(out);
	struct record *r;
	ssize_t n;

	while ((r = malloc(sizeof(*r)))) {
		n = fd_obj_recv_locked(&c->obj, &r->event, sizeof(r->event));
		if (n != (ssize_t)sizeof(r->event))
			break;
		STAILQ_INSERT_TAIL(&out, r, link);
	}
	free(r);
	STAILQ_CONCAT(&out, &c->later);
	STAILQ_CONCAT(&c->later, &out);
}

/* Posts wait meanwhile; a reader in read() gets what is put back. */
static int drop_locked(struct channel *c, uint64_t handle)
{
	struct records kept = STAILQ_HEAD_INITIALIZER(kept);
	struct record *r;
	uint64_t event;
	int dropped = 0;

	if (c->kept.event == handle && kept_take_locked(&c->kept, &event))
		dropped++;
	take_all_locked(c);
	while ((r = STAILQ_FIRST(&c->later))) {
		STAILQ_REMOVE_HEAD(&c->later, link);
		if (r->event.cq_handle == handle) {
			free(r);
			dropped++;
		} else {
			STAILQ_INSERT_TAIL(&kept, r, link);
		}
	}
	STAILQ_CONCAT(&c->later, &kept);
	if (flush_locked(c))
		flush_later_locked(c);
	return dropped;
}

int channel_drop(struct channel *c, uint64_t handle)
{
	int n;

	fdtab_lock();
	n = drop_locked(c, handle);
	fdtab_unlock();
	return n;
}

/* ---- what epoll watches, what is kept ----------------------------------------------------- */

static struct channel *peek_locked(int fd)
{
	struct fd_obj *o = fdtab_peek_locked(fd);

	return o && o->cls == &channel_class ? (struct channel *)o : NULL;
}

bool channel_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event, int *result)
{
	struct channel *c = NULL;

	if (fdtab_is_locked_here()) /* a signal handler */
		return false;
	fdtab_lock();
	c = peek_locked(fd);
	if (c) {
		*result = watch_ctl_locked(&c->watch, epfd, op, fd, event);
		if (op != EPOLL_CTL_DEL)
			kept_is_watched_locked(&c->kept);
	}
	fdtab_unlock();
	return c;
}

/* Of a channel's other numbers, those of its duplicates, it is not known whether they are another
 * file's by now. */
enum channel_has channel_take(int fd, uint64_t *event)
{
	enum channel_has has = CHANNEL_ASK;
	struct channel *c;

	if (fdtab_is_locked_here()) /* a signal handler */
		return CHANNEL_ASK;
	fdtab_lock();
	c = peek_locked(fd);
	if (c && (c->obj.fd != fd || !watch_is_channel_locked(&c->watch)))
		kept_out_locked(&c->kept);
	else if (c && kept_take_locked(&c->kept, event))
		has = CHANNEL_EVENT;
	else if (c && !c->piped && STAILQ_EMPTY(&c->later))
		has = CHANNEL_EMPTY;
	fdtab_unlock();
	return has;
}

void channel_found_empty(int fd)
{
	struct channel *c;

	if (fdtab_is_locked_here())
		return;
	fdtab_lock();
	c = peek_locked(fd);
	if (c && watch_is_channel_locked(&c->watch))
		is_empty_locked(c);
	fdtab_unlock();
}
