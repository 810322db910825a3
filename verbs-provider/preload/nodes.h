/* SPDX-License-Identifier: BSD-3-Clause */
/* The device nodes that exist in this process only. */
#ifndef UWARP_NODES_H
#define UWARP_NODES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is path one of ours? NULL is not. */
bool node_is(const char *path);

/* ... and a device node, for which node_stat speaks. */
bool node_is_device(const char *path);

/* open() it: a descriptor or a negative errno. -ENOENT if it is not ours. */
int node_open(const char *path, int flags);

/* What stat() says of our nodes, and fstat() of a descriptor that must look like one. */
void node_stat(struct stat *st);

#endif
