/* SPDX-License-Identifier: BSD-3-Clause */
#include "paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "facts.h"
#include "libc/raw.h"
#include "tree.h"

static const char *const realms[] = { "/sys/class/infiniband", "/sys/class/infiniband_verbs",
				      TREE_DEVICE, UWARP_NODE_DIR };

/* What follows the realm: "" or "/..."; NULL: path lies in none. */
static const char *inside(const char *path)
{
	for (size_t i = 0; i < sizeof(realms) / sizeof(realms[0]); i++) {
		size_t len = strlen(realms[i]);

		if (!strncmp(path, realms[i], len) && (!path[len] || path[len] == '/'))
			return path + len;
	}
	return NULL;
}

/* libibverbs reads this file at every start to find a driver. Ours is found by its name, and a
 * device that is no PCI device has no such file: no folder is made for that. */
static bool is_modalias(const char *rest)
{
	const char *name = uwarp_device_name();
	size_t len = strlen(name);

	return rest[0] == '/' && !strncmp(rest + 1, name, len) &&
	       !strcmp(rest + 1 + len, "/device/modalias");
}

static void refresh(const char *rest)
{
	if (strstr(rest, "counters/"))
		tree_refresh_counter(strrchr(rest, '/') + 1);
	else if (strstr(rest, "/gids/") || strstr(rest, "/gid_attrs/"))
		tree_refresh_gids();
}

static const char *find(const char *path, char buf[PATH_MAX], bool opens)
{
	const char *rest, *root;

	if (LIKELY(!path || path[0] != '/' || (path[1] != 's' && path[1] != 'd')))
		return path;
	rest = inside(path);
	if (LIKELY(!rest) || is_modalias(rest))
		return path;
	root = tree_root();
	if (!root || snprintf(buf, PATH_MAX, "%s%s", root, path) >= PATH_MAX)
		return path;
	if (opens)
		refresh(rest);
	return buf;
}

const char *path_to_tree(const char *path, char buf[PATH_MAX])
{
	return find(path, buf, false);
}

const char *path_to_open(const char *path, char buf[PATH_MAX])
{
	return find(path, buf, true);
}

void path_from_tree(char *path)
{
	const char *root = tree_root_if_made();
	size_t len = root ? strlen(root) : 0;

	if (len && !strncmp(path, root, len) && path[len] == '/')
		memmove(path, path + len, strlen(path + len) + 1);
}

bool path_fd_is_node_dir(int fd)
{
	const char *root = tree_root_if_made();
	char link[32], is[PATH_MAX], want[PATH_MAX];
	ssize_t n;

	if (!root || fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, link, is, sizeof(is) - 1);
	if (n < 0)
		return false;
	is[n] = '\0';
	snprintf(want, sizeof(want), "%s" UWARP_NODE_DIR, root);
	return !strcmp(is, want);
}
