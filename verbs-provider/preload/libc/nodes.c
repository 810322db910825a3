/* SPDX-License-Identifier: BSD-3-Clause */
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "facts.h"
#include "rdma_cm/rdma_cm.h"
#include "sysfs/paths.h"
#include "uverbs/uverbs.h"

static const struct node {
	const char *name;
	int (*open)(int flags);
} nodes[] = {
	{ UWARP_UCMA_NODE, cm_open },
	{ UWARP_UVERBS_NODE, uverbs_open },
};

static const struct node *by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		if (!strcmp(name, nodes[i].name))
			return &nodes[i];
	return NULL;
}

bool node_is(const char *path)
{
	const size_t dir = sizeof(UWARP_NODE_DIR "/") - 1;

	return path && !strncmp(path, UWARP_NODE_DIR "/", dir) && by_name(path + dir);
}

bool node_is_at(int dir, const char *path)
{
	if (!path || path[0] == '/' || dir == AT_FDCWD)
		return node_is(path);
	return by_name(path) && path_fd_is_node_dir(dir);
}

int node_open(const char *path, int flags)
{
	const char *slash = strrchr(path, '/');
	const struct node *n = by_name(slash ? slash + 1 : path);

	return n ? n->open(flags) : -ENOENT;
}

/* rdma-core compares st_rdev if netlink.c names a device number. */
void node_stat(struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev =
		makedev(UWARP_NODE_MAJOR,
			UWARP_NODE_MINOR); /* as the open uverbs node has it: it is /dev/null */
	st->st_nlink = 1;
	st->st_blksize = 4096;
}
