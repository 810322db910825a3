/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rdma/ib_user_verbs.h>

#include "libc/fdtab.h"
#include "libc/raw.h"
#include "libc/threads.h"

#define RECORD_MAX    64
#define FLUSH_POLL_MS 100

struct record {
	STAILQ_ENTRY(record) link;
	size_t len;
	uint8_t octets[RECORD_MAX];
};
STAILQ_HEAD(records, record);

/* What the socket has no room for waits in `later`: a completion event that is lost is a program
 * that hangs, and the kernel loses none either. Both fields belong to whoever has the descriptor
 * table locked. */
struct channel {
	struct fd_obj obj;
	struct records later;
	bool flushing; /* a helper moves `later` into the socket as the program reads */
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
	.is_loop = true,
};

int channel_open(void)
{
	struct channel *c = calloc(1, sizeof(*c));
	int fd, err;

	if (!c)
		return -ENOMEM;
	fd = loop_socket(SOCK_CLOEXEC);
	if (fd < 0) {
		free(c);
		return fd;
	}
	STAILQ_INIT(&c->later);
	fd_obj_init(&c->obj, &channel_class);
	err = fdtab_add(fd, &c->obj);
	fd_obj_put(&c->obj);
	if (err)
		raw_close(fd);
	return err ? err : fd;
}

static struct channel *channel_get(int fd)
{
	struct fd_obj *o = fdtab_get(fd);

	if (o && o->cls != &channel_class) {
		fd_obj_put(o);
		o = NULL;
	}
	return (struct channel *)o;
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
		n = fd_obj_send_locked(&c->obj, r->octets, r->len);
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
		p.fd = c->obj.fd;
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
	/* the helper's reference; whoever has the table locked holds another */
	atomic_fetch_add_explicit(&c->obj.refs, 1, memory_order_relaxed);
	c->flushing = !helper_start(flush, c);
	if (!c->flushing)
		atomic_fetch_sub_explicit(&c->obj.refs, 1, memory_order_relaxed);
	return c->flushing;
}

static int post_later_locked(struct channel *c, const void *event, size_t len)
{
	struct record *r = malloc(sizeof(*r));

	if (!r)
		return -EAGAIN;
	r->len = len;
	memcpy(r->octets, event, len);
	STAILQ_INSERT_TAIL(&c->later, r, link);
	if (flush_later_locked(c))
		return 0;
	STAILQ_REMOVE(&c->later, r, record, link);
	free(r);
	return -EAGAIN;
}

static int post_locked(struct channel *c, const void *event, size_t len)
{
	ssize_t n = -EAGAIN;

	if (STAILQ_EMPTY(&c->later))
		n = fd_obj_send_locked(&c->obj, event, len);
	if (is_full(n))
		return post_later_locked(c, event, len);
	return n < 0 ? (int)n : 0;
}

int channel_post(int fd, const void *event, size_t len)
{
	struct channel *c = channel_get(fd);
	int err;

	if (!c)
		return -EBADF;
	fdtab_lock();
	err = len <= RECORD_MAX ? post_locked(c, event, len) : -EINVAL;
	fdtab_unlock();
	fd_obj_put(&c->obj);
	return err;
}

/* ---- dropping --------------------------------------------------------------------------- */

static bool is_of_cq(const struct record *r, uint64_t handle)
{
	struct ib_uverbs_comp_event_desc d;

	if (r->len != sizeof(d))
		return false;
	memcpy(&d, r->octets, sizeof(d));
	return d.cq_handle == handle;
}

/* Everything out of the socket, in its order and before what waits for room in it. */
static void take_all_locked(struct channel *c)
{
	struct records out = STAILQ_HEAD_INITIALIZER(out);
	struct record *r;
	ssize_t n;

	while ((r = malloc(sizeof(*r)))) {
		n = fd_obj_recv_locked(&c->obj, r->octets, sizeof(r->octets));
		if (n < 0)
			break;
		r->len = (size_t)n;
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
		if (is_of_cq(r, handle)) {
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

int channel_drop(int fd, uint64_t handle)
{
	struct channel *c = channel_get(fd);
	int n;

	if (!c)
		return -EBADF;
	fdtab_lock();
	n = drop_locked(c, handle);
	fdtab_unlock();
	fd_obj_put(&c->obj);
	return n;
}
