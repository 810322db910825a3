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
	bool flushing;	      /* a helper moves `later` into the pipe as the program reads */
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
	forget_later((struct channel *)o);
	free(o);
}

/* What waited in the parent is the parent's, and so was the helper. */
static void channel_forked(struct fd_obj *o)
{
	forget_later((struct channel *)o);
	((struct channel *)o)->flushing = false;
}

static const struct fd_class channel_class = {
	.free = channel_free,
	.forked = channel_forked,
	.is_pipe = true,
	.outlives = true,
};

int channel_open(void)
{
	struct channel *c = calloc(1, sizeof(*c));
	int fd, err;

	if (!c)
		return -ENOMEM;
	STAILQ_INIT(&c->later);
	fd_obj_init(&c->obj, &channel_class);
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

/* Of several CQs, the older event is the one that the program is to have first. */
static bool is_first_locked(const struct channel *c)
{
	int octets = 0;

	if (atomic_load_explicit(&c->cqs, memory_order_relaxed) < 2)
		return true;
	return STAILQ_EMPTY(&c->later) && !syscall(SYS_ioctl, c->obj.fd, FIONREAD, &octets) &&
	       !octets;
}

static int post_locked(struct channel *c, const event_t *event)
{
	ssize_t n = -EAGAIN;

	if (!c->obj.nfds && !STAILQ_EMPTY(&c->later)) /* closed, as far as is known, and full */
		return -EBADF;
	if (waits_reads(c->obj.fd, sizeof(*event)) && fd_obj_is_programs_locked(&c->obj) &&
	    is_first_locked(c)) {
		waits_give(event, sizeof(*event));
		return 0;
	}
	if (STAILQ_EMPTY(&c->later))
		n = fd_obj_send_locked(&c->obj, event, sizeof(*event));
	if (is_full(n))
		return post_later_locked(c, event);
	return n < 0 ? (int)n : 0;
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
	int dropped = 0;

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
