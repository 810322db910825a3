/* SPDX-License-Identifier: BSD-3-Clause */
/* The device nodes that exist for this process only, in /dev/infiniband. */
#ifndef UWARP_NODES_H
#define UWARP_NODES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is path one of them? NULL is none. */
bool node_is(const char *path);
/* Is it one relative to the open directory dir? dir may be AT_FDCWD and path absolute. */
bool node_is_at(int dir, const char *path);

/* open() of it: a descriptor or a negative errno. Only the end of the path counts. */
int node_open(const char *path, int flags);

/* Is the descriptor one that must look like a node (fd_class.is_cdev)? */
bool fd_is_node(int fd);

/* stat() of a device node, and fstat() of a descriptor whose class says is_cdev. */
void node_stat(struct stat *st);

#endif
