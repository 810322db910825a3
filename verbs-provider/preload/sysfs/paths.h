/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps paths of the program to the folder of tree.h, and back. */
#ifndef UWARP_SYSFS_PATHS_H
#define UWARP_SYSFS_PATHS_H

#include <limits.h>
#include <stdbool.h>

/*
 * The path to use instead of `path`: the file in our folder, written to buf, if `path` lies in
 * /sys/class/infiniband, /sys/class/infiniband_verbs, /dev/infiniband or the device's place in
 * /sys/devices. Else `path` itself.
 */
const char *path_to_tree(const char *path, char buf[PATH_MAX]);
/* As path_to_tree, for a call that will read the file: updates the content of the file. */
const char *path_to_open(const char *path, char buf[PATH_MAX]);

/* Remove our folder from the front of an absolute path that a libc function returned. In place. */
void path_from_tree(char *path);

/* Is the descriptor open on dev/infiniband of our folder? */
bool path_fd_is_node_dir(int fd);

#endif
