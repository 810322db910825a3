/* SPDX-License-Identifier: BSD-3-Clause */
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "facts.h"
#include "loader/loader.h"
#include "raw.h"
#include "rdma_cm/rdma_cm.h"
#include "uverbs/uverbs.h"

static const struct node {
	const char *name;
	int (*open)(int flags);
} nodes[] = {
	{ UWARP_UCMA_NODE, cm_open },
	{ UWARP_UVERBS_NODE, uverbs_open },
};

/* libibverbs reads P_Keys here and nowhere else. As RoCE the device has one, the default. */
#define PKEY_FILE "/sys/class/infiniband/" UWARP_DEV_NAME "/ports/1/pkeys/0"

static int pkey_open(int flags)
{
	static const char text[] = "0xffff\n";
	struct uw_device_attr attr;
	int fd;

	if (!loader_device(&attr) || !attr.roce)
		return -ENOENT;
	if ((flags & O_ACCMODE) != O_RDONLY)
		return -EACCES;
	fd = memfd_create("pkey", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd < 0)
		return -errno;
	if (pwrite(fd, text, sizeof(text) - 1, 0) != sizeof(text) - 1) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static const struct node pkey = { PKEY_FILE, pkey_open };

static const struct node *node_find(const char *path)
{
	const size_t dir = sizeof(UWARP_NODE_DIR "/") - 1;

	if (path && !strcmp(path, PKEY_FILE))
		return &pkey;
	if (!path || strncmp(path, UWARP_NODE_DIR "/", dir))
		return NULL;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		if (!strcmp(path + dir, nodes[i].name))
			return &nodes[i];
	return NULL;
}

bool node_is(const char *path)
{
	return node_find(path) != NULL;
}

bool node_is_device(const char *path)
{
	const struct node *n = node_find(path);

	return n && n != &pkey;
}

int node_open(const char *path, int flags)
{
	const struct node *n = node_find(path);

	return n ? n->open(flags) : -ENOENT;
}

/* rdma-core compares st_rdev if netlink.c names a device number. */
void node_stat(struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(1, 3); /* as the open uverbs node has it: it is /dev/null */
	st->st_nlink = 1;
	st->st_blksize = 4096;
}
