/* SPDX-License-Identifier: BSD-3-Clause */
#include "uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "base/log.h"
#include "channel.h"
#include "libc/fdtab.h"
#include "libc/raw.h"
#include "loader/loader.h"
#include "sysfs/netdev.h"

void uverbs_gid_of(const struct sockaddr_storage *addr, uint8_t gid[16])
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)addr)->sin6_addr;
	struct uwarp_facts f;

	memset(gid, 0, 16);
	if (!loader_facts_settled(&f))
		return;
	memcpy(gid, f.gid[0].raw, 16);
	for (unsigned i = 0; addr->ss_family == AF_INET6 && i < f.n_gids; i++) {
		if (!memcmp(f.gid[i].raw, six, 16))
			memcpy(gid, six, 16);
	}
}

uint8_t uverbs_gid_index(const uint8_t gid[16])
{
	struct uwarp_facts f;

	if (!loader_facts_settled(&f))
		return 0;
	for (unsigned i = 0; i < f.n_gids; i++) {
		if (f.gid[i].present && !memcmp(f.gid[i].raw, gid, 16))
			return (uint8_t)i;
	}
	return 0;
}

static void fill_gid_entry(const struct uwarp_facts *f, unsigned i, struct ib_uverbs_gid_entry *e)
{
	struct netdev dev;

	netdev_find(&dev);
	*e = (struct ib_uverbs_gid_entry){
		.gid_index = i,
		.port_num = 1,
		.gid_type = f->gid_type,
		.netdev_ifindex = dev.index,
	};
	memcpy(e->gid, f->gid[i].raw, sizeof(e->gid));
}

/* ---- ioctl ------------------------------------------------------------------------------ */

static struct ib_uverbs_attr *find_attr(struct ib_uverbs_ioctl_hdr *h, uint16_t id)
{
	for (unsigned i = 0; i < h->num_attrs; i++)
		if (h->attrs[i].attr_id == id)
			return &h->attrs[i];
	return NULL;
}

/* An input of up to 8 octets lies in the attribute itself. */
static uint64_t attr_value(const struct ib_uverbs_attr *a, uint64_t absent)
{
	uint32_t v32;

	if (!a)
		return absent;
	if (a->len != sizeof(v32))
		return a->data;
	memcpy(&v32, &a->data, sizeof(v32));
	return v32;
}

/* As the kernel copies to a user buffer of another age: what fits, zeros after it. */
static int attr_put(struct ib_uverbs_attr *a, const void *from, size_t len)
{
	size_t n;

	if (!a || !a->data)
		return -EINVAL;
	n = len < a->len ? len : a->len;
	memcpy((void *)(uintptr_t)a->data, from, n);
	memset((uint8_t *)(uintptr_t)a->data + n, 0, a->len - n);
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	return 0;
}

static int query_gid_entry(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_gid_entry e;
	struct uwarp_facts f;
	uint64_t i = attr_value(find_attr(h, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX), UINT_MAX);

	if (attr_value(find_attr(h, UVERBS_ATTR_QUERY_GID_ENTRY_PORT), 0) != 1 ||
	    attr_value(find_attr(h, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS), 0) != 0)
		return -EINVAL;
	/* Programs send GIDs to others, who connect to them, so they have to be final. */
	if (!loader_facts_settled(&f) || i >= f.n_gids)
		return -EINVAL;
	if (!f.gid[i].present)
		return -ENODATA;
	fill_gid_entry(&f, (unsigned)i, &e);
	return attr_put(find_attr(h, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY), &e, sizeof(e));
}

static int query_gid_table(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *entries = find_attr(h, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	uint64_t size = attr_value(find_attr(h, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE), 0);
	uint64_t count = 0;
	struct ib_uverbs_gid_entry e;
	struct uwarp_facts f = { 0 };

	if (attr_value(find_attr(h, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS), 0) || !size || !entries ||
	    !entries->data)
		return -EINVAL;
	loader_facts_settled(&f);
	for (unsigned i = 0; i < f.n_gids; i++) {
		uint8_t *to = (uint8_t *)(uintptr_t)entries->data + count * size;

		if (!f.gid[i].present)
			continue;
		if (entries->len / size <= count)
			return -EINVAL; /* no room for all */
		fill_gid_entry(&f, i, &e);
		memset(to, 0, size);
		memcpy(to, &e, size < sizeof(e) ? size : sizeof(e));
		count++;
	}
	entries->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	return attr_put(find_attr(h, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES), &count,
			sizeof(count));
}

static const struct method {
	uint16_t object, id;
	int (*fn)(struct ib_uverbs_ioctl_hdr *h);
} methods[] = {
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, query_gid_entry },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, query_gid_table },
};

/* -EPROTONOSUPPORT makes libibverbs fall back to what the provider or write() can do. */
static int uverbs_ioctl(struct fd_obj *o, unsigned long request, void *arg)
{
	struct ib_uverbs_ioctl_hdr *h = arg;

	(void)o;
	if (request != RDMA_VERBS_IOCTL)
		return -ENOTTY;
	if (!h)
		return -EFAULT;
	if (h->length != sizeof(*h) + h->num_attrs * sizeof(h->attrs[0]))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (methods[i].object == h->object_id && methods[i].id == h->method_id)
			return methods[i].fn(h);
	return -EPROTONOSUPPORT;
}

/* ---- write ------------------------------------------------------------------------------ */

static int create_comp_channel(const struct ib_uverbs_create_comp_channel *cmd)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	int fd;

	if (!cmd->response)
		return -EFAULT;
	fd = channel_open();
	if (fd < 0)
		return fd;
	resp.fd = (uint32_t)fd;
	memcpy((void *)(uintptr_t)cmd->response, &resp, sizeof(resp));
	return 0;
}

static ssize_t uverbs_write(struct fd_obj *o, int fd, const void *buf, size_t len)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_comp_channel cmd;
	} in;
	int err;

	(void)o;
	(void)fd;
	if (len < sizeof(in.hdr))
		return -EINVAL;
	memcpy(&in.hdr, buf, sizeof(in.hdr));
	if ((size_t)in.hdr.in_words * 4 != len)
		return -EINVAL;
	if (in.hdr.command != IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL)
		return -EOPNOTSUPP;
	if (len < sizeof(in))
		return -EINVAL;
	if ((size_t)in.hdr.out_words * 4 < sizeof(struct ib_uverbs_create_comp_channel_resp))
		return -ENOSPC;
	memcpy(&in, buf, sizeof(in));
	err = create_comp_channel(&in.cmd);
	return err ? err : (ssize_t)len;
}

static void uverbs_free(struct fd_obj *o)
{
	free(o);
}

/* The descriptor is a real /dev/null, so whatever else a program does with it is harmless. O_SYNC
 * means nothing there and tells it from the /dev/null that a program may open under the same
 * number later. */
static const struct fd_class uverbs_class = {
	.write = uverbs_write,
	.ioctl = uverbs_ioctl,
	.free = uverbs_free,
	.open_flags = O_SYNC,
};

/* In a directory made by hand (chroot) it may be missing, or be a file that a shell has made. */
static int open_null(int flags)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_SYNC | flags);
	int err = fd < 0 ? errno : 0;
	struct stat st;

	if (err == EMFILE || err == ENFILE)
		return fdtab_no_descriptor(-err);
	if (!err && !raw_fstat(fd, &st) && S_ISCHR(st.st_mode))
		return fd;
	if (!err)
		raw_close(fd);
	uw_log("needs the device /dev/null: %s", err ? strerror(err) : "that is a file here");
	return err ? -err : -ENODEV;
}

int uverbs_open(int flags)
{
	struct fd_obj *o = malloc(sizeof(*o));
	int fd, err;

	if (!o)
		return -ENOMEM;
	fd = open_null(flags & O_CLOEXEC);
	if (fd < 0) {
		free(o);
		return fd;
	}
	fd_obj_init(o, &uverbs_class);
	err = fdtab_add(fd, o);
	fd_obj_put(o);
	if (err)
		raw_close(fd);
	return err ? err : fd;
}
