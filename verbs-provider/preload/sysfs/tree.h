/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files as a kernel device has them in /sys/class/infiniband and /dev/infiniband.
 *
 * They are real files in a folder of this process's own, below the run directory, made when the
 * program first looks. libc/paths.c has the program's calls go there (sysfs/paths.h), so that
 * directories, symbolic links and descriptors need no emulation:
 *
 *   sys/class/infiniband/uwarp0 -> ../../devices/platform/uwarp.0/infiniband/uwarp0
 *   sys/class/infiniband_verbs/{abi_version,uverbs30071}
 *   sys/devices/platform/uwarp.0/{numa_node,net/IF,infiniband/,infiniband_verbs/}
 *   dev/infiniband/{uverbs30071,rdma_cm}
 *
 * Devices of the kernel's appear beside ours as links to their real places. The process removes the
 * folder at its end. It holds a lock on the folder meanwhile, by which the next process knows that
 * the folder of a process that was killed may be removed.
 */
#ifndef UWARP_SYSFS_TREE_H
#define UWARP_SYSFS_TREE_H

#include <stdbool.h>

/* Where the device of ours stands in /sys/devices. */
#define TREE_DEVICE "/sys/devices/platform/uwarp.0"

/* The folder's absolute path, without a slash at the end. Makes it at the first call in a process.
 * NULL: that failed, and one line on stderr said why. */
const char *tree_root(void);
/* The same, but makes nothing. NULL: there is none. */
const char *tree_root_if_made(void);

/* Write what changes anew: a counter, by the name of its file; GIDs, which have to be final when a
 * program reads them. */
void tree_refresh_counter(const char *name);
void tree_refresh_gids(void);

/* At the end of the process. Only system calls, so a signal handler may call it. */
void tree_remove(void);
/* In a forked child: the folder is the parent's. */
void tree_fork_child(void);

#endif
