/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/ib_user_verbs.h>

#include "fdtab.h"
#include "shim.h"

#define RECORD_MAX 64

static void channel_free(struct fd_obj *o)
{
	free(o);
}

static const struct fd_class channel_class = {
	.free = channel_free,
	.is_loop = true,
};

int channel_open(void)
{
	struct fd_obj *o = malloc(sizeof(*o));
	int fd, err;

	if (!o)
		return -ENOMEM;
	fd = loop_socket(SOCK_CLOEXEC);
	if (fd < 0) {
		free(o);
		return fd;
	}
	fd_obj_init(o, &channel_class);
	err = fdtab_add(fd, o);
	fd_obj_put(o);
	if (err)
		raw_close(fd);
	return err ? err : fd;
}

static struct fd_obj *channel_get(int fd)
{
	struct fd_obj *o = fdtab_get(fd);

	if (o && o->cls != &channel_class) {
		fd_obj_put(o);
		o = NULL;
	}
	return o;
}

int channel_post(int fd, const void *event, size_t len)
{
	struct fd_obj *o = channel_get(fd);
	ssize_t n;

	if (!o)
		return -EBADF;
	n = len <= RECORD_MAX ? fd_obj_send(o, event, len) : -EINVAL;
	fd_obj_put(o);
	if (n == -ENOBUFS || n == -ENOMEM)
		n = -EAGAIN;
	return n < 0 ? (int)n : 0;
}

struct record {
	uint8_t octets[RECORD_MAX];
	size_t len;
};

static bool is_of_cq(const struct record *r, uint64_t handle)
{
	struct ib_uverbs_comp_event_desc d;

	if (r->len != sizeof(d))
		return false;
	memcpy(&d, r->octets, sizeof(d));
	return d.cq_handle == handle;
}

/* Take all out, put the others back in their order. Posts wait meanwhile; a reader in read() gets
 * what is put back. */
static int drop_locked(struct fd_obj *o, uint64_t handle)
{
	size_t kept = 0, room = 0;
	struct record *keep = NULL, r;
	int dropped = 0;
	ssize_t n;

	while ((n = fd_obj_recv_locked(o, r.octets, sizeof(r.octets))) >= 0) {
		r.len = (size_t)n;
		if (is_of_cq(&r, handle)) {
			dropped++;
			continue;
		}
		if (kept == room) {
			struct record *more = realloc(keep, (room + 64) * sizeof(*keep));

			if (!more) {
				fd_obj_send_locked(o, r.octets, r.len);
				break;
			}
			keep = more;
			room += 64;
		}
		keep[kept++] = r;
	}
	for (size_t i = 0; i < kept; i++)
		fd_obj_send_locked(o, keep[i].octets, keep[i].len);
	free(keep);
	return dropped;
}

int channel_drop(int fd, uint64_t handle)
{
	struct fd_obj *o = channel_get(fd);
	int n;

	if (!o)
		return -EBADF;
	fdtab_lock();
	n = drop_locked(o, handle);
	fdtab_unlock();
	fd_obj_put(o);
	return n;
}
