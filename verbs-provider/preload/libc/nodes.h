/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that exist for this process only: two device nodes and the P_Key file in /sys. */
#ifndef UWARP_NODES_H
#define UWARP_NODES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is path one of these files? NULL is none. */
bool node_is(const char *path);

/* Is it a device node? node_stat() says what stat() says of one. */
bool node_is_device(const char *path);

/* open() of it: a descriptor or a negative errno. -ENOENT: it is none of these files. */
int node_open(const char *path, int flags);

/* stat() of a device node, and fstat() of a descriptor whose class says is_cdev. */
void node_stat(struct stat *st);

#endif
