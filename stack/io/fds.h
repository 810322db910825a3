/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors whose end tells others that this process is gone: locks and connections. A child
 * that is forked and does not exec would keep them open beyond its parent's death, so they are
 * closed in every forked child (close-on-exec does the rest). Children made by other means
 * (vfork, clone) are expected to exec.
 */
#ifndef UWARP_IO_FDS_H
#define UWARP_IO_FDS_H

/* Any thread, with any lock held: neither of these waits for a lock. */

/* Returns fd, or -1 with fd closed if its number is too high to remember (2^20 and above). */
int fds_keep(int fd);
/* Closes fd if it is kept; -1 is fine. While another thread forks, it is closed after that. */
void fds_close(int fd);

#endif
