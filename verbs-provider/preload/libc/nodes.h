/* SPDX-License-Identifier: BSD-3-Clause */
/* The device nodes in /dev/infiniband that exist for this process only. */
#ifndef UWARP_NODES_H
#define UWARP_NODES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is path one of these nodes? path may be NULL: false. */
bool node_is(const char *path);
/* As node_is, with path relative to the open directory dir, which may be AT_FDCWD. path may be
 * absolute. */
bool node_is_at(int dir, const char *path);

/* open() of a node: a descriptor or a negative errno. Only the last component of path is examined.
 */
int node_open(const char *path, int flags);

/* Must the descriptor look like a device node (fd_class.is_cdev)? */
bool fd_is_node(int fd);

/* stat() of a device node, and fstat() of a descriptor whose class says is_cdev. */
void node_stat(struct stat *st);

#endif
