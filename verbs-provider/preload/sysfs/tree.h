/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that a kernel device has in /sys/class/infiniband and /dev/infiniband.
 *
 * These files are real ones in a folder of this process, below the run directory, made when the
 * program first looks. libc/paths.c redirects the program's calls to the folder (sysfs/paths.h), so
 * directories, symbolic links and descriptors need no emulation:
 *
 *   sys/class/infiniband/uwarp0 -> ../../devices/platform/uwarp.0/infiniband/uwarp0
 *   sys/class/infiniband_verbs/{abi_version,uverbs30071}
 *   sys/devices/platform/uwarp.0/{numa_node,net/IF,infiniband/,infiniband_verbs/}
 *   dev/infiniband/{uverbs30071,rdma_cm}
 *   dev/infiniband/uverbs0 -> uverbs30071
 *
 * Kernel devices appear beside ours as links to their real places. The process holds a lock on the
 * folder, and removes the folder at exit. A folder without a lock belonged to a process that was
 * killed, and any other process may remove the folder.
 */
#ifndef UWARP_SYSFS_TREE_H
#define UWARP_SYSFS_TREE_H

#include <stdbool.h>

/* The place of our device in /sys/devices. */
#define TREE_DEVICE "/sys/devices/platform/uwarp.0"

/* The absolute path of the folder, without a slash at the end. The first call makes the folder.
 * NULL: that failed, and one line on stderr said why. */
const char *tree_root(void);
/* As tree_root(), but never makes the folder. NULL: there is none. */
const char *tree_root_if_made(void);

/* Update a file: a counter, by the name of its file; the GIDs, after which they must not change. */
void tree_refresh_counter(const char *name);
void tree_refresh_gids(void);

/* Remove the folder, at the end of the process. Uses system calls only, so a signal handler may
 * call this function. */
void tree_remove(void);
/* In a forked child: forget the folder, which belongs to the parent. */
void tree_fork_child(void);

#endif
