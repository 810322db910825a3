/* SPDX-License-Identifier: BSD-3-Clause */
/* Which paths lead into the folder of tree.h, and the way back. */
#ifndef UWARP_SYSFS_PATHS_H
#define UWARP_SYSFS_PATHS_H

#include <limits.h>
#include <stdbool.h>

/*
 * What to open instead of `path`: `path` itself, unless it lies in /sys/class/infiniband,
 * /sys/class/infiniband_verbs, /dev/infiniband or the device's place in /sys/devices. Then it is
 * the file in our folder, written to buf.
 */
const char *path_to_tree(const char *path, char buf[PATH_MAX]);
/* The same for a call that will read the file: its text is brought up to date. */
const char *path_to_open(const char *path, char buf[PATH_MAX]);

/* Rewrite an absolute path that a libc function returned: without our folder in front. In place. */
void path_from_tree(char *path);

/* Is the descriptor open on dev/infiniband of our folder? */
bool path_fd_is_node_dir(int fd);

#endif
